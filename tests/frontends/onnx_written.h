// onnx_written.h — graphs written as ONNX models, and what is found in them.
#pragma once

#include "base/temporary_folder.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/write/write.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/graph_text.h"

namespace tenon::onnx {

inline std::string joined(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// "Gemm[transB](x, w) -> y", a line per node; nested graphs in braces.
inline std::string listing(const GraphProto& graph) {
  std::string text;
  for (const NodeProto& node : graph.node) {
    std::vector<std::string_view> attributes;
    std::string nested;
    for (const AttributeProto& attribute : node.attribute)
      if (attribute.graphs.empty())
        attributes.push_back(attribute.name);
      else
        nested += fmt::format(" {}{{\n{}}}", attribute.name, listing(attribute.graphs.front()));
    text += fmt::format("{}{}({}) -> {}{}\n", node.op_type,
                        attributes.empty() ? "" : fmt::format("[{}]", joined(attributes)), joined(node.input),
                        joined(node.output), nested);
  }
  return text;
}

struct Found {
  int64_t opset, ir_version;
  std::string nodes;
};

inline Found written(const Graph& graph, const WriteOptions& options = {}) {
  const TemporaryFolder folder;
  write_onnx(graph, folder / "m.onnx", options);
  const Model model = read_model(folder / "m.onnx");
  return {model.proto.opset_import.front().version, model.proto.ir_version, listing(model.proto.graph)};
}

inline Found written(const std::string& text, const WriteOptions& options = {}) {
  return written(*parse_graph(text), options);
}

inline std::unique_ptr<Graph> read_back(const Graph& graph, const WriteOptions& options = {}) {
  const TemporaryFolder folder;
  write_onnx(graph, folder / "m.onnx", options);
  return read_onnx(folder / "m.onnx");
}

inline void expect_same_after_reading(const std::string& text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  EXPECT_EQ(difference(*graph, *read_back(*graph)), "");
}

template <class Error = UnsupportedError>
void refuse(const std::string& text, const std::string& message, const WriteOptions& options = {}) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  const TemporaryFolder folder;
  expect_error<Error>([&] { write_onnx(*graph, folder / "m.onnx", options); }, message);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Whether what is written computes the same, to the bit.
inline void expect_same_results(const Graph& graph, const Data& inputs) {
  const Data expected = evaluate(graph, inputs), read = evaluate(*read_back(graph), inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(identical(read[i].tensor(), expected[i].tensor())) << i;
}

}  // namespace tenon::onnx
