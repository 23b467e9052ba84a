// Every op there is keeps the rules of a declaration.
#include <gtest/gtest.h>

#include <set>

#include "ops/registry.h"

namespace tenon {
namespace {

class Declarations : public testing::Test {
 protected:
  static void SetUpTestSuite() { register_ops(); }
};

TEST_F(Declarations, HaveADocLineInPlaceOfASentence) {
  for (const OpDef* op : registered_ops()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_EQ(op->doc.find('\n'), std::string_view::npos) << op->name;
    EXPECT_FALSE(op->doc.ends_with('.')) << op->name;
    for (const AttributeDecl& attribute : op->attributes)
      EXPECT_FALSE(attribute.doc.empty()) << op->name << " " << attribute.name;
  }
}

TEST_F(Declarations, NameEachOperandAndAttributeOnce) {
  for (const OpDef* op : registered_ops()) {
    std::set<std::string_view> names;
    for (const OperandDecl& operand : op->operands)
      EXPECT_TRUE(names.insert(operand.name).second) << op->name << " " << operand.name;
    for (const AttributeDecl& attribute : op->attributes)
      EXPECT_TRUE(names.insert(attribute.name).second) << op->name << " " << attribute.name;
  }
}

TEST_F(Declarations, GiveDefaultsOfTheDeclaredKind) {
  for (const OpDef* op : registered_ops())
    for (const AttributeDecl& attribute : op->attributes) {
      const AttributeKind given = attribute.default_value ? attribute.default_value->kind() : attribute.kind;
      EXPECT_EQ(name(given), name(attribute.kind)) << op->name << " " << attribute.name;
    }
}

TEST_F(Declarations, UseOnlyTypesThatMeanSomething) {
  const auto is_variable = [](std::string_view type) {
    return !type.empty() && 'A' <= type[0] && type[0] <= 'Z';
  };
  const auto is_fixed = [](std::string_view type) {
    return type == "any" || type == "seq" || type == "opt" || parse_dtype(type).has_value();
  };
  for (const OpDef* op : registered_ops()) {
    std::set<std::string_view> variables;
    for (const OperandDecl& operand : op->operands) {
      EXPECT_TRUE(is_variable(operand.type) || is_fixed(operand.type)) << op->name << " " << operand.type;
      if (is_variable(operand.type))
        variables.insert(operand.type);
    }
    for (const TypeVariable& variable : op->types)
      EXPECT_TRUE(variables.contains(variable.name)) << op->name << " constrains an unused " << variable.name;
    for (const ResultDecl& result : op->results) {
      if (is_variable(result.type))
        EXPECT_TRUE(variables.contains(result.type))
            << op->name << ": no operand says what " << result.type << " is";
      else if (result.type.starts_with('$'))
        EXPECT_NE(op->find_attribute(result.type.substr(1)), nullptr) << op->name << " " << result.type;
      else
        EXPECT_TRUE(is_fixed(result.type)) << op->name << " " << result.type;
    }
  }
}

}  // namespace
}  // namespace tenon
