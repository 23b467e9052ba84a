// torch_program.h — torch.export archives for tests: a program written as JSON, node by node, with its
// weights.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "base/zip_bytes.h"
#include "frontends/torch/import.h"
#include "ir/graph_text.h"

namespace tenon::torch::write {

using Json = nlohmann::json;

inline int64_t number_of(DType dtype) {
  constexpr std::pair<DType, int64_t> numbers[] = {
      {DType::U8, 1},  {DType::I8, 2},  {DType::I16, 3}, {DType::I32, 4},   {DType::I64, 5},
      {DType::F16, 6}, {DType::F32, 7}, {DType::F64, 8}, {DType::Bool, 12}, {DType::BF16, 13},
  };
  for (const auto& [each, number] : numbers)
    if (each == dtype)
      return number;
  throw InternalError("no test has such tensors");
}

// Arguments.
inline Json tensor_name(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
inline Json tensor_names(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names)
    list.push_back({{"name", name}});
  return {{"as_tensors", list}};
}
inline Json number_name(const std::string& name) { return {{"as_sym_int", {{"as_name", name}}}}; }
inline Json none() { return {{"as_none", true}}; }

// A size: a number, or an expression of SymPy.
struct SizeText {
  SizeText(int64_t size) : json({{"as_int", size}}) {}
  SizeText(int size) : SizeText(static_cast<int64_t>(size)) {}
  SizeText(const char* expression)
      : json({{"as_expr", {{"expr_str", expression}, {"hint", {{"as_int", 2}}}}}}) {}
  Json json;
};
inline Json meta(DType dtype, const std::vector<SizeText>& sizes, std::vector<SizeText> strides = {},
                 int64_t offset = 0) {
  Json json = {{"dtype", number_of(dtype)},
               {"sizes", Json::array()},
               {"requires_grad", false},
               {"device", {{"type", "cpu"}, {"index", nullptr}}},
               {"strides", Json::array()},
               {"storage_offset", {{"as_int", offset}}},
               {"layout", 7}};
  for (const SizeText& size : sizes)
    json["sizes"].push_back(size.json);
  if (strides.empty())
    strides.assign(sizes.size(), SizeText(1));
  for (const SizeText& stride : strides)
    json["strides"].push_back(stride.json);
  return json;
}
inline Json meta_of(const Tensor& tensor) {
  const Extents strides = row_major_strides(tensor.extents());
  return meta(tensor.dtype(), {tensor.extents().begin(), tensor.extents().end()},
              {strides.begin(), strides.end()});
}

using Arguments = std::vector<std::pair<std::string, Json>>;

struct NodeText {
  std::string target;  // aten.relu.default
  Arguments arguments;
  Json outputs = Json::array({tensor_name("y")});
  std::string module = "";
};

inline Json to_json(const NodeText& node) {
  Json json = {{"target", node.target.starts_with("_") ? node.target : "torch.ops." + node.target},
               {"inputs", Json::array()},
               {"outputs", node.outputs},
               {"metadata", {{"nn_module_stack", "L__self__,,Model;L__self___m," + node.module + ",Module"}}},
               {"name", "n"}};
  if (!node.outputs.empty()) {
    const Json& first = node.outputs.front();
    if (first.contains("as_tensor"))
      json["name"] = first["as_tensor"]["name"];
  }
  for (const auto& [name, argument] : node.arguments)
    json["inputs"].push_back({{"name", name}, {"arg", argument}, {"kind", 1}});
  return json;
}

inline Json graph_of(const Json& inputs, const Json& outputs, const std::vector<NodeText>& nodes) {
  Json json = {{"inputs", inputs},
               {"outputs", outputs},
               {"nodes", Json::array()},
               {"tensor_values", Json::object()},
               {"sym_int_values", Json::object()},
               {"sym_bool_values", Json::object()},
               {"is_single_tensor_return", false},
               {"custom_obj_values", Json::object()}};
  for (const NodeText& node : nodes)
    json["nodes"].push_back(to_json(node));
  return json;
}
inline Json nested(const Json& graph) { return {{"as_graph", {{"name", "nested"}, {"graph", graph}}}}; }

struct WeightText {
  std::string name;    // p_weight
  std::string target;  // weight
  Json meta;
  std::string path;  // weight_0
  std::string kind = "parameter";
};

// A program whose user inputs are `inputs`, with what each is.
struct ProgramText {
  std::vector<std::pair<std::string, Json>> inputs = {};
  std::vector<WeightText> weights = {};
  std::vector<NodeText> nodes = {};
  std::vector<std::string> outputs = {"y"};
  std::vector<ZipPart> files = {};  // those that weights are in: weight_0
  Json ranges = Json::object();
  int64_t major = 8;

  Json json() const {
    Json graph_inputs = Json::array(), graph_outputs = Json::array(), input_specs = Json::array(),
         output_specs = Json::array();
    for (const WeightText& weight : weights) {
      graph_inputs.push_back(tensor_name(weight.name));
      input_specs.push_back(
          {{weight.kind, {{"arg", {{"name", weight.name}}}, {weight.kind + "_name", weight.target}}}});
    }
    for (const auto& [name, meta] : inputs) {
      graph_inputs.push_back(tensor_name(name));
      input_specs.push_back({{"user_input", {{"arg", tensor_name(name)}}}});
    }
    for (const std::string& output : outputs) {
      graph_outputs.push_back(tensor_name(output));
      output_specs.push_back({{"user_output", {{"arg", tensor_name(output)}}}});
    }
    Json graph = graph_of(graph_inputs, graph_outputs, nodes);
    for (const WeightText& weight : weights)
      graph["tensor_values"][weight.name] = weight.meta;
    for (const auto& [name, meta] : inputs)
      graph["tensor_values"][name] = meta;
    return {
        {"graph_module",
         {{"graph", graph}, {"signature", {{"input_specs", input_specs}, {"output_specs", output_specs}}}}},
        {"opset_version", {{"aten", 10}}},
        {"range_constraints", ranges},
        {"schema_version", {{"major", major}, {"minor", 17}}}};
  }

