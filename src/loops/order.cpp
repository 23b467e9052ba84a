#include "loops/order.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>

#include "loops/isl.h"
#include "loops/runs.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

// A statement whose order cannot be decided.
struct Undecided {
  std::string reason;
};

Context make_context() {
  Context context(isl_ctx_alloc());
  isl_options_set_on_error(context.get(), ISL_ON_ERROR_CONTINUE);
  return context;
}

// The elements that each run reads, writes, and combines into.
struct Uses {
  Relation reads, writes;
  // Of each combine that may happen in any order: a relation for each of its places, as what comes to one may
  // depend on what is in another. Functions of one value have one.
  std::map<std::string, std::vector<Relation>> combines;
};

class Runs {
 public:
  Runs(const Kernel& kernel, const Context& context, Words& words)
      : kernel_(kernel), context_(context), words_(words), runs_(find_runs(kernel)) {
    for (const Run& run : runs_)
      depth_ = std::max(depth_, run.around.size());
  }

  // From each run, by its origin, to the time when it happens.
  Relation times() {
    return relation([&](const Run& run) { return time(run, depth_); });
  }
  // From each run within a loop to its turn of that loop, or to the time of what is around it.
  Relation times_around(const Loop& loop, bool with_itself) {
    return relation([&](const Run& run) -> std::string {
      for (size_t i = 0; i < run.around.size(); ++i)
        if (run.around[i].loop == &loop)
          return with_itself ? fmt::format("T[{}]", words_.name(loop.variable)) : prefix(run, i);
      return {};
    });
  }

  Uses uses() {
    std::vector<std::string> reads, writes;
    std::map<std::string, std::vector<std::vector<std::string>>> combines;
    for (const Run& run : runs_) {
      size_t place = 0;  // among those of the assignment
      for_each_use(*run.statement, [&](const Use& use) {
        const std::string text = piece(run, element(run, use.place));
        if (use.access == Access::Read)
          reads.push_back(text);
        else if (use.access == Access::Write || is_ordered(run))
          writes.push_back(text);
        else
          add(run, place++, text, combines);
      });
    }
    Uses uses{built(reads), built(writes), {}};
    for (const auto& [how, places] : combines)
      for (const std::vector<std::string>& pieces : places)
        uses.combines[how].push_back(built(pieces));
    return uses;
  }

  const std::vector<Run>& list() const { return runs_; }

 private:
  // Its statement's number, and the values of its loops before.
  std::string instance(const Run& run) {
    std::vector<std::string> at;
    for (const Dim& dim : origin_of(run).at)
      at.push_back(expression(dim));
    return fmt::format("S{}[{}]", origin_of(run).statement, fmt::join(at, ", "));
  }
  std::string expression(const Dim& dim) {
    const std::optional<std::string> text = words_.expression(dim);
    if (!text)
      throw Undecided{fmt::format("{} multiplies sizes with each other", dim)};
    return *text;
  }
  std::string domain(const Run& run) {
    std::string problem;
    const std::optional<std::string> text = words_.domain(run, problem);
    if (!text)
      throw Undecided{problem};
    return *text;
  }

  // Loops around and places within them take turns: place, variable, place, variable, …, place.
  std::vector<std::string> steps(const Run& run, size_t loops) {
    std::vector<std::string> steps;
    for (size_t i = 0; i < loops; ++i) {
      steps.push_back(std::to_string(run.around[i].place));
      steps.push_back(words_.name(run.around[i].loop->variable));
    }
    return steps;
  }
  std::string time(const Run& run, size_t depth) {
    std::vector<std::string> all = steps(run, run.around.size());
    all.push_back(std::to_string(run.place));
    all.resize(2 * depth + 1, "0");
    return fmt::format("T[{}]", fmt::join(all, ", "));
  }
  std::string prefix(const Run& run, size_t loops) {
    return fmt::format("T[{}]", fmt::join(steps(run, loops), ", "));
  }

  // The library wants expressions behind the variables that they speak of, so the loops come first, and go
  // later.
  std::string piece(const Run& run, const std::string& image) {
    std::vector<std::string> names;
    for (const auto& [loop, place] : run.around)
      names.push_back(words_.name(loop->variable));
    return fmt::format("[L[{}] -> {}] -> {} : {}", fmt::join(names, ", "), instance(run), image, domain(run));
  }
  Relation built(const std::vector<std::string>& pieces) {
    const Relation with_loops(context_, words_.relation(kernel_, pieces));
    return Relation(isl_union_map_domain_factor_range(with_loops.copy()));
  }
  // From each run, by its origin, to what `image` says; those for which that is nothing are left out.
  template <class F>
  Relation relation(const F& image) {
    std::vector<std::string> pieces;
    for (const Run& run : runs_)
      if (const std::string text = image(run); !text.empty())
        pieces.push_back(piece(run, text));
    return built(pieces);
  }

