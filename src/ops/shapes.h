// shapes.h — what many ops' infer share: broadcasting, axes, and errors that show the operands.
#pragma once

#include "ir/graph.h"

namespace tenon {

// The error of an op about its operands: "OP: MESSAGE", then one line per operand with its name and type.
UserError operand_error(const Node& n, const std::string& message);

// The dimension that two broadcast to; nothing when they cannot. Unknown when that is dynamic.
std::optional<Dim> broadcast(const Dim& a, const Dim& b);
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// Never the same size, whatever the symbols stand for: 2 and 3, n and n+1.
bool provably_different(const Dim& a, const Dim& b);
// Whether the first may broadcast to the second, and leaves that as it is: it is the same, or 1.
bool may_fill(const Dim& a, const Dim& b);
// The shape all operands broadcast to; an operand_error when they do not.
Shape broadcast_operands(const Node& n, const std::vector<Value>& values);

// What an elementwise op makes of operands of rank 0 or 1 whose elements are all known: formula of the
// elements of each operand, broadcast. Nothing when an operand is not known.
std::optional<std::vector<Dim>> map_known_dims(const Node& n,
                                               const std::function<Dim(std::span<const Dim>)>& formula);

// `axis` counted from the front; out of range is a user_error naming the op.
int64_t checked_axis(std::string_view op, int64_t axis, int64_t rank);
// The same for a list, sorted; an axis named twice is a user_error.
std::vector<int64_t> checked_axes(std::string_view op, const std::vector<int64_t>& axes, int64_t rank);

// The elements of a vector operand that must hold `count` numbers; unknown where dynamic.
std::vector<Dim> vector_dims(const Node& n, std::string_view name, size_t count);
// A type takes memory for each axis, and the length of a vector is only a claim.
constexpr int64_t kMostAxes = 1024;
// How many numbers a vector with one for each axis holds, when that is known; too many to be that is the
// user's fault.
std::optional<int64_t> known_length(std::string_view op, std::string_view operand, Value vector);
std::optional<int64_t> known_length(const Node& n, std::string_view operand);
// The only element of an operand that must be one number; unknown where dynamic.
Dim known_number(const Node& n, std::string_view name);

// Sizes that a model gives are not negative, or it is an operand_error: "shape[1] is -3", "depth is -3".
void check_sizes(const Node& n, std::string_view name, std::span<const Dim> sizes);
void check_size(const Node& n, std::string_view name, const Dim& size);

// Each key head serves equally many query heads; where that cannot be, it is an operand_error.
void check_shared_heads(const Node& n, const Dim& heads, const Dim& key_heads);

// infer for ops whose only result has the type of operand x.
Types same_as_x(const Node& n);

}  // namespace tenon
