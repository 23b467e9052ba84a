#include "schedule/blocked_sum.h"

#include <algorithm>

namespace tenon::schedule {

using loops::Axis;
using loops::Loop;
using loops::Mark;
using loops::Statement;

namespace {

constexpr int64_t kMostTerms = 4096;  // of one part

}  // namespace

std::optional<Parts> parts_of(const loops::Definition& definition, int64_t lanes) {
  if (definition.combine != "+" || definition.results.front().dtype != DType::F32)
    return std::nullopt;
  int64_t terms = 1;
  for (size_t i = definition.reduced.size(); i-- > 0;) {
    const int64_t at_once = i + 1 == definition.reduced.size() ? lanes : 1;
    // A dynamic sum may be long.
    const int64_t iterations =
        ceil_div(definition.reduced[i].size, at_once).constant().value_or(kMostTerms + 1);
    if (iterations > kMostTerms / terms)
      return Parts{.axis = i, .iterations = kMostTerms / terms * at_once};
    terms *= std::max<int64_t>(iterations, 1);
  }
  return std::nullopt;
}

std::vector<Statement> reduce_over(const std::vector<Axis>& axes, Mark last,
                                   const std::optional<Parts>& parts, std::vector<Statement> before,
                                   std::vector<Statement> terms, std::vector<Statement> after) {
  for (size_t i = axes.size(); i-- > 0;) {
    Loop loop{.variable = axes[i].variable,
              .end = axes[i].size,
              .mark = i + 1 == axes.size() ? last : Mark::Serial,
              .body = std::move(terms)};
    terms.clear();
    if (parts && parts->axis == i) {
      const std::string part = "p" + axes[i].variable;
      loop.begin = Dim::symbol(part) * parts->iterations;
      loop.end = min(axes[i].size, loop.begin + parts->iterations);
      std::vector<Statement> body = std::move(before);
      body.emplace_back(std::move(loop));
      body.insert(body.end(), after.begin(), after.end());
      loop = {.variable = part, .end = ceil_div(axes[i].size, parts->iterations), .body = std::move(body)};
    }
    terms.emplace_back(std::move(loop));
  }
  return terms;
}

}  // namespace tenon::schedule
