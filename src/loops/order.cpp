#include "loops/order.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>

#include "loops/edit.h"
#include "loops/isl.h"
#include "loops/runs.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

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
    return Relation(context_, words_.relation(kernel_, pieces)).of_second();
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

Origin origin_in(isl_ctx* context, isl_set* taken) {
  const std::unique_ptr<isl_set, Free<isl_set_free>> set(check_done(context, taken));
  const std::unique_ptr<isl_point, Free<isl_point_free>> point(
      check_done(context, isl_set_sample_point(isl_set_copy(set.get()))));
  Origin origin{.statement = std::atoll(isl_set_get_tuple_name(set.get()) + 1), .at = {}};
  for (int i = 0; i < isl_set_dim(set.get(), isl_dim_set); ++i) {
    const std::unique_ptr<isl_val, Free<isl_val_free>> value(
        check_done(context, isl_point_get_coordinate_val(point.get(), isl_dim_set, i)));
    origin.at.emplace_back(isl_val_get_num_si(value.get()));
  }
  return origin;
}

Example example_of(const Relation& relation) {
  // The first in order, which is the easiest to think through.
  isl_union_map* first = isl_union_set_unwrap(isl_union_set_lexmin(isl_union_map_wrap(relation.copy())));
  const std::unique_ptr<isl_map, Free<isl_map_free>> pair(check_done(
      relation.context(), isl_map_from_basic_map(isl_basic_map_sample(isl_union_map_sample(first)))));
  return {origin_in(relation.context(), isl_map_domain(isl_map_copy(pair.get()))),
          origin_in(relation.context(), isl_map_range(isl_map_copy(pair.get())))};
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
      if (!is.has_domain_of(was) || !is.is_single_valued())
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

Kernel unstamp(Kernel kernel) {
  for_each_statement(kernel.body, [](Statement& statement) {
    if (auto* assign = std::get_if<Assign>(&statement))
      assign->origin = {};
    else if (auto* call = std::get_if<Call>(&statement))
      call->origin = {};
  });
  return kernel;
}

std::optional<std::string> find_violation(const Kernel& before, const Kernel& after) {
  return Violations(before, after).find();
}

}  // namespace tenon::loops
