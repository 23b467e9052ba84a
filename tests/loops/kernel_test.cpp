#include "loops/kernel.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "loops/canonical_names.h"
#include "loops/interpret.h"

namespace tenon::loops {
namespace {

// The kernel, printed, is this text again, and nothing is wrong with it.
void expect_kept(std::string_view text) {
  const Kernel kernel = parse_kernel(text);
  EXPECT_EQ(print(kernel), text);
  EXPECT_EQ(parse_kernel(print(kernel)), kernel);
  EXPECT_EQ(check(kernel), std::vector<std::string>());
}

TEST(KernelText, PrintsAndParsesBack) {
  expect_kept(R"(kernel matvec(a: f32[100,100], x: f32[100]) -> (y: f32[100]) {
  for i in 0..100 parallel {
    y[i] = 0
    for j in 0..100 step 2 unrolled {
      y[i] += a[i,j] * x[j] - (a[i,j+1] - 2.5) * -1
    }
  }
}
)");
}

TEST(KernelText, HasSizesGuardsLocalsAndCalls) {
  expect_kept(R"(kernel k(x: f32[n,m], at: i64[n]) -> (y: f32[n], z: f32[2*n]) {
  for i in 0..n {
    local t: f32[m] in private
    for j in 0..m vector {
      t[j] = exp(x[i,j])
    }
    if i-3 >= 0 and n-i-1 >= 0 {
      y[i] max= select(x[i,0] < t[0], x[i,{at[i]}], 0) / f32(i)
    }
    z[{at[i]}] = f32(index(2*i+1))
  }
  call sort(z[0] <- x[0,0])
}
)");
}

TEST(KernelText, HasBlocksAndThreads) {
  expect_kept(R"(kernel k(x: f32[n,m]) -> (y: f32[n,m]) {
  for i in 0..n block(128) {
    local t: f32[m] in shared
    for j in 0..m thread {
      t[j] = exp(x[i,j])
    }
    for j in 0..m thread {
      y[i,j] = t[m-j-1]
    }
  }
}
)");
}

TEST(KernelText, HasCopiesAndPipelinedLoops) {
  expect_kept(R"(kernel k(x: f32[n,64,32]) -> (y: f32[n,32]) {
  for i in 0..n block(64) pipelined 2 {
    for k in 0..64 step 8 pipelined 3 {
      local t: f32[8,32] in shared
      copy(8,32) t[0,0] = x[i,k,0]
      for j in 0..32 thread {
        y[i,j] += t[7,j]
      }
    }
  }
}
)");
}

TEST(KernelText, SaysWhichOutputsAreStreamed) {
  expect_kept(R"(kernel k(x: f32[n]) -> (y: f32[n] streamed) {
  for i in 0..n vector {
    y[i] = x[i]
  }
}
)");
  EXPECT_EQ(check(parse_kernel("kernel k(x: f32[2] streamed) -> (y: f32[2] in private) {\n}")),
            (std::vector<std::string>{"'x' is an input of the kernel, so it is in memory",
                                      "'y' is an output of the kernel, so it is in memory"}));
}

// The row after the last is fetched, too, which computes nothing.
TEST(KernelText, SaysWhatIsFetched) {
  constexpr std::string_view text = R"(kernel k(x: f32[2,n]) -> (y: f32[2,n]) {
  for i in 0..2 {
    for j in 0..n vector {
      y[i,j] = x[i,j]
      prefetch x[i+1,j]
    }
  }
}
)";
  expect_kept(text);
  Tensor x(DType::F32, {2, 3});
  x.mutable_data<float>()[4] = 5;
  EXPECT_TRUE(identical(interpret(parse_kernel(text), {x}).front(), x));
  EXPECT_EQ(check(parse_kernel("kernel k(x: f32[2], at: i64[2]) -> (y: f32[2]) {"
                               "  y[0] = 0 prefetch x[i] prefetch x[0,1] prefetch x[{at[0]}] }")),
            (std::vector<std::string>{"'i' is neither a loop around it nor a size of an input or output",
                                      "'x' has 1 dimensions, but is fetched with 2 indices",
                                      "where 'x' is fetched depends on data"}));
}

