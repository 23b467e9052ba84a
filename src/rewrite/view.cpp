#include "rewrite/view.h"

#include <algorithm>

#include "ops/data.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

struct Spelling {
  std::string_view op;
  Ints numbers;  // the axes, or the shape
  bool copies_zeros = false;
};

// The axes of `larger` that are 1 and without which it is `smaller`; of several ways the one in which as many
// dimensions as can be stay at the front.
std::optional<Ints> axes_between(const std::vector<Dim>& smaller, const std::vector<Dim>& larger) {
  Ints axes;
  size_t next = 0;
  for (size_t i = 0; i < larger.size(); ++i) {
    if (next < smaller.size() && provably_equal(smaller[next], larger[i]))
      ++next;
    else if (larger[i] == Dim(1))
      axes.push_back(static_cast<int64_t>(i));
    else
      return std::nullopt;
  }
  return next == smaller.size() ? std::optional(axes) : std::nullopt;
}

std::optional<Spelling> spell_reshape(const Shape& from, const Shape& to) {
  if (const auto extents = to.extents())
    return Spelling{"reshape", *extents};
  const auto symbols =
      std::count_if(to.dims().begin(), to.dims().end(), [](const Dim& dim) { return !dim.is_constant(); });
  Spelling spelling{"reshape", {}};
  bool is_open = false;
  for (int64_t i = 0; i < to.rank(); ++i) {
    // Only a size that is not 0 leaves a -1 no choice, and a 0 would copy.
    if (to[i] == Dim(0))
      return std::nullopt;
    if (to[i].is_constant()) {
      spelling.numbers.push_back(*to[i].constant());
    } else if (symbols > 1 && i < from.rank() && provably_equal(from[i], to[i])) {
      spelling.numbers.push_back(0);
      spelling.copies_zeros = true;
    } else if (!is_open) {
      spelling.numbers.push_back(-1);
      is_open = true;
    } else {
      return std::nullopt;
    }
  }
  // Where a copied size is 0, any size would do for the -1, unless the others alone tell it.
  if (spelling.copies_zeros && is_open && !provably_equal(from.element_count(), to.element_count()))
    return std::nullopt;
  return spelling;
}

// How to write that a value of shape `from`, which is not `to`, is seen under `to`.
std::optional<Spelling> spell(const Shape& from, const Shape& to) {
  if (from.rank() < to.rank()) {
    if (const auto axes = axes_between(from.dims(), to.dims()))
      return Spelling{"unsqueeze", *axes};
  } else if (const auto axes = axes_between(to.dims(), from.dims())) {
    return Spelling{"squeeze", *axes};
  }
  return spell_reshape(from, to);
}

}  // namespace

bool is_view(const Node& node) { return node.is("reshape") || node.is("squeeze") || node.is("unsqueeze"); }

Value view(Value x, const Shape& shape) {
  if (!x.shape().ranked() || !shape.ranked())
    return {};
  if (x.shape() == shape)
    return x;
  const std::optional<Spelling> spelling = spell(x.shape(), shape);
  if (!spelling)
    return {};
  Graph& graph = x.graph();
  const Types types = {Type::tensor(x.dtype(), shape)};
  if (spelling->op != "reshape")
    return graph.create(spelling->op, {{"x", x}}, {{"axes", spelling->numbers}}, {}, &types)->result();
  return graph
      .create("reshape", {{"x", x}, {"shape", int_vector(graph, spelling->numbers)}},
              {{"allow_zero", !spelling->copies_zeros}}, {}, &types)
      ->result();
}

bool is_written_as_view(const Node& node) {
  const Shape &from = node.in("x").shape(), &to = node.result().shape();
  if (from == to)
    return false;
  const std::optional<Spelling> spelling = spell(from, to);
  if (!spelling)
    return true;
  if (!node.is(spelling->op) || node.is_late("axes"))
    return false;
  if (!node.is("reshape"))
    return node.attr("axes").as<Ints>() == spelling->numbers;
  const Value shape = node.in("shape");
  return !shape.is_input() && shape.node()->is("constant") && shape.known_ints() == spelling->numbers &&
         node.attr("allow_zero").as<bool>() != spelling->copies_zeros;
}

}  // namespace tenon
