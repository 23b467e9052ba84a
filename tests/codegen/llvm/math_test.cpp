#include "codegen/llvm/math.h"

#include <gtest/gtest.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "target/target.h"

namespace tenon::codegen {
namespace {

using loops::Function;
using Reference = long double (*)(long double x, long double y);

struct Row {
  Function function;
  double f32;  // bounds, as the table in math.h states them
  double f64;
  Reference reference;

  friend void PrintTo(const Row& row, std::ostream* out) { *out << loops::info(row.function).name; }
};

constexpr Row rows[] = {
    {Function::Exp, 2, 2, [](long double x, long double) { return std::exp(x); }},
    {Function::Log, 1, 1, [](long double x, long double) { return std::log(x); }},
    {Function::Sin, 2, 2, [](long double x, long double) { return std::sin(x); }},
    {Function::Cos, 2, 2, [](long double x, long double) { return std::cos(x); }},
    {Function::Tan, 4, 4, [](long double x, long double) { return std::tan(x); }},
    {Function::Asin, 2, 2, [](long double x, long double) { return std::asin(x); }},
    {Function::Acos, 2, 2, [](long double x, long double) { return std::acos(x); }},
    {Function::Atan, 2, 2, [](long double x, long double) { return std::atan(x); }},
    {Function::Sinh, 2, 2, [](long double x, long double) { return std::sinh(x); }},
    {Function::Cosh, 2, 2, [](long double x, long double) { return std::cosh(x); }},
    {Function::Tanh, 2, 2, [](long double x, long double) { return std::tanh(x); }},
    {Function::Asinh, 2, 2, [](long double x, long double) { return std::asinh(x); }},
    {Function::Acosh, 3, 3, [](long double x, long double) { return std::acosh(x); }},
    {Function::Atanh, 3, 3, [](long double x, long double) { return std::atanh(x); }},
    {Function::Erf, 2, 3, [](long double x, long double) { return std::erf(x); }},
    {Function::Power, 1, 2, [](long double x, long double y) { return std::pow(x, y); }},
    {Function::Sqrt, 0.5, 0.5, [](long double x, long double) { return std::sqrt(x); }},
    {Function::Absolute, 0, 0, [](long double x, long double) { return std::fabs(x); }},
    {Function::Floor, 0, 0, [](long double x, long double) { return std::floor(x); }},
    {Function::Ceil, 0, 0, [](long double x, long double) { return std::ceil(x); }},
    {Function::Round, 0, 0, [](long double x, long double) { return std::nearbyint(x); }},
};

// kernel(x, y, result), which computes one vector of `lanes` elements, or with 0 one element without a
// vector.
template <class T>
llvm::Function* emit_kernel(llvm::Module& module, Function function, unsigned lanes, MathOptions options) {
  llvm::IRBuilder<> builder(module.getContext());
  builder.setFastMathFlags(llvm::FastMathFlags::getFast());  // which emit_math must not use
  llvm::Type* type = std::is_same_v<T, float> ? builder.getFloatTy() : builder.getDoubleTy();
  if (lanes > 0)
    type = llvm::FixedVectorType::get(type, lanes);
  llvm::Type* pointer = builder.getPtrTy();
  auto* kernel =
      llvm::Function::Create(llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer}, false),
                             llvm::Function::ExternalLinkage, "kernel", module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", kernel));
  std::vector<llvm::Value*> operands;
  for (int i = 0; i < loops::info(function).operands; ++i)
    operands.push_back(builder.CreateAlignedLoad(type, kernel->getArg(i), llvm::Align(alignof(T))));
  llvm::Value* result = emit_math(builder, function, operands, options);
  builder.CreateAlignedStore(result, kernel->getArg(2), llvm::Align(alignof(T)));
  builder.CreateRetVoid();
  EXPECT_FALSE(llvm::verifyModule(module, &llvm::errs()));
  return kernel;
}

template <class T>
class Compiled {
 public:
  Compiled(Function function, unsigned lanes, MathOptions options) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("math", *context);
    emit_kernel<T>(*module, function, lanes, options);
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    module->setDataLayout(jit_->getDataLayout());
    llvm::cantFail(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    kernel_ = llvm::cantFail(jit_->lookup("kernel")).toPtr<void(const T*, const T*, T*)>();
  }

