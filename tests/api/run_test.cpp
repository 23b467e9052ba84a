// Programs run through the C interface: on fixed sizes and others, and on what does not fit.
#include "api/c_interface.h"
#include "tensor/tensor.h"

namespace tenon {
namespace {

using Floats = Array<float>;

constexpr const char* kSum = R"(graph main(%a: f32[2], %b: f32[2]) {
  %0 = add(%a, %b)
  return %0 as "sum"
})";
constexpr const char* kRows = R"(graph main(%a: f32[n,2], %b: f32[n,2]) {
  %0 = add(%a, %b)
  return %0 as "sum"
})";

// Runs a program of one input and one output, both f32.
std::vector<float> apply(const ProgramHandle& program, Floats x, Floats y) {
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
  EXPECT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
  return y.elements;
}

class Sum {
 public:
  explicit Sum(const char* text, std::vector<int64_t> sizes)
      : program_(compile_text(text)), a_{{1, 2}, sizes}, b_{{10, 20}, sizes}, sum_{{0, 0}, sizes} {}

  std::vector<tenon_tensor> inputs() { return {a_.tensor(TENON_F32), b_.tensor(TENON_F32)}; }
  std::vector<tenon_tensor> outputs() { return {sum_.tensor(TENON_F32)}; }
  const ProgramHandle& program() const { return program_; }

  // It fails with just this message, and then still runs.
  void expect_error(const std::vector<tenon_tensor>& inputs, std::vector<tenon_tensor> outputs,
                    const std::string& message) {
    EXPECT_EQ(run(program_, inputs, outputs), TENON_USER_ERROR);
    EXPECT_EQ(tenon_error_message(), message);
    expect_sum();
  }
  void expect_sum() {
    sum_.elements = {0, 0};
    std::vector<tenon_tensor> outputs = this->outputs();
    EXPECT_EQ(run(program_, inputs(), outputs), TENON_OK) << tenon_error_message();
    EXPECT_EQ(sum_.elements, (std::vector<float>{11, 22}));
  }

 private:
  ProgramHandle program_;
  Floats a_, b_, sum_;
};

TEST(Run, FixedSizes) { Sum(kSum, {2}).expect_sum(); }

TEST(Run, SizesOfTheInputs) {
  const ProgramHandle program = compile_text(kRows);
  for (const int64_t n : {0, 1, 3}) {
    const auto count = static_cast<size_t>(2 * n);
    Floats a{std::vector<float>(count, 1), {n, 2}}, sum{std::vector<float>(count), {-1, -1}};
    std::vector<tenon_tensor> outputs = {sum.tensor(TENON_F32)};
    ASSERT_EQ(run(program, {a.tensor(TENON_F32), a.tensor(TENON_F32)}, outputs), TENON_OK)
        << tenon_error_message();
    EXPECT_EQ(sum.elements, std::vector<float>(count, 2));
    EXPECT_EQ(sum.sizes, (std::vector<int64_t>{n, 2}));
  }
}

TEST(Run, BoundSizes) {
  const ModelHandle model = load_text(kRows);
  ASSERT_EQ(tenon_bind(model.get(), "n", 1), TENON_OK);
  tenon_program* program = nullptr;
  ASSERT_EQ(tenon_compile(model.get(), nullptr, &program), TENON_OK);
  const ProgramHandle owned(program);
  EXPECT_EQ(tenon_program_input(program, 0)->sizes[0], 1);
  EXPECT_EQ(tenon_bind(model.get(), "m", 1), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "no input has a dimension m");
}

// Outputs that no kernel writes, or that one kernel writes for two: all must reach the caller's memory.
void expect_outputs_that_are_other_values(const char* type) {
  const ProgramHandle program = compile_text(fmt::format(R"(graph main(%x: {}) {{
    %c = constant(value=f32[2] {{7, 8}})
    %shape = constant(value=i64[1] {{-1}})
    %y = neg(%x)
    %r = reshape(%y, %shape)
    %v = reshape(%x, %shape)
    return %x as "x", %c as "c", %y as "y", %r as "r", %y as "again", %v as "v"
  }})",
                                                         type));
  Floats x{{1, 2, 3, 4}, {2, 2}};
  std::vector<std::vector<float>> results;
  std::vector<tenon_tensor> outputs;
  for (const size_t count : {4, 2, 4, 4, 4, 4})
    results.emplace_back(count);
  for (std::vector<float>& result : results)
    outputs.push_back({.struct_size = sizeof(tenon_tensor),
                       .data = result.data(),
                       .bytes = result.size() * sizeof(float),
                       .dtype = TENON_F32,
                       .rank = 0,
                       .sizes = nullptr,
                       .strides = nullptr,
                       .device = {}});
  ASSERT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
  const std::vector<float> given = {1, 2, 3, 4}, negated = {-1, -2, -3, -4};
  EXPECT_EQ(results, (std::vector<std::vector<float>>{given, {7, 8}, negated, negated, negated, given}));
  EXPECT_EQ(outputs[0].rank, 2);
  EXPECT_EQ(outputs[3].rank, 1);
}

