#include <gtest/gtest.h>

#include <random>

#include "codegen/cuda/run_on_host.h"
#include "loops/apply_function.h"
#include "loops/interpret.h"
#include "sanitized.h"
#include "tensor/wide.h"

namespace tenon::codegen::cuda {
namespace {

using loops::Assign;
using loops::Buffer;
using loops::Function;
using loops::Kernel;
using loops::Loop;
using loops::Mark;
using loops::Number;
using loops::Scalar;
using Order = HostKernels::Order;

constexpr int64_t kElements = 256;

std::vector<DType> dtypes() {
  std::vector<DType> result;
  for (const DTypeInfo& each : all_dtypes())
    if (loops::has_code(each.dtype))
      result.push_back(each.dtype);
  return result;
}

// y0[i] = …, y1[i] = …, as one kernel, whose threads have vectors where that can be.
Kernel kernel_of(std::vector<Buffer> inputs, const std::vector<Scalar>& values) {
  Kernel kernel{.name = "k", .inputs = std::move(inputs), .outputs = {}, .combines = {}, .body = {}};
  const Scalar i = Scalar::index(Dim::symbol("i"));
  Loop threads{.variable = "i", .begin = 0, .end = kElements, .mark = Mark::Thread, .body = {}};
  for (const Scalar& value : values) {
    const std::string name = fmt::format("y{}", kernel.outputs.size());
    kernel.outputs.push_back({.name = name, .dtype = value.dtype(), .sizes = {kElements}});
    threads.body.emplace_back(Assign{.places = {{name, {i}}}, .combine = "", .values = {value}});
  }
  Loop blocks{.variable = "block", .begin = 0, .end = 1, .mark = Mark::Block, .threads = 32, .body = {}};
  blocks.body.emplace_back(std::move(threads));
  kernel.body.emplace_back(std::move(blocks));
  return kernel;
}

Scalar load(const std::string& name, DType dtype) {
  return Scalar::load(name, dtype, {Scalar::index(Dim::symbol("i"))});
}

// Ends of the range, what is special, then anything.
Tensor numbers(DType dtype, unsigned seed, bool is_divisor) {
  std::mt19937_64 random(seed);
  return with_wide(dtype, [&]<class T>(T) {
    std::vector<T> values;
    if (is_float(dtype))
      for (const double each :
           {0.0,     -0.0,    1.0,  -1.0, 0.5,  -2.5, 3.5,   HUGE_VAL, -HUGE_VAL, std::nan(""), 1e-7,
            65519.0, 65520.0, -7e4, 3e9,  -3e9, 1e20, -1e20, 1e300,    300.7,     -129.9})
        values.push_back(static_cast<T>(each));
    else
      for (const uint64_t each : {0ULL, 1ULL, ~0ULL, 2ULL, 7ULL, 127ULL, 128ULL, 255ULL, 1ULL << 31,
                                  1ULL << 63, 63ULL, 64ULL, 40ULL, 0x7fffffffULL})
        values.push_back(static_cast<T>(each));
    std::ranges::shuffle(values, random);
    while (values.size() < kElements) {
      if (is_float(dtype))
        values.push_back(static_cast<T>(static_cast<double>(random() % 20001) / 1000 - 10));
      else
        values.push_back(static_cast<T>(values.size() % 2 == 0 ? random() : random() % 20));
    }
    if (is_divisor && !is_float(dtype)) {
      const Tensor fitted = narrow<T>(dtype, {kElements}, values);
      values = widen<T>(fitted);
      std::ranges::replace(values, T{0}, T{1});
    }
    return narrow<T>(dtype, {kElements}, values);
  });
}

bool is_exact(Function function) {
  return function <= Function::Maximum || (function >= Function::ShiftLeft && function <= Function::Sqrt) ||
         function >= Function::Floor;
}

double tolerance_of(Function function, DType dtype) {
  if (is_exact(function) || !is_float(dtype))
    return 0;
  return dtype == DType::F64 ? 1e-14 : dtype == DType::F32 ? 1e-6 : dtype == DType::F16 ? 1e-3 : 8e-3;
}

bool can_apply(Function function, DType dtype) {
  switch (function) {
    case Function::Cast:
    case Function::Select:
    case Function::Require:
      return false;  // tested by themselves
    case Function::DotI8x4:
    case Function::PackI8x4:
      return dtype == DType::I32;
    case Function::DotBf16x2:
      return dtype == DType::I32;
    case Function::PackBf16x2:
      return dtype == DType::BF16;
    case Function::RoundDownToBf16:
    case Function::Bf16Remainder:
      return dtype == DType::F32;
    default:
      break;
  }
  if (dtype == DType::Bool && (function == Function::Divide || function == Function::Remainder))
    return false;
  const Number one = is_float(dtype)    ? Number(1.0)
                     : is_signed(dtype) ? Number(int64_t{1})
                                        : Number(uint64_t{1});
  try {
    loops::apply_function(function, loops::gives_bool(function) ? DType::Bool : dtype,
                          std::vector<Number>(static_cast<size_t>(loops::info(function).operands), one));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void expect_same(const Tensor& got, const Tensor& want, double tolerance) {
  with_wide(got.dtype(), [&]<class T>(T) {
    const std::vector<T> a = widen<T>(got), b = widen<T>(want);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool both_nan = a[i] != a[i] && b[i] != b[i];
      if (both_nan || a[i] == b[i])
        continue;
      if (tolerance == 0)
        EXPECT_EQ(a[i], b[i]) << "at " << i;
      else
        EXPECT_NEAR(static_cast<double>(a[i]), static_cast<double>(b[i]),
                    tolerance * (1e-3 + std::abs(static_cast<double>(b[i]))))
            << "at " << i;
    }
  });
}

struct Group {
  DType dtype;
  Kernel kernel;
  std::vector<std::string> names;
  std::vector<double> tolerances;
};

Group functions_of(DType dtype) {
  Group group{.dtype = dtype, .kernel = {}, .names = {}, .tolerances = {}};
  std::vector<Scalar> values;
  const Scalar operands[] = {load("a", dtype), load("b", dtype), load("a", dtype), load("b", dtype)};
  for (const loops::FunctionInfo& function : loops::all_functions()) {
    if (!can_apply(function.function, dtype))
      continue;
    values.push_back(Scalar::apply(function.function, {operands, operands + function.operands}));
    group.names.emplace_back(function.name);
    group.tolerances.push_back(tolerance_of(function.function, dtype));
  }
  group.kernel = kernel_of({{.name = "a", .dtype = dtype, .sizes = {kElements}},
                            {.name = "b", .dtype = dtype, .sizes = {kElements}}},
                           values);
  return group;
}

Group casts_of(DType dtype) {
  Group group{.dtype = dtype, .kernel = {}, .names = {}, .tolerances = {}};
  std::vector<Scalar> values;
  for (const DType to : dtypes()) {
    // Through arithmetic, too, as what is stored at once is rounded but once.
    values.push_back(Scalar::cast(to, load("a", dtype)));
    group.names.push_back(fmt::format("cast to {}", to));
    group.tolerances.push_back(0);
  }
  group.kernel = kernel_of({{.name = "a", .dtype = dtype, .sizes = {kElements}},
                            {.name = "b", .dtype = dtype, .sizes = {kElements}}},
                           values);
  return group;
}

TEST(CudaFunctions, AreThoseOfTheInterpreter) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  std::vector<Group> groups;
  for (const DType dtype : dtypes()) {
    groups.push_back(functions_of(dtype));
    groups.push_back(casts_of(dtype));
  }
  HostKernels kernels;
  for (const Group& group : groups)
    kernels.add(group.kernel);
  kernels.compile();
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const std::vector<Tensor> inputs = {numbers(group.dtype, 1, false), numbers(group.dtype, 2, true)};
    const std::vector<Tensor> expected = loops::interpret(group.kernel, inputs);
    const HostKernels::Result result = kernels.run(i, inputs, {}, Order::Ascending);
    EXPECT_FALSE(result.failed);
    for (size_t output = 0; output < expected.size(); ++output) {
      SCOPED_TRACE(fmt::format("{} of {}", group.names[output], group.dtype));
      expect_same(result.outputs[output], expected[output], group.tolerances[output]);
    }
  }
}

// What fails writes which step it was, and ends its thread alone.
TEST(CudaFunctions, FailWhereTheyMust) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  HostKernels kernels;
  const Kernel kernel = loops::parse_checked_kernel(
      R"(kernel k(x: f32[8], at: i64[100], d: i32[100]) -> (y: f32[100], q: i32[100], s: f32[]) {
    for b in 0..1 block(64) {
      s[] = 0
      for i in 0..100 thread { y[i] = x[{require(at[i] < 8, at[i])}]  q[i] = 100 / d[i] }
      for i in 0..100 thread { s[] += y[i] } } })");
  kernels.add(kernel);
  kernels.compile();
  Tensor x(DType::F32, {8}), at(DType::I64, {100}), d(DType::I32, {100});
  std::ranges::fill(d.mutable_data<int32_t>(), 3);
  for (const Order order : {Order::Ascending, Order::Descending}) {
    EXPECT_FALSE(kernels.run(0, {x, at, d}, {}, order).failed);
    Tensor beyond(DType::I64, {100});
    beyond.mutable_data<int64_t>()[70] = 8;
    EXPECT_TRUE(kernels.run(0, {x, beyond, d}, {}, order).failed);
    Tensor zero(DType::I32, {100});
    EXPECT_TRUE(kernels.run(0, {x, at, zero}, {}, order).failed);
    EXPECT_FALSE(kernels.run(0, {x, beyond, d}, {}, order).is_deadlock);
  }
}

}  // namespace
}  // namespace tenon::codegen::cuda
