#include "ops/nested.h"
#include "ops/trace.h"
#include "passes/attempt.h"
#include "passes/passes.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "bind-branch";

bool is_ranked(const Type& type) { return type.is_tensor() && type.as_tensor().shape.ranked(); }

// What the symbols of a branch always stand for, where that is a number.
Sizes known_sizes(const Node& node, std::string_view branch) {
  Sizes sizes = feed(node, branch, fed("input", types_of(node.ins("inputs"))));
  std::erase_if(sizes, [](const auto& entry) { return !entry.second.is_constant(); });
  return sizes;
}

// The type of an input, with the sizes that are known. Where not even the rank was, that of what it gets, if
// it is known wholly: other symbols mean something else inside.
Type bound(const Type& own, const Type& given, const Sizes& sizes) {
  if (!is_ranked(given) || !own.is_tensor())
    return own;
  if (!is_ranked(own))
    return given.as_tensor().shape.extents() ? given : own;
  std::vector<Dim> dims;
  for (int64_t i = 0; i < own.as_tensor().shape.rank(); ++i) {
    const Dim &size = own.as_tensor().shape[i], &known = given.as_tensor().shape[i];
    dims.push_back(size.is_unknown() && known.is_constant() ? known : size.substitute(sizes));
  }
  return Type::tensor(own.as_tensor().dtype, dims);
}

// The branch for what it gets; null where nothing more is known of that, or it makes no sense for it, so that
// it is never taken, or running says what is wrong.
std::unique_ptr<Graph> bound_branch(const Node& node, std::string_view name) {
  const Graph& branch = node.region(name);
  const std::vector<Value> given = node.ins("inputs");
  const Sizes sizes = known_sizes(node, name);
  TracedInputs inputs;
  bool learns = false;
  for (size_t i = 0; i < given.size(); ++i) {
    const Value input = branch.input(static_cast<int64_t>(i));
    inputs.emplace_back(bound(input.type(), given[i].type(), sizes), input.name());
    learns = learns || inputs.back().type != input.type();
  }
  if (!learns)
    return nullptr;
  try {
    return trace_region(node.graph(), branch.name(), inputs, [&](const std::vector<Value>& values) {
      return values.front().graph().inline_graph(branch, values);
    });
  } catch (const UserError&) {
    return nullptr;
  }
}

// The `if` with branches that know more; null where none does.
Node* bind(Node* node, Journal& journal) {
  Graph& graph = node->graph();
  std::unique_ptr<Graph> then = bound_branch(*node, "then"), otherwise = bound_branch(*node, "else");
  if (!then && !otherwise)
    return nullptr;
  const Attempt attempt = make_instead_of(node, [&] {
    std::vector<std::unique_ptr<Graph>> regions;
    regions.push_back(then ? std::move(then) : node->region("then").clone());
    regions.push_back(otherwise ? std::move(otherwise) : node->region("else").clone());
    Node* anew =
        graph.create(node->op(), {{"condition", node->in("condition")}, {"inputs", node->ins("inputs")}},
                     node->attributes(), std::move(regions));
    anew->set_sources(node->sources());
    return anew->results();
  });
  if (!attempt.values) {
    journal.declined(kRule, *node, attempt.error);
    return nullptr;
  }
  journal.applied(kRule, {node}, Numerics::BitExact);
  graph.replace(node, *attempt.values);
  return attempt.values->front().node();
}

void bind_in(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!journal.is_open())
      return;
    if (node->is("if") && node->result_count() > 0)
      if (Node* bound = bind(node, journal))
        node = bound;
    for (const auto& region : node->regions())
      bind_in(*region, journal);
  }
}

}  // namespace

void bind_branches(Graph& graph, Journal& journal) { bind_in(graph, journal); }

}  // namespace tenon
