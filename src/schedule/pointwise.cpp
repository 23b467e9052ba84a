#include "schedule/pointwise.h"

#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::mentions;
using loops::Place;
using loops::Scalar;
using loops::Statement;
using lowering::Stage;

namespace {

// Inlines the expression of a value into all statements of one iteration.
void forward(std::vector<Statement>& body, const std::string& name) {
  std::optional<Scalar> formula;
  std::vector<Statement> left;
  for (Statement& statement : body) {
    Assign& assign = std::get<Assign>(statement);
    if (assign.places.front().buffer == name) {
      formula = assign.values.front();
      continue;
    }
    for (Scalar& value : assign.values)
      value = loops::replace_loads(value,
                                   [&](const Scalar& load) { return load.name() == name ? *formula : load; });
    left.push_back(std::move(statement));
  }
  body = std::move(left);
}

class AxisCollapser {
 public:
  explicit AxisCollapser(Kernel& kernel) : kernel_(kernel) {}

  void run(std::vector<Axis>& axes, std::vector<Statement>& body) {
    for (size_t i = axes.size(); i-- > 1;)
      if (can_merge(axes[i - 1], axes[i], body)) {
        merge(axes[i - 1], axes[i], body);
        axes[i - 1].size = axes[i - 1].size * axes[i].size;
        axes.erase(axes.begin() + static_cast<int64_t>(i));
      }
  }

 private:
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
  // Whether two axes are adjacent in an index, and nowhere else.
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
        if (!(pair && (i == *pair || i == *pair + 1)) && !loops::runs_on(at[i], outer, inner))
          possible = possible && !mentions(at[i], outer.variable) && !mentions(at[i], inner.variable);
    };
    for (const Statement& statement : body) {
      const Assign& assign = std::get<Assign>(statement);
      for (const Place& place : assign.places)
        look(place.buffer, place.at);
      for (const Scalar& value : assign.values) {
        loops::for_each_load(value, [&](const Scalar& load) { look(load.name(), load.operands()); });
        possible = possible && loops::mentions_only_in_loads(value, outer.variable) &&
                   loops::mentions_only_in_loads(value, inner.variable);
      }
    }
    for (const auto& [name, all] : pairs)
      possible = possible && all.size() == 1;
    return possible;
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
      for (Scalar& index : at)
        if (loops::runs_on(index, outer, inner))
          index = index.substitute({{outer.variable, 0}, {inner.variable, Dim::symbol(outer.variable)}});
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

  Kernel& kernel_;
};

}  // namespace

PointwiseIteration pointwise_iteration(const std::vector<Stage>& stages,
                                       const std::set<std::string>& outputs) {
  PointwiseIteration iteration;
  std::set<std::string> inlined;
  for (const Stage& stage : stages) {
    const Definition definition = renamed(stage.definition, stage.definition.axes.size(), "");
    if (iteration.body.empty())
      iteration.axes = definition.axes;
    for (const Buffer& buffer : definition.results)
      if (!outputs.contains(buffer.name))
        inlined.insert(buffer.name);
    iteration.body.emplace_back(assign(definition, places_of(definition)));
  }
  for (const std::string& name : inlined)
    forward(iteration.body, name);
  return iteration;
}

void collapse_axes(PointwiseIteration& iteration, Kernel& kernel) {
  AxisCollapser(kernel).run(iteration.axes, iteration.body);
}

}  // namespace tenon::schedule
