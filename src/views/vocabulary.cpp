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
  for (const AttributeDecl& decl : node.op().attributes)
    if (find_rename(counterpart, decl.name) == nullptr && !has_default(node, decl))
      return nullptr;
  return &counterpart;
}

std::vector<NamedAttribute> shown_attributes(const Node& node, const Counterpart* counterpart) {
  std::vector<NamedAttribute> shown;
  for (const AttributeDecl& decl : node.op().attributes) {
    if (node.is_late(decl.name))
      continue;
    if (counterpart == nullptr) {
      if (!has_default(node, decl))
        shown.push_back({decl.name, &node.attr(decl.name)});
    } else if (const Rename* rename = find_rename(*counterpart, decl.name)) {
      if (!rename->theirs.empty())
        shown.push_back({rename->theirs, &node.attr(decl.name)});
    }
  }
  return shown;
}

}  // namespace tenon
