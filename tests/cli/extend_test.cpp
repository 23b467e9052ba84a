// A program that adds to tenon makes mistakes: its command line tells of them.
#include <gtest/gtest.h>

#include <tenon/extend.hpp>

#include "base/child_process.h"
#include "base/temporary_folder.h"
#include "ops/registry.h"
#include "source_tree.h"

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

// Who reads the name in a journal would take the one for the other.
TEST(Extend, RefusesTheNameOfARuleOfOurs) {
  expect_refused(
      [] {
        add_rewrite({.name = "multiply-by-one", .pattern = kRule.pattern, .replacement = kRule.replacement});
      },
      "tenon: there is a rule \"multiply-by-one\" already\n");
}

TEST(Extend, WantsNames) {
  expect_refused(
      [] { add_rewrite({.name = "", .pattern = kRule.pattern, .replacement = kRule.replacement}); },
      "tenon: a pass or rewrite that is added needs a name\n");
}

const OpDef kOp = {.name = "my_op",
                   .doc = "x",
                   .operands = {{"x", "T"}},
                   .results = {{"y", "T"}},
                   .infer = [](const Node& n) { return Types{n.in("x").type()}; },
                   .eval = [](const Call& c) { return Data{c.in("x")}; }};

TEST(Extend, TellsOfOpsThatCannotBeAdded) {
  const auto refuse = [](OpDef op, const OnnxName& name, const std::string& message) {
    expect_refused([&] { add_op(std::move(op), name); }, message);
  };
  OpDef op = kOp;
  op.name = "relu";
  refuse(op, {}, "tenon: there is an op \"relu\" already\n");
  op = kOp;
  op.eval = nullptr;
  refuse(op, {},
         "tenon: the op \"my_op\" that is added needs a function infer, for its types, and eval, for its "
         "elements\n");
  refuse(kOp, {.domain = "com.acme"},
         "tenon: the op \"my_op\" that is added needs both a domain and a name in ONNX, or neither\n");
  refuse(
      kOp, {.domain = "ai.onnx.ml", .op_type = "Scaler"},
      "tenon: the op \"my_op\" that is added cannot be ai.onnx.ml.Scaler in ONNX, which is read already\n");
  expect_refused(
      [] {
        add_op(kOp);
        add_op(kOp);
      },
      "tenon: there is an op \"my_op\" already\n");
  expect_refused(
      [] {
        OpDef other = kOp;
        other.name = "my_other_op";
        add_op(kOp, {.domain = "com.acme", .op_type = "Mine"});
        add_op(other, {.domain = "com.acme", .op_type = "Mine"});
      },
      "tenon: the op \"my_other_op\" that is added cannot be com.acme.Mine in ONNX, which is read already\n");
}

// What a program that has the rule prints for these arguments.
void expect_told(std::vector<std::string> words, const std::string& text) {
  testing::internal::CaptureStdout();
  const ChildEnd end = run_in_child(60, [&] {
    register_ops();
    add_rewrite(kRule);
    add_rewrite({.name = "my-other",
                 .numerics = Numerics::BitExact,
                 .inputs = {f32({2, 3})},
                 .pattern = [](Value x) { return reduce_sum(x * 2.0, {1}); },
                 .replacement = [](Value) { return Value(); }});
    words.insert(words.begin(), "my_tenon");
    std::vector<char*> arguments;
    for (std::string& word : words)
      arguments.push_back(word.data());
    const int status = command_line(static_cast<int>(arguments.size()), arguments.data());
    return std::to_string(status);
  });
  EXPECT_EQ(end.report, "0") << end.failure;
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_NE(out.find(text), std::string::npos) << out;
}

TEST(Extend, TellsAboutRulesThatWereAdded) {
  expect_told({"rules", "my-rule"},
              "added by this program: my-rule\n  relu(relu(x)) => relu(x) (reassociates)\n");
  expect_told({"rules"},
              "added by this program\n"
              "  my-rule                          reassociates       relu(relu(x)) => relu(x)\n"
              "  my-other                         bit-exact          "
              "reduce_sum((x * 2), axes=[1]) => the replacement\n");
  expect_told({"passes", "my-rule"},
              "my-rule                replaces what computes its pattern\n"
              "                       added by this program\n"
              "                       relu(relu(x)) => relu(x) (reassociates)\n");
}

// --- what a compiler says ---

// Of a file with this text; empty where all is well.
std::string compile(const std::string& text) {
  const TemporaryFolder folder;
  const std::string command =
      fmt::format("{} -std=c++20 -fsyntax-only -I'{}/src' -I'{}/include' '{}' 2>'{}'", TENON_COMPILER,
                  source_tree().string(), source_tree().string(), folder.write("my_tenon.cpp", text).string(),
                  (folder / "said").string());
  const int status = std::system(command.c_str());
  const std::string said = read_file(folder / "said");
  EXPECT_EQ(status == 0, said.empty()) << said;
  return said;
}

std::string compile_rule(const std::string& pattern) {
  return compile(fmt::format(R"(#include <tenon/extend.hpp>
using tenon::Value;
void add() {{
  tenon::add_rewrite({{.name = "my-rule",
                      .pattern = {},
                      .replacement = [](Value x) {{ return linear(conv(x, x), x); }}}});
}}
)",
                             pattern));
}

TEST(ExtendErrors, AreNoneForAFunctionOfValues) {
  EXPECT_EQ(compile_rule("[](Value x) { return relu(x); }"), "");
}

// It is told in a message of ours, and how it came about in a few lines.
void expect_short(const std::string& said, const std::string& message) {
  EXPECT_NE(said.find(message), std::string::npos) << said;
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 30) << said;
}

TEST(ExtendErrors, AreShortWhereNoValuesAreTaken) {
  expect_short(compile_rule("[](float x) { return x; }"),
               "a traced function takes up to 8 tenon::Values, or a std::vector<tenon::Value>");
}

TEST(ExtendErrors, AreShortWhereNoValuesAreReturned) {
  expect_short(compile_rule("[](Value) { return 3.0; }"),
               "a traced function returns a tenon::Value or a std::vector<tenon::Value>");
}

// Those of the rooms that a program which changes graphs uses, with those of the two interfaces.
TEST(Headers, GoTogetherInAnyOrder) {
  std::vector<std::string> headers = {"tenon/extend.hpp", "tenon/tenon.hpp"};
  for (const char* room :
       {"base", "target", "tensor", "ir", "loops", "ops", "frontends", "views", "rewrite", "autodiff",
        "passes", "lowering", "fusion", "schedule", "runtime", "compiler", "api"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_tree() / "src" / room))
      if (entry.path().extension() == ".h")
        headers.push_back(entry.path().lexically_relative(source_tree() / "src").string());
  std::sort(headers.begin(), headers.end());
  const auto include_all = [&] {
    return fmt::format("#include <{}>\n", fmt::join(headers, ">\n#include <"));
  };
  EXPECT_EQ(compile(include_all()), "");
  std::reverse(headers.begin(), headers.end());
  EXPECT_EQ(compile(include_all()), "");
}

}  // namespace
}  // namespace tenon
