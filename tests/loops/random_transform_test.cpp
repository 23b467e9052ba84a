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
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

  // Two nests over one buffer, whose statements read and write it near where they are.
  Kernel kernel() {
    size_ = below(2) == 0 ? "9" : "n";
    std::string text = fmt::format(
        "kernel k(x: f32[{0},{0}]) -> (y: f32[{0},{0}], s: f32[{0}]) {{\n"
        "for a in 0..{0} {{ s[a] = 0 for b in 0..{0} {{ y[a,b] = x[a,b] }} }}\n",
        size_);
    text += nest("i", "j", "t") + nest("p", "q", "u");
    return parse_kernel(text + "}");
  }

  std::string step(const Kernel& kernel) {
    std::vector<std::string> loops;
    collect(kernel.body, loops);
    const auto loop = [&] { return one_of(loops); };
    switch (below(14)) {
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
      case 10:
        return fmt::format("shrink({})", one_of<std::string>({"t", "u"}));
      case 11:
        return fmt::format("parallelise({})", loop());
      case 12:
        return fmt::format("vectorise({})", loop());
      default:
        return fmt::format("unroll({})", loop());
    }
  }

 private:
  // A loop's range within what has neighbours on both sides.
  std::string range(const std::string& begin) {
    return fmt::format("{}..{}-{}{}", begin, size_, 1 + below(2), below(5) == 0 ? " step 2" : "");
  }
  std::string nest(const std::string& i, const std::string& j, const std::string& local) {
    const bool has_local = below(2) == 0;
    std::string text = has_local ? fmt::format("local {}: f32[{},{}]\n", local, size_, size_) : "";
    text += fmt::format("for {} in {} {{\n", i, range(std::to_string(1 + below(2))));
    if (below(3) == 0)
      text += statement(i, "4");
    text += fmt::format("for {} in {} {{\n", j, range(below(4) == 0 ? i : "1"));
    if (has_local)
      text += fmt::format("{0}[{1},{2}] = x{3}\ny{4} = {0}[{1},{2}] + 1\n", local, i, j, place(i, j),
                          place(i, j));
    text += statement(i, j);
    if (below(2) == 0)
      text += fmt::format("if {}-{} >= 0 {{ {} }}\n", i, 2 + below(3), statement(i, j));
    return text + "}\n}\n";
  }
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
  std::string size_;
};

TEST(RandomTransformations, ComputeTheSameUnlessDeclined) {
  Tensor x(DType::F32, {9, 9});
  int64_t i = 0;
  for (float& element : x.mutable_data<float>())
    element = static_cast<float>((7919 * ++i) % 17);  // whole numbers: sums are the same in any order
  int64_t done = 0, declined = 0, refused = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Draw draw(seed);
    const Kernel first = draw.kernel();
    ASSERT_EQ(check(first), std::vector<std::string>());
    const std::vector<Tensor> expected = interpret(first, {x});
    Kernel kernel = first;
    std::string steps;
    for (int step = 0; step < 5; ++step) {
      const std::string text = draw.step(kernel);
      Transformed result;
      try {
        result = apply_steps(kernel, text).front().result;
      } catch (const UserError&) {  // it makes no sense: a loop within itself, say
        ++refused;
        continue;
      }
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
  // All happen, so that all are tested.
  EXPECT_GT(done, 10);
  EXPECT_GT(declined, 10);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tenon::loops
