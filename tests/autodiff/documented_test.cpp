// docs/gradients.md names every op without a gradient: it is complete, and it is right.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "ops/gradient.h"
#include "ops/registry.h"
#include "source_tree.h"

namespace tenon {
namespace {

using Names = std::set<std::string, std::less<>>;

// The names in backticks of a document from one phrase to another.
Names names_between(std::string_view from, std::string_view to) {
  std::ifstream file(source_tree() / "docs/gradients.md");
  std::stringstream all;
  all << file.rdbuf();
  std::string text = all.str();
  std::ranges::replace(text, '\n', ' ');
  const size_t start = text.find(from), end = text.find(to);
  EXPECT_TRUE(start != std::string::npos && end != std::string::npos && start < end) << from << " … " << to;
  Names names;
  for (size_t open = text.find('`', start); open < end; open = text.find('`', open)) {
    const size_t close = text.find('`', open + 1);
    names.insert(text.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return names;
}

bool may_be_float(const OpDef& op, std::string_view type) {
  for (const TypeVariable& variable : op.types)
    if (variable.name == type)
      return std::ranges::any_of(all_dtypes(), [&](const DTypeInfo& each) {
        return is_float(each.dtype) && variable.allowed.contains(each.dtype);
      });
  for (const DTypeInfo& dtype : all_dtypes())
    if (dtype.name == type)
      return is_float(dtype.dtype);
  return true;
}

bool has_sequence(const OpDef& op) {
  const auto is_one = [](const auto& decl) { return decl.type == "seq" || decl.type == "opt"; };
  return std::ranges::any_of(op.operands, is_one) || std::ranges::any_of(op.results, is_one);
}

bool maps_floats_to_floats(const OpDef& op) {
  const auto is_one = [&](const auto& decl) { return may_be_float(op, decl.type); };
  return std::ranges::any_of(op.operands, is_one) && std::ranges::any_of(op.results, is_one);
}

TEST(DocumentedGradients, NameTheOpsThatAreConstantPiecewise) {
  register_ops();
  Names constant;
  for (const OpDef* op : registered_ops())
    if (op->grad == no_gradient)
      constant.emplace(op->name);
  EXPECT_EQ(names_between("These ops are constant", "counts as such"), constant);
}

TEST(DocumentedGradients, NameTheOpsThatLackAGradient) {
  register_ops();
  Names lacking;
  for (const OpDef* op : registered_ops())
    if (op->grad == nullptr && op->decompose == nullptr && maps_floats_to_floats(*op) && !has_sequence(*op))
      lacking.emplace(op->name);
  EXPECT_EQ(names_between("These have a gradient", "and everything that takes"), lacking);
}

}  // namespace
}  // namespace tenon
