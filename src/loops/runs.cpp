#include "loops/runs.h"

#include <algorithm>

#include "base/error.h"
#include "ir/dim_expression.h"
#include "loops/edit.h"
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
    } else if (!std::holds_alternative<Prefetch>(statement)) {
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
  if (const auto* copy = std::get_if<Copy>(run.statement))
    return copy->origin;
  return std::get<Call>(*run.statement).origin;
}

bool can_run(const Kernel& kernel, const Run& run) try {
  const Context context;
  Words words(kernel);
  std::vector<std::string> variables;
  for (const auto& [loop, place] : run.around)
    variables.push_back(words.name(loop->variable));
  const std::string piece = fmt::format("L[{}] -> R[] : {}", fmt::join(variables, ", "), words.domain(run));
  return !Relation(context, words.relation({piece})).empty();
} catch (const Undecided&) {
  return true;
}

Words::Words(const Kernel& kernel) {
  for (const std::string& size : kernel.size_symbols()) {
    sizes_.insert(size);
    name(size);
  }
}

std::string Words::name(const std::string& symbol) {
  return names_.try_emplace(symbol, fmt::format("v{}", names_.size())).first->second;
}

const std::string& Words::symbol(const std::string& name) const {
  const auto it = std::ranges::find(names_, name, [](const auto& entry) { return entry.second; });
  CHECK(it != names_.end(), "nothing is called {}", name);
  return it->first;
}

std::optional<std::string> Words::find(const Dim& dim, bool also_products) {
  if (dim.is_unknown())
    return std::nullopt;
  std::string sum = "0";
  for (const DimTerm& term : terms_of(dim)) {
    const std::optional<std::string> product = find(term.factors, also_products);
    if (!product)
      return std::nullopt;
    sum += fmt::format(" + {} * {}", term.coefficient, *product);
  }
  return sum;
}

std::optional<std::string> Words::find(const std::vector<DimFactor>& factors, bool also_products) {
  if (factors.empty())
    return "1";
  if (factors.size() == 1)
    if (std::optional<std::string> text = find(*factors.front(), also_products))
      return text;
  const Dim product = DimExpression::sum({{1, factors}});
  const auto is_size = [&](const std::string& symbol) { return sizes_.contains(symbol); };
  if (!also_products || !std::ranges::all_of(product.symbols(), is_size))
    return std::nullopt;
  return *products_.insert(name(product.to_string())).first;
}

std::optional<std::string> Words::find(const DimAtom& atom, bool also_products) {
  if (atom.function == DimFunction::Symbol)
    return name(atom.name);
  std::vector<std::string> operands;
  for (const Dim& operand : atom.operands) {
    const std::optional<std::string> text = find(operand, also_products);
    if (!text)
      return std::nullopt;
    operands.push_back("(" + *text + ")");
  }
  if (atom.function == DimFunction::Max || atom.function == DimFunction::Min)
    return fmt::format("{}({})", atom.function == DimFunction::Max ? "max" : "min",
                       fmt::join(operands, ", "));
  const int64_t divisor = atom.operands[1].constant().value_or(0);
  if (divisor < 1)
    return std::nullopt;
  return atom.function == DimFunction::Mod ? fmt::format("({} mod {})", operands[0], divisor)
                                           : fmt::format("floor({}/{})", operands[0], divisor);
}

std::string Words::expression(const Dim& dim) {
  if (const std::optional<std::string> text = find(dim, true))
    return *text;
  throw Undecided{fmt::format("{} is no sum of loop variables and sizes", dim)};
}

std::string Words::domain(const Run& run) {
  std::vector<std::string> conditions = {"0 = 0"};
  for (const auto& [loop, place] : run.around) {
    const Dim variable = Dim::symbol(loop->variable);
    add_condition(variable - loop->begin, conditions);
    add_condition(loop->end - 1 - variable, conditions);
    if (loop->step != 1)
      conditions.push_back(
          fmt::format("({} - ({})) mod {} = 0", name(loop->variable), expression(loop->begin), loop->step));
  }
  for (const Dim& condition : run.conditions)
    add_condition(condition, conditions);
  return fmt::format("{}", fmt::join(conditions, " and "));
}

// That the dim is 0 or more, without minima where that can be: the library makes two sets of a minimum, and a
// thousand of ten.
void Words::add_condition(const Dim& dim, std::vector<std::string>& conditions) {
  for (const Dim& condition : minima_of(dim))
    conditions.push_back(fmt::format("{} >= 0", expression(condition)));
}

std::string Words::relation(const std::vector<std::string>& pieces) const {
  std::vector<std::string> parameters, positive = {"0 = 0"};
  for (const std::string& size : sizes_) {
    parameters.push_back(names_.at(size));
    positive.push_back(fmt::format("{} >= 0", parameters.back()));
  }
  parameters.insert(parameters.end(), products_.begin(), products_.end());
  std::vector<std::string> texts;
  texts.reserve(pieces.size());
  for (const std::string& piece : pieces)
    texts.push_back(fmt::format("{} and {}", piece, fmt::join(positive, " and ")));
  return fmt::format("[{}] -> {{ {} }}", fmt::join(parameters, ", "), fmt::join(texts, "; "));
}

}  // namespace tenon::loops
