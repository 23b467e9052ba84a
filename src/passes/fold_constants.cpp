#include <algorithm>
#include <unordered_set>

#include "ir/evaluate.h"
#include "ops/data.h"
#include "passes/passes.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

const Literal* constant_of(Value value) {
  return !value.is_input() && value.node()->is("constant") ? &value.node()->attr("value").as<Literal>()
                                                           : nullptr;
}

const Tensor* splat_of(Value value) {
  const Literal* literal = constant_of(value);
  const auto* splat = literal == nullptr ? nullptr : std::get_if<Literal::Splat>(&literal->form());
  return splat == nullptr ? nullptr : &splat->element;
}

// Whether the elements of its results are elements of its operands. Of the ops that move data, only pad has
// others besides.
bool rearranges(const OpDef& op) { return op.category == Category::Shape && op.name != "pad"; }

// Whether the node only makes quantised weights larger: it dequantises them, or makes wide integers of them.
bool enlarges_weights(const Node& node) {
  if (!node.is("cast"))
    return node.is("dequantize");
  const DType from = node.in("x").dtype(), to = node.attr("to");
  return is_integer(from) && info(from).bits <= 8 && is_integer(to) && info(to).bits > 8 &&
         node.result().shape().ranked() && node.result().rank() > 1;
}

int64_t bytes_of(const Extents& extents, DType dtype) { return element_count(extents) * info(dtype).bytes; }
int64_t bytes_of(Value value) { return bytes_of(*value.shape().extents(), value.dtype()); }

bool has_size(Value value) { return value.shape().extents().has_value(); }

bool is_made_of_constants(const Node& node) {
  const std::vector<Value> operands = node.operands();
  return std::all_of(operands.begin(), operands.end(), [](Value v) { return constant_of(v) != nullptr; });
}

// Whether its results are some elements of its operands, and what is large of these is held as it is: so no
// others are read.
bool takes_elements(const Node& node) {
  const std::vector<Value> operands = node.operands();
  return (rearranges(node.op()) || node.is("gather")) &&
         std::all_of(operands.begin(), operands.end(), [](Value operand) {
           return bytes_of(operand) <= kSmallConstant || constant_of(operand)->is_stored();
         });
}

class Folder {
 public:
  Folder(Journal& journal, bool keeps_halves) : journal_(journal), keeps_halves_(keeps_halves) {}

