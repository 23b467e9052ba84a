#include "loops/transform.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "loops/attempt.h"
#include "loops/edit.h"
#include "loops/simplify_guards.h"
#include "loops/swap_loops.h"

namespace tenon::loops {
namespace {

constexpr int64_t kMostCopies = 1024;  // of what is unrolled
constexpr int64_t kLargestStep = int64_t{1} << 31;

int64_t at_least_one(int64_t number, std::string_view what) {
  if (number < 1)
    throw user_error("{} {} is below 1", what, number);
  return number;
}

// The step of a loop that does several iterations at once.
int64_t larger_step(const Loop& loop, int64_t iterations) {
  if (iterations > kLargestStep / loop.step)
    throw declined("loop {} would have a step above {}", loop.variable, kLargestStep);
  return loop.step * iterations;
}

// How many iterations a loop has.
Dim count_iterations(const Loop& loop) { return ceil_div(loop.end - loop.begin, loop.step); }

bool divides_evenly(const Loop& loop, int64_t iterations) {
  const std::optional<int64_t> count = count_iterations(loop).constant();
  return count && *count % iterations == 0;
}

// --- nests ---

// The loop around [before], inner, [after], in place of which there are three loops, that around `inner`
// alone with the same name.
void isolate(Kernel& kernel, const Position& outer, size_t inner) {
  Loop loop = outer.loop();
  for (const Statement& statement : loop.body)
    if (const auto* local = std::get_if<Local>(&statement))
      throw declined("local {} would stand outside of loop {}, beside which it is used", local->buffer.name,
                     loop.variable);
  const auto at = loop.body.begin() + static_cast<std::ptrdiff_t>(inner);
  std::vector<Statement> before(loop.body.begin(), at), after(at + 1, loop.body.end()), result;
  Statement middle = *at;
  std::set<std::string> names = names_in(kernel);
  const auto add_beside = [&](std::vector<Statement> body) {
    if (body.empty())
      return;
    Loop beside = loop;
    beside.variable = fresh_among(names, loop.variable);
    for (Statement& statement : body)
      statement = substitute(statement, {{loop.variable, Dim::symbol(beside.variable)}});
    result.emplace_back(with_body(std::move(beside), std::move(body)));
  };
  add_beside(std::move(before));
  std::vector<Statement> only;
  only.push_back(std::move(middle));
  result.emplace_back(with_body(loop, std::move(only)));
  add_beside(std::move(after));
  outer.replace(std::move(result));
}

// The loops from the outermost to the innermost of those named, each alone within the one before. They lose
// their bodies but for that of the last, which is `body`.
struct Nest {
  Position outermost;
  std::vector<Loop> loops;
  std::vector<Statement> body;
};

Nest take_nest(Kernel& kernel, const std::vector<std::string>& variables) {
  const std::vector<Position> named = find_nest(kernel, variables);
  // From the inside, so that a loop which is taken apart leaves the others where they are.
  const std::string innermost = named.back().loop().variable, outermost = named.front().loop().variable;
  std::string inner = innermost;
  while (inner != outermost) {
    const Position at = find_loop(kernel, inner);
    // The loop around it.
    std::optional<std::string> around;
    for_each_statement(kernel.body, [&](Statement& statement) {
      if (auto* loop = std::get_if<Loop>(&statement); loop != nullptr && &loop->body == at.body)
        around = loop->variable;
    });
    if (!around)
      throw declined("a condition stands between the loops {}", fmt::join(variables, ", "));
    if (at.body->size() > 1)
      isolate(kernel, find_loop(kernel, *around), at.index);
    inner = *around;
  }
  Nest nest{find_loop(kernel, outermost), {}, {}};
  for (const Loop* loop = &nest.outermost.loop();; loop = &std::get<Loop>(loop->body.front())) {
    nest.loops.push_back(with_body(*loop, {}));
    if (loop->variable == innermost) {
      nest.body = loop->body;
      return nest;
    }
  }
}

// The loops around the body, in place of the nest.
void put_nest(const Nest& nest) { nest.outermost.replace(nested(nest.loops, nest.body)); }

void check_bounds(const std::vector<Loop>& loops) {
  for (size_t i = 0; i < loops.size(); ++i)
    for (size_t j = i + 1; j < loops.size(); ++j)
      if (loops[i].begin.mentions(loops[j].variable) || loops[i].end.mentions(loops[j].variable))
        throw declined("the bounds of {} depend on {}, which would stand within it", loops[i].variable,
                       loops[j].variable);
}

// The two halves of a loop that is split, where `around` are the loops between them.
std::pair<Loop, Loop> halves(const Kernel& kernel, const Loop& loop, int64_t size,
                             const std::vector<Loop>& around) {
  Loop outer = with_body(loop, {}), inner = loop;
  outer.variable = fresh_name(kernel, loop.variable + "_o");
  outer.step = larger_step(loop, size);
  outer.mark = Mark::Serial;
  outer.begin = least(loop.begin, around);
  outer.end = largest(loop.end - 1, around) + 1;
  const Dim o = Dim::symbol(outer.variable);
  const bool moves = outer.begin != loop.begin || outer.end != loop.end;
  if (moves && loop.step != 1)
    throw declined("loop {} has a step, and bounds that move", loop.variable);
  inner.begin = moves ? max(o, loop.begin) : o;
  inner.end = !moves && divides_evenly(loop, size) ? o + outer.step : min(o + outer.step, loop.end);
  return {std::move(outer), std::move(inner)};
}

// Whether a dim can be computed before a loop begins; else asking for it is the user's fault.
void check_in_sight(Kernel& kernel, const Dim& dim, const std::string& loop) {
  const std::vector<std::string> sizes = kernel.size_symbols();
  std::set<std::string> known(sizes.begin(), sizes.end());
  const Statement* within = &find_loop(kernel, loop).statement();
  for_each_statement(kernel.body, [&](Statement& statement) {
    const auto* around = std::get_if<Loop>(&statement);
    if (around == nullptr || &statement == within)
      return;
    for_each_statement(*body_of(statement), [&](Statement& inner) {
      if (&inner == within)
        known.insert(around->variable);
    });
  });
  if (dim.is_unknown())
    throw user_error("it is not said where loop {} is divided", loop);
  for (const std::string& symbol : dim.symbols())
    if (!known.contains(symbol))
      throw user_error("{} is neither a loop around {} nor a size", symbol, loop);
}

void set_mark(Kernel& kernel, const std::string& loop, Mark mark) {
  find_loop(kernel, loop).loop().mark = mark;
}

}  // namespace

Transformed split(const Kernel& kernel, const std::string& loop, int64_t size) {
  at_least_one(size, "a size of");
  return take_apart(kernel, [&](Kernel& result) {
    const Position at = find_loop(result, loop);
    auto [outer, inner] = halves(result, at.loop(), size, {});
    outer.body.emplace_back(std::move(inner));
    at.statement() = std::move(outer);
  });
}

Transformed tile(const Kernel& kernel, const std::vector<std::string>& loops,
                 const std::vector<int64_t>& sizes) {
  if (loops.size() != sizes.size() || loops.empty())
    throw user_error("{} loops cannot be tiled by {} sizes", loops.size(), sizes.size());
  return rearrange(kernel, [&](Kernel& result) {
    Nest nest = take_nest(result, loops);
    std::vector<Loop> outer, inner;
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      const auto named = std::ranges::find(loops, nest.loops[i].variable) - loops.begin();
      if (named == std::ssize(loops)) {
        inner.push_back(nest.loops[i]);
        continue;
      }
      const std::vector<Loop> around(nest.loops.begin(), nest.loops.begin() + static_cast<std::ptrdiff_t>(i));
      const int64_t size = at_least_one(sizes[static_cast<size_t>(named)], "a size of");
      auto [tiles, within] = halves(result, nest.loops[i], size, around);
      outer.push_back(std::move(tiles));
      inner.push_back(std::move(within));
    }
    nest.loops = std::move(outer);
    std::ranges::move(inner, std::back_inserter(nest.loops));
    check_bounds(nest.loops);
    put_nest(nest);
  });
}

