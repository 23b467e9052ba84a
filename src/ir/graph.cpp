#include "ir/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "ir/infer.h"

namespace tenon {

// --- Value

void Use::set(ValueData* to) {
  if (value != nullptr) {
    *link = next;
    if (next != nullptr)
      next->link = link;
    --value->use_count;
  }
  value = to;
  if (value != nullptr) {
    next = value->first_use;
    link = &value->first_use;
    if (next != nullptr)
      next->link = &next;
    value->first_use = this;
    ++value->use_count;
  }
}

std::vector<Node*> Value::users() const {
  std::vector<Node*> users;
  for (Use* use = data_->first_use; use != nullptr; use = use->next)
    users.push_back(use->user);
  std::sort(users.begin(), users.end(), [](const Node* a, const Node* b) { return a->comes_before(*b); });
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

void Value::replace_all_uses(Value by) const {
  CHECK(by && by != *this && &by.graph() == &graph(), "a value is replaced by another one of its graph");
  CHECK(by.type().index() == type().index() && (!type().is_tensor() || by.dtype() == dtype()),
        "a value of type {} cannot be replaced by one of type {}", type(), by.type());
  std::vector<Node*> changed;
  for (Use *use = data_->first_use, *next = nullptr; use != nullptr; use = next) {
    next = use->next;
    if (use->user == by.node())
      continue;
    changed.push_back(use->user);
    use->set(by.data());
  }
  graph().infer_again(changed);
}

void Value::refine_type(const Type& declared) const {
  CHECK(use_count() == 0, "the type of a value in use cannot change");
  if (is_input())
    return;
  const Type inferred = infer_types(*node()).at(static_cast<size_t>(index()));
  SymbolSource& symbols = graph().symbols();
  data_->type =
      symbols.name_unknown(complete(complete(inferred, symbols.forget_used(declared)), data_->type));
  symbols.reserve(data_->type);
}

const Tensor* Value::known_tensor() const {
  return data_->content && data_->content->tensor ? &*data_->content->tensor : nullptr;
}

std::optional<std::vector<Dim>> Value::known_dims() const {
  if (type().is_tensor() && shape().element_count() == Dim(0))
    return std::vector<Dim>();
  return data_->content ? data_->content->dims : std::nullopt;
}

std::optional<std::vector<int64_t>> Value::known_ints() const {
  const auto dims = known_dims();
  if (!dims)
    return std::nullopt;
  std::vector<int64_t> ints;
  for (const Dim& dim : *dims) {
    if (!dim.is_constant())
      return std::nullopt;
    ints.push_back(*dim.constant());
  }
  return ints;
}

// --- Node

Node::~Node() {
  for (Use& use : operands_)
    use.set(nullptr);
}

void Node::set_operand(int64_t index, Value value) {
  CHECK(value && &value.graph() == graph_, "an operand of {} is missing or belongs to another graph",
        op_->name);
  operands_[static_cast<size_t>(index)].set(value.data());
  graph_->infer_again({this});
}

std::pair<size_t, size_t> Node::segment(std::string_view name) const {
  size_t index = op_->operands.size();
  if (const OperandDecl* decl = op_->find_operand(name))
    index = static_cast<size_t>(decl - op_->operands.data());
  else
    index +=
        static_cast<size_t>(std::find(late_names_.begin(), late_names_.end(), name) - late_names_.begin());
  CHECK(index < segments_.size(), "{} has no operand {}", op_->name, name);
  size_t begin = 0;
  for (size_t i = 0; i < index; ++i)
    begin += segments_[i];
  return {begin, segments_[index]};
}

Value Node::in(std::string_view name) const {
  const auto [begin, count] = segment(name);
  return count == 0 ? Value() : Value(operands_[begin].value);
}

std::vector<Value> Node::ins(std::string_view name) const {
  const auto [begin, count] = segment(name);
  std::vector<Value> values;
  for (size_t i = begin; i < begin + count; ++i)
    values.emplace_back(operands_[i].value);
  return values;
}

std::vector<Value> Node::operands() const {
  std::vector<Value> values;
  for (const Use& use : operands_)
    values.emplace_back(use.value);
  return values;
}

const Attribute& Node::attr(std::string_view name) const {
  const auto it = attributes_.find(name);
  CHECK(it != attributes_.end(), "{} has no attribute {}", op_->name, name);
  return it->second;
}

void Node::give_up_elements() {
  for (auto& [name, attribute] : attributes_)
    if (attribute.kind() == AttributeKind::Literal) {
      Literal literal = attribute;
      literal.give_up_elements();
      attribute = std::move(literal);
    }
}

Value Node::late(std::string_view name) const {
  return std::find(late_names_.begin(), late_names_.end(), name) == late_names_.end() ? Value() : in(name);
}

std::vector<Value> Node::results() const {
  std::vector<Value> values;
  for (const auto& result : results_)
    values.emplace_back(result.get());
  return values;
}

Types Node::result_types() const {
  Types types;
  for (const auto& result : results_)
    types.push_back(result->type);
  return types;
}

Graph& Node::region(std::string_view name) const {
  const auto it = std::find(op_->regions.begin(), op_->regions.end(), name);
  CHECK(it != op_->regions.end(), "{} has no region {}", op_->name, name);
  return *regions_.at(static_cast<size_t>(it - op_->regions.begin()));
}

namespace {

// By the sound that the name begins with: a unique node, an unsqueeze node.
std::string_view article_for(std::string_view name) {
  const bool sounds_otherwise = name.starts_with("uni") || name.starts_with("one");
  return std::string_view("aeiou").find(name.front()) != std::string_view::npos && !sounds_otherwise ? "an"
                                                                                                     : "a";
}

}  // namespace

std::string Node::describe() const {
  if (!sources_.empty())
    return fmt::format("node \"{}\"", sources_.front());
  for (const auto& result : results_)
    if (!result->name.empty())
      return fmt::format("node %{}", result->name);
  return fmt::format("{} {} node", article_for(op_->name), op_->name);
}

// --- SymbolSource

Dim SymbolSource::fresh() {
  std::string name;
  do
    name = fmt::format("d{}", next_++);
  while (used_.contains(name));
  used_.insert(name);
  return Dim::symbol(name);
}

Type SymbolSource::name_unknown(const Type& type) {
  // The elements of a sequence differ in sizes that have no common name.
  if (type.is_sequence())
    return type;
  if (type.is_optional())
    return Type::optional(name_unknown(type.element()));
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked())
    return type;
  std::vector<Dim> dims = shape.dims();
  for (Dim& dim : dims)
    if (dim.is_unknown())
      dim = fresh();
  return Type::tensor(dtype, dims);
}

Type SymbolSource::forget_used(const Type& type) const {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return type;
  const auto& [dtype, shape] = type.as_tensor();
  std::vector<Dim> dims = shape.dims();
  for (Dim& dim : dims) {
    const std::vector<std::string> symbols = dim.symbols();
    if (std::any_of(symbols.begin(), symbols.end(),
                    [&](const std::string& symbol) { return used_.contains(symbol); }))
      dim = Dim();
  }
  return Type::tensor(dtype, dims);
}

void SymbolSource::reserve(const Type& type) {
  const std::set<std::string> symbols = symbols_of(type);
  used_.insert(symbols.begin(), symbols.end());
}

// --- Graph

namespace {

const OpDef& return_op() {
  static const OpDef op = {.name = "return",
                           .doc = "the outputs of the graph",
                           .category = Category::Data,
                           .operands = {{"values", "any", Arity::Many}},
                           .infer = [](const Node&) { return Types(); }};
  return op;
}

}  // namespace

Graph::Graph(std::string name) : Graph(std::move(name), std::make_shared<SymbolSource>()) {}

Graph::Graph(std::string name, std::shared_ptr<SymbolSource> symbols)
    : name_(std::move(name)), symbols_(std::move(symbols)) {
  return_ = new Node(*this, return_op());
  return_->segments_ = {0};
  first_ = return_;
  insertions_ = {return_};
}

Graph::~Graph() {
  // No value dies before its uses, whatever order the nodes are in.
  for (Node* node = first_; node != nullptr; node = node->next_)
    for (Use& use : node->operands_)
      use.set(nullptr);
  for (Node* node = first_; node != nullptr;)
    delete std::exchange(node, node->next_);
}

std::unique_ptr<Graph> Graph::make_region(std::string name) const {
  return std::unique_ptr<Graph>(new Graph(std::move(name), symbols_));
}

Value Graph::add_input(const Type& type, std::string name) {
  symbols_->reserve(type);
  auto data = std::make_unique<ValueData>();
  data->type = symbols_->name_unknown(type);
  data->name = std::move(name);
  data->graph = this;
  data->index = input_count();
  inputs_.push_back(std::move(data));
  return Value(inputs_.back().get());
}

void Graph::erase_input(int64_t index) {
  CHECK(input(index).use_count() == 0, "input {} is still used", input(index).name());
  inputs_.erase(inputs_.begin() + index);
  for (int64_t i = index; i < input_count(); ++i)
    inputs_[static_cast<size_t>(i)]->index = i;
}

std::vector<Value> Graph::inputs() const {
  std::vector<Value> values;
  for (const auto& input : inputs_)
    values.emplace_back(input.get());
  return values;
}

void Graph::set_outputs(const std::vector<Value>& values, std::vector<std::string> names) {
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(values[i] && &values[i].graph() == this, "output {} is missing or belongs to another graph", i);
  for (Use& use : return_->operands_)
    use.set(nullptr);
  return_->operands_ = std::vector<Use>(values.size());
  return_->segments_ = {values.size()};
  for (size_t i = 0; i < values.size(); ++i) {
    return_->operands_[i].user = return_;
    return_->operands_[i].set(values[i].data());
    if (names.size() == i)
      names.push_back(values[i].name());
  }
  output_names_ = std::move(names);
}

Types Graph::output_types() const {
  Types types;
  for (Value value : outputs())
    types.push_back(value.type());
  return types;
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> nodes;
  nodes.reserve(static_cast<size_t>(node_count_));
  for (Node* node = first_; node != return_; node = node->next_)
    nodes.push_back(node);
  return nodes;
}

void Graph::link(Node* node, Node* before) {
  constexpr int64_t kGap = 1 << 20;
  if (before == return_) {
    node->order_ = return_->order_;
    return_->order_ += kGap;
  } else {
    const int64_t low = before->previous_ != nullptr ? before->previous_->order_ : before->order_ - 2 * kGap;
    node->order_ = low + (before->order_ - low) / 2;
  }
  const bool crowded =
      before != return_ && before->previous_ != nullptr && node->order_ == before->previous_->order_;
  node->next_ = before;
  node->previous_ = before->previous_;
  (before->previous_ != nullptr ? before->previous_->next_ : first_) = node;
  before->previous_ = node;
  ++node_count_;
  if (crowded) {
    int64_t order = 0;
    for (Node* each = first_; each != nullptr; each = each->next_)
      each->order_ = order += kGap;
  }
}

void Graph::unlink(Node* node) {
  (node->previous_ != nullptr ? node->previous_->next_ : first_) = node->next_;
  node->next_->previous_ = node->previous_;
  --node_count_;
}

void Graph::erase(Node* node) {
  CHECK(node->graph_ == this && node != return_,
        "only nodes of this graph, and not its return, can be erased");
  for (Value result : node->results())
    CHECK(result.use_count() == 0, "{} is still used", node->describe());
  std::replace(insertions_.begin(), insertions_.end(), node, node->next_);
  unlink(node);
  delete node;
}

void Graph::move_before(Node* node, Node* other) {
  CHECK(node->graph_ == this && other->graph_ == this && node != return_, "nodes move within their graph");
  if (node == other)
    return;
  unlink(node);
  link(node, other);
}

void Graph::replace(Node* node, const std::vector<Value>& by) {
  CHECK(static_cast<int64_t>(by.size()) == node->result_count(), "{} values for {} results of {}", by.size(),
        node->result_count(), node->describe());
  for (int64_t i = 0; i < node->result_count(); ++i) {
    const Value old = node->result(i), next = by[static_cast<size_t>(i)];
    old.replace_all_uses(next);
    if (next.name().empty())
      next.set_name(old.name());
    if (!next.is_input() && next.node()->sources().empty())
      next.node()->set_sources(node->sources());
  }
  erase(node);
}

}  // namespace tenon