  void fold(Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!journal_.is_open())
        return;
      for (const auto& region : node->regions())
        fold(*region);
      fold(node);
    }
  }

 private:
  void fold(Node* node) {
    if (node->is("constant") || node->op().traits.random || node->result_count() == 0)
      return;
    if (enlarges_weights(*node) || (keeps_halves_ && widens_halves(*node)))
      return;
    const std::vector<Value> operands = node->operands();
    if (node->is("parameter") ? is_float(node->result().dtype())
                              : std::any_of(operands.begin(), operands.end(), [&](Value operand) {
                                  return of_parameters_.contains(operand.data());
                                })) {
      for (Value result : node->results())
        of_parameters_.insert(result.data());
      return;
    }
    if (std::optional<std::vector<Literal>> values = values_of(*node))
      replace(node, *values);
  }

  std::optional<std::vector<Literal>> values_of(const Node& node) {
    std::vector<Literal> values;
    for (Value result : node.results())
      if (std::optional<Literal> value = known_value(result))
        values.push_back(std::move(*value));
    if (static_cast<int64_t>(values.size()) == node.result_count())
      return values;
    const std::vector<Value> results = node.results();
    if (!node.regions().empty() || !is_made_of_constants(node) ||
        !std::all_of(results.begin(), results.end(), [](Value v) { return v.type().is_tensor(); }))
      return std::nullopt;
    if (std::optional<Literal> splat = splat_value(node))
      return std::vector<Literal>{std::move(*splat)};
    return computed_values(node);
  }

  // Lazily, where all elements are the same.
  static Literal as_literal(const Tensor& tensor) {
    if (tensor.count() < 2 || tensor.dtype() == DType::String)
      return tensor;
    const std::span<const std::byte> bytes = tensor.bytes();
    const auto size = static_cast<std::ptrdiff_t>(tensor.element_size());
    if (!std::equal(bytes.begin() + size, bytes.end(), bytes.begin()))
      return tensor;
    Tensor element(tensor.dtype(), {});
    std::copy_n(bytes.begin(), size, element.mutable_bytes().begin());
    return Literal::splat(element, tensor.extents());
  }

  // What inference found out on its way.
  static std::optional<Literal> known_value(Value value) {
    if (!value.type().is_tensor())
      return std::nullopt;
    if (const Tensor* known = value.known_tensor())
      return as_literal(*known);
    const auto ints = value.known_ints();
    const auto extents = value.shape().extents();
    if (!ints || !extents || !is_integer(value.dtype()))
      return std::nullopt;
    if (static_cast<int64_t>(ints->size()) != element_count(*extents))
      return std::nullopt;  // its node will be refused when it runs
    return Literal(narrow<int64_t>(value.dtype(), *extents, *ints));
  }

  // What is computed of splats alone, element by element, is one; so is a splat in another shape.
  std::optional<Literal> splat_value(const Node& node) {
    if (node.result_count() != 1 || !has_size(node.result()))
      return std::nullopt;
    const Extents extents = *node.result().shape().extents();
    if (rearranges(node.op())) {
      const Tensor* element = splat_of(node.operand(0));
      return element == nullptr || !node.op().find_operand("x") || node.ins("x").size() != 1
                 ? std::nullopt
                 : std::optional(Literal::splat(*element, extents));
    }
    if (!node.op().traits.elementwise)
      return std::nullopt;
    Data elements;
    for (Value operand : node.operands()) {
      const Tensor* element = splat_of(operand);
      if (element == nullptr)
        return std::nullopt;
      elements.emplace_back(*element);
    }
    const std::optional<Data> results = compute(node, elements);
    return results ? std::optional(Literal::splat(results->front().tensor(), extents)) : std::nullopt;
  }

  std::optional<Data> compute(const Node& node, const Data& operands) {
    try {
      return evaluate_node(node, operands);
    } catch (const UserError& error) {
      // Running the graph will say so, if it ever gets there.
      journal_.declined("fold", node, fmt::format("it cannot be computed: {}", error.what()));
      return std::nullopt;
    }
  }

  // Of some, as of what is found in an operand, only computing tells the size.
  std::optional<std::vector<Literal>> computed_values(const Node& node) {
    const std::vector<Value> all = node.results();
    const bool is_sized = std::all_of(all.begin(), all.end(), has_size);
    int64_t bytes = 0, made_of = 0;
    if (is_sized)
      for (Value result : all)
        bytes += bytes_of(result);
    for (Value operand : node.operands())
      made_of += bytes_of(operand);
    // Weights are computed with one by one when the model is written or compiled.
    if (made_of > kSmallConstant && !(is_sized && bytes <= kSmallConstant && takes_elements(node)))
      return std::nullopt;
    if (is_too_large(node, bytes))
      return std::nullopt;
    Data inputs;
    for (Value operand : node.operands())
      inputs.emplace_back(constant_of(operand)->tensor());
    const std::optional<Data> results = compute(node, inputs);
    if (!results)
      return std::nullopt;
    std::vector<Literal> values;
    bytes = 0;
    for (const Datum& result : *results) {
      const Tensor& tensor = result.tensor();
      bytes += bytes_of(tensor.extents(), tensor.dtype());
      values.push_back(as_literal(tensor));
    }
    return is_too_large(node, bytes) ? std::nullopt : std::optional(std::move(values));
  }

  bool is_too_large(const Node& node, int64_t bytes) {
    if (bytes > kMostFolded)
      journal_.declined("fold", node, fmt::format("its value takes {} bytes", bytes));
    return bytes > kMostFolded;
  }

  void replace(Node* node, const std::vector<Literal>& values) {
    journal_.applied("fold", {node}, Numerics::BitExact);
    Graph& graph = node->graph();
    std::vector<Value> constants;
    {
      const InsertBefore here(node);
      for (const Literal& value : values)
        constants.push_back(constant(graph, value));
    }
    if (is_made_of_constants(*node) && node->result().name().empty())
      constants.front().set_name(
          name_by_origin(node->result(), [](Value operand) { return operand.use_count() > 1; }));
    graph.replace(node, constants);
  }

  Journal& journal_;
  const bool keeps_halves_;
  std::unordered_set<const ValueData*> of_parameters_;
};

}  // namespace

bool widens_halves(const Node& node) {
  if (!node.is("cast") || !node.result().shape().ranked() || node.result().rank() < 2)
    return false;
  const DType from = node.in("x").dtype(), to = node.attr("to");
  return (from == DType::F16 || from == DType::BF16) && to == DType::F32;
}

void fold_constants(Graph& graph, Journal& journal) {
  Folder(journal, /*keeps_halves=*/false).fold(graph);
  remove_dead(graph, journal);
}

void fold_constants_but_halves(Graph& graph, Journal& journal) {
  Folder(journal, /*keeps_halves=*/true).fold(graph);
  remove_dead(graph, journal);
}

}  // namespace tenon