TEST(Run, OutputsThatAreOtherValues) {
  expect_outputs_that_are_other_values("f32[2,2]");
  expect_outputs_that_are_other_values("f32[n,2]");
}

// What the host computes reads and writes the caller's memory too.
TEST(Run, StepsOnTheHost) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[3]) {
    %k = constant(value=i64[] {3})
    %0, %1 = top_k(%x, %k)
    %y = neg(%0)
    return %y as "y"
  })");
  EXPECT_EQ(apply(program, {{1, 3, 2}, {3}}, {{0, 0, 0}, {3}}), (std::vector<float>{-3, -2, -1}));
}

TEST(Run, SizesThatDependOnElements) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[4]) {
    %0 = nonzero(%x)
    return %0 as "places"
  })");
  EXPECT_EQ(tenon_program_output(program.get(), 0)->sizes[1], -1);
  Floats x{{0, 5, 0, 6}, {4}};
  Array<int64_t> places{{-1, -1}, {-1, -1}};
  std::vector<tenon_tensor> outputs = {places.tensor(TENON_I64)};
  ASSERT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
  EXPECT_EQ(places.elements, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(places.sizes, (std::vector<int64_t>{1, 2}));

  outputs[0].bytes = 8;
  places.sizes = {-1, -1};
  EXPECT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "output places takes 16 bytes, but 8 are given");
  EXPECT_EQ(places.sizes, (std::vector<int64_t>{1, 2}));
}

TEST(Run, WithoutElements) {
  const ProgramHandle program = compile_text("graph main(%x: f32[0]) { %0 = neg(%x) return %0 }");
  Floats none{{}, {0}};
  tenon_tensor x = none.tensor(TENON_F32), y = x;
  y.sizes = nullptr;
  EXPECT_EQ(tenon_run(program.get(), &x, 1, &y, 1, nullptr), TENON_OK) << tenon_error_message();
  EXPECT_EQ(y.rank, 1);
}

TEST(Run, TheSeedDecidesWhatIsDrawn) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[8]) {
    %shape = constant(value=i64[1] {8})
    %0 = random_uniform(%shape, dtype=f32)
    %1 = add(%x, %0)
    return %1
  })");
  Floats x{std::vector<float>(8), {8}};
  const auto draw = [&](uint64_t seed) {
    Floats y{std::vector<float>(8), {8}};
    const tenon_tensor input = x.tensor(TENON_F32);
    tenon_tensor output = y.tensor(TENON_F32);
    const tenon_run_options options{
        .struct_size = sizeof options, .threads = 0, .seed = seed, .stream = nullptr};
    EXPECT_EQ(tenon_run(program.get(), &input, 1, &output, 1, &options), TENON_OK) << tenon_error_message();
    return y.elements;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

// --- what does not fit ---

TEST(RunErrors, OfFixedSizes) {
  Sum sum(kSum, {2});
  const std::vector<tenon_tensor> inputs = sum.inputs(), outputs = sum.outputs();
  const auto with = [](std::vector<tenon_tensor> tensors, auto change) {
    change(tensors[0]);
    return tensors;
  };
  sum.expect_error({inputs[0]}, outputs, "the program takes 2 inputs, but 1 were given");
  sum.expect_error(inputs, {}, "the program has 1 outputs, but 0 were given");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.dtype = TENON_I32; }), outputs,
                   "input a must be f32[2], but is i32");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.dtype = 99; }), outputs,
                   "input a must be f32[2], but is of no dtype");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.rank = 0; }), outputs,
                   "input a must be f32[2], but is f32[]");
  int64_t three = 3;
  sum.expect_error(with(inputs, [&](tenon_tensor& x) { x.sizes = &three; }), outputs,
                   "input a must be f32[2], but is f32[3]");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.sizes = nullptr; }), outputs, "input a has no sizes");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.bytes = 7; }), outputs,
                   "input a takes 8 bytes, but 7 are given");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.data = nullptr; }), outputs, "input a has no data");
  sum.expect_error(with(inputs, [](tenon_tensor& x) { x.data = static_cast<char*>(x.data) + 1; }), outputs,
                   "the data of input a must be aligned to 4 bytes");
  sum.expect_error(inputs, with(outputs, [](tenon_tensor& y) { y.dtype = TENON_F64; }),
                   "output sum must be f32[2], but is f64");
  sum.expect_error(inputs, with(outputs, [](tenon_tensor& y) { y.bytes = 4; }),
                   "output sum takes 8 bytes, but 4 are given");
  sum.expect_error(inputs, with(outputs, [](tenon_tensor& y) { y.rank = 0; }),
                   "output sum has 1 dimensions, but there is room for 0 sizes");
}

