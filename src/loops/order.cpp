#include "loops/order.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>

#include "loops/edit.h"
#include "loops/run_relations.h"

namespace tenon::loops {
namespace {

size_t count_common_loops(const Run& first, const Run& second) {
  const auto [end, other] =
      std::ranges::mismatch(first.around, second.around, {}, &Around::loop, &Around::loop);
  return static_cast<size_t>(end - first.around.begin());
}

// Whether a run of the first statement comes before one of the second in the same iteration of all these
// loops.
bool comes_first(const Run& first, const Run& second) {
  const size_t common = count_common_loops(first, second);
  const auto place = [&](const Run& run) {
    return common < run.around.size() ? run.around[common].place : run.place;
  };
  return place(first) < place(second);
}

// How many loops, from the outermost, are still the same for a statement.
size_t count_kept_loops(const Run& before, const Run& after) {
  const std::vector<Dim>& origin = origin_of(after).at;
  size_t kept = 0;
  while (kept < std::min(origin.size(), after.around.size()) &&
         origin[kept] == Dim::symbol(after.around[kept].loop->variable) &&
         after.around[kept].loop->mark == before.around[kept].loop->mark)
    ++kept;
  return kept;
}

// Sizes of the kernel, in words of the library, and the values of the loops around two runs.
struct Example {
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::vector<int64_t> first, second;
};

int64_t value_in(isl_point* point, size_t i) {
  const std::unique_ptr<isl_val, Free<isl_val_free>> value(
      isl_point_get_coordinate_val(point, isl_dim_set, static_cast<int>(i)));
  check_done(isl_point_get_ctx(point), value != nullptr);
  return isl_val_get_num_si(value.get());
}

// That of the smallest sizes, and the first in order, which is the easiest to think through.
Example example_of(const Relation& relation) {
  isl_ctx* context = relation.context();
  const std::unique_ptr<isl_map, Free<isl_map_free>> map(
      check_done(context, isl_map_from_union_map(relation.copy())));
  const auto count = [&](isl_dim_type type) { return static_cast<unsigned>(isl_map_dim(map.get(), type)); };
  const unsigned sizes = count(isl_dim_param), first = count(isl_dim_in), second = count(isl_dim_out);
  isl_set* all = isl_set_move_dims(isl_set_flatten(isl_map_wrap(isl_map_copy(map.get()))), isl_dim_set, 0,
                                   isl_dim_param, 0, sizes);
  const std::unique_ptr<isl_point, Free<isl_point_free>> point(
      check_done(context, isl_set_sample_point(isl_set_lexmin(all))));
  Example example;
  for (unsigned i = 0; i < sizes; ++i)
    example.sizes.emplace_back(isl_map_get_dim_name(map.get(), isl_dim_param, i), value_in(point.get(), i));
  for (unsigned i = 0; i < first + second; ++i)
    (i < first ? example.first : example.second).push_back(value_in(point.get(), sizes + i));
  return example;
}

// All that decides when a statement runs, but for its place within the loops around it.
std::string shape_of(const Run& run) {
  std::string shape =
      fmt::format("({}) if ({}) for", fmt::join(origin_of(run).at, ","), fmt::join(run.conditions, ","));
  for (const auto& [loop, place] : run.around)
    shape += fmt::format(" {}", fmt::ptr(loop));
  return shape;
}

// Texts, by numbers that are the same where they are.
class Numbers {
 public:
  size_t of(const std::string& text) { return numbers_.try_emplace(text, numbers_.size()).first->second; }

 private:
  std::map<std::string, size_t> numbers_;
};

// A statement that computes, where it stood and where it stands.
struct Moved {
  Run before, after;
  size_t kept_loops;
  size_t shape;                        // of both runs
  size_t signature = 0;                // of the shape and all elements
  std::vector<Element> elements = {};  // of buffers that the kernel writes

  // How it combines, where it does.
  const std::string& combine() const { return std::get<Assign>(*before.statement).combine; }
};

// Two statements, whose runs came and come in some order. That depends on the loops around both, and on the
// places of the two within these.
struct Pair {
  Pair(const Moved& one, const Moved& other)
      : first(one),
        second(other),
        came_first(comes_first(one.before, other.before)),
        comes_first_now(comes_first(one.after, other.after)) {}

  bool keeps_order() const {
    const size_t loops = count_common_loops(first.before, second.before);
    return loops == count_common_loops(first.after, second.after) &&
           loops <= std::min(first.kept_loops, second.kept_loops) && came_first == comes_first_now;
  }

