// vocabulary.h — our ops in the words of another tool, as a table per view.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace tenon {

enum class ShownAs : uint8_t {
  ItIs,
  OneEnd,   // of pads: each dimension must have the same at both ends, which is shown once
  Element,  // of a list, which must have just one
  Sizes,    // of an axis: the sizes of x from there on, which must be known
  Shape,    // of axes: the sizes of the result, which must be known
};

struct Rename {
  std::string_view ours, theirs;  // an attribute; one whose `theirs` is empty goes without saying
  ShownAs as = ShownAs::ItIs;
};

// An operand or attribute of ours, by its name, or else an argument of theirs that is always this constant;
// None without one.
struct Argument {
  std::string_view name;
  std::optional<Attribute> constant = std::nullopt;
};

struct Counterpart {
  std::string_view op;    // ours
  std::string_view name;  // theirs; # in it is the number of spatial dimensions, 1 to 3
  std::vector<Rename> attributes = {};
  std::vector<Argument> arguments = {};  // in their order, where it is not ours: operands, then attributes
  DTypeSet dtypes = AnyDType;            // the word is for first operands of these only
};

struct NamedAttribute {
  std::string_view name;
  Attribute value;
};

class Vocabulary {
 public:
  explicit Vocabulary(std::vector<Counterpart> table);

  // The words for a node: the first in the table that can tell all of it. An attribute that they do not
  // rename must have its default. A node for which there are none (null) is shown as a custom call.
  const Counterpart* find(const Node& node) const;

 private:
  std::vector<Counterpart> table_;
  std::unordered_map<std::string_view, std::vector<size_t>> by_op_;
};

// A word with # in it for an op on images; nothing where the number of its dimensions is another or unknown.
std::optional<std::string> fill_in_dims(std::string_view word, const Node& node);

// Their word for the node; for a custom call (null) our own after `prefix`.
std::string word_for(const Node& node, const Counterpart* counterpart, std::string_view prefix = "tenon.");

// The attributes to show: those the counterpart renames, in its order, or, for a custom call (null), all that
// differ from their default, in the order of the op's declaration.
std::vector<NamedAttribute> shown_attributes(const Node& node, const Counterpart* counterpart);

// The arguments of a counterpart that has an order of its own: each a value, a constant, or None.
struct ShownArgument {
  std::string_view name;
  Value value;
  std::optional<Attribute> constant;
};
std::vector<ShownArgument> shown_arguments(const Node& node, const Counterpart& counterpart);

}  // namespace tenon
