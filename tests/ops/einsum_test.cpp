#include "ir/graph_text.h"

namespace tenon {
namespace {

std::string text(const std::vector<std::string>& types, std::string_view equation) {
  std::string inputs, names;
  for (size_t i = 0; i < types.size(); ++i) {
    inputs += fmt::format("{}%x{}: {}", i == 0 ? "" : ", ", i, types[i]);
    names += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format("graph({}) {{ %y = einsum([{}], equation=\"{}\") return %y }}", inputs, names, equation);
}

Datum einsum(const std::vector<Tensor>& operands, std::string_view equation) {
  std::vector<std::string> types;
  for (const Tensor& operand : operands)
    types.push_back(to_string(type_of(operand)));
  return run_text(text(types, equation), Data(operands.begin(), operands.end()))[0];
}

void refuse(const std::vector<std::string>& types, std::string_view equation, std::string_view message) {
  try {
    parse_graph(text(types, equation));
    FAIL() << "it was taken";
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.substr(what.find("einsum: ")), message);
  }
}

const Tensor square = f32({2, 2}, {1, 2, 3, 4});

TEST(Einsum, TakesDiagonalsTracesAndSums) {
  expect_tensor(einsum({square}, "ii->i"), f32({2}, {1, 4}));
  expect_tensor(einsum({square}, "ii"), f32({}, {5}));
  expect_tensor(einsum({square}, "ij->j"), f32({2}, {4, 6}));
  expect_tensor(einsum({square}, "ij->"), f32({}, {10}));
  expect_tensor(einsum({f32({}, {3})}, "->"), f32({}, {3}));
}

TEST(Einsum, WithoutAnArrowKeepsWhatAppearsOnceInTheOrderOfLetters) {
  expect_tensor(einsum({square}, "ba"), f32({2, 2}, {1, 3, 2, 4}));
  expect_tensor(einsum({square}, "aB"), f32({2, 2}, {1, 3, 2, 4}));  // B comes before a
  expect_tensor(einsum({square, square}, "ij,jk"), f32({2, 2}, {7, 10, 15, 22}));
  expect_tensor(einsum({square}, "a..."), f32({2, 2}, {1, 3, 2, 4}));  // the ellipsis comes first
}

TEST(Einsum, ContractsAnyNumberOfOperands) {
  const Tensor v = f32({2}, {1, 10});
  expect_tensor(einsum({v, square, v}, "i,ij,j->"), f32({}, {1 + 20 + 30 + 400}));
  expect_tensor(einsum({v, v, v}, " i, i ,i -> i"), f32({2}, {1, 1000}));
}

TEST(Einsum, EllipsesBroadcast) {
  const Tensor stack = f32({2, 1, 2}, {1, 2, 3, 4}), v = f32({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_tensor(einsum({stack, v}, "...i,...i->..."), f32({2, 3}, {1, 2, 3, 3, 4, 7}));
  expect_tensor(einsum({stack, f32({}, {2})}, "...,..."), f32({2, 1, 2}, {2, 4, 6, 8}));
}

TEST(Einsum, OneWideDimensionsBroadcast) {
  expect_tensor(einsum({f32({2, 1}, {1, 2}), f32({3}, {1, 2, 3})}, "ij,j->i"), f32({2}, {6, 12}));
}

TEST(Einsum, OfNothingIsZero) {
  expect_tensor(einsum({f32({2, 0}, {}), f32({0, 3}, {})}, "ij,jk->ik"), f32({2, 3}, {0, 0, 0, 0, 0, 0}));
}

TEST(Einsum, IntegersWrapAround) {
  const Tensor x = tensor(DType::U8, {2}, {200, 100});
  expect_tensor(einsum({x, x}, "i,i->"), tensor(DType::U8, {}, {(200 * 200 + 100 * 100) % 256}));
}

TEST(Einsum, InfersSymbolicShapes) {
  EXPECT_EQ(output_type(text({"f32[b,n,64]", "f32[b,m,64]"}, "bid,bjd->bij")), "f32[b,n,m]");
  EXPECT_EQ(output_type(text({"f32[b,1,n]", "f32[h,n]"}, "...i,...i->...")), "f32[b,h]");
  EXPECT_EQ(output_type(text({"f32[n]", "f32[4]"}, "i,i->i")), "f32[4]");
  EXPECT_EQ(output_type(text({"f32[*]"}, "ij->ji")), "f32[*]");
}

TEST(Einsum, RefusesEquationsThatDoNotFit) {
  refuse({"f32[2]"}, "i,i->i", "einsum: \"i,i->i\" has 2 terms on the left, but there are 1 operands");
  refuse({"f32[2]"}, "ij->i", "einsum: \"ij\" in \"ij->i\" names 2 dimensions, but operand 0 has rank 1");
  refuse({"f32[2]"}, "i...j->i",
         "einsum: \"i...j\" in \"i...j->i\" names at least 2 dimensions, but operand 0 has rank 1");
  refuse({"f32[2]"}, "i->j", "einsum: \"i->j\" has no 'j' on the left");
  refuse({"f32[2]"}, "i->ii", "einsum: \"i->ii\" names 'i' twice on the right");
  refuse({"f32[2]"}, "i->i,i", "einsum: \"i->i,i\" has 2 terms on the right, but one was wanted");
  refuse({"f32[2]"}, "1->1", "einsum: \"1->1\" has a '1' where a letter or one \"...\" per term was wanted");
  refuse({"f32[2,2]"}, "......->i",
         "einsum: \"......->i\" has a '.' where a letter or one \"...\" per term was wanted");
  refuse({"f32[2,2]"}, "i...->i",
         "einsum: \"i...->i\" has an ellipsis on the left that the right does not mention");
  refuse({"f32[2,3]"}, "ii->i", "einsum: the dimension i is 2 in one place and 3 in another");
  refuse({"f32[2]", "f32[3]"}, "...,...",
         "einsum: a dimension of the ellipsis is 2 in one place and 3 in another");
}

TEST(Einsum, ChecksShapesAgainWhenItRuns) {
  expect_error<UserError>(
      [] {
        run_text(text({"f32[n]", "f32[m]"}, "i,i->i"), {f32({2}, {1, 2}), f32({3}, {1, 2, 3})});
      },
      "node %y: einsum: the dimension i is 2 in one place and 3 in another");
}

}  // namespace
}  // namespace tenon
