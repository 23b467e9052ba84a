#include "schedule/nest.h"

#include <algorithm>

#include "base/error.h"
#include "fusion/cost.h"
#include "schedule/contract.h"
#include "schedule/sum_in_parts.h"

namespace tenon {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::mentions;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr int64_t kElementsPerTurn = 8192;  // of a loop that is cut into turns for threads
// In bytes: outputs of this size and larger are written past the caches, which would fetch every line only to
// have it overwritten, and lose it before anyone reads it.
constexpr int64_t kLeastStreamed = 32 << 20;

// The stage with these variables for its axes: first those of the rows, then its own.
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

Loop loop_over(const Axis& axis, Mark mark, std::vector<Statement> body) {
  return {.variable = axis.variable,
          .begin = 0,
          .end = axis.size,
          .step = 1,
          .mark = mark,
          .body = std::move(body)};
}

// Loops over axes around a body, the last innermost and in vectors.
std::vector<Statement> nested(const std::vector<Axis>& axes, std::vector<Statement> body) {
  for (size_t i = axes.size(); i-- > 0;) {
    Loop loop = loop_over(axes[i], i + 1 == axes.size() ? Mark::Vector : Mark::Serial, std::move(body));
    body.clear();
    body.emplace_back(std::move(loop));
  }
  return body;
}

class NestBuilder {
 public:
  NestBuilder(const std::string& name, const std::vector<Stage>& stages, const Group& group,
              const std::set<std::string>& outputs, const std::map<std::string, Buffer>& buffers,
              const Target& target)
      : stages_(stages), group_(group), outputs_(outputs), target_(target) {
    kernel_.name = name;
    std::set<std::string> made, read;
    for (const Stage& stage : stages) {
      for (const Buffer& buffer : stage.definition.results)
        made.insert(buffer.name);
      // In the order in which formulas name them, so that equal kernels come out equal.
      for (const Scalar& value : stage.definition.values)
        loops::for_each_load(value, [&](const Scalar& load) {
          if (!made.contains(load.name()) && read.insert(load.name()).second)
            kernel_.inputs.push_back(buffers.at(load.name()));
        });
      if (stage.definition.own_combine)
        add_combine(*stage.definition.own_combine);
    }
    for (const Stage& stage : stages)
      for (const Buffer& buffer : stage.definition.results)
        if (outputs.contains(buffer.name))
          kernel_.outputs.push_back(buffer);
  }

  Kernel run() {
    switch (group_.pattern) {
      case Pattern::Map:
        map();
        break;
      case Pattern::Rows:
        rows();
        break;
      case Pattern::Contract:
        contract();
        break;
    }
    if (group_.pattern != Pattern::Contract)
      stream_outputs();
    clear_borders();
    return std::move(kernel_);
  }

 private:
  void add_combine(const loops::Combine& combine) {
    if (kernel_.find_combine(combine.name) == nullptr)
      kernel_.combines.push_back(combine);
  }

  static Assign assign(const Definition& definition, std::vector<Place> places) {
    return {.places = std::move(places), .combine = definition.combine, .values = definition.values};
  }
  static std::vector<Place> places(const Definition& definition) {
    std::vector<Place> all;
    for (const Buffer& buffer : definition.results)
      all.push_back({buffer.name, definition.at});
    return all;
  }
  // What the results are before anything is combined.
  static Assign start(const Definition& definition) {
    return {.places = places(definition), .combine = "", .values = definition.initial};
  }