  const Moved &first, &second;
  bool came_first, comes_first_now;
};

// Pairs of runs that must not depend on each other.
struct Danger {
  std::optional<size_t> loop;       // whose iterations run at once
  bool also_combines;               // by an unordered function
  std::string what;                 // would happen
  std::vector<Relation> runs = {};  // what they are all in, once that was asked for
};

// Pairs of runs that depend on each other, and change places or happen at once.
class Violations {
 public:
  Violations(const Kernel& before, const Kernel& after) : kernel_(before) {
    const std::vector<Run> now = find_runs(after);
    for (const Run& run : find_runs(before)) {
      const auto moved = std::ranges::find(now, origin_of(run).statement,
                                           [](const Run& each) { return origin_of(each).statement; });
      CHECK(moved != now.end(), "statement {} is gone", origin_of(run).statement);
      statements_.push_back({.before = run,
                             .after = *moved,
                             .kept_loops = count_kept_loops(run, *moved),
                             .shape = numbers_.of(shape_of(run) + shape_of(*moved))});
      depth_ = std::max({depth_, run.around.size(), moved->around.size()});
    }
    CHECK(statements_.size() == now.size(), "{} statements became {}", statements_.size(), now.size());
  }

  std::optional<std::string> find() {
    try {
      find_elements();
      for (const bool known : {true, false}) {
        std::set<std::tuple<size_t, size_t, bool, bool>> done;
        for (const Moved& first : statements_)
          for (const Moved& second : statements_) {
            const Pair pair(first, second);
            if (pair.keeps_order() ||
                !done.emplace(first.signature, second.signature, pair.came_first, pair.comes_first_now)
                     .second)
              continue;
            if (std::optional<std::string> found = find(pair, known))
              return found;
          }
      }
      return std::nullopt;
    } catch (const Undecided& undecided) {
      return fmt::format("whether that is legal cannot be decided: {}", undecided.reason);
    }
  }

 private:
  void find_elements() {
    std::set<std::string> written;
    for (const Moved& moved : statements_)
      for_each_use(*moved.before.statement, [&](const Use& use) {
        if (use.access != Access::Read)
          written.insert(use.place.buffer);
      });
    for (Moved& moved : statements_) {
      moved.elements = relations_.elements(moved.before, written);
      std::string signature = std::to_string(moved.shape);
      for (const Element& element : moved.elements)
        signature += fmt::format(" {} {}", static_cast<int>(element.access), element.image);
      if (std::holds_alternative<Assign>(*moved.before.statement))
        signature += " " + moved.combine();
      moved.signature = numbers_.of(signature);
    }
  }

  // By elements that are known to be the same, or by others.
  std::optional<std::string> find(const Pair& pair, bool known) {
    for (const Element& a : pair.first.elements)
      for (const Element& b : pair.second.elements) {
        if (a.buffer != b.buffer || (a.is_known && b.is_known) != known ||
            (a.access == Access::Read && b.access == Access::Read))
          continue;
        for (Danger& danger : dangers(pair)) {
          std::optional<Relation> wrong = conflict(pair, a, b, danger.also_combines);
          if (!wrong || wrong->empty())
            continue;
          if (danger.runs.empty())
            danger.runs = danger.loop ? runs_at_once(pair, *danger.loop) : runs_reversed(pair);
          // One after the other, as what is small already stays so.
          if (std::ranges::none_of(danger.runs, [&](const Relation& runs) {
                wrong = *wrong & runs;
                return wrong->empty();
              }))
            return explain(pair, example_of(*wrong), known ? "" : a.buffer, danger.what);
        }
      }
    return std::nullopt;
  }

  // They are the same for all pairs that have the same loops around them.
  std::vector<Danger>& dangers(const Pair& pair) {
    const auto [it, is_new] = dangers_.try_emplace(
        std::tuple(pair.first.shape, pair.second.shape, pair.came_first, pair.comes_first_now));
    std::vector<Danger>& dangers = it->second;
    if (!is_new)
      return dangers;
    dangers.push_back({.loop = {}, .also_combines = false, .what = "would run before it"});
    for (size_t i = 0; i < count_common_loops(pair.first.after, pair.second.after); ++i)
      if (const Loop& loop = *pair.first.after.around[i].loop;
          is_parallel(loop.mark) || loop.mark == Mark::Vector || loop.mark == Mark::Thread)
        dangers.push_back(
            {.loop = i,
             .also_combines = is_parallel(loop.mark),
             .what = fmt::format("would run at the same time, in another iteration of {}", loop.variable)});
    return dangers;
  }
  std::vector<Relation> runs_reversed(const Pair& pair) {
    const auto time = [&](const Run& run) { return relations_.time(run, depth_); };
    return {time(pair.first.before).earlier_than(time(pair.second.before)),
            time(pair.first.after).later_than(time(pair.second.after))};
  }
  std::vector<Relation> runs_at_once(const Pair& pair, size_t loop) {
    const Run &first = pair.first.after, &second = pair.second.after;
    return {relations_.time_around(first, loop).then(relations_.time_around(second, loop).reversed()),
            relations_.iteration(first, loop).earlier_than(relations_.iteration(second, loop))};
  }

