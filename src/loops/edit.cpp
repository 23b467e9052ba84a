#include "loops/edit.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/dim_expression.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

void collect(std::vector<Statement>& body, const std::string& variable, std::vector<Position>& found) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (const auto* loop = std::get_if<Loop>(&body[i]); loop != nullptr && loop->variable == variable)
      found.push_back({&body, i});
    if (std::vector<Statement>* inner = body_of(body[i]))
      collect(*inner, variable, found);
  }
}

// Gives new names to the local buffers and loops of statements. A name holds to the end of the statements
// around its declaration, so that later ones may have the same.
class Renaming {
 public:
  // All are renamed, or those that have a name which is in sight already.
  Renaming(std::set<std::string>& names, bool all) : names_(names), all_(all) {}

  void rename(std::vector<Statement>& body, std::set<std::string> in_sight) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (auto* local = std::get_if<Local>(&body[i])) {
        if (all_ || in_sight.contains(local->buffer.name))
          rename_buffer(body, i);
        in_sight.insert(std::get<Local>(body[i]).buffer.name);
      } else if (auto* loop = std::get_if<Loop>(&body[i])) {
        if (all_ || in_sight.contains(loop->variable))
          rename_variable(*loop);
        std::set<std::string> within = in_sight;
        within.insert(loop->variable);
        rename(loop->body, std::move(within));
      } else if (std::vector<Statement>* inner = body_of(body[i])) {
        rename(*inner, in_sight);
      }
    }
  }

 private:
  void rename_buffer(std::vector<Statement>& body, size_t declaration) {
    std::string& name = std::get<Local>(body[declaration]).buffer.name;
    const std::string from = std::exchange(name, fresh_among(names_, name)), to = name;
    const auto behind = body.begin() + static_cast<std::ptrdiff_t>(declaration) + 1;
    std::vector<Statement> rest(std::make_move_iterator(behind), std::make_move_iterator(body.end()));
    change_places(rest, [&](Place place) {
      place.buffer = place.buffer == from ? to : place.buffer;
      return place;
    });
    std::ranges::move(rest, behind);
  }
  void rename_variable(Loop& loop) {
    const std::string from = std::exchange(loop.variable, fresh_among(names_, loop.variable));
    for (Statement& statement : loop.body)
      statement = substitute(statement, {{from, Dim::symbol(loop.variable)}});
  }

  std::set<std::string>& names_;
  bool all_;
};

// The last value of a loop's variable, where it has one.
Dim last_of(const Loop& loop) {
  return loop.begin + Dim(loop.step) * floor_div(loop.end - 1 - loop.begin, loop.step);
}

// 1 or -1 where a dim only grows or only falls as the variable grows, 0 where it stays; nothing where it does
// both, or that cannot be said.
std::optional<int> direction_of(const Dim& dim, const std::string& variable);

std::optional<int> direction_of(const DimAtom& atom, const std::string& variable) {
  if (atom.function == DimFunction::Symbol)
    return atom.name == variable ? 1 : 0;
  int result = 0;
  for (const Dim& operand : atom.operands) {
    const std::optional<int> direction = direction_of(operand, variable);
    if (!direction || *direction * result < 0)
      return std::nullopt;
    result = *direction == 0 ? result : *direction;
  }
  const bool keeps_it =
      atom.function == DimFunction::Min || atom.function == DimFunction::Max ||
      (atom.function == DimFunction::FloorDiv && atom.operands[1].constant().value_or(0) > 0);
  return keeps_it || result == 0 ? std::optional(result) : std::nullopt;
}

std::optional<int> direction_of(const Dim& dim, const std::string& variable) {
  int result = 0;
  for (const DimTerm& term : terms_of(dim))
    for (const DimFactor& factor : term.factors) {
      const std::optional<int> direction = direction_of(*factor, variable);
      if (direction == 0)
        continue;
      const int signed_direction = direction.value_or(0) * (term.coefficient > 0 ? 1 : -1);
      if (signed_direction == 0 || signed_direction * result < 0 || term.factors.size() > 1)
        return std::nullopt;
      result = signed_direction;
    }
  return result;
}

// The dim where a loop is at its one end: where it grows with the variable, at `high`, else at `low`.
Dim at_end(const Dim& dim, const std::string& variable, const Dim& low, const Dim& high) {
  const std::optional<int> direction = direction_of(dim, variable);
  if (!direction)
    throw declined("{} may both grow and fall with {}", dim, variable);
  return *direction == 0 ? dim : dim.substitute({{variable, *direction > 0 ? high : low}});
}

// Dims of which an atom is the minimum, or the maximum where the coefficient is below 0; few are none.
std::vector<Dim> operands_at_end(const DimAtom& atom, int64_t coefficient) {
  if (atom.function == (coefficient > 0 ? DimFunction::Min : DimFunction::Max))
    return atom.operands;
  if (atom.function != DimFunction::FloorDiv || atom.operands[1].constant().value_or(0) < 1)
    return {};
  // Rounding keeps which of two is less.
  const int64_t sign = coefficient > 0 ? 1 : -1;
  std::vector<Dim> quotients;
  for (const Dim& part : minima_of(Dim(sign) * atom.operands[0]))
    quotients.push_back(floor_div(Dim(sign) * part, atom.operands[1]));
  return quotients;
}

}  // namespace

