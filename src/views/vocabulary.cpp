#include "views/vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "views/axes.h"

namespace tenon {
namespace {

const Rename* find_rename(const Counterpart& counterpart, std::string_view attribute) {
  const auto it = std::find_if(counterpart.attributes.begin(), counterpart.attributes.end(),
                               [&](const Rename& rename) { return rename.ours == attribute; });
  return it == counterpart.attributes.end() ? nullptr : &*it;
}

bool has_default(const Node& node, const AttributeDecl& decl) {
  return decl.default_value && node.attr(decl.name) == *decl.default_value;
}

std::optional<Attribute> one_end(const Attribute::Ints& pads) {
  const auto middle = pads.begin() + static_cast<int64_t>(pads.size() / 2);
  if (!std::equal(pads.begin(), middle, middle, pads.end()))
    return std::nullopt;
  return Attribute::Ints(pads.begin(), middle);
}

// Nothing where the axis is none of the shape's: where an operand's rank is unknown, inference checks no
// axis.
std::optional<Attribute> sizes_from(int64_t axis, const Shape& shape) {
  if (!shape.ranked() || from_the_front(axis, shape.rank()) < 0)
    return std::nullopt;
  Attribute::Ints sizes;
  for (int64_t i = from_the_front(axis, shape.rank()); i < shape.rank(); ++i) {
    if (!shape[i].is_constant())
      return std::nullopt;
    sizes.push_back(*shape[i].constant());
  }
  return sizes;
}

// What they show for one of our attributes; nothing when they cannot.
std::optional<Attribute> shown_value(const Node& node, const Rename& rename) {
  const Attribute& value = node.attr(rename.ours);
  switch (rename.as) {
    case ShownAs::ItIs:
      return value;
    case ShownAs::OneEnd:
      return one_end(value);
    case ShownAs::Element:
      if (const Attribute::Ints& list = value; list.size() == 1)
        return list[0];
      return std::nullopt;
    case ShownAs::Sizes:
      return sizes_from(value, node.in("x").shape());
    case ShownAs::Shape:
      return sizes_from(0, node.result().shape());
  }
  CHECK(false, "an attribute is shown in no way");
}

bool is_for(const Counterpart& counterpart, const Node& node) {
  return node.operand_count() == 0 || !node.operand(0).type().is_tensor() ||
         counterpart.dtypes.contains(node.operand(0).dtype());
}

// No tool that has a vocabulary here has tensors of strings.
bool has_strings(const Node& node) {
  const auto is_strings = [](Value v) { return v.type().is_tensor() && v.dtype() == DType::String; };
  const std::vector<Value> operands = node.operands(), results = node.results();
  return std::any_of(operands.begin(), operands.end(), is_strings) ||
         std::any_of(results.begin(), results.end(), is_strings);
}

bool can_tell(const Node& node, const Counterpart& counterpart) {
  const auto can_tell_attribute = [&](const AttributeDecl& decl) {
    const Rename* rename = find_rename(counterpart, decl.name);
    return rename == nullptr ? has_default(node, decl) : bool(shown_value(node, *rename));
  };
  const std::vector<AttributeDecl>& attributes = node.op().attributes;
  return is_for(counterpart, node) && fill_in_dims(counterpart.name, node) &&
         std::all_of(attributes.begin(), attributes.end(), can_tell_attribute);
}

}  // namespace

Vocabulary::Vocabulary(std::vector<Counterpart> table) : table_(std::move(table)) {
  for (size_t i = 0; i < table_.size(); ++i)
    by_op_[table_[i].op].push_back(i);
}

const Counterpart* Vocabulary::find(const Node& node) const {
  const auto it = by_op_.find(node.op().name);
  if (it == by_op_.end() || !node.late_names().empty() || has_strings(node))
    return nullptr;
  for (const size_t place : it->second)
    if (can_tell(node, table_[place]))
      return &table_[place];
  return nullptr;
}

std::optional<std::string> fill_in_dims(std::string_view word, const Node& node) {
  std::string filled(word);
  const size_t at = filled.find('#');
  if (at == std::string::npos)
    return filled;
  const Shape& shape = node.in("x").shape();
  if (!shape.ranked() || shape.rank() < 3 || shape.rank() > 5)
    return std::nullopt;
  return filled.replace(at, 1, fmt::format("{}", shape.rank() - 2));
}

std::string word_for(const Node& node, const Counterpart* counterpart, std::string_view prefix) {
  return counterpart == nullptr ? fmt::format("{}{}", prefix, node.op().name)
                                : *fill_in_dims(counterpart->name, node);
}

std::vector<NamedAttribute> shown_attributes(const Node& node, const Counterpart* counterpart) {
  std::vector<NamedAttribute> shown;
  if (counterpart == nullptr) {
    for (const AttributeDecl& decl : node.op().attributes)
      if (!node.is_late(decl.name) && !has_default(node, decl))
        shown.push_back({decl.name, node.attr(decl.name)});
    return shown;
  }
  for (const Rename& rename : counterpart->attributes)
    if (!rename.theirs.empty())
      shown.push_back({rename.theirs, *shown_value(node, rename)});
  return shown;
}

std::vector<ShownArgument> shown_arguments(const Node& node, const Counterpart& counterpart) {
  std::vector<ShownArgument> shown;
  for (const auto& [name, constant] : counterpart.arguments) {
    if (node.op().find_operand(name) != nullptr)
      shown.push_back({name, node.in(name), std::nullopt});
    else if (const Rename* rename = find_rename(counterpart, name))
      shown.push_back({rename->theirs, Value(), shown_value(node, *rename)});
    else
      shown.push_back({name, Value(), constant});
  }
  return shown;
}

}  // namespace tenon
