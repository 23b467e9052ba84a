#include "rewrite/region.h"

#include <algorithm>
#include <unordered_map>

#include "ir/evaluate.h"
#include "ir/print.h"
#include "rewrite/match.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr size_t kMostNodes = 40;

// Beside those that work element by element. They take their axes from attributes.
constexpr std::string_view kAlongAxes[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_log_sum_exp",
                                           "softmax",    "log_softmax", "layer_norm", "rms_norm",
                                           "unsqueeze",  "squeeze"};

bool is_float_or_bool(Value value) {
  return value.type().is_tensor() && (is_float(value.dtype()) || value.dtype() == DType::Bool);
}

// An op on the bits of numbers says nothing about numbers of another precision.
bool can_run(const Node& node) {
  return !node.is("bit_cast") && can_stand_in_region(node.op()) && node.late_names().empty() &&
         is_float_or_bool(node.result());
}

bool comes_before(Value a, Value b) {
  return a.is_input() || (!b.is_input() && a.node()->comes_before(*b.node()));
}

void add_once(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(value);
}

Tensor in_f64(const Tensor& tensor) {
  return narrow<double>(DType::F64, tensor.extents(), widen<double>(tensor));
}

Tensor number_tensor(Value number, Precision precision) {
  const bool exact = precision == Precision::Exact && number.dtype() != DType::Bool;
  return filled(exact ? DType::F64 : number.dtype(), {}, *uniform_number(number));
}

std::string describe(const UnaryRegion& region) {
  std::string text = fmt::format("{}", region.x.type());
  std::unordered_map<const ValueData*, size_t> numbers{{region.x.data(), 0}};
  const auto add = [&](Value value, std::string_view what) {
    numbers.emplace(value.data(), numbers.size());
    fmt::format_to(std::back_inserter(text), ";{}:{}", what, value.type());
  };
  for (Value fixed : region.fixed)
    add(fixed, "fixed");
  for (Value number : region.numbers)
    add(number, fmt::format("{:a}", *uniform_number(number)));
  for (const Node* node : region.nodes) {
    add(node->result(), node->op().name);
    for (Value operand : node->operands())
      fmt::format_to(std::back_inserter(text), " {}", numbers.at(operand.data()));
    for (const auto& [name, attribute] : node->attributes())
      fmt::format_to(std::back_inserter(text), " {}={}", name, print(attribute));
  }
  return text;
}

}  // namespace

bool UnaryRegion::has(std::string_view op) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) { return node->is(op); });
}

bool UnaryRegion::is_elementwise() const {
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return node->op().traits.elementwise; });
}

bool can_stand_in_region(const OpDef& op) {
  return (op.traits.elementwise && op.results.size() == 1) ||
         std::find(std::begin(kAlongAxes), std::end(kAlongAxes), op.name) != std::end(kAlongAxes);
}

std::vector<UnaryRegion> regions_of(Value root) {
  std::vector<UnaryRegion> regions;
  UnaryRegion region;
  region.root = root;
  // What the root is computed of. The last of these in the graph is opened next, so a value that all others
  // are made of is left alone in the end.
  std::vector<Value> frontier = {root};
  while (!frontier.empty() && region.nodes.size() < kMostNodes) {
    const auto last = std::max_element(frontier.begin(), frontier.end(), comes_before);
    if (last->is_input() || !can_run(*last->node()))
      break;
    Node* node = last->node();
    frontier.erase(last);
    region.nodes.insert(region.nodes.begin(), node);
    for (Value operand : node->operands())
      if (uniform_number(operand))
        add_once(region.numbers, operand);
      else if (!is_float_or_bool(operand))
        return regions;
      else
        add_once(is_fixed(operand) ? region.fixed : frontier, operand);
    if (frontier.size() == 1 && is_float(frontier.front().dtype())) {
      region.x = frontier.front();
      regions.push_back(region);
      regions.back().description = describe(region);
    }
  }
  return regions;
}

RegionRun run(const UnaryRegion& region, const Tensor& x, const std::vector<Tensor>& fixed,
              Precision precision) {
  std::unordered_map<const ValueData*, Datum> known = {{region.x.data(), x}};
  for (size_t i = 0; i < fixed.size(); ++i)
    known.emplace(region.fixed[i].data(), fixed[i]);
  for (Value number : region.numbers)
    known.emplace(number.data(), number_tensor(number, precision));
  RegionRun done;
  for (const Node* node : region.nodes) {
    Data operands;
    for (Value operand : node->operands())
      operands.push_back(known.at(operand.data()));
    const bool widens = precision == Precision::Exact && node->is("cast") && is_float(node->result().dtype());
    const Tensor result =
        widens ? in_f64(operands.front().tensor()) : evaluate_node(*node, operands).front().tensor();
    known.emplace(node->result().data(), result);
    if (node == region.root.node())
      done.result = result;
    else
      done.inner.push_back(result);
  }
  return done;
}

}  // namespace tenon
