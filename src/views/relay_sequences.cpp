#include "views/relay_sequences.h"

#include <algorithm>

#include "ir/print.h"

namespace tenon {
namespace {

// The sizes of the parts, the same for all but the last where one is given; nothing where they are not known.
std::optional<std::vector<int64_t>> part_sizes(const Node& node) {
  const auto given = node.has("split") ? node.in("split").known_ints() : std::nullopt;
  const Value x = node.in("x");
  if (!given || !x.shape().ranked())
    return std::nullopt;
  if (node.in("split").rank() == 1)
    return given;
  const auto whole = x.dim(node.attr("axis")).constant();
  if (!whole || given->front() <= 0)
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (int64_t left = *whole; left > 0; left -= given->front())
    sizes.push_back(std::min(left, given->front()));
  return sizes;
}

bool is_tuple(Value sequence) {
  const Node* node = sequence.node();
  if (node == nullptr || !node->is("sequence_split"))
    return node != nullptr && node->is("sequence_construct");
  const auto sizes = part_sizes(*node);
  return sizes && !sizes->empty();
}

}  // namespace

// Relay cuts before the places it is told.
std::optional<std::string> write_sequence_split(const Node& node, const RelayWriter& writer) {
  const auto sizes = part_sizes(node);
  if (!sizes || sizes->empty())
    return std::nullopt;
  std::vector<int64_t> places;
  for (size_t i = 0; i + 1 < sizes->size(); ++i)
    places.push_back((*sizes)[i] + (places.empty() ? 0 : places.back()));
  return fmt::format("split({}, indices_or_sections={}, axis={})", writer.use(node.in("x")),
                     print(Attribute(places)), node.attr("axis").as<int64_t>());
}

std::optional<std::string> write_sequence_construct(const Node& node, const RelayWriter& writer) {
  std::vector<std::string> elements;
  for (Value element : node.ins("elements"))
    elements.push_back(writer.use(element));
  return fmt::format("({}{})", fmt::join(elements, ", "), elements.size() == 1 ? "," : "");
}

std::optional<std::string> write_sequence_at(const Node& node, const RelayWriter& writer) {
  const auto position = node.in("position").known_ints();
  if (!is_tuple(node.in("sequence")) || !position || position->front() < 0)
    return std::nullopt;
  return fmt::format("{}.{}", writer.use(node.in("sequence")), position->front());
}

std::optional<std::string> write_sequence_concat(const Node& node, const RelayWriter& writer) {
  if (!is_tuple(node.in("sequence")))
    return std::nullopt;
  return fmt::format("{}({}, axis={})", node.attr("new_axis") ? "stack" : "concatenate",
                     writer.use(node.in("sequence")), node.attr("axis").as<int64_t>());
}

}  // namespace tenon
