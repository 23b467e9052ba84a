// vocabulary.h — our ops in the words of another tool, as a table per view.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace tenon {

struct Rename {
  std::string_view ours, theirs;  // an attribute; one whose `theirs` is empty goes without saying
};

struct Counterpart {
  std::string_view op;    // ours
  std::string_view name;  // theirs
  std::vector<Rename> attributes = {};
};

struct NamedAttribute {
  std::string_view name;
  const Attribute* value;
};

class Vocabulary {
 public:
  explicit Vocabulary(std::vector<Counterpart> table);

  // The words for a node. Null when there are none, or when they cannot tell all of it: an attribute that
  // the table does not rename must have its default. Such a node is shown as a custom call.
  const Counterpart* find(const Node& node) const;

 private:
  std::vector<Counterpart> table_;
  std::unordered_map<std::string_view, size_t> by_op_;
};

// The attributes to show: those the counterpart renames, or, for a custom call (null), all that differ from
// their default. In the order of the op's declaration.
std::vector<NamedAttribute> shown_attributes(const Node& node, const Counterpart* counterpart);

}  // namespace tenon
