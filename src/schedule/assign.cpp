#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Statement;

Definition renamed(const Definition& definition, size_t rows, const std::string& prefix) {
  Definition result = definition;
  std::map<std::string, Scalar> names;
  const auto rename = [&](std::vector<Axis>& axes, bool kept) {
    for (size_t i = 0; i < axes.size(); ++i) {
      std::string name =
          kept && i < rows ? fmt::format("r{}", i) : fmt::format("{}{}{}", prefix, kept ? 'i' : 'k', i);
      names.emplace(axes[i].variable, Scalar::index(Dim::symbol(name)));
      axes[i].variable = std::move(name);
    }
  };
  rename(result.axes, true);
  rename(result.reduced, false);
  for (std::vector<Scalar>* scalars : {&result.at, &result.values})
    for (Scalar& scalar : *scalars)
      scalar = *loops::substitute(scalar, names);
  return result;
}

std::vector<Place> places_of(const Definition& definition) {
  std::vector<Place> all;
  for (const Buffer& buffer : definition.results)
    all.push_back({buffer.name, definition.at});
  return all;
}

Assign assign(const Definition& definition, std::vector<Place> places) {
  return {.places = std::move(places), .combine = definition.combine, .values = definition.values};
}

Assign start(const Definition& definition) {
  return {.places = places_of(definition), .combine = "", .values = definition.initial};
}

std::vector<Statement> sum_up(const Definition& sum, Mark last, const std::optional<Parts>& parts,
                              const Buffer& part) {
  if (!parts)
    return reduce_over(sum.reduced, last, parts, {}, {assign(sum, places_of(sum))}, {});
  const std::vector<Place> place{{part.name, sum.at}};
  return reduce_over(sum.reduced, last, parts,
                     {Assign{.places = place, .combine = "", .values = {Scalar::zero(part.dtype)}}},
                     {assign(sum, place)},
                     {Assign{.places = places_of(sum),
                             .combine = sum.combine,
                             .values = {Scalar::load(part.name, part.dtype, sum.at)}}});
}

Buffer part_of(const Definition& sum) {
  Buffer part = sum.results.front();
  part.name += "_part";
  return part;
}

std::vector<Assign> build_epilogue(const std::vector<Definition>& definitions,
                                   const std::set<std::string>& outputs, const Scalar& first,
                                   const std::function<Scalar(const Scalar&)>& placed) {
  std::map<std::string, Scalar> formulas;
  std::vector<Assign> stores;
  for (const Definition& definition : definitions) {
    const std::string& result = definition.results.front().name;
    const Scalar formula =
        formulas.empty() ? first
                         : loops::replace_loads(placed(definition.values.front()), [&](const Scalar& load) {
                             const auto it = formulas.find(load.name());
                             return it == formulas.end() ? load : it->second;
                           });
    formulas.emplace(result, formula);
    if (!outputs.contains(result))
      continue;
    std::vector<Scalar> at;
    for (const Scalar& index : definition.at)
      at.push_back(placed(index));
    stores.push_back({.places = {{result, std::move(at)}}, .combine = "", .values = {formula}});
  }
  // What is made of another result reads what that one is made of as well: stored first, it leaves that one
  // free to lie in the memory of what it reads.
  std::ranges::reverse(stores);
  return stores;
}

Loop loop_over(const Axis& axis, Mark mark, std::vector<Statement> body) {
  return {.variable = axis.variable,
          .begin = 0,
          .end = axis.size,
          .step = 1,
          .mark = mark,
          .body = std::move(body)};
}

Loop make_loop(std::string variable, Dim end, Mark mark, std::vector<Statement> body) {
  return loop_over({std::move(variable), std::move(end)}, mark, std::move(body));
}

std::vector<Statement> around(const std::vector<Axis>& axes, Mark mark, std::vector<Statement> body) {
  for (size_t i = axes.size(); i-- > 0;)
    body = as_list(loop_over(axes[i], mark, std::move(body)));
  return body;
}

std::vector<Statement> as_list(Statement statement) {
  std::vector<Statement> list;
  list.push_back(std::move(statement));
  return list;
}

void append(std::vector<Statement>& to, std::vector<Statement> statements) {
  for (Statement& statement : statements)
    to.push_back(std::move(statement));
}

std::vector<Statement> nested(const std::vector<Axis>& axes, std::vector<Statement> body) {
  for (size_t i = axes.size(); i-- > 0;) {
    Loop loop = loop_over(axes[i], i + 1 == axes.size() ? Mark::Vector : Mark::Serial, std::move(body));
    body.clear();
    body.emplace_back(std::move(loop));
  }
  return body;
}

}  // namespace tenon::schedule
