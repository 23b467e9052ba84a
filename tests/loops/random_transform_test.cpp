// Random nests, rearranged at random: whatever is not declined must compute the same.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "loops/interpret.h"
#include "loops/transform.h"

namespace tenon::loops {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }
  bool often() { return below(3) > 0; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

  // Two nests over one buffer, whose statements read and write it near where they are.
  Kernel kernel() {
    std::string text =
        "kernel k(x: f32[9,9]) -> (y: f32[9,9], s: f32[9]) {\n"
        "for a in 0..9 { s[a] = 0 for b in 0..9 { y[a,b] = x[a,b] } }\n";
    for (const auto& [i, j] : {std::pair("i", "j"), std::pair("p", "q")}) {
      text += fmt::format("for {} in {}..{} {{\n", i, 1 + below(2), 7 + below(2));
      if (below(3) == 0)
        text += statement(i, "4");
      text += fmt::format("for {} in {}..{} {{\n", j, below(4) == 0 ? i : "1", 7 + below(2));
      text += statement(i, j);
      if (below(2) == 0)
        text += fmt::format("if {}-{} >= 0 {{ {} }}\n", i, 2 + below(3), statement(i, j));
      text += "}\n}\n";
    }
    return parse_kernel(text + "}");
  }

  std::string step(const Kernel& kernel) {
    std::vector<std::string> loops;
    collect(kernel.body, loops);
    const auto loop = [&] { return one_of(loops); };
    switch (below(11)) {
      case 0:
        return fmt::format("split({},{})", loop(), 1 + below(4));
      case 1:
        return fmt::format("tile({},{},{},{})", loop(), loop(), 1 + below(4), 1 + below(4));
      case 2:
        return fmt::format("permute({},{})", loop(), loop());
      case 3:
        return fmt::format("unroll({},{})", loop(), 1 + below(4));
      case 4:
        return fmt::format("fission({})", loop());
      case 5:
        return fmt::format("fuse({},{})", loop(), loop());
      case 6:
        return fmt::format("skew({},{},{})", loop(), loop(), 1 + below(2));
      case 7:
        return fmt::format("peel({},{})", loop(), below(5) - 2);
      case 8:
        return fmt::format("divide({},{})", loop(), below(9));
      case 9:
        return fmt::format("cache(x,{})", loop());
      default:
        return fmt::format("unroll({})", loop());
    }
  }

 private:
  std::string near(const std::string& variable) {
    const int64_t offset = below(3) - 1;
    return offset == 0 ? variable : fmt::format("{}{:+}", variable, offset);
  }
  std::string place(const std::string& i, const std::string& j) {
    const bool turned = below(5) == 0;
    return fmt::format("[{},{}]", near(turned ? j : i), near(turned ? i : j));
  }
  std::string statement(const std::string& i, const std::string& j) {
    if (below(4) == 0)
      return fmt::format("s[{}] += y{}\n", i, place(i, j));
    return fmt::format("y{} {}= y{} + x{}\n", place(i, j), below(4) == 0 ? "max" : "", place(i, j),
                       place(i, j));
  }
  static void collect(const std::vector<Statement>& body, std::vector<std::string>& loops) {
    for (const Statement& statement : body) {
      if (const auto* loop = std::get_if<Loop>(&statement))
        loops.push_back(loop->variable);
      if (const std::vector<Statement>* inner = body_of(statement))
        collect(*inner, loops);
    }
  }

  std::mt19937_64 random_;
};

// Requests that make no sense (a loop within itself) count as declined.
Transformed attempt(const Kernel& kernel, const std::string& step) {
  try {
    return apply_steps(kernel, step).front().result;
  } catch (const UserError& error) {
    return {.kernel = std::nullopt, .declined = error.what()};
  }
}

TEST(RandomTransformations, ComputeTheSameUnlessDeclined) {
  Tensor x(DType::F32, {9, 9});
  int64_t i = 0;
  for (float& element : x.mutable_data<float>())
    element = static_cast<float>((7919 * ++i) % 17);  // whole numbers: sums are the same in any order
  int64_t done = 0, declined = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Draw draw(seed);
    const Kernel first = draw.kernel();
    ASSERT_EQ(check(first), std::vector<std::string>());
    const std::vector<Tensor> expected = interpret(first, {x});
    Kernel kernel = first;
    std::string steps;
    for (int step = 0; step < 5; ++step) {
      const std::string text = draw.step(kernel);
      const Transformed result = attempt(kernel, text);
      ++(result.kernel ? done : declined);
      if (!result.kernel)
        continue;
      steps += text + "; ";
      kernel = *result.kernel;
      const std::vector<Tensor> actual = interpret(kernel, {x});
      for (size_t output = 0; output < expected.size(); ++output)
        ASSERT_TRUE(identical(actual[output], expected[output])) << "seed " << seed << ": " << steps << "\n"
                                                                 << print(first) << print(kernel);
    }
  }
  // Both happen, so that both are tested.
  EXPECT_GT(done, 10);
  EXPECT_GT(declined, 10);
}

}  // namespace
}  // namespace tenon::loops