  std::vector<ZipPart> parts() const { return parts(json().dump()); }
  std::vector<ZipPart> parts(const std::string& program) const {
    Json config = Json::object(), constants = Json::object();
    for (const WeightText& weight : weights)
      (weight.kind == "tensor_constant" ? constants : config)[weight.target] = {{"path_name", weight.path},
                                                                                {"is_param", true},
                                                                                {"use_pickle", false},
                                                                                {"tensor_meta", weight.meta}};
    std::vector<ZipPart> all = {
        {"m/models/model.json", program},
        {"m/data/weights/model_weights_config.json", Json{{"config", config}}.dump()},
        {"m/data/constants/model_constants_config.json", Json{{"config", constants}}.dump()}};
    for (ZipPart file : files) {
      const bool constant = std::ranges::any_of(weights, [&](const WeightText& weight) {
        return weight.kind == "tensor_constant" && weight.path == file.name;
      });
      file.name = (constant ? "m/data/constants/" : "m/data/weights/") + file.name;
      all.push_back(file);
    }
    return all;
  }
};

inline std::string bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()};
}

// A weight by itself in a file.
inline void add_weight(ProgramText& program, const std::string& name, const Tensor& tensor,
                       const std::string& kind = "parameter") {
  const std::string path = fmt::format("weight_{}", program.files.size());
  program.weights.push_back({"p_" + name, name, meta_of(tensor), path, kind});
  program.files.push_back({path, bytes_of(tensor)});
}

inline std::unique_ptr<Graph> import_parts(const std::vector<ZipPart>& parts) {
  register_ops();
  const TemporaryFolder folder;
  std::unique_ptr<Graph> graph = read_torch(folder.write("m.pt2", zip_bytes(parts)));
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  return graph;
}
inline std::unique_ptr<Graph> import(const ProgramText& program) { return import_parts(program.parts()); }
inline Data run(const ProgramText& program, const Data& inputs) { return evaluate(*import(program), inputs); }

// The message, less the name of the file in front of it.
template <class Error = UserError>
void refuse_parts(const std::vector<ZipPart>& parts, const std::string& message) {
  register_ops();
  const TemporaryFolder folder;
  const auto path = folder.write("m.pt2", zip_bytes(parts));
  expect_error<Error>([&] { read_torch(path); }, path.string() + ": " + message);
}
template <class Error = UserError>
void refuse(const ProgramText& program, const std::string& message) {
  refuse_parts<Error>(program.parts(), message);
}

// --- one node

// An argument as it is easy to write: a tensor becomes an input of the program.
struct Given {
  Given(const Tensor& tensor) : tensors({tensor}), is_list(false) {}
  Given(std::vector<Tensor> tensors) : tensors(std::move(tensors)), is_list(true) {}
  Given(double value) : json({{"as_float", value}}) {}
  Given(int value) : json({{"as_int", value}}) {}
  Given(bool value) : json({{"as_bool", value}}) {}
  Given(const char* value) : json({{"as_string", value}}) {}
  Given(DType dtype) : json({{"as_scalar_type", number_of(dtype)}}) {}
  Given(std::vector<int64_t> values) : json({{"as_ints", values}}) {}
  Given(std::vector<double> values) : json({{"as_floats", values}}) {}
  Given(Json json) : json(std::move(json)) {}

  Json json = nullptr;
  std::vector<Tensor> tensors = {};
  bool is_list = false;
};
using GivenArguments = std::vector<std::pair<std::string, Given>>;

struct OneNode {
  ProgramText program;
  Data inputs;

  OneNode(const std::string& op, const GivenArguments& arguments, int results = 1) {
    NodeText node = {.target = "aten." + op, .arguments = {}, .outputs = Json::array()};
    program.outputs.clear();
    for (int i = 0; i < results; ++i) {
      program.outputs.push_back(fmt::format("y{}", i));
      node.outputs.push_back(tensor_name(program.outputs.back()));
    }
    for (const auto& [name, given] : arguments) {
      std::vector<std::string> names;
      for (const Tensor& tensor : given.tensors) {
        names.push_back(fmt::format("x{}", inputs.size()));
        program.inputs.emplace_back(names.back(), meta_of(tensor));
        inputs.emplace_back(tensor);
      }
      node.arguments.emplace_back(name, names.empty() && !given.is_list ? given.json
                                        : given.is_list                 ? tensor_names(names)
                                                                        : tensor_name(names.front()));
    }
    program.nodes = {node};
  }
};

inline Data run_all(const std::string& op, const GivenArguments& arguments, int results) {
  const OneNode one(op, arguments, results);
  return run(one.program, one.inputs);
}
inline Tensor run_op(const std::string& op, const GivenArguments& arguments) {
  return run_all(op, arguments, 1).front().tensor();
}

}  // namespace tenon::torch::write
