#include "loops/edit.h"

#include <set>

#include "base/error.h"

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

void rename_buffer(std::vector<Statement>& body, const std::string& from, const std::string& to) {
  const auto in_scalar = [&](const Scalar& scalar) {
    return replace_loads(scalar, [&](const Scalar& load) {
      return load.name() == from ? Scalar::load(to, load.dtype(), load.operands()) : load;
    });
  };
  const auto in_places = [&](std::vector<Place>& places) {
    for (Place& place : places) {
      place.buffer = place.buffer == from ? to : place.buffer;
      for (Scalar& index : place.at)
        index = in_scalar(index);
    }
  };
  for_each_statement(body, [&](Statement& statement) {
    if (auto* assign = std::get_if<Assign>(&statement)) {
      in_places(assign->places);
      for (Scalar& value : assign->values)
        value = in_scalar(value);
    } else if (auto* call = std::get_if<Call>(&statement)) {
      in_places(call->writes);
      in_places(call->reads);
    } else if (auto* local = std::get_if<Local>(&statement); local != nullptr && local->buffer.name == from) {
      local->buffer.name = to;
    }
  });
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
  std::vector<std::pair<std::string, std::string>> buffers;
  std::map<std::string, Dim> variables;
  for_each_statement(copy, [&](Statement& statement) {
    if (const auto* local = std::get_if<Local>(&statement))
      buffers.emplace_back(local->buffer.name, fresh_among(names, local->buffer.name));
    if (auto* loop = std::get_if<Loop>(&statement)) {
      const std::string name = fresh_among(names, loop->variable);
      variables.emplace(loop->variable, Dim::symbol(name));
      loop->variable = name;
    }
  });
  for (const auto& [from, to] : buffers)
    rename_buffer(copy, from, to);
  for (Statement& statement : copy)
    statement = substitute(statement, variables);
  return copy;
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
    result = at_end(result, loops[i].variable, loops[i].end - 1, loops[i].begin);
  return result;
}

Dim largest(const Dim& dim, const std::vector<Loop>& loops) {
  Dim result = dim;
  for (size_t i = loops.size(); i-- > 0;)
    result = at_end(result, loops[i].variable, loops[i].begin, loops[i].end - 1);
  return result;
}

}  // namespace tenon::loops