  void operator()(const T* x, const T* y, T* result) const { kernel_(x, y, result); }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  void (*kernel_)(const T*, const T*, T*);
};

// How far `result` is from `exact`, in units in the last place. Infinity counts as the number after the
// largest one.
template <class T>
long double ulps(T result, long double exact) {
  using Limits = std::numeric_limits<T>;
  const long double end = std::ldexp(1.0L, Limits::max_exponent);
  if (std::isnan(result) || std::isnan(exact))
    return std::isnan(result) && std::isnan(exact) ? 0 : end;
  if ((result == 0 || exact == 0) && std::signbit(result) != std::signbit(exact))
    return end;
  const long double limited = std::clamp(exact, -end, end);
  const long double got = std::isinf(result) ? std::copysign(end, static_cast<long double>(result)) : result;
  const int exponent =
      limited == 0 ? Limits::min_exponent : std::max(std::ilogb(limited) + 1, Limits::min_exponent);
  return std::fabs(got - limited) /
         std::ldexp(1.0L, std::min(exponent, Limits::max_exponent) - Limits::digits);
}

template <class T>
struct Arguments {
  std::vector<T> x, y;

  void add(T first, T second) {
    x.push_back(first);
    y.push_back(second);
  }
};

// Where the exact result is one of these, the result must be the same.
bool is_special(long double exact) {
  return std::isnan(exact) || std::isinf(exact) || exact == 0 || std::fabs(exact) == 1;
}

template <class T>
void expect_bound(const Row& row, double bound, unsigned lanes, Arguments<T> arguments) {
  const size_t step = std::max(lanes, 1u);
  while (arguments.x.size() % step != 0)
    arguments.add(1, 1);
  std::vector<long double> exact(arguments.x.size());
  std::transform(arguments.x.begin(), arguments.x.end(), arguments.y.begin(), exact.begin(), row.reference);

  for (const bool fused : {false, true}) {
    const Compiled<T> compiled(row.function, lanes, {.fused_multiply_add = fused});
    std::vector<T> results(exact.size());
    for (size_t i = 0; i < results.size(); i += step)
      compiled(&arguments.x[i], &arguments.y[i], &results[i]);
    for (size_t i = 0; i < results.size(); ++i)
      ASSERT_LE(ulps(results[i], exact[i]), is_special(exact[i]) ? 0 : bound)
          << loops::info(row.function).name << " of " << arguments.x[i] << ", " << arguments.y[i] << " gave "
          << results[i] << (fused ? " with" : " without") << " fused multiply-add, lanes: " << lanes;
  }
}

template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T x : {T(0),
                    Limits::denorm_min(),
                    Limits::min() / 2,
                    Limits::min(),
                    Limits::epsilon(),
                    T(0.25),
                    T(0.5),
                    T(0.75),
                    std::nextafter(T(1), T(0)),
                    T(1),
                    std::nextafter(T(1), T(2)),
                    T(1.5),
                    T(2),
                    T(2.5),
                    T(3),
                    T(4),
                    T(5),
                    T(90),
                    T(710.3),
                    T(1e6),
                    T(0x1p22),
                    T(0x1p23) + 1,
                    T(0x1p53) + 2,
                    T(1e30),
                    Limits::max(),
                    Limits::infinity(),
                    Limits::quiet_NaN()})
    values.insert(values.end(), {x, -x});
  return values;
}

template <class T>
Arguments<T> special_arguments() {
  Arguments<T> arguments;
  for (const T x : special_values<T>())
    for (const T y : special_values<T>())
      arguments.add(x, y);
  return arguments;
}

// Exponents for x^y in both directions of what can be represented, and some beyond.
template <class T>
T random_exponent(T x, std::mt19937_64& random) {
  const double range =
      1.1 * std::numeric_limits<T>::max_exponent * std::uniform_real_distribution<double>(-1, 1)(random);
  const int kind = static_cast<int>(random() % 4);
  const double exponent = range / std::log2(std::fabs(static_cast<double>(x)));
  return static_cast<T>(kind == 0 ? std::nearbyint(exponent) : kind == 1 ? range : exponent);
}

// Of all bit patterns of floats, one in `stride`.
Arguments<float> float_arguments(uint32_t stride) {
  std::mt19937_64 random(1);
  Arguments<float> arguments;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    arguments.add(x, random_exponent(x, random));
  }
  return arguments;
}