  // Nothing where it depends on data, or there are no words for it.
  std::optional<std::string> index(const Scalar& scalar) {
    return scalar.kind() == Scalar::Kind::Index ? words_.expression(scalar.index()) : std::nullopt;
  }

  // The element, with the loops around the declaration of a local buffer: each of their turns has its own.
  std::string element(const Run& run, const Place& place) {
    std::vector<std::string> at;
    if (const auto it = run.in_sight.find(place.buffer); it != run.in_sight.end())
      for (size_t i = 0; i < it->second; ++i)
        at.push_back(words_.name(run.around[i].loop->variable));
    for (size_t axis = 0; axis < place.at.size(); ++axis) {
      // From the place on, a routine uses whatever it likes.
      const std::optional<std::string> text =
          std::holds_alternative<Assign>(*run.statement) ? index(place.at[axis]) : std::nullopt;
      at.push_back(text.value_or(fmt::format("any{}", axis)));  // a name that nothing restricts
    }
    return fmt::format("{}[{}]", words_.name(place.buffer), fmt::join(at, ", "));
  }

  // Whether a run combines in a way that minds the order: as values of several places depend on each other,
  // it must be known which those are.
  bool is_ordered(const Run& run) {
    const auto& assign = std::get<Assign>(*run.statement);
    const Combine* combine = kernel_.find_combine(assign.combine);
    if (combine == nullptr)
      return false;
    const bool known = std::ranges::all_of(assign.places, [&](const Place& place) {
      return std::ranges::all_of(place.at, [&](const Scalar& each) { return index(each).has_value(); });
    });
    return !combine->unordered || (assign.places.size() > 1 && !known);
  }
  void add(const Run& run, size_t place, const std::string& text,
           std::map<std::string, std::vector<std::vector<std::string>>>& combines) const {
    const std::string& combine = std::get<Assign>(*run.statement).combine;
    std::vector<std::vector<std::string>>& places = combines[combine];
    places.resize(kernel_.find_combine(combine) == nullptr ? 1 : std::max(places.size(), place + 1));
    places[std::min(place, places.size() - 1)].push_back(text);
  }

  const Kernel& kernel_;
  const Context& context_;
  Words& words_;
  std::vector<Run> runs_;
  size_t depth_ = 0;
};

Relation united(const std::vector<Relation>& relations) {
  Relation all = relations.front();
  for (const Relation& relation : relations)
    all = all | relation;
  return all;
}

// Pairs of runs that all these relations take to the same.
Relation meeting_everywhere(const std::vector<Relation>& relations) {
  Relation all = relations.front().sameness();
  for (const Relation& relation : relations)
    all = all & relation.sameness();
  return all;
}

// Pairs of runs that use one element, at least one writing it.
Relation conflicts(const Uses& uses, bool also_combines) {
  Relation all = uses.writes.sameness();
  const auto add = [&](const Relation& a, const Relation& b) {
    all = all | a.then(b.reversed()) | b.then(a.reversed());
  };
  add(uses.writes, uses.reads);
  for (auto it = uses.combines.begin(); it != uses.combines.end(); ++it) {
    const Relation combined = united(it->second);
    add(combined, uses.reads);
    add(combined, uses.writes);
    // Those that meet in all their places may change places with each other.
    all = all | (also_combines ? combined.sameness() : combined.sameness() - meeting_everywhere(it->second));
    for (auto other = std::next(it); other != uses.combines.end(); ++other)
      add(combined, united(other->second));
  }
  return all;
}

// One pair of a relation between runs: their statements, and the values of their loops.
struct Example {
  Origin first, second;
};

Origin origin_in(isl_set* set) {
  Origin origin;
  origin.statement = std::atoll(isl_set_get_tuple_name(set) + 1);
  const isl_size dimensions = isl_set_dim(set, isl_dim_set);
  isl_point* point = isl_set_sample_point(set);
  for (int i = 0; i < dimensions; ++i) {
    isl_val* value = isl_point_get_coordinate_val(point, isl_dim_set, i);
    origin.at.emplace_back(isl_val_get_num_si(value));
    isl_val_free(value);
  }
  isl_point_free(point);
  return origin;
}

