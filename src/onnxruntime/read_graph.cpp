#include "onnxruntime/read_graph.h"

#include <deque>
#include <filesystem>
#include <map>

#include "frontends/onnx/import_proto.h"
#include "frontends/onnx/tensor_proto.h"
#include "onnxruntime/values.h"

namespace tenon::onnxruntime {
namespace {

using onnx::AttributeProto;
using onnx::AttributeType;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::TypeProto;

Tensor copy_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::String)
    return tensor;
  Tensor copy(tensor.dtype(), tensor.extents());
  std::ranges::copy(tensor.bytes(), copy.mutable_bytes().begin());
  return copy;
}

// The messages that a file of the graph would hold. Tensors have no bytes: their elements are apart.
class Messages {
 public:
  Messages(const Ort::ConstGraph& graph, Weights weights)
      : weights_(weights), path_(graph.GetModelPath()), model_{} {
    model_.file = MappedFile::copy(path_.empty() ? "the session's model" : path_, {});
    model_.proto.ir_version = graph.GetOnnxIRVersion();
    for (const Ort::OperatorSet& opset : graph.GetOperatorSets())
      model_.proto.opset_import.push_back({.domain = text(opset.domain), .version = opset.version});
    fill(model_.proto.graph, graph);
    // Now that the messages stay where they are.
    find_elements(model_.proto.graph);
  }

  std::unique_ptr<Graph> read() const { return onnx::read_onnx(model_, elements_); }

 private:
  std::string_view text(std::string text) { return texts_.emplace_back(std::move(text)); }

  // "" stands for an input or output that a node leaves out.
  std::string_view name_of(const Ort::ConstValueInfo& value) {
    return static_cast<const OrtValueInfo*>(value) == nullptr ? std::string_view() : text(value.GetName());
  }

  void fill(GraphProto& proto, const Ort::ConstGraph& graph) {
    proto.name = text(graph.GetName());
    for (const Ort::ConstValueInfo& input : graph.GetInputs())
      proto.input.push_back({.name = name_of(input), .type = type_of(input.TypeInfo())});
    // Of an output, the name is enough: what it is follows from what makes it.
    for (const Ort::ConstValueInfo& output : graph.GetOutputs())
      proto.output.push_back({.name = name_of(output), .type = {}});
    for (const Ort::ConstValueInfo& initializer : graph.GetInitializers())
      if (initializer.IsConstantInitializer())
        add(proto.initializer, name_of(initializer), literal_of(initializer));
    for (const Ort::ConstNode& node : graph.GetNodes())
      proto.node.push_back(message_of(node));
  }

  static TypeProto type_of(const Ort::ConstTypeInfo& info) {
    if (static_cast<const OrtTypeInfo*>(info) == nullptr)
      return {};
    switch (info.GetONNXType()) {
      case ONNX_TYPE_TENSOR:
        return tensor_type(info.GetTensorTypeAndShapeInfo());
      case ONNX_TYPE_SEQUENCE:
        return {.kind = TypeProto::Kind::Sequence,
                .shape = {},
                .element = element_type(info.GetSequenceTypeInfo().GetSequenceElementType())};
      case ONNX_TYPE_OPTIONAL:
        return {.kind = TypeProto::Kind::Optional,
                .shape = {},
                .element = element_type(info.GetOptionalTypeInfo().GetOptionalElementType())};
      case ONNX_TYPE_SPARSETENSOR:
        return {.kind = TypeProto::Kind::SparseTensor, .shape = {}, .element = {}};
      case ONNX_TYPE_MAP:
        return {.kind = TypeProto::Kind::Map, .shape = {}, .element = {}};
      default:
        return {};
    }
  }

  static std::shared_ptr<const TypeProto> element_type(const Ort::TypeInfo& info) {
    const OrtTypeInfo* const element = info;
    return std::make_shared<const TypeProto>(type_of(Ort::ConstTypeInfo(element)));
  }

  // Names of dimensions are ONNX Runtime's own for as long as its graph lives.
  static TypeProto tensor_type(const Ort::ConstTensorTypeAndShapeInfo& info) {
    TypeProto type{.kind = TypeProto::Kind::Tensor,
                   .elem_type = onnx::to_data_type(dtype_of(info.GetElementType())),
                   .shape = onnx::ShapeProto{},
                   .element = {}};
    const std::vector<int64_t> sizes = info.GetShape();
    const std::vector<const char*> names = info.GetSymbolicDimensions();
    for (size_t i = 0; i < sizes.size(); ++i)
      type.shape->dim.push_back({.value = sizes[i] >= 0 ? std::optional(sizes[i]) : std::nullopt,
                                 .param = names[i] == nullptr ? "" : names[i]});
    return type;
  }

  NodeProto message_of(const Ort::ConstNode& node) {
    NodeProto proto{.input = {},
                    .output = {},
                    .name = text(node.GetName()),
                    .op_type = text(node.GetOperatorType()),
                    .domain = text(node.GetDomain()),
                    .overload = {},
                    .attribute = {}};
    for (const Ort::ConstValueInfo& input : node.GetInputs())
      proto.input.push_back(name_of(input));
    for (const Ort::ConstValueInfo& output : node.GetOutputs())
      proto.output.push_back(name_of(output));
    with_context([&] { return fmt::format("node \"{}\": {}", node.GetName(), node.GetOperatorType()); },
                 [&] { add_attributes(node, proto); });
    return proto;
  }