// Doubles of all exponents, as many of those where functions are not yet linear or constant, and multiples of
// π/2, as close as doubles come to them.
Arguments<double> double_arguments(int count) {
  std::mt19937_64 random(2);
  Arguments<double> arguments;
  const auto add = [&](double x) { arguments.add(x, random_exponent(x, random)); };
  const auto add_of_exponent = [&](uint64_t exponent) {
    add(std::bit_cast<double>((random() & 0x800F'FFFF'FFFF'FFFF) | exponent << 52));
  };
  for (int i = 0; i < count; ++i) {
    add_of_exponent(random() % 2048);
    add_of_exponent(1023 - 30 + random() % 45);
    add(static_cast<double>(random() % (1 << 22) * (std::numbers::pi_v<long double> / 2)));
  }
  return arguments;
}

class EachFunction : public testing::TestWithParam<Row> {};

TEST_P(EachFunction, GivesSpecialValues) {
  for (const unsigned lanes : {0, 3, 8}) {
    expect_bound(GetParam(), GetParam().f32, lanes, special_arguments<float>());
    expect_bound(GetParam(), GetParam().f64, lanes, special_arguments<double>());
  }
}

TEST_P(EachFunction, KeepsItsBound) {
  expect_bound(GetParam(), GetParam().f32, 8, float_arguments(19937));
  expect_bound(GetParam(), GetParam().f64, 8, double_arguments(40'000));
}

TEST_P(EachFunction, BranchesAndCallsForLargeAnglesOnly) {
  const Function function = GetParam().function;
  const bool of_angles = function == Function::Sin || function == Function::Cos || function == Function::Tan;
  llvm::LLVMContext context;
  llvm::Module module("math", context);
  const llvm::Function* kernel = emit_kernel<double>(module, function, 8, {.fused_multiply_add = true});
  EXPECT_EQ(kernel->size(), of_angles ? 3 : 1);
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    EXPECT_TRUE(!call || of_angles || call->getCalledFunction()->isIntrinsic());
    EXPECT_FALSE(llvm::isa<llvm::FPMathOperator>(instruction) && instruction.getFastMathFlags().any());
  }
}

INSTANTIATE_TEST_SUITE_P(Math, EachFunction, testing::ValuesIn(rows),
                         [](const auto& row) { return std::string(loops::info(row.param.function).name); });

// All exponents, and results that are too small for normal ones.
TEST(Math, ScalesRegistersAsByFactors) {
  if (!this_machine().has("+avx512f"))
    GTEST_SKIP() << "this machine has no instruction for it";
  std::vector<float> x = special_values<float>();
  for (int i = -110'000; i <= 90'000; ++i)
    x.push_back(static_cast<float>(i) / 1000);
  for (const unsigned lanes : {16, 64}) {
    x.resize(x.size() / lanes * lanes);
    const Compiled<float> plain(Function::Exp, lanes, {.fused_multiply_add = true}),
        scaled(Function::Exp, lanes, {.fused_multiply_add = true, .scales_registers = true});
    std::vector<float> wanted(x.size()), got(x.size());
    for (size_t i = 0; i < x.size(); i += lanes) {
      plain(&x[i], &x[i], &wanted[i]);
      scaled(&x[i], &x[i], &got[i]);
    }
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(wanted[i])) << "exp of " << x[i];
  }
}

// Where vectors are no whole registers, there are factors.
TEST(Math, ScalesWholeRegistersOnly) {
  const auto scales = [](unsigned lanes) {
    llvm::LLVMContext context;
    llvm::Module module("math", context);
    const llvm::Function* kernel = emit_kernel<float>(module, Function::Exp, lanes,
                                                      {.fused_multiply_add = true, .scales_registers = true});
    return std::ranges::any_of(llvm::instructions(kernel), [](const llvm::Instruction& instruction) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      return call && call->getCalledFunction()->getName().contains("scalef");
    });
  };
  for (const unsigned lanes : {16, 32})
    EXPECT_TRUE(scales(lanes));
  for (const unsigned lanes : {0, 4, 8, 48})
    EXPECT_FALSE(scales(lanes));
}

// Sin may branch: what stood after the builder must come after that, and loops must still find their way.
TEST(Math, SplitsABlock) {
  llvm::LLVMContext context;
  llvm::Module module("math", context);
  llvm::IRBuilder<> builder(context);
  auto* kernel =
      llvm::Function::Create(llvm::FunctionType::get(builder.getDoubleTy(), {builder.getDoubleTy()}, false),
                             llvm::Function::ExternalLinkage, "kernel", module);
  auto* before = llvm::BasicBlock::Create(context, "before", kernel);
  auto* loop = llvm::BasicBlock::Create(context, "loop", kernel);
  builder.SetInsertPoint(before);
  builder.CreateBr(loop);
  builder.SetInsertPoint(loop);
  llvm::PHINode* x = builder.CreatePHI(builder.getDoubleTy(), 2);
  llvm::Instruction* branch = builder.CreateBr(loop);
  x->addIncoming(kernel->getArg(0), before);
  x->addIncoming(x, loop);

  builder.SetInsertPoint(branch);
  llvm::Value* const operands[] = {x};
  x->setIncomingValue(1, emit_math(builder, Function::Sin, operands, {.fused_multiply_add = true}));
  EXPECT_FALSE(llvm::verifyModule(module, &llvm::errs()));
  EXPECT_EQ(builder.GetInsertBlock(), branch->getParent());
}

}  // namespace
}  // namespace tenon::codegen