Transformed permute(const Kernel& kernel, const std::vector<std::string>& loops) {
  return rearrange(kernel, [&](Kernel& result) {
    Nest nest = take_nest(result, loops);
    std::vector<std::string> order;
    auto next = loops.begin();
    for (const Loop& loop : nest.loops)
      order.push_back(std::ranges::find(loops, loop.variable) != loops.end() ? *next++ : loop.variable);
    for (size_t i = 0; i < order.size(); ++i)
      for (auto at = std::ranges::find(nest.loops, order[i], &Loop::variable);
           at != nest.loops.begin() + static_cast<std::ptrdiff_t>(i); --at)
        swap_loops(*std::prev(at), *at);
    put_nest(nest);
  });
}

Transformed unroll(const Kernel& kernel, const std::string& loop, std::optional<int64_t> times) {
  if (times)
    at_least_one(*times, "an unrolling by");
  return take_apart(kernel, [&](Kernel& result) {
    const Position at = find_loop(result, loop);
    Loop main = at.loop();
    const Dim iterations = count_iterations(main);
    if (!times && !iterations.is_constant())
      throw declined("loop {} has {} iterations, which is no constant", loop, iterations);
    const int64_t count = times ? *times : std::max<int64_t>(*iterations.constant(), 0);
    if (count > kMostCopies)
      throw declined("loop {} would be written out {} times, and {} is the most", loop, count, kMostCopies);
    std::set<std::string> names = names_in(result);
    const auto iteration = [&](int64_t k, const Dim& variable) {
      std::vector<Statement> body = k == 0 ? main.body : renamed_copy(names, main.body);
      for (Statement& statement : body)
        statement = substitute(statement, {{loop, variable + k * main.step}});
      return body;
    };
    std::vector<Statement> unrolled, statements;
    for (int64_t k = 0; k < count; ++k)
      std::ranges::move(iteration(k, times ? Dim::symbol(loop) : main.begin), std::back_inserter(unrolled));
    if (!times)
      return at.replace(std::move(unrolled));
    const bool has_rest = !divides_evenly(main, count);
    Loop rest = main;
    const Dim whole = main.begin + floor_div(iterations, count) * count * main.step;
    rest.begin = max(whole, main.begin);  // there may be no iterations at all
    main.end = has_rest ? whole : main.end;
    main.step = larger_step(main, count);
    statements.emplace_back(with_body(main, std::move(unrolled)));
    if (has_rest)
      std::ranges::move(renamed_copy(names, {rest}), std::back_inserter(statements));
    at.replace(std::move(statements));
  });
}