  // Pairs of runs that use one element and depend on each other by that. Nothing where none can.
  std::optional<Relation> conflict(const Pair& pair, const Element& a, const Element& b,
                                   bool also_combines) const {
    const Relation meeting = a.of_run.then(b.of_run.reversed());
    if (also_combines || a.access != Access::Combine || b.access != Access::Combine ||
        pair.first.combine() != pair.second.combine())
      return meeting;
    // As what comes to one place may depend on what is in another, runs must meet in all of them.
    const Combine* combine = kernel_.find_combine(pair.first.combine());
    if (combine == nullptr || combine->there.size() == 1)
      return std::nullopt;
    Relation everywhere = meeting;
    for (size_t i = 0; i < combine->there.size(); ++i)
      everywhere = everywhere & pair.first.elements[i].of_run.then(pair.second.elements[i].of_run.reversed());
    return meeting - everywhere;
  }

  // It may be that they do not depend on each other, where it is not known what they use of a buffer.
  std::string explain(const Pair& pair, const Example& example, const std::string& unknown,
                      const std::string& instead) const {
    // Products of sizes were taken for any numbers, so that they need not fit the sizes.
    const bool multiplies = std::ranges::any_of(
        example.sizes, [&](const auto& each) { return relations_.is_product(each.first); });
    std::vector<std::string> sizes;
    for (const auto& [word, size] : example.sizes)
      if (relations_.is_product(word) == multiplies)
        sizes.push_back(fmt::format("{} = {}", relations_.symbol(word), size));
    return fmt::format(
        "{} {} come after {}, but {}{}{}{}", describe(pair.second.before, example.second),
        unknown.empty() ? "must" : "may have to", describe(pair.first.before, example.first), instead,
        sizes.empty() ? "" : ", where ", fmt::join(sizes, ", "),
        unknown.empty() ? "" : fmt::format(": which elements of {} they use is not known", unknown));
  }
  // `y[i] = x[i]` at i = 3
  std::string describe(const Run& run, const std::vector<int64_t>& values) const {
    std::vector<std::string> at;
    for (size_t i = 0; i < values.size(); ++i)
      at.push_back(fmt::format("{} = {}", run.around[i].loop->variable, values[i]));
    return fmt::format("`{}`{}{}", print(*run.statement, kernel_), at.empty() ? "" : " at ",
                       fmt::join(at, ", "));
  }

  const Kernel& kernel_;  // before
  Context context_;
  RunRelations relations_{kernel_, context_};
  std::vector<Moved> statements_;
  size_t depth_ = 0;  // of loops within each other
  Numbers numbers_;
  std::map<std::tuple<size_t, size_t, bool, bool>, std::vector<Danger>> dangers_;
};

// Of a statement that computes; null for others.
Origin* origin_in(Statement& statement) {
  if (auto* assign = std::get_if<Assign>(&statement))
    return &assign->origin;
  if (auto* call = std::get_if<Call>(&statement))
    return &call->origin;
  auto* copy = std::get_if<Copy>(&statement);
  return copy == nullptr ? nullptr : &copy->origin;
}

// Numbers the statements, or those without a number alone.
void stamp_body(std::vector<Statement>& body, bool only_new, std::vector<Dim>& variables, int64_t& next) {
  for (Statement& statement : body) {
    if (Origin* origin = origin_in(statement); origin != nullptr && (!only_new || origin->statement < 0))
      *origin = {next++, variables};
    const auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr)
      variables.push_back(Dim::symbol(loop->variable));
    if (std::vector<Statement>* inner = body_of(statement))
      stamp_body(*inner, only_new, variables, next);
    if (loop != nullptr)
      variables.pop_back();
  }
}

// In the order of their numbers, once they are stamped.
std::vector<Origin> origins_of(Kernel kernel) {
  std::vector<Origin> origins;
  for_each_statement(kernel.body, [&](Statement& statement) {
    if (const Origin* origin = origin_in(statement))
      origins.push_back(*origin);
  });
  return origins;
}

}  // namespace

Kernel stamp(Kernel kernel) {
  std::vector<Dim> variables;
  int64_t next = 0;
  stamp_body(kernel.body, false, variables, next);
  return kernel;
}

Kernel stamp_new(Kernel kernel, int64_t first) {
  std::vector<Dim> variables;
  stamp_body(kernel.body, true, variables, first);
  return kernel;
}

Kernel restore_origins(const Kernel& kernel, Kernel after) {
  const std::vector<Origin> earlier = origins_of(kernel), stamped = origins_of(stamp(kernel));
  for_each_statement(after.body, [&](Statement& statement) {
    Origin* origin = origin_in(statement);
    if (origin == nullptr)
      return;
    const auto number = static_cast<size_t>(origin->statement);
    std::map<std::string, Dim> now;  // the loops around it in `kernel`
    for (size_t i = 0; i < origin->at.size(); ++i)
      now.emplace(stamped[number].at[i].to_string(), origin->at[i]);
    Origin restored = earlier[number];
    for (Dim& dim : restored.at)
      dim = dim.substitute(now);
    *origin = std::move(restored);
  });
  return after;
}

std::optional<std::string> find_violation(const Kernel& before, const Kernel& after) {
  return Violations(before, after).find();
}

}  // namespace tenon::loops
