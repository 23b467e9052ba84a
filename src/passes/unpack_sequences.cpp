// unpack_sequences.cpp — what is taken of a sequence or an optional, taken of what was put into it.
#include <set>
#include <unordered_map>

#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "passes/attempt.h"
#include "passes/passes.h"
#include "rewrite/apply.h"
#include "rewrite/match.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "unpack";
constexpr int64_t kMostParts = 256;  // that a tensor is cut into

// Where in a sequence: counted from the front among `count` places, `otherwise` where no position is given.
std::optional<int64_t> position_of(const Node& node, int64_t length, int64_t count, int64_t otherwise) {
  const auto given =
      node.has("position") ? node.in("position").known_ints() : std::vector<int64_t>{otherwise};
  if (!given || given->size() != 1 || given->front() < -length || given->front() >= count)
    return std::nullopt;
  return given->front() < 0 ? given->front() + length : given->front();
}

// The sizes of the parts that a tensor is cut into, where they are known, and few unless they are listed.
std::optional<std::vector<int64_t>> part_sizes(const Node& split, int64_t axis) {
  const auto sizes = split.has("split") ? split.in("split").known_ints() : std::vector<int64_t>{1};
  if (!sizes || !split.in("x").shape().ranked())
    return std::nullopt;
  if (split.has("split") && split.in("split").rank() == 1)
    return *sizes;
  const auto length = split.in("x").dim(axis).constant();
  if (!length || sizes->front() <= 0 || *length / sizes->front() > kMostParts)
    return std::nullopt;
  std::vector<int64_t> parts(static_cast<size_t>(*length / sizes->front()), sizes->front());
  if (*length % sizes->front() != 0)
    parts.push_back(*length % sizes->front());
  return parts;
}

class Unpacker {
 public:
  Unpacker(Graph& graph, Journal& journal) : graph_(graph), journal_(journal) {}

  void run() {
    for (Node* node : graph_.nodes())
      if (journal_.is_open())
        unpack(node);
    erase_unused_parts();
  }

 private:
  using Elements = std::optional<std::vector<Value>>;

  void unpack(Node* node) {
    if (node->is("optional_get") || node->is("optional_has"))
      return replace(node, [&] { return opened(*node); });
    if (!node->is("sequence_at") && !node->is("sequence_length") && !node->is("sequence_concat"))
      return;
    // Before anything is made that may go again: the parts of a split are kept for others.
    if (const Elements elements = elements_of(node->in("sequence")))
      replace(node, [&] { return taken(*node, *elements); });
  }

  // By what `make` makes; it gives no Value where that is dynamic.
  void replace(Node* node, const std::function<Value()>& make) {
    const Attempt attempt = make_before(node, [&] { return std::vector<Value>{make()}; });
    if (!attempt.values) {
      journal_.declined(kRule, *node, attempt.error);
      return;
    }
    if (!attempt.values->front())
      return;
    journal_.applied(kRule, {node}, Numerics::BitExact);
    graph_.replace(node, *attempt.values);
  }

  Value opened(const Node& node) {
    const Node *full = maker(node.in("x"), "optional"), *empty = maker(node.in("x"), "optional_empty");
    if (node.is("optional_get"))
      return full != nullptr ? full->in("x") : Value();
    return full != nullptr || empty != nullptr ? constant(graph_, Tensor::scalar(full != nullptr)) : Value();
  }

  Value taken(const Node& node, const std::vector<Value>& elements) {
    const auto length = static_cast<int64_t>(elements.size());
    if (node.is("sequence_length"))
      return constant(graph_, Tensor::scalar(length));
    if (node.is("sequence_concat"))
      return put_together(node, elements);
    const auto position = position_of(node, length, length, -1);
    return position ? elements[static_cast<size_t>(*position)] : Value();
  }

  static Value put_together(const Node& node, const std::vector<Value>& elements) {
    if (elements.empty() || !elements.front().shape().ranked())
      return {};
    const bool is_new = node.attr("new_axis");
    const int64_t axis =
        checked_axis("sequence_concat", node.attr("axis"), elements.front().rank() + (is_new ? 1 : 0));
    std::vector<Value> parts;
    for (Value element : elements)
      parts.push_back(is_new ? unsqueeze(element, {axis}) : element);
    return concat(parts, axis);
  }

  // Those of a sequence whose length is known.
  Elements elements_of(Value sequence) {
    if (sequence.is_input())
      return std::nullopt;
    Node& node = *sequence.node();
    if (node.is("sequence_construct"))
      return node.ins("elements");
    if (node.is("sequence_empty"))
      return std::vector<Value>();
    if (node.is("sequence_split"))
      return parts_of(node);
    if (!node.is("sequence_insert") && !node.is("sequence_erase"))
      return std::nullopt;
    Elements elements = elements_of(node.in("sequence"));
    if (!elements)
      return std::nullopt;
    const auto length = static_cast<int64_t>(elements->size());
    const bool inserts = node.is("sequence_insert");
    const auto position =
        inserts ? position_of(node, length, length + 1, length) : position_of(node, length, length, -1);
    if (!position)
      return std::nullopt;
    if (inserts)
      elements->insert(elements->begin() + *position, node.in("element"));
    else
      elements->erase(elements->begin() + *position);
    return elements;
  }

  // A split beside the one that makes a sequence, for all who take something of it.
  Elements parts_of(Node& node) {
    const auto [known, is_new] = parts_.try_emplace(&node);
    if (!is_new)
      return known->second;
    const Value x = node.in("x");
    const int64_t axis = x.shape().ranked() ? checked_axis("sequence_split", node.attr("axis"), x.rank()) : 0;
    const auto sizes = part_sizes(node, axis);
    if (!sizes || sizes->empty())
      return std::nullopt;
    const Attempt attempt = make_before(&node, [&] {
      std::vector<Value> parts = split(x, *sizes, axis);
      if (!node.has("split") && !node.attr("keep_dims").as<bool>())
        for (Value& part : parts)
          part = squeeze(part, {axis});
      return parts;
    });
    return known->second = attempt.values;
  }

  // Of a split of which nothing was taken after all.
  void erase_unused_parts() {
    for (const auto& [node, parts] : parts_) {
      if (!parts)
        continue;
      std::set<Node*> makers;
      for (Value part : *parts)
        makers.insert(part.node());
      for (Node* maker : makers)
        erase_unused(maker);
    }
  }

  Graph& graph_;
  Journal& journal_;
  std::unordered_map<const Node*, Elements> parts_;
};

}  // namespace

void unpack_sequences(Graph& graph, Journal& journal) {
  for_each_graph(graph, [&](Graph& each) { Unpacker(each, journal).run(); });
  remove_dead(graph, journal);
}

}  // namespace tenon
