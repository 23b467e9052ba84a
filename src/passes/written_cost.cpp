#include "passes/written_cost.h"

#include <algorithm>
#include <memory>

#include "base/hash.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/write/write.h"
#include "rewrite/saturate/candidate.h"

namespace tenon {
namespace {

using saturate::Candidate;
using saturate::Cost;
using saturate::EGraph;
using saturate::Term;
using saturate::TermId;

constexpr double kUnknownSize = 16;    // of a dimension that is a symbol
constexpr double kNodesUnwritten = 4;  // of an op that ONNX cannot say

double size_of(const Dim& dim) {
  const auto size = dim.constant();
  return size ? static_cast<double>(*size) : kUnknownSize;
}

double elements_of(const Type& type) {
  double count = 1;
  for (const Dim& dim : type.as_tensor().shape.dims())
    count *= size_of(dim);
  return count;
}

double bytes_of(const Type& type) { return elements_of(type) * info(type.as_tensor().dtype).bytes; }

// How many products are summed for each element of the result.
double depth_of(const EGraph& egraph, const Term& term) {
  const auto type = [&](std::string_view name) -> const Type& {
    const auto it = std::ranges::find(term.operands, name, &saturate::TermOperand::name);
    return egraph.type(it->values.front());
  };
  const auto is = [&](std::string_view op) { return term.op->name == op; };
  if (is("matmul")) {
    const Shape& a = type("a").as_tensor().shape;
    const bool transposed = term.attributes.at("transpose_a").as<bool>();
    return size_of(a.rank() < 2 ? a[0] : a[transposed ? -2 : -1]);
  }
  if (is("linear"))
    return size_of(type("x").as_tensor().shape[-1]);
  if (is("conv")) {
    const Type& w = type("w");
    return elements_of(w) / std::max(1.0, size_of(w.as_tensor().shape[0]));
  }
  return 1;
}

// The terms that make the operands, each once, but for what is fixed or comes from outside.
std::vector<TermId> makers_of(const EGraph& egraph, const Term& term) {
  std::vector<TermId> makers;
  for (saturate::ValueId operand : saturate::operands_of(term)) {
    const TermId maker = egraph.term_of(operand);
    const Term& made = egraph.term(maker);
    if (made.op != nullptr && !made.is_fixed && std::ranges::find(makers, maker) == makers.end())
      makers.push_back(maker);
  }
  return makers;
}

// What a term is written as depends on its op, attributes, and the types of operands and results.
std::string description_of(const EGraph& egraph, const Term& term) {
  uint64_t attributes = 0;
  for (const auto& [name, attribute] : term.attributes)
    attributes = hash_combine(attributes, attribute.hash());
  std::string text = fmt::format("{} {}", term.op->name, attributes);
  for (const saturate::TermOperand& operand : term.operands)
    for (saturate::ValueId value : operand.values)
      text += fmt::format(" {} {}{}", operand.name, egraph.type(value),
                          egraph.maker(value).is_fixed ? " fixed" : "");
  for (const Type& type : term.types)
    text += fmt::format(" {}", type);
  return text;
}

// How many nodes are written for one of our ops depends on what stands before it: a convolution and its bias
// are one.
class NodeCounts {
 public:
  double of(const EGraph& egraph, TermId id) {
    const Term& term = egraph.term(id);
    const std::vector<TermId> makers = makers_of(egraph, term);
    std::string key = description_of(egraph, term);
    for (TermId maker : makers)
      key += " of " + description_of(egraph, egraph.term(maker));
    const auto [it, is_new] = known_.try_emplace(key, 0);
    if (!is_new)
      return it->second;
    double count = count_with(egraph, id, static_cast<int64_t>(makers.size()));
    for (TermId maker : makers)
      count -= alone(egraph, maker);
    return known_[key] = std::max(0.0, count);
  }

 private:
  double alone(const EGraph& egraph, TermId id) {
    const auto [it, is_new] = alone_.try_emplace(description_of(egraph, egraph.term(id)), 0);
    if (is_new)
      it->second = count_with(egraph, id, 0);
    return it->second;
  }

  // The term and as many of those before it.
  static double count_with(const EGraph& egraph, TermId id, int64_t before) {
    Candidate candidate(egraph, id, 1 + before);
    if (!candidate.is_valid())
      return kNodesUnwritten;
    try {
      const std::string bytes = onnx::outline_onnx(candidate.graph()).model;
      const auto model = onnx::decode_model(std::as_bytes(std::span(bytes)));
      return static_cast<double>(std::ranges::count_if(
          model.graph.node, [](const onnx::NodeProto& node) { return node.op_type != "Constant"; }));
    } catch (const UserError&) {
      return kNodesUnwritten;
    }
  }

  std::map<std::string, double> known_, alone_;
};

}  // namespace

saturate::CostModel written_cost() {
  const auto counts = std::make_shared<NodeCounts>();
  return [counts](const EGraph& egraph, TermId id) {
    const Term& term = egraph.term(id);
    Cost cost;
    for (const Type& type : term.types)
      cost.bytes += bytes_of(type);
    if (term.is_fixed || term.op == nullptr)
      return cost;
    cost.nodes = counts->of(egraph, id);
    cost.work = elements_of(term.types.front()) * depth_of(egraph, term);
    return cost;
  };
}

}  // namespace tenon