TEST(KernelText, CombinesTuples) {
  expect_kept(R"(kernel argmax(x: f32[n]) -> (m: f32[], k: i64[]) {
  combine larger(a: f32, p: i64, b: f32, q: i64) = select(a < b, b, a), select(a < b, q, p)
  m[], k[] = -inf, 0
  for i in 0..n {
    m[], k[] larger= x[i], i
  }
}
)");
}

TEST(KernelText, SaysWhichCombinesAreUnordered) {
  expect_kept(R"(kernel largest(x: f32[n]) -> (m: f32[]) {
  combine unordered larger(a: f32, b: f32) = select(a < b, b, a)
  combine unordered(a: f32, b: f32) = a - b
  m[] = -inf
  for i in 0..n {
    m[] larger= x[i]
  }
  m[] unordered= 1
}
)");
}

TEST(KernelText, KeepsDTypesThatNothingSays) {
  expect_kept(R"(kernel k() -> (y: i32[2]) {
  y[0] = select(i8(1) < i8(2), 3, 4)
  y[1] = i32(f64(0.5) + f64(2))
}
)");
}

TEST(KernelText, KeepsTheSignOfZero) {
  expect_kept(R"(kernel k() -> (y: f32[1]) {
  y[0] = -0.0
}
)");
}

TEST(KernelText, SaysWhereItIsWrong) {
  const auto error = [](std::string_view text) {
    try {
      parse_kernel(text);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("kernel k() -> (y: f32[1]) {\n  z[0] = 1\n}"), "line 2, column 4: 'z' is no buffer");
  EXPECT_EQ(error("kernel k() -> (y: f32[1]) {\n  y[0] = sine(1)\n}"),
            "line 2, column 17: 'sine' is no function");
  EXPECT_EQ(error("kernel k() -> (y: f32[1]) {\n  y[0] = f32(1 < 2)\n}"),
            "line 2, column 20: the dtype of a number is ambiguous; write i32(1), say");
  EXPECT_EQ(error("kernel k() -> (y: i32[1]) { y[0] = 2.5 }"), "line 1, column 40: 2.5 does not fit i32");
  EXPECT_EQ(error("kernel k() -> (y: i32[1]) { y[0] = 1e30 }"), "line 1, column 41: 1e+30 does not fit i32");
  EXPECT_EQ(error("kernel k() -> (y: i8[1]) { y[0] = 128 }"), "line 1, column 39: 128 does not fit i8");
  EXPECT_EQ(error("kernel k() -> (y: i8[1]) { y[0] = -128 }"), "no error");
  EXPECT_EQ(error("kernel k() -> (y: u64[1]) { y[0] = -1 }"), "line 1, column 39: -1 does not fit u64");
  EXPECT_EQ(error("kernel k() -> (y: u64[1]) { y[0] = 18446744073709551615 }"), "no error");
  EXPECT_EQ(error("kernel k() -> (y: bool[1]) { y[0] = bool(2) }"), "line 1, column 44: 2 does not fit bool");
  const auto repeated = [](std::string_view text, size_t times) {
    std::string result;
    for (size_t i = 0; i < times; ++i)
      result += text;
    return result;
  };
  for (const std::string_view opening : {"(", "-y[{", "abs(", "- "})
    EXPECT_NE(error("kernel k() -> (y: i64[1]) { y[0] = " + repeated(opening, 200'000))
                  .find(": this is nested too deeply"),
              std::string::npos);
  EXPECT_NE(error("kernel k() -> (y: i64[1]) { " + repeated("if 1 >= 0 { ", 200'000))
                .find(": this is nested too deeply"),
            std::string::npos);
  EXPECT_NE(error("kernel k() -> (y: i64[1]) { y[0] = 1" + repeated(" + y[0]", 200'000))
                .find(": an expression has more than 10000 operators"),
            std::string::npos);
}

TEST(KernelText, SaysInWhichLineSomethingIsWrong) {
  const auto error = [](std::string_view text) {
    try {
      parse_checked_kernel(text);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("kernel k(x: f32[n],\n  x: f32[n]) -> (y: f32[n]) { }"), "line 2: 'x' is declared twice");
  EXPECT_EQ(error("kernel k() -> (y: f32[n]) {\n  combine max(a: f32, b: f32) = b\n}"),
            "line 2: 'max' is a combine already");
  EXPECT_EQ(error("// why\nkernel k() -> (y: f32[n]) {\n  for i in 0..m {\n  }\n\n  if j >= 0 {\n    y[0] =\n"
                  "      f64(1)\n  }\n}"),
            "line 3: 'm' is neither a loop around it nor a size of an input or output\n"
            "  line 6: 'j' is neither a loop around it nor a size of an input or output\n"
            "  line 7: 'y' is f32, but is given f64");
  EXPECT_EQ(error("kernel k() -> (y: f32[n]) {\n  local t: f32[m]\n}"),
            "line 2: 'm' is neither a loop around it nor a size of an input or output");
  EXPECT_EQ(error("kernel k() -> (y: f32[n]) {\n  y[0] = 1\n}"), "no error");
}

TEST(KernelCheck, NamesWhatIsWrong) {
  const auto problems = [](std::string_view body) {
    return check(parse_kernel(fmt::format("kernel k(x: f32[4]) -> (y: f32[4]) {{ {} }}", body)));
  };
  using Problems = std::vector<std::string>;
  EXPECT_EQ(problems("y[i] = 1"),
            Problems{"'i' is neither a loop around it nor a size of an input or output"});
  EXPECT_EQ(problems("x[0] = 1"), Problems{"'x' is an input, but is written"});
  EXPECT_EQ(problems("y[0,1] = 1"), Problems{"'y' has 1 dimensions, but is written with 2 indices"});
  EXPECT_EQ(problems("y[0] = x[0] < x[1]"), Problems{"'y' is f32, but is given bool"});
  EXPECT_EQ(problems("y[0] = x[0] + f64(1)"),
            (Problems{"add of f32 and f64", "'y' is f32, but is given f64"}));
  EXPECT_EQ(problems("y[0] mean= 1"), Problems{"'mean' is no combine"});
  EXPECT_EQ(problems("for i in 0..4 { for i in 0..4 { y[i] = 1 } }"), Problems{"'i' is declared twice"});
  EXPECT_EQ(problems("for i in 0..4 thread { y[i] = 1 }"),
            Problems{"thread loop 'i' is in no block, or in another thread loop"});
  EXPECT_EQ(
      problems("for i in 0..2 block(32) { for j in 0..2 thread { for k in 0..1 thread { y[j] = 1 } } }"),
      Problems{"thread loop 'k' is in no block, or in another thread loop"});
  EXPECT_EQ(problems("for i in 0..2 block(32) { y[0] = 1 for j in 0..2 block { y[j] = 1 } }"),
            Problems{"block loop 'j' is not all there is in another"});
  EXPECT_EQ(problems("for i in 0..4 block { y[i] = 1 }"), Problems{"loop 'i' has blocks of 0 threads"});
  EXPECT_EQ(problems("for i in 0..4 block(8193) { y[i] = 1 }"),
            Problems{"loop 'i' has blocks of 8193 threads"});
  EXPECT_EQ(problems("for i in 0..2 block(32) { for j in 0..2 parallel { y[j] = 1 } }"),
            Problems{"parallel loop 'j' is in a block"});
  EXPECT_EQ(
      problems("for i in 0..2 block(32) { for j in 0..2 thread { for k in 0..1 pipelined 2 { y[j] = 1 } } }"),
      Problems{});
  EXPECT_EQ(problems("for i in 0..2 parallel pipelined 2 { y[i] = 1 }"),
            Problems{"loop 'i' is pipelined, but neither serial nor an outermost block loop"});
  EXPECT_EQ(problems("for i in 0..2 block(32) { for j in 0..2 block pipelined 2 { y[j] = 1 } }"),
            Problems{"loop 'j' is pipelined, but neither serial nor an outermost block loop"});
  EXPECT_EQ(problems("local t: f32[4] in shared copy(4) t[0] = x[0]"), Problems{});
  EXPECT_EQ(problems("local t: f32[4] copy(4) t[0] = x[0]"),
            Problems{"'t' is not shared, but a copy writes it"});
  EXPECT_EQ(problems("local s: f32[4] in private local t: f32[4] in shared copy(4) t[0] = s[0]"),
            Problems{"'s' is not in memory, but is copied"});
  EXPECT_EQ(problems("local t: f64[4] in shared copy(4) t[0] = x[0]"),
            Problems{"'t' is f64, but f32 is copied to it"});
  EXPECT_EQ(problems("local t: f32[2,2] in shared copy(2,2) t[0,0] = x[0]"),
            Problems{"a box of 2 dimensions is copied from 'x' of 1 to 't' of 2"});
  EXPECT_EQ(problems("local t: f32[4] in shared copy(j) t[0] = x[0]"),
            Problems{"'j' is neither a loop around it nor a size of an input or output"});
  EXPECT_EQ(problems("local t: f32[4] in shared copy(1) t[{i64(x[1])}] = x[0]"),
            Problems{"where a box of 't' begins depends on data"});
  EXPECT_EQ(check(parse_kernel("kernel k(x: f32[n]) -> (y: f32[4]) { y[0] = 0"
                               "  for n in 1..4 { y[n] = y[n-1] + x[0] } }")),
            Problems{"'n' is declared twice"});
}

TEST(KernelCheck, NamesWhatIsWrongWithCombines) {
  const auto problems = [](std::string_view body) {
    return check(parse_kernel(fmt::format("kernel k(x: f32[4]) -> (y: f32[n]) {{ {} }}", body)));
  };
  using Problems = std::vector<std::string>;
  EXPECT_EQ(problems("combine max(a: f32, b: f32) = b"), Problems{"'max' is a combine already"});
  EXPECT_EQ(problems("combine c(a: f32, b: f32) = a + x[0]"), Problems{"combine 'c' reads 'x'"});
  EXPECT_EQ(problems("combine c(a: i64, b: i64) = a + n"), Problems{"combine 'c' speaks of n"});
  EXPECT_EQ(problems("combine c(a: f32, b: f64) = a"), Problems{"combine 'c' makes f32 of f32 and f64"});
  EXPECT_EQ(problems("combine c(a: f32, b: f32) = f64(a)"), Problems{"combine 'c' makes f64 of f32 and f32"});
  EXPECT_EQ(problems("combine c(a: f64, b: f64) = b y[0] c= 1"),
            Problems{"'y' is f32, but is combined as f64"});
}

TEST(Interpreter, ComputesAMatrixVectorProduct) {
  const Kernel kernel = parse_kernel(R"(kernel matvec(a: f32[n,m], x: f32[m]) -> (y: f32[n]) {
    for i in 0..n {
      y[i] = 0
      for j in 0..m {
        y[i] += a[i,j] * x[j]
      }
    }
  })");
  const Tensor a = Tensor::of(std::vector<float>{1, 2, 3, 4, 5, 6}).reshaped({2, 3});
  const Tensor x = Tensor::of(std::vector<float>{1, 10, 100});
  EXPECT_TRUE(identical(interpret(kernel, {a, x}).front(), Tensor::of(std::vector<float>{321, 654})));
}

TEST(Interpreter, CopiesBoxes) {
  const Kernel kernel = parse_kernel(R"(kernel k(x: f32[2,2,3]) -> (y: f32[2,2,2]) {
    for i in 0..2 pipelined 2 {
      local t: f32[3,4] in shared
      copy(2,2) t[1,2] = x[i,0,1]
      for j in 0..2 { for k in 0..2 { y[i,j,k] = t[j+1,k+2] } }
    }
  })");
  const Tensor x = Tensor::of(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).reshaped({2, 2, 3});
  EXPECT_TRUE(identical(interpret(kernel, {x}).front(),
                        Tensor::of(std::vector<float>{2, 3, 5, 6, 8, 9, 11, 12}).reshaped({2, 2, 2})));
}

TEST(Interpreter, CombinesTuples) {
  const Kernel kernel = parse_kernel(R"(kernel argmax(x: f32[n]) -> (m: f32[], k: i64[]) {
    combine larger(a: f32, p: i64, b: f32, q: i64) = select(a < b, b, a), select(a < b, q, p)
    m[], k[] = -inf, 0
    for i in 0..n {
      m[], k[] larger= x[i], i
    }
  })");
  const std::vector<Tensor> results = interpret(kernel, {Tensor::of(std::vector<float>{3, 7, 7, -1})});
  EXPECT_TRUE(identical(results[0], Tensor::scalar(7.0F)));
  EXPECT_TRUE(identical(results[1], Tensor::scalar(int64_t{1})));
}

TEST(Interpreter, RoundsAndWrapsAsTheDTypeDoes) {
  const Kernel kernel = parse_kernel(R"(kernel k(x: f32[1], i: i8[1]) -> (y: f32[1], j: i8[1]) {
    y[0] = x[0] + 1
    j[0] = i[0] + 100
  })");
  const std::vector<Tensor> results =
      interpret(kernel, {Tensor::of(std::vector<float>{1e-9F}), Tensor::of(std::vector<int8_t>{100})});
  EXPECT_TRUE(identical(results[0], Tensor::of(std::vector<float>{1})));
  EXPECT_TRUE(identical(results[1], Tensor::of(std::vector<int8_t>{-56})));
}

TEST(Interpreter, ShiftsSignsInAsFarAsThereAreBits) {
  const Kernel kernel = parse_kernel(
      "kernel k(x: i32[2], by: i32[2]) -> (y: i32[2]) { for i in 0..2 { y[i] = shift_right(x[i], by[i]) } }");
  EXPECT_TRUE(identical(
      interpret(kernel, {Tensor::of(std::vector<int32_t>{-8, 8}), Tensor::of(std::vector<int32_t>{-1, 100})})
          .front(),
      Tensor::of(std::vector<int32_t>{-1, 0})));
}

TEST(Interpreter, TakesSizesThatNoInputHasByItself) {
  const Kernel kernel = parse_kernel(
      "kernel k(x: f32[2*n]) -> (y: f32[n,m]) { for i in 0..n { for j in 0..m { y[i,j] = x[2*i] } } }");
  const Tensor x = Tensor::of(std::vector<float>{1, 2, 3, 4});
  EXPECT_TRUE(identical(interpret(kernel, {x}, {{"n", 2}, {"m", 1}}).front(),
                        Tensor::of(std::vector<float>{1, 3}).reshaped({2, 1})));
}

TEST(Interpreter, FindsAllPlacesBeforeItWritesAny) {
  const Kernel kernel =
      parse_kernel("kernel k() -> (at: i64[], y: i64[2]) { at[] = 0 y[1] = 7 at[], y[{at[]}] = 1, 5 }");
  EXPECT_TRUE(identical(interpret(kernel, {})[1], Tensor::of(std::vector<int64_t>{5, 7})));
}

TEST(Interpreter, ShowsIterationsThatDependOnEachOther) {
  for (const std::string_view mark : {"parallel", "vector"}) {
    const Kernel kernel = parse_kernel(
        fmt::format("kernel k() -> (y: i64[4]) {{ y[0] = 1 for i in 1..4 {} {{ y[i] = y[i-1] }} }}", mark));
    EXPECT_THROW(interpret(kernel, {}), UserError);
  }
  EXPECT_THROW(interpret(parse_kernel("kernel k() -> (y: i64[4]) { for b in 0..1 block(4) {"
                                      "  for i in 0..1 thread { y[i] = 1 }"
                                      "  for i in 1..4 thread { y[i] = y[i-1] } } }"),
                         {}),
               UserError);
}

TEST(Interpreter, RefusesWhatIsNotThere) {
  const auto error = [](std::string_view body) {
    const Kernel kernel = parse_kernel(fmt::format("kernel k(x: f32[4]) -> (y: f32[4]) {{ {} }}", body));
    try {
      interpret(kernel, {Tensor::of(std::vector<float>{1, 2, 3, 4})});
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("for i in 0..5 { y[i] = 1 }"), "y: index 4 along dimension 0 of f32[4], at i = 4");
  EXPECT_EQ(error("for i in 0..4 { y[i] += 1 }"), "y is read before it is written, at i = 0");
  EXPECT_EQ(error("y[0] = x[0]"), "y: element 1 of the output is never written");
  EXPECT_EQ(error("for i in 0..4 { if i-1 >= 0 { y[i] = x[i] } } y[0] = 0"), "no error");
}

TEST(CanonicalNames, TellApartLocalsOfOneNameInDifferentLoops) {
  const Kernel kernel = parse_checked_kernel(R"(kernel k(x: f32[4]) -> (y: f32[4]) {
    for i in 0..2 { local a: f32[] in private  a[] = x[i]  y[i] = a[] }
    for j in 2..4 { local a: f32[] in private  a[] = x[j] + 1  y[j] = a[] } })");
  const Kernel named = canonicalize_names(kernel).kernel;
  EXPECT_EQ(check(named), std::vector<std::string>()) << print(named);
  EXPECT_NE(print(named).find("t1[] = x0[j] + 1"), std::string::npos) << print(named);
}

}  // namespace
}  // namespace tenon::loops
