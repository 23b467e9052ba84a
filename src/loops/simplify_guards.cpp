#include "loops/simplify_guards.h"

#include "loops/runs.h"

namespace tenon::loops {
namespace {

class GuardSimplifier {
 public:
  explicit GuardSimplifier(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<Statement> simplified(const std::vector<Statement>& body) {
    std::vector<Statement> result;
    for (const Statement& statement : body) {
      if (const auto* guard = std::get_if<Guard>(&statement)) {
        std::ranges::move(opened(*guard), std::back_inserter(result));
      } else if (const auto* loop = std::get_if<Loop>(&statement)) {
        around_.around.push_back({loop, 0});
        Loop inner = *loop;
        if (can_run(kernel_, around_) && !(inner.body = simplified(loop->body)).empty())
          result.emplace_back(std::move(inner));
        around_.around.pop_back();
      } else {
        result.push_back(statement);
      }
    }
    return result;
  }

 private:
  std::vector<Statement> opened(const Guard& guard) {
    Guard result;
    const size_t outer = around_.conditions.size();
    bool never = false;
    for (const Dim& condition : guard.conditions) {
      if (can_also(Dim(-1) - condition))
        result.conditions.push_back(condition);
      never |= !can_also(condition);
      around_.conditions.push_back(condition);
    }
    if (!never)
      result.body = simplified(guard.body);
    around_.conditions.resize(outer);
    if (result.body.empty() || result.conditions.empty())
      return std::move(result.body);
    std::vector<Statement> kept;
    kept.emplace_back(std::move(result));
    return kept;
  }
  bool can_also(const Dim& condition) {
    around_.conditions.push_back(condition);
    const bool can = can_run(kernel_, around_);
    around_.conditions.pop_back();
    return can;
  }

  const Kernel& kernel_;
  Run around_ = {};
};

}  // namespace

Kernel simplify_guards(const Kernel& kernel) {
  Kernel result = kernel;
  result.body = GuardSimplifier(kernel).simplified(kernel.body);
  return result;
}

}  // namespace tenon::loops