TEST(RunErrors, OfOtherSizes) {
  Sum sum(kRows, {1, 2});
  const std::vector<tenon_tensor> inputs = sum.inputs(), outputs = sum.outputs();
  Floats two{{1, 2, 3, 4}, {2, 2}}, negative{{1, 2}, {-1, 2}};
  sum.expect_error({inputs[0], two.tensor(TENON_F32)}, outputs,
                   "input b must be f32[n,2], where n = 1, but is f32[2,2]");
  sum.expect_error({negative.tensor(TENON_F32), inputs[1]}, outputs,
                   "input a must be f32[n,2], but is f32[-1,2]");
  Floats huge{{1, 2}, {int64_t{1} << 62, 2}}, large{{1, 2}, {int64_t{1} << 61, 2}};
  sum.expect_error(
      {huge.tensor(TENON_F32), inputs[1]}, outputs,
      "input a: a tensor of shape [4611686018427387904,2] has more elements than can be counted");
  sum.expect_error({large.tensor(TENON_F32), inputs[1]}, outputs,
                   fmt::format("input a: f32[2305843009213693952,2] needs 4 bytes for each of "
                               "4611686018427387904 elements, but this machine has {} bytes of memory",
                               memory_limit()));
  sum.expect_error({inputs[0], inputs[1], inputs[1]}, outputs,
                   "the program takes 2 inputs, but 3 were given");
  sum.expect_error({two.tensor(TENON_F32), two.tensor(TENON_F32)}, outputs,
                   "output sum takes 16 bytes, but 8 are given");
}

// Each input has a size that it may have, but not with that of the other: nothing may be read past its end.
TEST(RunErrors, OfSizesThatDoNotGoTogether) {
  const ProgramHandle program = compile_text(R"(graph main(%a: f32[1,n], %b: f32[m,1]) {
    %0 = matmul(%a, %b)
    return %0
  })");
  Floats a{{1, 2}, {1, 2}}, b{{3}, {1, 1}}, c{{4, 5}, {2, 1}}, y{{0}, {1, 1}};
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
  EXPECT_EQ(run(program, {a.tensor(TENON_F32), b.tensor(TENON_F32)}, outputs), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(),
               "a matmul node: matmul: inner dimensions differ\n  a  %a: f32[1,2]\n  b  %b: f32[1,1]\n"
               "  inner dimensions: 2 of a, 1 of b");
  EXPECT_EQ(run(program, {a.tensor(TENON_F32), c.tensor(TENON_F32)}, outputs), TENON_OK);
  EXPECT_EQ(y.elements, std::vector<float>{14});
}

// What an input must be may follow from one that comes after it.
TEST(RunErrors, OfSizesThatFollowFromLaterInputs) {
  const ProgramHandle program = compile_text(R"(graph main(%a: f32[2*n], %b: f32[n]) {
    %0 = concat([%b, %b], axis=0)
    %1 = add(%a, %0)
    return %1
  })");
  Floats a{{1, 2}, {2}}, b{{3}, {1}}, c{{4, 5}, {2}}, y{{0, 0}, {2}};
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
  EXPECT_EQ(run(program, {a.tensor(TENON_F32), c.tensor(TENON_F32)}, outputs), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "input a must be f32[2*n], where n = 2, but is f32[2]");
  EXPECT_EQ(run(program, {a.tensor(TENON_F32), b.tensor(TENON_F32)}, outputs), TENON_OK);
  EXPECT_EQ(y.elements, (std::vector<float>{4, 5}));
}