  void add_attributes(const Ort::ConstNode& node, NodeProto& proto) {
    std::map<std::string, Ort::ConstGraph> graphs;
    for (const Ort::AttrNameSubgraph& nested : node.GetSubgraphs())
      graphs.emplace(nested.attr_name, nested.sub_graph);
    for (const Ort::ConstOpAttr& attribute : node.GetAttributes())
      if (!graphs.contains(attribute.GetName()))
        proto.attribute.push_back(message_of(attribute));
    for (const auto& [name, graph] : graphs) {
      AttributeProto& nested = proto.attribute.emplace_back();
      nested.name = text(name);
      nested.type = AttributeType::Graph;
      fill(nested.graphs.emplace_back(), graph);
    }
  }

  AttributeProto message_of(const Ort::ConstOpAttr& attribute) {
    AttributeProto proto;
    proto.name = text(attribute.GetName());
    switch (attribute.GetType()) {
      case ORT_OP_ATTR_INT:
        proto.type = AttributeType::Int;
        read(attribute.GetValue(proto.i));
        break;
      case ORT_OP_ATTR_INTS:
        proto.type = AttributeType::Ints;
        read(attribute.GetValueArray(proto.ints));
        break;
      case ORT_OP_ATTR_FLOAT:
        proto.type = AttributeType::Float;
        read(attribute.GetValue(proto.f));
        break;
      case ORT_OP_ATTR_FLOATS:
        proto.type = AttributeType::Floats;
        read(attribute.GetValueArray(proto.floats));
        break;
      case ORT_OP_ATTR_STRING: {
        proto.type = AttributeType::String;
        std::string value;
        read(attribute.GetValue(value));
        proto.s = text(std::move(value));
        break;
      }
      case ORT_OP_ATTR_STRINGS: {
        proto.type = AttributeType::Strings;
        std::vector<std::string> values;
        read(attribute.GetValueArray(values));
        for (std::string& value : values)
          proto.strings.push_back(text(std::move(value)));
        break;
      }
      case ORT_OP_ATTR_TENSOR: {
        proto.type = AttributeType::Tensor;
        Ort::Value value(nullptr);
        read(attribute.GetTensorAttributeAsOrtValue(value));
        add(proto.tensors, proto.name, copy_of(view_of(value.GetConst())));
        break;
      }
      default:
        throw unsupported("attribute {} is of a kind that ONNX Runtime does not hand to plug-ins",
                          proto.name);
    }
    return proto;
  }

  static void read(const Ort::Status& status) {
    if (!status.IsOK())
      throw user_error("{}", status.GetErrorMessage());
  }

  Literal literal_of(const Ort::ConstValueInfo& initializer) {
    return with_context([&] { return fmt::format("initializer \"{}\"", initializer.GetName()); },
                        [&] {
                          const std::optional<Literal> mapped = mapped_literal(initializer);
                          return mapped ? *mapped : literal_in_memory(initializer);
                        });
  }

  Literal literal_in_memory(const Ort::ConstValueInfo& initializer) const {
    Ort::ConstValue value;
    read(initializer.GetInitializer(value));
    if (static_cast<const OrtValue*>(value) == nullptr)
      throw unsupported("its elements are not known");
    const Tensor view = view_of(value);
    return weights_ == Weights::View ? view : copy_of(view);
  }

  // Where the elements are in a file.
  std::optional<Literal> mapped_literal(const Ort::ConstValueInfo& initializer) {
    Ort::ExternalInitializerInfo place(nullptr);
    read(initializer.GetExternalInitializerInfo(place));
    if (static_cast<const OrtExternalInitializerInfo*>(place) == nullptr)
      return std::nullopt;
    const auto type = initializer.TypeInfo().GetTensorTypeAndShapeInfo();
    std::shared_ptr<const MappedFile>& file = files_[path_.parent_path() / place.GetFilePath()];
    if (file == nullptr)
      file = MappedFile::open(path_.parent_path() / place.GetFilePath());
    return Literal::file_slice(dtype_of(type.GetElementType()), type.GetShape(), file,
                               static_cast<uint64_t>(place.GetFileOffset()), place.GetByteSize());
  }

  void add(std::vector<TensorProto>& to, std::string_view name, Literal elements) {
    TensorProto& tensor = to.emplace_back();
    tensor.name = name;
    tensor.dims = elements.extents();
    tensor.data_type = onnx::to_data_type(elements.dtype());
    tensor.data_location = onnx::DataLocation::External;
    in_order_.push_back(std::move(elements));
  }

  // In the order in which fill adds them.
  void find_elements(const GraphProto& graph) {
    for (const TensorProto& tensor : graph.initializer)
      take_elements(tensor);
    for (const NodeProto& node : graph.node)
      for (const AttributeProto& attribute : node.attribute) {
        for (const TensorProto& tensor : attribute.tensors)
          take_elements(tensor);
        for (const GraphProto& nested : attribute.graphs)
          find_elements(nested);
      }
  }

  void take_elements(const TensorProto& tensor) {
    elements_.emplace(&tensor, std::move(in_order_.front()));
    in_order_.pop_front();
  }

  const Weights weights_;
  const std::filesystem::path path_;
  std::deque<std::string> texts_;  // that the messages view
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
  std::deque<Literal> in_order_;  // of tensors whose messages may still move
  onnx::Model model_;
  onnx::TensorElements elements_;
};

}  // namespace

std::unique_ptr<Graph> read_graph(const Ort::ConstGraph& graph, Weights weights) {
  return Messages(graph, weights).read();
}

}  // namespace tenon::onnxruntime