std::set<std::string> names_in(const Kernel& kernel) {
  std::set<std::string> names;
  for (const std::string& symbol : kernel.size_symbols())
    names.insert(symbol);
  for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
    for (const Buffer& buffer : *buffers)
      names.insert(buffer.name);
  for (const Combine& combine : kernel.combines)
    names.insert(combine.name);
  Kernel copy = kernel;
  for_each_statement(copy.body, [&](Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement))
      names.insert(loop->variable);
    if (const auto* local = std::get_if<Local>(&statement))
      names.insert(local->buffer.name);
  });
  return names;
}

std::string fresh_among(std::set<std::string>& names, const std::string& like) {
  const std::string stem = like.substr(0, like.find_last_not_of("0123456789") + 1);
  std::string name = like;
  for (int i = 2; !names.insert(name).second; ++i)
    name = fmt::format("{}{}", stem, i);
  return name;
}

std::vector<Statement> nested(const std::vector<Loop>& loops, std::vector<Statement> body) {
  for (size_t i = loops.size(); i-- > 0;) {
    Loop loop = with_body(loops[i], std::move(body));
    body.clear();
    body.emplace_back(std::move(loop));
  }
  return body;
}

void Position::replace(std::vector<Statement> with) const {
  const auto at = body->erase(body->begin() + static_cast<std::ptrdiff_t>(index));
  body->insert(at, std::make_move_iterator(with.begin()), std::make_move_iterator(with.end()));
}

Position find_loop(Kernel& kernel, const std::string& variable) {
  std::vector<Position> found;
  collect(kernel.body, variable, found);
  if (found.empty())
    throw user_error("there is no loop {}", variable);
  if (found.size() > 1)
    throw user_error("{} loops are called {}: give them names of their own", found.size(), variable);
  return found.front();
}

const Buffer& find_buffer(Kernel& kernel, const std::string& name) {
  const Buffer* found = nullptr;
  for (std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
    for (const Buffer& buffer : *buffers)
      if (buffer.name == name)
        found = &buffer;
  for_each_statement(kernel.body, [&](Statement& statement) {
    if (const auto* local = std::get_if<Local>(&statement); local != nullptr && local->buffer.name == name)
      found = &local->buffer;
  });
  if (found == nullptr)
    throw user_error("there is no buffer {}", name);
  return *found;
}

std::vector<Position> find_nest(Kernel& kernel, const std::vector<std::string>& variables) {
  std::vector<Position> nest;
  for (const std::string& variable : variables) {
    if (std::ranges::count(variables, variable) > 1)
      throw user_error("loop {} is named twice", variable);
    nest.push_back(find_loop(kernel, variable));
  }
  // What has more of the others within it stands further out.
  const auto count_within = [&](const Position& position) {
    int64_t count = 0;
    for (const std::string& variable : variables) {
      std::vector<Position> found;
      collect(position.loop().body, variable, found);
      count += static_cast<int64_t>(found.size());
    }
    return count;
  };
  std::ranges::sort(nest, std::greater(), count_within);
  for (size_t i = 0; i < nest.size(); ++i)
    if (count_within(nest[i]) != static_cast<int64_t>(nest.size() - 1 - i))
      throw declined("the loops {} do not all stand within each other", fmt::join(variables, ", "));
  return nest;
}

std::string fresh_name(const Kernel& kernel, const std::string& like) {
  std::set<std::string> names = names_in(kernel);
  return fresh_among(names, like);
}

std::vector<Statement> renamed_copy(std::set<std::string>& names, const std::vector<Statement>& body) {
  std::vector<Statement> copy = body;
  Renaming(names, true).rename(copy, {});
  return copy;
}

void separate_names(Kernel& kernel) {
  std::set<std::string> names = names_in(kernel), in_sight;
  for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
    for (const Buffer& buffer : *buffers)
      in_sight.insert(buffer.name);
  Renaming(names, false).rename(kernel.body, std::move(in_sight));
}

void for_each_statement(std::vector<Statement>& body, const std::function<void(Statement&)>& f) {
  for (Statement& statement : body) {
    f(statement);
    if (std::vector<Statement>* inner = body_of(statement))
      for_each_statement(*inner, f);
  }
}

std::vector<Dim> minima_of(const Dim& dim) {
  if (dim.is_unknown())
    return {dim};
  for (const DimTerm& term : terms_of(dim)) {
    const std::vector<Dim> operands = term.factors.size() == 1
                                          ? operands_at_end(*term.factors.front(), term.coefficient)
                                          : std::vector<Dim>();
    if (operands.size() < 2)
      continue;
    const Dim rest = dim - DimExpression::sum({term});
    std::vector<Dim> minima;
    for (const Dim& operand : operands)
      std::ranges::move(minima_of(rest + Dim(term.coefficient) * operand), std::back_inserter(minima));
    return minima;
  }
  return {dim};
}

Dim least(const Dim& dim, const std::vector<Loop>& loops) {
  Dim result = dim;
  for (size_t i = loops.size(); i-- > 0;)
    result = at_end(result, loops[i].variable, last_of(loops[i]), loops[i].begin);
  return result;
}

Dim largest(const Dim& dim, const std::vector<Loop>& loops) {
  Dim result = dim;
  for (size_t i = loops.size(); i-- > 0;)
    result = at_end(result, loops[i].variable, loops[i].begin, last_of(loops[i]));
  return result;
}

}  // namespace tenon::loops