// A branch that is not taken may make no sense for the sizes.
TEST(Run, BranchesThatFitOtherSizes) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[n,1], %test: bool[]) {
    %0 = if(%test, [%x]) then(%a: f32[n,1]) {
      %0 = matmul(%a, %a)
      return %0
    } else(%a: f32[n,1]) {
      return %a
    }
    return %0
  })");
  Floats x{{1, 2}, {2, 1}}, y{{0, 0}, {0, 0}};
  Array<uint8_t> test{{0}, {}};
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
  ASSERT_EQ(run(program, {x.tensor(TENON_F32), test.tensor(TENON_BOOL)}, outputs), TENON_OK)
      << tenon_error_message();
  EXPECT_EQ(y.elements, x.elements);
  test.elements = {1};
  EXPECT_EQ(run(program, {x.tensor(TENON_F32), test.tensor(TENON_BOOL)}, outputs), TENON_USER_ERROR);
}

TEST(RunErrors, OfShapesThatTheModelComputes) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[3]) {
    %0 = nonzero(%x)
    %1 = constant(value=i64[1] {2})
    %2 = reshape(%0, %1)
    return %2
  })");
  Floats x{{1, 1, 1}, {3}};
  Array<int64_t> y{{0, 0}, {2}};
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_I64)};
  EXPECT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(),
               "a reshape node: reshape: 3 elements do not fit into [2]\n  x: i64[1,3]\n  shape: i64[1]");
  x.elements[1] = 0;
  EXPECT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
  EXPECT_EQ(y.elements, (std::vector<int64_t>{0, 2}));
}

TEST(RunErrors, OfElements) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[3], %i: i64[1]) {
    %0 = gather(%x, %i)
    return %0
  })");
  Floats x{{1, 2, 3}, {3}}, y{{0}, {1}};
  Array<int64_t> i{{3}, {1}};
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
  EXPECT_EQ(run(program, {x.tensor(TENON_F32), i.tensor(TENON_I64)}, outputs), TENON_USER_ERROR);
  i.elements = {2};
  EXPECT_EQ(run(program, {x.tensor(TENON_F32), i.tensor(TENON_I64)}, outputs), TENON_OK);
  EXPECT_EQ(y.elements, std::vector<float>{3});
}

TEST(RunErrors, OfOptions) {
  Sum sum(kSum, {2});
  const std::vector<tenon_tensor> inputs = sum.inputs();
  std::vector<tenon_tensor> outputs = sum.outputs();
  const auto run_with = [&](const tenon_run_options* options) {
    return tenon_run(sum.program().get(), inputs.data(), 2, outputs.data(), 1, options);
  };
  tenon_run_options options{.struct_size = 0, .threads = 0, .seed = 0, .stream = nullptr};
  for (const size_t size : {size_t{0}, size_t{4097}, SIZE_MAX}) {
    options.struct_size = size;
    EXPECT_EQ(run_with(&options), TENON_USER_ERROR);
    EXPECT_EQ(
        tenon_error_message(),
        fmt::format("options: struct_size is {}, but must be what sizeof says, which is 32 in version {}",
                    size, tenon_version()));
  }
  for (const int64_t threads : {int64_t{-1}, int64_t{1025}, int64_t{65535}, INT64_MAX}) {
    options = {.struct_size = sizeof options, .threads = threads, .seed = 0, .stream = nullptr};
    EXPECT_EQ(run_with(&options), TENON_USER_ERROR);
    EXPECT_EQ(tenon_error_message(),
              fmt::format("a program runs with 1 to 1024 threads, not with {}", threads));
  }
  options.struct_size = sizeof options.struct_size;  // of a caller that knows no fields
  EXPECT_EQ(run_with(&options), TENON_OK);

  struct Later {
    tenon_run_options known;
    int64_t more;
  } later{{.struct_size = sizeof(Later), .threads = 1, .seed = 0, .stream = nullptr}, 0};
  EXPECT_EQ(run_with(&later.known), TENON_OK);
  later.more = 1;
  EXPECT_EQ(run_with(&later.known), TENON_USER_ERROR);
  EXPECT_EQ(tenon_error_message(),
            fmt::format("options: a field that version {} does not have is not 0", tenon_version()));

  options = {.struct_size = sizeof options, .threads = 1, .seed = 0, .stream = &options};
  EXPECT_EQ(run_with(&options), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "a stream is given, but the program runs on the CPU, which has none");
}

TEST(RunErrors, OfNull) {
  Sum sum(kSum, {2});
  EXPECT_EQ(tenon_run(nullptr, nullptr, 0, nullptr, 0, nullptr), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "program is NULL");
  EXPECT_EQ(tenon_run(sum.program().get(), nullptr, 2, nullptr, 1, nullptr), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "inputs is NULL");
}

}  // namespace
}  // namespace tenon