  void stream_outputs() {
    for (Buffer& output : kernel_.outputs) {
      const bool read_again = std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
        return buffers_read(stage).contains(output.name);
      });
      if (size_of(output).constant().value_or(0) >= kLeastStreamed && !read_again)
        output.space = loops::Space::Streamed;
    }
  }

  // Zeros where no element of a result stands: before the first and after the last along each dimension.
  void clear_borders() {
    std::vector<Statement> borders;
    for (const Stage& stage : stages_)
      for (const Buffer& result : stage.definition.results)
        if (outputs_.contains(result.name))
          for (size_t dim = 0; dim < result.sizes.size(); ++dim)
            if (const auto [begin, end] = filled_part(stage.definition, dim);
                begin != Dim(0) || end != result.sizes[dim]) {
              borders.push_back(clear(result, dim, 0, begin));
              borders.push_back(clear(result, dim, end, result.sizes[dim]));
            }
    kernel_.body.insert(kernel_.body.begin(), std::make_move_iterator(borders.begin()),
                        std::make_move_iterator(borders.end()));
  }

  // From where to where elements stand along a dimension.
  static std::pair<Dim, Dim> filled_part(const Definition& definition, size_t dim) {
    const Dim& at = definition.at[dim].index();
    for (const Axis& axis : definition.axes)
      if (mentions(definition.at[dim], axis.variable)) {
        const Dim begin = at.substitute({{axis.variable, 0}});
        return {begin, begin + axis.size};
      }
    return {at, at + 1};
  }

  static Statement clear(const Buffer& buffer, size_t dim, const Dim& begin, const Dim& end) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < buffer.sizes.size(); ++i)
      axes.push_back({fmt::format("b{}", i), buffer.sizes[i]});
    std::vector<Statement> loops = nested(axes, {Assign{.places = {{buffer.name, loops::variables_of(axes)}},
                                                        .combine = "",
                                                        .values = {Scalar::zero(buffer.dtype)}}});
    Statement* at = &loops.front();
    for (size_t i = 0; i < dim; ++i)
      at = &std::get<Loop>(*at).body.front();
    std::get<Loop>(*at).begin = begin;
    std::get<Loop>(*at).end = end;
    return std::move(loops.front());
  }

  // The loops of a reduction, which go on from what is in its result. `part` is where they add up parts.
  static std::vector<Statement> sum_up(const Definition& sum, Mark last, const std::optional<Parts>& parts,
                                       const Buffer& part) {
    if (!parts)
      return reduce_over(sum.reduced, last, parts, {}, {assign(sum, places(sum))}, {});
    const std::vector<Place> place{{part.name, sum.at}};
    return reduce_over(sum.reduced, last, parts,
                       {Assign{.places = place, .combine = "", .values = {Scalar::zero(part.dtype)}}},
                       {assign(sum, place)},
                       {Assign{.places = places(sum),
                               .combine = sum.combine,
                               .values = {Scalar::load(part.name, part.dtype, sum.at)}}});
  }
  static Buffer part_of(const Definition& sum) {
    Buffer part = sum.results.front();
    part.name += "_part";
    return part;
  }

  // --- every stage on its own axes ---

  void map() {
    std::vector<Definition> definitions;
    for (const Stage& stage : stages_)
      definitions.push_back(renamed(stage.definition, stage.definition.axes.size(), ""));
    std::vector<Axis> axes = definitions.front().axes;
    std::vector<Statement> body;
    for (const Definition& definition : definitions) {
      for (const Buffer& buffer : definition.results)
        if (!outputs_.contains(buffer.name))
          locals_.emplace(buffer.name, Buffer{.name = buffer.name, .dtype = buffer.dtype, .sizes = {}});
      body.emplace_back(assign(definition, places(definition)));
    }
    // Values that no one else needs stay in registers: each turn has its own.
    for (const auto& [name, buffer] : locals_)
      forward(body, name);
    merge_axes(axes, body);
    if (axes.empty()) {
      kernel_.body = std::move(body);
      return;
    }
    const Axis last = axes.back();
    axes.pop_back();
    if (axes.empty()) {
      kernel_.body = {cut(last, std::move(body))};
      return;
    }
    std::vector<Statement> inner;
    inner.emplace_back(loop_over(last, Mark::Vector, std::move(body)));
    kernel_.body = parallel(axes, std::move(inner));
  }

  // The formula of a value in place of its name, in all statements of one turn.
  static void forward(std::vector<Statement>& body, const std::string& name) {
    std::optional<Scalar> formula;
    std::vector<Statement> left;
    for (Statement& statement : body) {
      Assign& assign = std::get<Assign>(statement);
      if (assign.places.front().buffer == name) {
        formula = assign.values.front();
        continue;
      }
      for (Scalar& value : assign.values)
        value = loops::replace_loads(
            value, [&](const Scalar& load) { return load.name() == name ? *formula : load; });
      left.push_back(std::move(statement));
    }
    body = std::move(left);
  }

  // One loop, cut into turns for threads.
  static Statement cut(const Axis& axis, std::vector<Statement> body) {
    const std::string outer = "o" + axis.variable;
    const Dim begin = Dim::symbol(outer) * kElementsPerTurn;
    Loop inner{.variable = axis.variable,
               .begin = begin,
               .end = min(axis.size, begin + kElementsPerTurn),
               .step = 1,
               .mark = Mark::Vector,
               .body = std::move(body)};
    std::vector<Statement> turns;
    turns.emplace_back(std::move(inner));
    return loop_over({outer, ceil_div(axis.size, kElementsPerTurn)}, Mark::Parallel, std::move(turns));
  }

  static std::vector<Statement> parallel(const std::vector<Axis>& axes, std::vector<Statement> body) {
    for (size_t i = axes.size(); i-- > 0;) {
      Loop loop = loop_over(axes[i], Mark::Parallel, std::move(body));
      body.clear();
      body.emplace_back(std::move(loop));
    }
    return body;
  }

  // --- axes that lie one after the other in every buffer become one ---

  void merge_axes(std::vector<Axis>& axes, std::vector<Statement>& body) {
    for (size_t i = axes.size(); i-- > 1;)
      if (can_merge(axes[i - 1], axes[i], body)) {
        merge(axes[i - 1], axes[i], body);
        axes[i - 1].size = axes[i - 1].size * axes[i].size;
        axes.erase(axes.begin() + static_cast<int64_t>(i));
      }
  }

  Buffer* find_buffer(const std::string& name) {
    for (std::vector<Buffer>* all : {&kernel_.inputs, &kernel_.outputs})
      for (Buffer& buffer : *all)
        if (buffer.name == name)
          return &buffer;
    return nullptr;
  }

  static bool is_symbol(const Scalar& index, const std::string& variable) {
    return index.kind() == Scalar::Kind::Index && index.index() == Dim::symbol(variable);
  }
  // Where two axes stand beside each other in an index, and nowhere else.
  std::optional<size_t> pair_in(const std::vector<Scalar>& at, const Buffer& buffer, const Axis& outer,
                                const Axis& inner) {
    for (size_t i = 0; i + 1 < at.size(); ++i)
      if (is_symbol(at[i], outer.variable) && is_symbol(at[i + 1], inner.variable) &&
          buffer.sizes[i + 1] == inner.size)
        return i;
    return std::nullopt;
  }

  bool can_merge(const Axis& outer, const Axis& inner, const std::vector<Statement>& body) {
    bool possible = true;
    std::map<std::string, std::set<std::optional<size_t>>> pairs;  // one and the same in each buffer
    const auto look = [&](const std::string& name, const std::vector<Scalar>& at) {
      const Buffer* buffer = find_buffer(name);
      if (buffer == nullptr)
        return;
      const std::optional<size_t> pair = pair_in(at, *buffer, outer, inner);
      pairs[name].insert(pair);
      for (size_t i = 0; i < at.size(); ++i)
        if (!(pair && (i == *pair || i == *pair + 1)))
          possible = possible && !mentions(at[i], outer.variable) && !mentions(at[i], inner.variable);
    };
    for (const Statement& statement : body) {
      const Assign& assign = std::get<Assign>(statement);
      for (const Place& place : assign.places)
        look(place.buffer, place.at);
      for (const Scalar& value : assign.values) {
        loops::for_each_load(value, [&](const Scalar& load) { look(load.name(), load.operands()); });
        possible = possible && only_in_loads(value, outer.variable) && only_in_loads(value, inner.variable);
      }
    }
    for (const auto& [name, all] : pairs)
      possible = possible && all.size() == 1;
    return possible;
  }

  // Whether a formula has a loop variable in the indices of loads only.
  static bool only_in_loads(const Scalar& scalar, const std::string& variable) {
    if (scalar.kind() == Scalar::Kind::Load)
      return true;
    if (scalar.kind() == Scalar::Kind::Index)
      return !mentions(scalar, variable);
    return std::all_of(scalar.operands().begin(), scalar.operands().end(),
                       [&](const Scalar& each) { return only_in_loads(each, variable); });
  }

  void merge(const Axis& outer, const Axis& inner, std::vector<Statement>& body) {
    std::map<std::string, size_t> merged;
    const auto shorter = [&](const std::string& name, std::vector<Scalar> at) {
      const Buffer* buffer = find_buffer(name);
      if (buffer == nullptr)
        return at;
      const std::optional<size_t> pair = pair_in(at, *buffer, outer, inner);
      if (pair) {
        merged.emplace(name, *pair);
        at.erase(at.begin() + static_cast<int64_t>(*pair) + 1);
      }
      return at;
    };
    for (Statement& statement : body) {
      Assign& assign = std::get<Assign>(statement);
      for (Place& place : assign.places)
        place.at = shorter(place.buffer, place.at);
      for (Scalar& value : assign.values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          return Scalar::load(load.name(), load.dtype(), shorter(load.name(), load.operands()));
        });
    }
    for (const auto& [name, pair] : merged) {
      std::vector<Dim>& sizes = find_buffer(name)->sizes;
      sizes[pair] = sizes[pair] * sizes[pair + 1];
      sizes.erase(sizes.begin() + static_cast<int64_t>(pair) + 1);
    }
  }

  // --- row by row ---

  void rows() {
    const auto shared = static_cast<size_t>(group_.rows);
    std::vector<Statement> body;
    std::vector<Axis> row_axes;
    std::optional<std::vector<Axis>>
        open;  // the axes of the loop that the last statement is, where others may join it
    for (size_t i = 0; i < stages_.size(); ++i) {
      Definition definition = renamed(stages_[i].definition, shared, fmt::format("s{}", i));
      row_axes.assign(definition.axes.begin(), definition.axes.begin() + static_cast<int64_t>(shared));
      for (const Buffer& buffer : definition.results)
        if (!outputs_.contains(buffer.name))
          declare(buffer, definition, shared, body);
      std::vector<Axis> inner(definition.axes.begin() + static_cast<int64_t>(shared), definition.axes.end());
      const bool reduces = definition.reduces();
      if (reduces) {
        // Before the loop that it may share with others.
        Statement first = start(definition);
        if (open)
          body.insert(body.end() - 1, std::move(first));
        else
          body.push_back(std::move(first));
        CHECK(inner.empty(), "a reduction of kernel {} keeps axes within rows", kernel_.name);
        inner = definition.reduced;
        if (const std::optional<Parts> parts = parts_of(definition, lanes_of(inner))) {
          declare(part_of(definition), definition, shared, body);
          for (Statement& loop : sum_up(definition, Mark::Vector, parts, part_of(definition)))
            body.push_back(std::move(loop));
          open.reset();
          continue;
        }
      }
      Statement statement = assign(definition, places(definition));
      if (inner.empty()) {
        body.push_back(std::move(statement));
        open.reset();
        continue;
      }
      if (open && can_share(*open, inner, definition, body.back())) {
        add_to(body.back(), *open, inner, std::move(statement));
        continue;
      }
      std::vector<Statement> within;
      within.push_back(std::move(statement));
      for (Statement& loop : nested(inner, std::move(within)))
        body.push_back(std::move(loop));
      open = inner;
    }
    shrink(body);
    if (row_axes.empty())
      kernel_.body = std::move(body);
    else
      kernel_.body = parallel(row_axes, std::move(body));
  }

  // At least so many turns of the last axis run side by side.
  static int64_t lanes_of(const std::vector<Axis>& axes) {
    constexpr int64_t usual = 16;
    return axes.empty() || axes.back().size.constant().value_or(usual) < usual ? 1 : usual;
  }

  // A buffer of one row.
  void declare(const Buffer& buffer, const Definition& definition, size_t shared,
               std::vector<Statement>& body) {
    Buffer local{.name = buffer.name, .dtype = buffer.dtype, .sizes = {}};
    std::vector<size_t> dims;
    for (size_t i = 0; i < definition.at.size(); ++i)
      if (const auto axis = loops::axis_of(definition.axes, definition.at[i]); axis && *axis >= shared) {
        local.sizes.push_back(buffer.sizes[i]);
        dims.push_back(i);
      }
    kept_dims_.emplace(buffer.name, std::move(dims));
    body.insert(body.begin(), Statement(Local{local}));
  }

  // Whether a stage can run in the turns of the loop before it: as many of them, and it reads nothing of what
  // that loop makes but from its own turn.
  bool can_share(const std::vector<Axis>& open, const std::vector<Axis>& inner, const Definition& definition,
                 const Statement& loop) {
    if (open.size() != inner.size())
      return false;
    for (size_t i = 0; i < open.size(); ++i)
      if (open[i].size != inner[i].size)
        return false;
    std::map<std::string, std::vector<Scalar>> made;
    std::set<std::string> reduced;
    const Statement* at = &loop;
    const std::vector<Statement>* body = nullptr;
    while (const auto* each = std::get_if<Loop>(at)) {
      body = &each->body;
      at = &each->body.front();
    }
    for (const Statement& statement : *body)
      for (const Place& place : std::get<Assign>(statement).places) {
        if (!std::get<Assign>(statement).combine.empty())
          reduced.insert(place.buffer);
        made.emplace(place.buffer, place.at);
      }
    std::map<std::string, Scalar> names;
    for (size_t i = 0; i < open.size(); ++i)
      names.emplace(inner[i].variable, Scalar::index(Dim::symbol(open[i].variable)));
    bool possible = true;
    for (const Scalar& value : definition.values)
      loops::for_each_load(value, [&](const Scalar& load) {
        const auto it = made.find(load.name());
        if (it == made.end())
          return;
        if (reduced.contains(load.name()))
          possible = false;
        for (size_t i = 0; i < load.operands().size(); ++i)
          possible = possible && loops::substitute(load.operands()[i], names) == it->second[i];
      });
    return possible;
  }

  static void add_to(Statement& loop, const std::vector<Axis>& open, const std::vector<Axis>& inner,
                     Statement statement) {
    std::map<std::string, Dim> names;
    for (size_t i = 0; i < open.size(); ++i)
      names.emplace(inner[i].variable, Dim::symbol(open[i].variable));
    Statement* at = &loop;
    std::vector<Statement>* body = nullptr;
    while (auto* each = std::get_if<Loop>(at)) {
      body = &each->body;
      at = &each->body.front();
    }
    body->push_back(loops::substitute(statement, names));
  }

  // Indices of local buffers without those of the row.
  void shrink(std::vector<Statement>& body) {
    const auto own = [&](const std::string& name, const std::vector<Scalar>& at) {
      const auto it = kept_dims_.find(name);
      if (it == kept_dims_.end())
        return at;
      std::vector<Scalar> left;
      for (size_t dim : it->second)
        left.push_back(at[dim]);
      return left;
    };
    for (Statement& statement : body) {
      if (auto* each = std::get_if<Assign>(&statement)) {
        for (Place& place : each->places)
          place.at = own(place.buffer, place.at);
        for (Scalar& value : each->values)
          value = loops::replace_loads(value, [&](const Scalar& load) {
            return Scalar::load(load.name(), load.dtype(), own(load.name(), load.operands()));
          });
      }
      if (auto* inner = body_of(statement))
        shrink(*inner);
    }
  }

  // --- contractions ---

  void contract() {
    std::vector<Definition> definitions;
    for (const Stage& stage : stages_)
      definitions.push_back(renamed(stage.definition, stage.definition.axes.size(), ""));
    if (std::optional<std::vector<Statement>> body = contract_in_registers(definitions, outputs_, target_)) {
      kernel_.body = std::move(*body);
      return;
    }
    const Definition& sum = definitions.front();
    std::vector<Axis> axes = sum.axes;
    std::vector<Statement> body;
    for (const Definition& definition : definitions)
      for (const Buffer& buffer : definition.results)
        if (!outputs_.contains(buffer.name)) {
          // One element is alive at a time, in each lane.
          locals_.emplace(buffer.name, buffer);
        }
    const size_t last = axes.empty() ? 0 : axes.size() - 1;
    // The lanes run over the last axis that is kept.
    std::vector<Statement> within{start(sum)};
    const std::optional<Parts> parts = parts_of(sum);
    if (parts)
      locals_.emplace(part_of(sum).name, part_of(sum));
    for (Statement& statement : sum_up(sum, Mark::Serial, parts, part_of(sum)))
      within.push_back(std::move(statement));
    for (size_t i = 1; i < definitions.size(); ++i)
      within.emplace_back(assign(definitions[i], places(definitions[i])));
    if (axes.empty()) {
      for (const auto& [name, buffer] : locals_)
        within.insert(within.begin(),
                      Statement(Local{{.name = name, .dtype = buffer.dtype, .sizes = buffer.sizes}}));
      kernel_.body = std::move(within);
      return;
    }
    const Axis lane = axes[last];
    axes.pop_back();
    // Results that are the kernel's own: one tile of the last axis.
    const std::string outer = "o" + lane.variable;
    constexpr int64_t tile = 64;
    const Dim begin = Dim::symbol(outer) * tile;
    for (const auto& [name, buffer] : locals_) {
      body.emplace_back(Local{{.name = name, .dtype = buffer.dtype, .sizes = {Dim(tile)}}});
    }
    std::map<std::string, DType> own;
    for (const auto& [name, buffer] : locals_)
      own.emplace(name, buffer.dtype);
    const std::vector<Scalar> place{Scalar::index(Dim::symbol(lane.variable) - begin)};
    redirect(within, own, place);
    body.emplace_back(Loop{.variable = lane.variable,
                           .begin = begin,
                           .end = min(lane.size, begin + tile),
                           .step = 1,
                           .mark = Mark::Vector,
                           .body = std::move(within)});
    axes.push_back({outer, ceil_div(lane.size, tile)});
    kernel_.body = parallel(axes, std::move(body));
  }

  static void redirect(std::vector<Statement>& body, const std::map<std::string, DType>& own,
                       const std::vector<Scalar>& at) {
    for (Statement& statement : body) {
      if (auto* each = std::get_if<Assign>(&statement)) {
        for (Place& place : each->places)
          if (own.contains(place.buffer))
            place.at = at;
        for (Scalar& value : each->values)
          value = loops::replace_loads(value, [&](const Scalar& load) {
            return own.contains(load.name()) ? Scalar::load(load.name(), load.dtype(), at) : load;
          });
      }
      if (auto* inner = body_of(statement))
        redirect(*inner, own, at);
    }
  }

  const std::vector<Stage>& stages_;
  const Group& group_;
  const std::set<std::string>& outputs_;
  const Target& target_;
  Kernel kernel_;
  std::map<std::string, Buffer> locals_;
  std::map<std::string, std::vector<size_t>> kept_dims_;
};

}  // namespace

Kernel build_nest(const std::string& name, const std::vector<Stage>& stages, const Group& group,
                  const std::set<std::string>& outputs, const std::map<std::string, Buffer>& buffers,
                  const Target& target) {
  return NestBuilder(name, stages, group, outputs, buffers, target).run();
}

}  // namespace tenon
