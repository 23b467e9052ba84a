#include "views/hlo_computation.h"

#include <algorithm>

#include "tensor/wide.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/hlo_types.h"

namespace tenon {
namespace {

constexpr int64_t kShownElements = 16;

Type scalar_type(DType dtype) { return Type::tensor(dtype, {}); }

// 1 for a scalar, {1, 2} for a vector, { {1, 2}, {3, 4} } for a matrix, and so on.
std::string nest(std::span<const std::string> texts, std::span<const int64_t> extents) {
  if (extents.empty())
    return texts.front();
  if (extents.size() == 1 || texts.empty())
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
  std::vector<std::string> rows;
  const size_t length = texts.size() / static_cast<size_t>(extents[0]);
  for (size_t begin = 0; begin < texts.size(); begin += length)
    rows.push_back(nest(texts.subspan(begin, length), extents.subspan(1)));
  return fmt::format("{{ {} }}", fmt::join(rows, ", "));
}

bool is_scalar_constant(Value value) {
  const Literal* literal = literal_of(value);
  return literal != nullptr && value.node()->is("constant") && literal->extents().empty();
}

}  // namespace

std::string hlo_constant(const Literal& literal) {
  if (literal.count() > kShownElements)
    return "constant({...})";
  const std::vector<std::string> texts = element_texts(literal.tensor(), kPlainNumbers);
  return fmt::format("constant({})", nest(texts, literal.extents()));
}

std::string hlo_splat(double value, const Type& type) {
  const DType dtype = type.as_tensor().dtype;
  const std::string scalar =
      fmt::format("{} {}", hlo_type(scalar_type(dtype)), hlo_constant(filled(dtype, {}, value)));
  if (type.as_tensor().shape == Shape())
    return scalar;
  return fmt::format("{} broadcast({})", hlo_type(type), scalar);
}

std::string HloModule::scalar_computation(std::string_view instruction, DType dtype) {
  const std::string type = hlo_type(scalar_type(dtype));
  return add_once(fmt::format("{}_{}", instruction, words_for(dtype).hlo),
                  fmt::format("  a = {0} parameter(0)\n  b = {0} parameter(1)\n  ROOT {1} = {0} {1}(a, b)\n",
                              type, instruction));
}

std::string HloModule::second_of_two(DType dtype) {
  return add_once(
      fmt::format("second_{}", words_for(dtype).hlo),
      fmt::format("  a = {0} parameter(0)\n  ROOT b = {0} parameter(1)\n", hlo_type(scalar_type(dtype))));
}

std::string HloModule::add_once(const std::string& wanted, const std::string& lines) {
  const auto it = scalar_computations_.find(wanted);
  if (it != scalar_computations_.end())
    return it->second;
  const std::string name = take_name(wanted);
  scalar_computations_.emplace(wanted, name);
  add(fmt::format("{} {{\n{}}}\n", name, lines));
  return name;
}

std::string HloComputation::emit(std::string_view wanted, const std::string& type,
                                 const std::string& instruction, const std::string& comment) {
  const std::string name = names_.take(wanted);
  lines_.push_back(
      {name, fmt::format("{} = {} {}{}", name, type, instruction, comment.empty() ? "" : "  // " + comment)});
  return name;
}

std::string HloComputation::emit(std::string_view wanted, const Type& type, const std::string& instruction) {
  return emit(wanted, hlo_type(type), instruction);
}

std::string HloComputation::parameter(const std::string& wanted, const Type& type,
                                      const std::string& comment) {
  const int64_t number = parameter_count_++;
  return emit(wanted.empty() ? fmt::format("p{}", number) : wanted, hlo_type(type),
              fmt::format("parameter({})", number), comment);
}

std::string HloComputation::use(Value value) {
  const Literal* literal = literal_of(value);
  if (literal != nullptr && value.node()->is("constant") && emitted_.insert(value.data()).second)
    define(value, emit("constant", value.type(), hlo_constant(*literal)));
  return names_.name(value);
}

std::string HloComputation::use_as(Value value, const Type& type) {
  if (!value.type().is_tensor() || !type.is_tensor())
    return use(value);
  if (is_scalar_constant(value) && type.as_tensor().shape != Shape()) {
    // Without a line of its own, as it is short.
    const Type wanted = Type::tensor(value.dtype(), type.as_tensor().shape);
    return fmt::format("{} broadcast({} {})", hlo_type(wanted), hlo_type(value.type()),
                       hlo_constant(*literal_of(value)));
  }
  return broadcast(use(value), value.type(), type);
}

std::string HloComputation::broadcast(const std::string& name, const Type& from, const Type& type) {
  const auto& [dtype, shape] = from.as_tensor();
  const Shape& target = type.as_tensor().shape;
  if (shape == target)
    return name;
  const Type wanted = Type::tensor(dtype, target);
  if (!shape.ranked() || !target.ranked() || target.rank() < shape.rank())
    return emit("bcast", wanted, fmt::format("broadcast({})", name));
  // Dimensions of size 1 that grow are dropped first: HLO only adds dimensions.
  std::vector<Dim> kept;
  std::vector<int64_t> dimensions;
  const int64_t offset = target.rank() - shape.rank();
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape[i] == target[offset + i]) {
      kept.push_back(shape[i]);
      dimensions.push_back(offset + i);
    }
  std::string operand = name;
  if (static_cast<int64_t>(kept.size()) != shape.rank())
    operand = emit("reshape", Type::tensor(dtype, kept), fmt::format("reshape({})", name));
  return emit("bcast", wanted,
              fmt::format("broadcast({}), dimensions={{{}}}", operand, fmt::join(dimensions, ",")));
}

std::string HloComputation::finish(const std::string& head, const std::vector<std::string>& roots,
                                   const Types& types) {
  std::string root;
  const auto has_line = [&](const Line& line) { return line.name == roots[0]; };
  if (roots.size() == 1 && std::any_of(lines_.begin(), lines_.end(), has_line))
    root = roots[0];
  else if (roots.size() == 1)  // it stands where it is used, and gets a line of its own here
    lines_.push_back({root = names_.take("result"), fmt::format("{} = {}", root, roots[0])});
  else
    root = emit("tuple", hlo_tuple(types), fmt::format("tuple({})", fmt::join(roots, ", ")));
  std::string text = head + " {\n";
  for (const Line& line : lines_)
    text += fmt::format("  {}{}\n", line.name == root ? "ROOT " : "", line.text);
  return text + "}\n";
}

}  // namespace tenon
