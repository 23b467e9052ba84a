// Programs that are in no archive: their weights are asked for by name, and nodes that cannot be converted
// are listed.
#include "frontends/torch_program.h"

namespace tenon::torch {
namespace {

using namespace write;

struct Read {
  std::unique_ptr<Graph> graph;
  std::vector<RefusedNode> refused;
};

Read read(const ProgramText& program) {
  register_ops();
  const auto weight = [](const std::string& name) -> Literal {
    EXPECT_EQ(name, "w");
    return f32({2}, {10, 20});
  };
  Read result;
  result.graph = read_program(program.json().dump(), {.weight = weight, .constant = weight}, result.refused);
  return result;
}

NodeText call(const std::string& op, const std::string& operand, const std::string& result) {
  return {op, {{"self", tensor_name(operand)}}, Json::array({tensor_name(result)})};
}

Json with_types(ProgramText& program, const std::vector<std::string>& names) {
  Json json = program.json();
  for (const std::string& name : names)
    json["graph_module"]["graph"]["tensor_values"][name] = meta(DType::F32, {2});
  return json;
}

TEST(ReadProgram, AsksForWeightsByName) {
  ProgramText program = {
      .inputs = {{"x", meta(DType::F32, {2})}},
      .nodes = {{"aten.add.Tensor", {{"self", tensor_name("x")}, {"other", tensor_name("p_w")}}}}};
  add_weight(program, "w", f32({2}, {0, 0}));
  const Read found = read(program);
  ASSERT_TRUE(found.graph);
  expect_tensor(evaluate(*found.graph, {f32({2}, {1, 2})})[0], f32({2}, {11, 22}));
}

TEST(ReadProgram, ListsAllNodesThatItRefuses) {
  ProgramText program = {.inputs = {{"x", meta(DType::F32, {2})}},
                         .nodes = {call("aten.no_such_op.default", "x", "a"),
                                   call("aten.relu.default", "a", "b"),
                                   {"aten.add.Tensor",
                                    {{"self", tensor_name("b")}, {"other", {{"as_string", "one"}}}},
                                    Json::array({tensor_name("y")})}}};
  register_ops();
  std::vector<RefusedNode> refused;
  EXPECT_FALSE(read_program(with_types(program, {"a", "b", "y"}).dump(), {}, refused));
  ASSERT_EQ(refused.size(), 2);
  EXPECT_EQ(refused[0].name, "a");
  EXPECT_EQ(refused[0].reason, "no_such_op.default is not supported");
  EXPECT_EQ(refused[1].name, "y");
}

}  // namespace
}  // namespace tenon::torch
