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

// False where it is there already.
bool add_once(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) != values.end())
    return false;
  values.push_back(value);
  return true;
}

Tensor in_f64(const Tensor& tensor) {
  return narrow<double>(DType::F64, tensor.extents(), widen<double>(tensor));
}

// Describes the regions of one root, which have most parts in common.
class Describer {
 public:
  void add_fixed(Value value) { fixed_.push_back(part(value, fmt::format(";fixed:{}", value.type()))); }
  void add_number(Value value) {
    numbers_.push_back(part(value, fmt::format(";{:a}:{}", *uniform_number(value), value.type())));
  }
  void add_node(const Node& node) {
    std::string text = fmt::format(";{}:{}", node.op().name, node.result().type());
    for (const auto& [name, attribute] : node.attributes())
      fmt::format_to(std::back_inserter(text), " {}={}", name, print(attribute));
    nodes_.push_back(part(node.result(), std::move(text)));
    for (Value operand : node.operands())
      nodes_.back().operands.push_back(index_of(operand));
  }

  // Of all that was added, as computed of x. Values are numbered in the order of the text.
  RegionDescription describe(Value x) {
    RegionDescription description = {.text = fmt::format("{}", x.type())};
    std::string& text = description.text;
    numbers_in_text_.resize(indices_.size() + 1);
    uint16_t next = 0;
    numbers_in_text_[index_of(x)] = next++;
    const auto add = [&](const Part& part) {
      numbers_in_text_[part.index] = next++;
      text += part.text;
      text += ' ';
      for (size_t operand : part.operands)
        text.append(reinterpret_cast<const char*>(&numbers_in_text_[operand]), sizeof(uint16_t));
    };
    for (const std::vector<Part>* parts : {&fixed_, &numbers_})
      for (const Part& part : *parts)
        add(part);
    for (size_t i = nodes_.size(); i-- > 0;)
      add(nodes_[i]);
    description.hash = hash_string(text);
    return description;
  }

 private:
  struct Part {
    size_t index;  // of the value
    std::string text;
    std::vector<size_t> operands = {};
  };

  Part part(Value value, std::string text) { return {.index = index_of(value), .text = std::move(text)}; }
  size_t index_of(Value value) { return indices_.emplace(value.data(), indices_.size()).first->second; }

  std::unordered_map<const ValueData*, size_t> indices_;
  std::vector<Part> fixed_, numbers_, nodes_;  // nodes from the root on
  std::vector<uint16_t> numbers_in_text_;
};

void share_probes(std::span<UnaryRegion> regions) {
  if (regions.empty())
    return;
  std::vector<Value> cuts;
  for (const UnaryRegion& region : regions)
    cuts.push_back(region.x);
  const auto probes =
      std::make_shared<const NestedProbes>(std::move(cuts), regions.back().nodes, regions.back().numbers);
  for (UnaryRegion& region : regions)
    region.probes = probes;
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
  Describer describer;
  size_t probed = 0;  // regions that are elementwise and have no fixed values
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
    describer.add_node(*node);
    bool makes_sense = true;
    for (Value operand : node->operands())
      if (uniform_number(operand)) {
        if (add_once(region.numbers, operand))
          describer.add_number(operand);
      } else if (!is_float_or_bool(operand)) {
        makes_sense = false;
        break;
      } else if (!is_fixed(operand)) {
        add_once(frontier, operand);
      } else if (add_once(region.fixed, operand)) {
        describer.add_fixed(operand);
      }
    if (!makes_sense)
      break;
    if (frontier.size() == 1 && is_float(frontier.front().dtype())) {
      region.x = frontier.front();
      region.number = regions.size();
      regions.push_back(region);
      regions.back().description = describer.describe(region.x);
      if (probed == region.number && region.fixed.empty() && region.is_elementwise())
        ++probed;
    }
  }
  share_probes(std::span(regions).first(probed));
  return regions;
}

Tensor number_tensor(Value number, Precision precision) {
  const bool exact = precision == Precision::Exact && number.dtype() != DType::Bool;
  return filled(exact ? DType::F64 : number.dtype(), {}, *uniform_number(number));
}

Tensor evaluate_in(const Node& node, const Data& operands, Precision precision) {
  const bool widens = precision == Precision::Exact && node.is("cast") && is_float(node.result().dtype());
  return widens ? in_f64(operands.front().tensor()) : evaluate_node(node, operands).front().tensor();
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
    const Tensor result = evaluate_in(*node, operands, precision);
    known.emplace(node->result().data(), result);
    if (node == region.root.node())
      done.result = result;
    else
      done.inner.push_back(result);
  }
  return done;
}

}  // namespace tenon
