#include "loops/runs.h"

#include "base/error.h"
#include "ir/dim_expression.h"
#include "loops/isl.h"

namespace tenon::loops {
namespace {

class Finder {
 public:
  std::vector<Run> find(const std::vector<Statement>& body) {
    walk(body);
    return std::move(runs_);
  }

 private:
  void walk(const std::vector<Statement>& body) {
    const std::map<std::string, size_t> in_sight = now_.in_sight;
    // Guards have no place in time of their own: what is within them stands where they do.
    const int64_t first = std::exchange(next_, 0);
    for (const Statement& statement : body)
      visit(statement);
    next_ = first;
    now_.in_sight = in_sight;
  }

  void visit(const Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement)) {
      now_.around.push_back({loop, next_++});
      walk(loop->body);
      now_.around.pop_back();
    } else if (const auto* guard = std::get_if<Guard>(&statement)) {
      const size_t conditions = now_.conditions.size();
      now_.conditions.insert(now_.conditions.end(), guard->conditions.begin(), guard->conditions.end());
      const std::map<std::string, size_t> in_sight = now_.in_sight;
      for (const Statement& each : guard->body)
        visit(each);
      now_.in_sight = in_sight;
      now_.conditions.resize(conditions);
    } else if (const auto* local = std::get_if<Local>(&statement)) {
      now_.in_sight.insert_or_assign(local->buffer.name, now_.around.size());
    } else {
      now_.statement = &statement;
      now_.place = next_++;
      runs_.push_back(now_);
    }
  }

  std::vector<Run> runs_;
  Run now_ = {};
  int64_t next_ = 0;  // place
};

}  // namespace

std::vector<Run> find_runs(const Kernel& kernel) { return Finder().find(kernel.body); }

const Origin& origin_of(const Run& run) {
  if (const auto* assign = std::get_if<Assign>(run.statement))
    return assign->origin;
  return std::get<Call>(*run.statement).origin;
}

bool can_run(const Kernel& kernel, const Run& run) try {
  const Context context = make_context();
  Words words;
  std::string problem;
  const std::optional<std::string> domain = words.domain(run, problem);
  if (!domain)
    return true;
  std::vector<std::string> variables;
  for (const auto& [loop, place] : run.around)
    variables.push_back(words.name(loop->variable));
  const std::string piece = fmt::format("L[{}] -> R[] : {}", fmt::join(variables, ", "), *domain);
  return !Relation(context, words.relation(kernel, {piece})).empty();
} catch (const Undecided&) {
  return true;
}

std::string Words::name(const std::string& symbol) {
  return names_.try_emplace(symbol, fmt::format("v{}", names_.size())).first->second;
}

std::optional<std::string> Words::expression(const Dim& dim) {
  if (dim.is_unknown())
    return std::nullopt;
  std::string sum = "0";
  for (const DimTerm& term : terms_of(dim)) {
    if (term.factors.size() > 1)
      return std::nullopt;
    sum += fmt::format(" + {}", term.coefficient);
    if (term.factors.empty())
      continue;
    const DimAtom& atom = *term.factors.front();
    if (atom.function == DimFunction::Symbol) {
      sum += fmt::format(" * {}", name(atom.name));
      continue;
    }
    std::vector<std::string> operands;
    for (const Dim& operand : atom.operands) {
      std::optional<std::string> text = expression(operand);
      if (!text)
        return std::nullopt;
      operands.push_back("(" + *std::move(text) + ")");
    }
    const bool divides = atom.function == DimFunction::FloorDiv || atom.function == DimFunction::Mod;
    if (divides && atom.operands[1].constant().value_or(0) < 1)
      return std::nullopt;
    if (atom.function == DimFunction::FloorDiv)
      sum += fmt::format(" * floor({}/{})", operands[0], *atom.operands[1].constant());
    else if (atom.function == DimFunction::Mod)
      sum += fmt::format(" * ({} mod {})", operands[0], *atom.operands[1].constant());
    else
      sum += fmt::format(" * {}({})", atom.function == DimFunction::Max ? "max" : "min",
                         fmt::join(operands, ", "));
  }
  return sum;
}

std::optional<std::string> Words::domain(const Run& run, std::string& problem) {
  std::vector<std::string> conditions = {"0 = 0"};
  for (const auto& [loop, place] : run.around) {
    const std::optional<std::string> begin = expression(loop->begin), end = expression(loop->end);
    if (!begin || !end) {
      problem = fmt::format("the bounds of loop {} multiply sizes with each other", loop->variable);
      return std::nullopt;
    }
    const std::string variable = name(loop->variable);
    conditions.push_back(fmt::format("{} <= {} and {} < {}", *begin, variable, variable, *end));
    if (loop->step != 1)
      conditions.push_back(fmt::format("({} - ({})) mod {} = 0", variable, *begin, loop->step));
  }
  for (const Dim& condition : run.conditions) {
    const std::optional<std::string> text = expression(condition);
    if (!text) {
      problem = fmt::format("the condition {} >= 0 multiplies sizes with each other", condition);
      return std::nullopt;
    }
    conditions.push_back(fmt::format("{} >= 0", *text));
  }
  return fmt::format("{}", fmt::join(conditions, " and "));
}

std::string Words::relation(const Kernel& kernel, const std::vector<std::string>& pieces) {
  std::vector<std::string> sizes, positive;
  for (const std::string& symbol : kernel.size_symbols()) {
    sizes.push_back(name(symbol));
    positive.push_back(fmt::format("{} >= 0", sizes.back()));
  }
  std::vector<std::string> texts;
  for (const std::string& piece : pieces)
    texts.push_back(
        fmt::format("{}{}{}", piece, positive.empty() ? "" : " and ", fmt::join(positive, " and ")));
  return fmt::format("[{}] -> {{ {} }}", fmt::join(sizes, ", "), fmt::join(texts, "; "));
}

}  // namespace tenon::loops
