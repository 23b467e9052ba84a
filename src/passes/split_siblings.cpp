// split_siblings.cpp — slices that together are all of a tensor become one split of it, and what is done to
// each part of a split is done once before.
#include <algorithm>

#include "ops/shapes.h"
#include "ops/slice.h"
#include "passes/passes.h"
#include "rewrite/cut.h"
#include "rewrite/match.h"
#include "rewrite/rules/applied.h"

namespace tenon {
namespace {

struct Part {
  Cut cut;
  Node* slice;
};

// The slices of the value along one axis each, by axis and start.
std::vector<Part> slices_of(Value value) {
  std::vector<Part> parts;
  for (Node* user : value.users()) {
    if (!user->is("slice") || user->in("x") != value)
      continue;
    const auto cuts = known_cuts(*user);
    if (cuts && cuts->size() == 1 && cuts->front().step == 1 && value.dim(cuts->front().axis).is_constant())
      parts.push_back({cuts->front(), user});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.cut < b.cut; });
  return parts;
}

// Whether the parts, which lie along one axis, follow each other from the first element to the last.
bool are_all(std::span<const Part> parts, int64_t size) {
  int64_t end = 0;
  for (const Part& part : parts) {
    if (part.cut.start != end || part.cut.end == end)
      return false;
    end = part.cut.end;
  }
  return parts.size() > 1 && end == size;
}

void replace_with_split(Value value, std::span<const Part> parts, Journal& journal) {
  std::vector<Node*> slices;
  std::vector<int64_t> sizes;
  Node* first = parts.front().slice;
  for (const Part& part : parts) {
    slices.push_back(part.slice);
    sizes.push_back(part.cut.end - part.cut.start);
    first = part.slice->comes_before(*first) ? part.slice : first;
  }
  journal.applied("sibling-slices", slices, Numerics::BitExact);
  const WithSources sources(value.graph(), sources_of(slices));
  const InsertBefore here(first);
  const std::vector<Value> results = split(value, sizes, parts.front().cut.axis);
  for (size_t i = 0; i < slices.size(); ++i) {
    results[i].set_name(slices[i]->result().name());
    slices[i]->result().replace_all_uses(results[i]);
  }
}

void split_slices_of(Value value, Journal& journal) {
  if (value.use_count() < 2 || !value.type().is_tensor() || !value.shape().ranked())
    return;
  const std::vector<Part> parts = slices_of(value);
  for (auto begin = parts.begin(); begin != parts.end();) {
    const auto end =
        std::find_if(begin, parts.end(), [&](const Part& part) { return part.cut.axis != begin->cut.axis; });
    const std::span<const Part> along(begin, end);
    if (are_all(along, *value.dim(begin->cut.axis).constant()) && journal.is_open())
      replace_with_split(value, along, journal);
    begin = end;
  }
}

// The nodes that take the parts of a split, where they are one function and take nothing else of it.
std::vector<Node*> functions_of_parts(const Node& split) {
  std::vector<Node*> functions;
  for (Value part : split.results()) {
    if (!part.has_one_use())
      return {};
    Node* user = part.users().front();
    if (applied_to(*user) != part || (!functions.empty() && !is_same_function(*functions.front(), *user)))
      return {};
    functions.push_back(user);
  }
  return functions;
}

void apply_before_split(const Node& split, Journal& journal) {
  const std::vector<Node*> functions = functions_of_parts(split);
  if (functions.size() < 2 || is_fixed(split.in("x")) || !journal.is_open())
    return;
  journal.applied("split-after-elementwise", functions, Numerics::BitExact);
  Graph& graph = split.graph();
  const WithSources sources(graph, sources_of(functions));
  const InsertBefore here(*std::min_element(functions.begin(), functions.end(),
                                            [](Node* a, Node* b) { return a->comes_before(*b); }));
  const Value x = split.in("x"), y = apply_to(*functions.front(), x);
  const Node* parts = graph.copy_node(split, [&](Value operand) { return operand == x ? y : operand; });
  for (size_t i = 0; i < functions.size(); ++i) {
    const Value part = parts->result(static_cast<int64_t>(i)), old = functions[i]->result();
    part.set_name(old.name());
    old.replace_all_uses(part);
  }
}

}  // namespace

void split_siblings(Graph& graph, Journal& journal) {
  for_each_graph(graph, [&](Graph& each) {
    for (Value input : each.inputs())
      split_slices_of(input, journal);
    for (Node* node : each.nodes())
      for (Value result : node->results())
        split_slices_of(result, journal);
    for (Node* node : each.nodes())
      if (node->is("split") && node->in("x").shape().ranked())
        apply_before_split(*node, journal);
  });
  remove_dead(graph, journal);
}

}  // namespace tenon