Transformed vectorise(const Kernel& kernel, const std::string& loop) {
  return rearrange(kernel, [&](Kernel& result) { set_mark(result, loop, Mark::Vector); });
}

Transformed parallelise(const Kernel& kernel, const std::string& loop) {
  return rearrange(kernel, [&](Kernel& result) { set_mark(result, loop, Mark::Parallel); });
}

Transformed fuse(const Kernel& kernel, const std::string& first, const std::string& second) {
  return rearrange(kernel, [&](Kernel& result) {
    const Position a = find_loop(result, first), b = find_loop(result, second);
    if (a.body != b.body || a.index + 1 != b.index)
      throw declined("loop {} does not stand right behind loop {}", second, first);
    Loop& one = a.loop();
    const Loop other = b.loop();
    if (one.begin != other.begin || one.end != other.end || one.step != other.step)
      throw declined("loop {} runs over {}..{}, loop {} over {}..{}", first, one.begin, one.end, second,
                     other.begin, other.end);
    for (const Statement& statement : other.body)
      one.body.push_back(substitute(statement, {{second, Dim::symbol(first)}}));
    b.replace({});
  });
}

Transformed fission(const Kernel& kernel, const std::string& loop) {
  return rearrange(kernel, [&](Kernel& result) {
    // The loop behind it has the rest.
    for (Position at = find_loop(result, loop); at.loop().body.size() > 1; ++at.index)
      isolate(result, at, 0);
  });
}

Transformed skew(const Kernel& kernel, const std::string& outer, const std::string& inner, int64_t factor) {
  at_least_one(factor, "a factor of");
  return rearrange(kernel, [&](Kernel& result) {
    if (find_nest(result, {outer, inner}).front().loop().variable != outer)
      throw declined("loop {} stands within loop {}", outer, inner);
    Loop& loop = find_loop(result, inner).loop();
    const Dim shift = Dim(factor) * Dim::symbol(outer);
    loop.begin = loop.begin + shift;
    loop.end = loop.end + shift;
    for (Statement& statement : loop.body)
      statement = substitute(statement, {{inner, Dim::symbol(inner) - shift}});
    for_each_statement(loop.body, [&](Statement& statement) {
      if (const auto* within = std::get_if<Loop>(&statement);
          within != nullptr && within->begin.lower_bound().value_or(-1) < 0)
        throw declined("loop {} would begin at {}, which may be negative", within->variable, within->begin);
    });
  });
}

Transformed divide(const Kernel& kernel, const std::string& loop, const Dim& at) {
  return take_apart(kernel, [&](Kernel& result) {
    const Position position = find_loop(result, loop);
    check_in_sight(result, at, loop);
    Loop first = position.loop(), second = first;
    if (first.step != 1)
      throw declined("loop {} has a step of {}", loop, first.step);
    first.end = min(at, first.end);
    second.begin = max(at, second.begin);
    std::set<std::string> names = names_in(result);
    std::vector<Statement> both = renamed_copy(names, {second});
    both.insert(both.begin(), std::move(first));
    position.replace(std::move(both));
    result = simplify_guards(result);
  });
}

Transformed peel(const Kernel& kernel, const std::string& loop, int64_t iterations) {
  Kernel copy = kernel;
  const Loop& whole = find_loop(copy, loop).loop();
  return divide(kernel, loop, iterations >= 0 ? whole.begin + iterations : whole.end + iterations);
}

}  // namespace tenon::loops
