// create.cpp — the gate: Graph::create, through which every node is made.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/graph.h"
#include "ir/infer.h"
#include "ir/not_a_tensor.h"
#include "ir/print.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t kFollowedElements = 1024;  // constants up to this size are followed through the graph
constexpr int64_t kFollowedDims = 64;        // and shape-like vectors up to this one, element by element

// An int where a float or bool is wanted, and an empty list of any kind, mean what they look like.
Attribute fit(const Attribute& given, AttributeKind wanted) {
  if (given.kind() == AttributeKind::Int && wanted == AttributeKind::Float)
    return static_cast<double>(given.as<int64_t>());
  if (given.kind() == AttributeKind::Int && wanted == AttributeKind::Bool && given.as<int64_t>() >> 1 == 0)
    return given.as<int64_t>() == 1;
  if (given.kind() == AttributeKind::Ints && wanted == AttributeKind::Floats)
    return Attribute::Floats(given.as<Attribute::Ints>().begin(), given.as<Attribute::Ints>().end());
  if (given.kind() == AttributeKind::Ints && wanted == AttributeKind::Strings &&
      given.as<Attribute::Ints>().empty())
    return Attribute::Strings();
  return given;
}

// What a late operand says once its elements are known, as the attribute it stands for.
std::optional<Attribute> as_attribute(const AttributeDecl& decl, Value value) {
  const auto ints = value.known_ints();
  if (!ints || !is_integer(value.dtype()))
    return std::nullopt;
  if (decl.kind == AttributeKind::Ints)
    return *ints;
  if (decl.kind == AttributeKind::Int && ints->size() == 1)
    return ints->front();
  return std::nullopt;
}

// Models also compute shapes in f32 (times a scale, then floor): of floats, the whole numbers are followed.
std::optional<std::vector<Dim>> dims_of(const Tensor& tensor) {
  if (tensor.count() > kFollowedDims)
    return std::nullopt;
  if (tensor.dtype() == DType::F32 || tensor.dtype() == DType::F64) {
    std::vector<Dim> dims;
    for (double number : widen<double>(tensor))
      dims.push_back(std::fabs(number) < 0x1p31 && std::trunc(number) == number
                         ? Dim(static_cast<int64_t>(number))
                         : Dim());
    return dims;
  }
  if (!is_integer(tensor.dtype()) && tensor.dtype() != DType::Bool)
    return std::nullopt;
  const std::vector<int64_t> ints = as_ints(tensor);
  return std::vector<Dim>(ints.begin(), ints.end());
}

bool is_small(Value value) {
  const auto extents = value.type().is_tensor() ? value.shape().extents() : std::nullopt;
  return extents && element_count(*extents) <= kFollowedElements;
}

// Of a constant whose elements are not computed yet.
bool is_deferred(const Attribute& attribute) {
  return attribute.kind() == AttributeKind::Literal && attribute.as<Literal>().is_deferred();
}

// Follows constants, and shape arithmetic, through the new node.
void follow_content(const Node& node) {
  const OpDef& op = node.op();
  const std::vector<Value> results = node.results();
  if (op.traits.random || !op.regions.empty() || !std::all_of(results.begin(), results.end(), is_small) ||
      std::ranges::any_of(node.attributes(), [](const auto& each) { return is_deferred(each.second); }))
    return;
  const std::vector<Value> operands = node.operands();
  if (std::all_of(operands.begin(), operands.end(), [](Value v) { return v.known_tensor() != nullptr; })) {
    Data inputs;
    for (Value operand : operands)
      inputs.emplace_back(*operand.known_tensor());
    try {
      const Data outputs = evaluate_node(node, inputs);
      for (size_t i = 0; i < results.size(); ++i)
        results[i].data()->content = Content{outputs[i].tensor(), dims_of(outputs[i].tensor())};
    } catch (const UserError&) {
      // It cannot be computed (an index out of range, say): running the graph will say so, if it ever gets
      // there.
    }
  } else if (op.content != nullptr && results.size() == 1) {
    std::optional<std::vector<Dim>> dims = op.content(node);
    if (dims && static_cast<int64_t>(dims->size()) <= kFollowedDims)
      results.front().data()->content = Content{std::nullopt, std::move(dims)};
  }
}

bool same_content(const std::optional<Content>& a, const std::optional<Content>& b) {
  if (!a || !b)
    return a.has_value() == b.has_value();
  return a->dims == b->dims && a->tensor.has_value() == b->tensor.has_value() &&
         (!a->tensor || identical(*a->tensor, *b->tensor));
}

// The value of an attribute that an operand of its name gives late.
Value single_value(const OpDef& op, const Operand& operand) {
  if (operand.values.size() != 1)
    throw user_error("{}: {} takes one value, not {}", op.name, operand.name, operand.values.size());
  return operand.values.front();
}

}  // namespace