Example example_of(const Relation& relation) {
  // The first in order, which is the easiest to think through.
  isl_union_map* first = isl_union_set_unwrap(isl_union_set_lexmin(isl_union_map_wrap(relation.copy())));
  isl_basic_map* pair = isl_basic_map_sample(isl_union_map_sample(first));
  isl_map* map = isl_map_from_basic_map(pair);
  const Example example{origin_in(isl_map_domain(isl_map_copy(map))),
                        origin_in(isl_map_range(isl_map_copy(map)))};
  isl_map_free(map);
  return example;
}

class Violations {
 public:
  Violations(const Kernel& before, const Kernel& after)
      : before_kernel_(before),
        context_(make_context()),
        before_(before, context_, words_),
        after_(after, context_, words_) {}

  std::optional<std::string> find() {
    try {
      const Relation was = before_.times(), is = after_.times();
      if (!runs_the_same(was, is))
        return "it would not run the same statements, each once for the same values";
      const Uses uses = before_.uses();
      const Relation wrong = (conflicts(uses, false) & was.order()) - is.order();
      if (!wrong.empty())
        return explain(example_of(wrong), "would run before it");
      return find_race(uses);
    } catch (const Undecided& undecided) {
      return fmt::format("whether that is legal cannot be decided: {}", undecided.reason);
    }
  }

 private:
  static bool runs_the_same(const Relation& was, const Relation& is) {
    isl_union_set* before = isl_union_map_domain(was.copy());
    isl_union_set* after = isl_union_map_domain(is.copy());
    const bool same = isl_union_set_is_equal(before, after) == isl_bool_true &&
                      isl_union_map_is_single_valued(is.get()) == isl_bool_true;
    isl_union_set_free(before);
    isl_union_set_free(after);
    return same;
  }

  std::optional<std::string> find_race(const Uses& uses) {
    std::vector<const Loop*> loops;
    for (const Run& run : after_.list())
      for (const auto& [loop, place] : run.around)
        if ((loop->mark == Mark::Parallel || loop->mark == Mark::Vector) &&
            std::ranges::find(loops, loop) == loops.end())
          loops.push_back(loop);
    for (const Loop* loop : loops) {
      const Relation turn = after_.times_around(*loop, true);
      const Relation race = conflicts(uses, loop->mark == Mark::Parallel) & turn.order() &
                            after_.times_around(*loop, false).sameness();
      if (!race.empty())
        return explain(example_of(race),
                       fmt::format("would run at the same time, in another turn of {}", loop->variable));
    }
    return std::nullopt;
  }

  std::string explain(const Example& example, const std::string& instead) const {
    return fmt::format("{} must come after {}, but {}", describe(example.second), describe(example.first),
                       instead);
  }
  // `y[i] = x[i]` at i = 3
  std::string describe(const Origin& origin) const {
    for (const Run& run : before_.list()) {
      if (origin_of(run).statement != origin.statement)
        continue;
      std::vector<std::string> at;
      for (size_t i = 0; i < origin.at.size(); ++i)
        at.push_back(fmt::format("{} = {}", run.around[i].loop->variable, origin.at[i]));
      return fmt::format("`{}`{}{}", print(*run.statement, before_kernel_), at.empty() ? "" : " at ",
                         fmt::join(at, ", "));
    }
    CHECK(false, "no statement {}", origin.statement);
  }

  const Kernel& before_kernel_;
  Context context_;
  Words words_;
  Runs before_, after_;
};

// Whether a statement that these loops and conditions surround can ever run. Where that cannot be decided, it
// can.
bool can_run(const Kernel& kernel, const Run& run) {
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
}

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

void stamp_body(std::vector<Statement>& body, std::vector<Dim>& variables, int64_t& next) {
  for (Statement& statement : body) {
    if (auto* assign = std::get_if<Assign>(&statement))
      assign->origin = {next++, variables};
    else if (auto* call = std::get_if<Call>(&statement))
      call->origin = {next++, variables};
    const auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr)
      variables.push_back(Dim::symbol(loop->variable));
    if (std::vector<Statement>* inner = body_of(statement))
      stamp_body(*inner, variables, next);
    if (loop != nullptr)
      variables.pop_back();
  }
}

}  // namespace

Kernel stamp(Kernel kernel) {
  std::vector<Dim> variables;
  int64_t next = 0;
  stamp_body(kernel.body, variables, next);
  return kernel;
}

std::optional<std::string> find_violation(const Kernel& before, const Kernel& after) {
  return Violations(before, after).find();
}

Kernel simplify_guards(const Kernel& kernel) {
  Kernel result = kernel;
  result.body = GuardSimplifier(kernel).simplified(kernel.body);
  return result;
}

}  // namespace tenon::loops
