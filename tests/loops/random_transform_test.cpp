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

  std::string stacked_step(const Kernel& kernel) {
    std::vector<std::string> loops;
    collect(kernel.body, loops);
    switch (below(3)) {
      case 0:
        return fmt::format("split({},{})", one_of(loops), 2 + below(3));
      case 1:
        return fmt::format("unroll({},{})", one_of(loops), 2 + below(7));
      default: {  // of two loops within each other, as a rule
        const auto first = static_cast<size_t>(below(static_cast<int64_t>(loops.size())));
        return fmt::format("tile({},{},{},{})", loops[first], loops[std::min(first + 1, loops.size() - 1)],
                           1 + below(4), 1 + below(4));
      }
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

class RandomTransformations : public testing::Test {
 protected:
  RandomTransformations() {
    int64_t i = 0;
    for (float& element : x_.mutable_data<float>())
      element = static_cast<float>((7919 * ++i) % 17);  // whole numbers: sums are the same in any order
  }

  // Begins anew with a kernel that is drawn.
  void begin(uint64_t seed) {
    draw_ = Draw(seed);
    kernel_ = draw_.kernel();
    ASSERT_EQ(check(kernel_), std::vector<std::string>());
    expected_ = interpret(kernel_, {x_});
    story_ = fmt::format("seed {}:\n{}", seed, print(kernel_));
  }
  // Does it, if it makes sense and is legal; then the kernel must compute the same.
  void apply(const std::string& step) {
    Transformed result;
    try {
      result = apply_steps(kernel_, step).front().result;
    } catch (const UserError&) {  // it makes no sense: a loop within itself, say
      ++refused_;
      return;
    }
    ++(result.kernel ? done_ : declined_);
    if (!result.kernel)
      return;
    kernel_ = *result.kernel;
    story_ += step + "; ";
    const std::vector<Tensor> actual = interpret(kernel_, {x_});
    for (size_t output = 0; output < expected_.size(); ++output)
      ASSERT_TRUE(identical(actual[output], expected_[output])) << story_ << "\n" << print(kernel_);
  }

  Draw draw_{0};
  Tensor x_{DType::F32, {9, 9}};
  Kernel kernel_;
  std::vector<Tensor> expected_;
  std::string story_;
  int64_t done_ = 0, declined_ = 0, refused_ = 0;
};

TEST_F(RandomTransformations, ComputeTheSameUnlessDeclined) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    begin(seed);
    for (int step = 0; step < 5 && !HasFatalFailure(); ++step)
      apply(draw_.step(kernel_));
  }
  // All happen, so that all are tested.
  EXPECT_GT(done_, 20);
  EXPECT_GT(declined_, 20);
  EXPECT_GT(refused_, 0);
}

// What is split, tiled and unrolled again and again, and then rearranged.
TEST_F(RandomTransformations, StackedOnEachOtherComputeTheSameUnlessDeclined) {
  for (uint64_t seed = 100; seed < 108; ++seed) {
    begin(seed);
    for (int step = 0; step < 6 && !HasFatalFailure(); ++step)
      apply(draw_.stacked_step(kernel_));
    for (int step = 0; step < 3 && !HasFatalFailure(); ++step)
      apply(draw_.step(kernel_));
  }
  EXPECT_GT(done_, 20);
  EXPECT_GT(declined_, 10);
}

}  // namespace
}  // namespace tenon::loops
