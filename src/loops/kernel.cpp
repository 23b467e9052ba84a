#include "loops/kernel.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tenon::loops {
namespace {

std::vector<Dim> substitute(std::vector<Dim> dims, const std::map<std::string, Dim>& replacements) {
  for (Dim& dim : dims)
    dim = dim.substitute(replacements);
  return dims;
}

std::vector<Scalar> substitute(std::vector<Scalar> scalars, const std::map<std::string, Dim>& replacements) {
  for (Scalar& scalar : scalars)
    scalar = scalar.substitute(replacements);
  return scalars;
}

std::vector<Place> substitute(std::vector<Place> places, const std::map<std::string, Dim>& replacements) {
  for (Place& place : places)
    place.at = substitute(std::move(place.at), replacements);
  return places;
}

std::vector<Statement> substitute(const std::vector<Statement>& body,
                                  const std::map<std::string, Dim>& replacements) {
  std::vector<Statement> result;
  for (const Statement& statement : body)
    result.push_back(loops::substitute(statement, replacements));
  return result;
}

}  // namespace

std::vector<std::string> Kernel::size_symbols() const {
  std::set<std::string> symbols(more_sizes.begin(), more_sizes.end());
  for (const std::vector<Buffer>* buffers : {&inputs, &outputs})
    for (const Buffer& buffer : *buffers)
      for (const Dim& size : buffer.sizes)
        symbols.merge([&] {
          const std::vector<std::string> names = size.symbols();
          return std::set<std::string>(names.begin(), names.end());
        }());
  return {symbols.begin(), symbols.end()};
}

const Combine* Kernel::find_combine(std::string_view called) const {
  const auto it = std::ranges::find(combines, called, &Combine::name);
  return it == combines.end() ? nullptr : &*it;
}

std::optional<Function> built_in_combine(std::string_view name) {
  constexpr std::pair<std::string_view, Function> kBuiltIn[] = {
      {"+", Function::Add},       {"*", Function::Multiply}, {"min", Function::Minimum},
      {"max", Function::Maximum}, {"and", Function::And},    {"or", Function::Or},
  };
  for (const auto& [text, function] : kBuiltIn)
    if (text == name)
      return function;
  return std::nullopt;
}

const std::vector<Statement>* body_of(const Statement& statement) {
  if (const auto* loop = std::get_if<Loop>(&statement))
    return &loop->body;
  if (const auto* guard = std::get_if<Guard>(&statement))
    return &guard->body;
  return nullptr;
}

std::vector<Statement>* body_of(Statement& statement) {
  return const_cast<std::vector<Statement>*>(body_of(std::as_const(statement)));
}

Statement substitute(const Statement& statement, const std::map<std::string, Dim>& replacements) {
  struct Visitor {
    Statement operator()(Assign assign) const {
      assign.places = substitute(std::move(assign.places), with);
      assign.values = substitute(std::move(assign.values), with);
      assign.origin.at = substitute(std::move(assign.origin.at), with);
      return assign;
    }
    Statement operator()(Call call) const {
      call.writes = substitute(std::move(call.writes), with);
      call.reads = substitute(std::move(call.reads), with);
      call.origin.at = substitute(std::move(call.origin.at), with);
      return call;
    }
    Statement operator()(Copy copy) const {
      copy.to.at = substitute(std::move(copy.to.at), with);
      copy.from.at = substitute(std::move(copy.from.at), with);
      copy.sizes = substitute(std::move(copy.sizes), with);
      copy.origin.at = substitute(std::move(copy.origin.at), with);
      return copy;
    }
    Statement operator()(Prefetch prefetch) const {
      prefetch.place.at = substitute(std::move(prefetch.place.at), with);
      return prefetch;
    }
    Statement operator()(const Loop& loop) const {
      Loop result = loop;
      result.begin = loop.begin.substitute(with);
      result.end = loop.end.substitute(with);
      result.body = substitute(loop.body, with);
      return result;
    }
    Statement operator()(const Guard& guard) const {
      return Guard{substitute(guard.conditions, with), substitute(guard.body, with)};
    }
    Statement operator()(Local local) const {
      local.buffer.sizes = substitute(std::move(local.buffer.sizes), with);
      return local;
    }
    const std::map<std::string, Dim>& with;
  };
  return std::visit(Visitor{replacements}, statement);
}

}  // namespace tenon::loops
