#include "views/vocabulary.h"

#include <algorithm>

#include "base/error.h"

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

// The pads at one end of every dimension, if those at the other are the same.
std::optional<Attribute::Ints> one_end(const Attribute::Ints& pads) {
  const auto middle = pads.begin() + static_cast<int64_t>(pads.size() / 2);
  if (!std::equal(pads.begin(), middle, middle, pads.end()))
    return std::nullopt;
  return Attribute::Ints(pads.begin(), middle);
}

bool can_tell(const Node& node, const AttributeDecl& decl, const Rename* rename) {
  if (rename == nullptr)
    return has_default(node, decl);
  return rename->ends == Ends::Both || one_end(node.attr(decl.name));
}

}  // namespace

Vocabulary::Vocabulary(std::vector<Counterpart> table) : table_(std::move(table)) {
  for (size_t i = 0; i < table_.size(); ++i)
    CHECK(by_op_.emplace(table_[i].op, i).second, "the table names {} twice", table_[i].op);
}

const Counterpart* Vocabulary::find(const Node& node) const {
  const auto it = by_op_.find(node.op().name);
  if (it == by_op_.end() || !node.late_names().empty())
    return nullptr;
  const Counterpart& counterpart = table_[it->second];
  if (!fill_in_dims(counterpart.name, node))
    return nullptr;
  for (const AttributeDecl& decl : node.op().attributes)
    if (!can_tell(node, decl, find_rename(counterpart, decl.name)))
      return nullptr;
  return &counterpart;
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
  for (const auto& [ours, theirs, ends] : counterpart->attributes) {
    if (theirs.empty())
      continue;
    if (ours.empty())
      shown.push_back({theirs, std::nullopt});
    else if (ends == Ends::Alike)
      shown.push_back({theirs, *one_end(node.attr(ours))});
    else
      shown.push_back({theirs, node.attr(ours)});
  }
  return shown;
}

}  // namespace tenon