Node* Graph::create(const OpDef& op, std::vector<Operand> operands, Attributes attributes,
                    std::vector<std::unique_ptr<Graph>> regions, const Types* types) {
  std::unique_ptr<Node> node(new Node(*this, op));
  naming_op(op.name, [&] {
    bind_operands(*node, std::move(operands), attributes);
    bind_attributes(*node, std::move(attributes));
    node->regions_ = std::move(regions);
    check_against_declaration(*node);
    make_results(*node, types);
  });
  node->sources_ = current_sources_;
  follow_content(*node);
  link(node.get(), insertions_.back());
  return node.release();
}

void Graph::bind_operands(Node& node, std::vector<Operand> operands, Attributes& attributes) {
  const OpDef& op = node.op();
  std::vector<std::vector<Value>> segments(op.operands.size());
  std::map<const AttributeDecl*, Value> late;  // in the order of the declaration
  std::set<std::string_view> given;
  for (Operand& operand : operands) {
    if (!given.insert(operand.name).second || (!operand.values.empty() && attributes.contains(operand.name)))
      throw user_error("{}: {} is given twice", op.name, operand.name);
    if (const OperandDecl* decl = op.find_operand(operand.name)) {
      segments[static_cast<size_t>(decl - op.operands.data())] = std::move(operand.values);
      continue;
    }
    const AttributeDecl* decl = op.find_attribute(operand.name);
    if (decl == nullptr)
      throw op.unknown_name(operand.name);
    if (operand.values.empty())
      continue;
    const Value value = single_value(op, operand);
    if (std::optional<Attribute> known = as_attribute(*decl, value))
      attributes.insert_or_assign(std::string(decl->name), *known);
    else
      late.emplace(decl, value);
  }
  for (const auto& [decl, value] : late) {
    node.late_names_.push_back(decl->name);
    segments.push_back({value});
  }
  set_segments(node, segments);
}

void Graph::set_segments(Node& node, const std::vector<std::vector<Value>>& segments) const {
  size_t count = 0;
  for (const auto& values : segments) {
    node.segments_.push_back(values.size());
    count += values.size();
  }
  node.operands_ = std::vector<Use>(count);
  auto use = node.operands_.begin();
  for (const auto& values : segments)
    for (Value value : values) {
      CHECK(value && &value.graph() == this, "an operand of {} is missing or belongs to another graph",
            node.op().name);
      use->user = &node;
      (use++)->set(value.data());
    }
}

void Graph::bind_attributes(Node& node, Attributes attributes) {
  const OpDef& op = node.op();
  for (auto& [name, value] : attributes) {
    const AttributeDecl* decl = op.find_attribute(name);
    if (decl == nullptr)
      throw op.unknown_name(name);
    value = fit(value, decl->kind);
  }
  for (const AttributeDecl& decl : op.attributes)
    if (decl.default_value && !decl.computed_default && !node.is_late(decl.name))
      attributes.try_emplace(std::string(decl.name), *decl.default_value);
  node.attributes_ = std::move(attributes);
  for (const AttributeDecl& decl : op.attributes)
    if (decl.computed_default && !node.is_late(decl.name) && !node.attributes_.contains(decl.name))
      node.attributes_.emplace(decl.name, decl.computed_default->compute(node));
}

void Graph::make_results(Node& node, const Types* types) {
  Types inferred;
  try {
    inferred = infer_types(node);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("{}: {}", node.op().name, error.what()));
  }
  if (types != nullptr && types->size() != inferred.size())
    throw user_error("{}: it has {} results, not {}", node.op().name, inferred.size(), types->size());
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (types != nullptr) {
      inferred[i] = complete(inferred[i], (*types)[i]);
      symbols_->reserve(inferred[i]);
    }
    auto data = std::make_unique<ValueData>();
    data->type = symbols_->name_unknown(inferred[i]);
    data->graph = this;
    data->node = &node;
    data->index = static_cast<int64_t>(i);
    node.results_.push_back(std::move(data));
  }
}

bool Node::infer_again() {
  Types inferred;
  try {
    inferred = infer_types(*this);
  } catch (const UserError&) {
    return false;
  }
  bool changed = false;
  std::vector<std::optional<Content>> known;
  for (size_t i = 0; i < results_.size(); ++i) {
    ValueData& result = *results_[i];
    Type type = graph_->symbols().name_unknown(complete(inferred.at(i), result.type));
    changed |= !(type == result.type);
    result.type = std::move(type);
    known.push_back(std::exchange(result.content, std::nullopt));
  }
  follow_content(*this);
  for (size_t i = 0; i < results_.size(); ++i)
    changed |= !same_content(known[i], results_[i]->content);
  return changed;
}

void Graph::infer_again(const std::vector<Node*>& nodes) {
  const auto earlier = [](const Node* a, const Node* b) { return a->comes_before(*b); };
  std::set<Node*, decltype(earlier)> waiting(nodes.begin(), nodes.end(), earlier);
  waiting.erase(return_);
  while (!waiting.empty()) {
    Node* node = *waiting.begin();
    waiting.erase(waiting.begin());
    if (node->infer_again())
      for (Value result : node->results())
        for (Node* user : result.users())
          if (user != return_ && node->comes_before(*user))
            waiting.insert(user);
  }
}

}  // namespace tenon
