// A program that adds to tenon makes mistakes: its command line tells of them.
#include <gtest/gtest.h>

#include <tenon/extend.hpp>

namespace tenon {
namespace {

// Of a program that is this function, and then the command line. In a child, for the pipeline is the
// process's.
void expect_refused(const std::function<void()>& add, const std::string& message) {
  const auto program = [&] {
    add();
    std::string words[] = {"my_tenon", "ops"};
    char* arguments[] = {words[0].data(), words[1].data(), nullptr};
    std::exit(command_line(2, arguments));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(2), message);
}

const PatternRewrite kRule = {.name = "my-rule",
                              .pattern = [](Value x) { return relu(relu(x)); },
                              .replacement = [](Value x) { return relu(x); }};

TEST(Extend, TellsOfAPassThatIsNotThere) {
  expect_refused([] { add_rewrite(kRule, "simplfy"); },
                 "tenon: there is no pass \"simplfy\"\n  hint: did you mean simplify\\?\n");
}

TEST(Extend, TellsOfTheFirstMistake) {
  expect_refused(
      [] {
        add_rewrite(kRule);
        add_rewrite(kRule);
        add_rewrite(kRule, "simplfy");
      },
      "tenon: there is a pass \"my-rule\" already\n");
}

}  // namespace
}  // namespace tenon
