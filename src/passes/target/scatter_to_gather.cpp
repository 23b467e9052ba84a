#include "passes/target/scatter_to_gather.h"

#include "ops/data.h"
#include "ops/generate.h"
#include "ops/overlay.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "rewrite/match.h"

namespace tenon {
namespace {

constexpr int64_t kShortestRow = 8;  // a source takes as much memory as two elements of f32

// Where rows of updates, [.., count, ..], come to stand in x, [.., places.., ..].
struct Rows {
  Value updates;
  Value tuples;            // i64 or i32 [count, how many axes of x they are places along]
  int64_t first_axis = 0;  // of these
};

// Dynamic sizes may be large.
bool is_long(const std::vector<Dim>& row) {
  Dim count = 1;
  for (const Dim& size : row)
    count = count * size;
  return count.constant().value_or(kShortestRow) >= kShortestRow;
}

// The one index of each row, where broadcasting made the indices of its elements: i64[count, 1].
Value tuples_of_elements(Value indices, int64_t axis) {
  const Node* broadcast = maker(indices, "broadcast");
  if (broadcast == nullptr || !broadcast->in("x").shape().ranked())
    return {};
  const Value each = broadcast->in("x");
  const int64_t along = axis - (indices.rank() - each.rank());
  if (along < 0 || each.dim(along) != indices.dim(axis))
    return {};
  for (int64_t i = 0; i < each.rank(); ++i)
    if (i != along && each.dim(i) != Dim(1))
      return {};
  return reshape(each, {-1, 1});
}

std::optional<Rows> rows_of_elements(const Node& node) {
  const Value x = node.in("x"), indices = node.in("indices"), updates = node.in("updates");
  const int64_t axis = checked_axis("scatter_elements", node.attr("axis"), x.rank());
  if (updates.shape() != indices.shape())
    return std::nullopt;
  std::vector<Dim> row = x.shape().dims(), row_of_updates = updates.shape().dims();
  row.erase(row.begin() + axis);
  row_of_updates.erase(row_of_updates.begin() + axis);
  if (row != row_of_updates || !is_long(row))
    return std::nullopt;
  const Value tuples = tuples_of_elements(indices, axis);
  return tuples ? std::optional(Rows{updates, tuples, axis}) : std::nullopt;
}

std::optional<Rows> rows_of_tuples(const Node& node) {
  const Value x = node.in("x"), indices = node.in("indices"), updates = node.in("updates");
  const std::optional<int64_t> length = indices.dim(-1).constant();
  if (indices.rank() != 2 || !length || *length < 1 || *length > x.rank())
    return std::nullopt;
  const std::vector<Dim> row(x.shape().dims().begin() + *length, x.shape().dims().end());
  std::vector<Dim> sizes = row;
  sizes.insert(sizes.begin(), indices.dim(0));
  if (updates.shape().dims() != sizes || !is_long(row))
    return std::nullopt;
  return Rows{updates, indices, 0};
}

bool replaces_elements(const Node& node) {
  if (!node.is("scatter_elements") && !node.is("scatter_nd"))
    return false;
  for (Value operand : node.operands())
    if (!operand.shape().ranked())
      return false;
  return node.attr("reduction").as<std::string>() == "none" && node.in("x").dtype() != DType::String;
}

// The number of the update that comes to each place, and -1 where none does.
Value sources_of(Value x, const Rows& rows) {
  Graph& graph = x.graph();
  const auto number = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
  const int64_t axes = *rows.tuples.dim(1).constant();
  const Value places = slice(shape_of(x), 0, rows.first_axis, rows.first_axis + axes);
  const Value count = squeeze(size_along(rows.updates, rows.first_axis), {0});
  return scatter_nd(fill(places, Tensor::scalar(int64_t{-1})), rows.tuples,
                    range(number(0), count, number(1)));
}

}  // namespace

void scatter_to_gather(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!replaces_elements(*node))
      continue;
    const InsertBefore here(node);
    const WithSources sources(*node);
    const Value x = node->in("x");
    const auto rows = node->is("scatter_nd") ? rows_of_tuples(*node) : rows_of_elements(*node);
    if (!rows)
      continue;
    if (!journal.is_open())
      return;
    const Value gathered = overlay(x, rows->updates, sources_of(x, *rows), rows->first_axis);
    journal.applied("scatter-to-gather", {node}, Numerics::BitExact);
    graph.replace(node, {gathered});
  }
}

}  // namespace tenon
