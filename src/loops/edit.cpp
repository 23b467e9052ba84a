#include "loops/edit.h"

#include <algorithm>
#include <set>

#include "base/error.h"
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

// The dim where a loop is at its one end: where it grows with the variable, at `high`, else at `low`.
Dim at_end(const Dim& dim, const std::string& variable, const Dim& low, const Dim& high) {
  const Dim v = Dim::symbol(variable);
  const Dim growth = dim.substitute({{variable, v + 1}}) - dim;
  if (growth == Dim(0))
    return dim;
  if (!growth.is_constant())
    throw declined("{} does not grow evenly with {}", dim, variable);
  return dim.substitute({{variable, *growth.constant() > 0 ? high : low}});
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
