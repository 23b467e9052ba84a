#include "rewrite/rules/rules.h"

#include "ops/registry.h"
#include "rewrite/prove.h"

namespace tenon {
namespace {

std::vector<const Rule*> every_rule() {
  register_ops();
  std::vector<const Rule*> rules;
  for (const auto& [subject, of_subject] : all_rules())
    for (const Rule& rule : *of_subject)
      rules.push_back(&rule);
  return rules;
}

class EveryRule : public testing::TestWithParam<const Rule*> {};

TEST_P(EveryRule, KeepsItsPromise) { prove(*GetParam()); }

std::string test_name(const testing::TestParamInfo<const Rule*>& info) {
  std::string name(info.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(every_rule()), test_name);

TEST(Rules, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Rule* rule : every_rule())
    EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
}

TEST(Rules, NeverUndoEachOther) {
  Rules all;
  for (const Rule* rule : every_rule())
    if (!rule->for_saturation)
      all.push_back(*rule);
  for (const Rule& rule : all) {
    const std::unique_ptr<Graph> example = parse_example(rule.fires, DType::F32);
    if (example == nullptr)
      continue;
    Journal journal(NumericsBudget::Fast);
    EXPECT_NO_THROW(apply_rules(*example, all, journal)) << rule.name;
    EXPECT_EQ(apply_rules(*example, all, journal), 0) << rule.name;
  }
}

}  // namespace
}  // namespace tenon
