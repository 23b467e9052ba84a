// vocabulary.h — our ops in the words of another tool, as a table per view.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace tenon {

enum class Ends : uint8_t {
  Both,   // the list is shown as it is
  Alike,  // of pads: each dimension must have the same at both ends, which is shown once
};

// An attribute; one whose `theirs` is empty goes without saying, one whose `ours` is empty is an argument of
// theirs that is never given.
struct Rename {
  std::string_view ours, theirs;
  Ends ends = Ends::Both;
};

struct Counterpart {
  std::string_view op;    // ours
  std::string_view name;  // theirs; # in it is the number of spatial dimensions, 1 to 3
  std::vector<Rename> attributes = {};
};

struct NamedAttribute {
  std::string_view name;
  std::optional<Attribute> value;  // none: not given
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

// A word with # in it for an op on images; nothing where the number of its dimensions is another or unknown.
std::optional<std::string> fill_in_dims(std::string_view word, const Node& node);

// Their word for the node; for a custom call (null) our own after `prefix`.
std::string word_for(const Node& node, const Counterpart* counterpart, std::string_view prefix = "tenon.");

// The attributes to show: those the counterpart renames, in its order, or, for a custom call (null), all that
// differ from their default, in the order of the op's declaration.
std::vector<NamedAttribute> shown_attributes(const Node& node, const Counterpart* counterpart);

}  // namespace tenon
