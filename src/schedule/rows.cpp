#include "schedule/rows.h"

#include "base/error.h"
#include "loops/uses.h"
#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

class RowBuilder {
 public:
  RowBuilder(size_t shared, const std::set<std::string>& outputs) : shared_(shared), outputs_(outputs) {}

  void add(const Definition& definition) {
    for (const Buffer& buffer : definition.results)
      if (!outputs_.contains(buffer.name))
        declare(buffer, definition);
    std::vector<Axis> inner(definition.axes.begin() + static_cast<int64_t>(shared_), definition.axes.end());
    if (definition.reduces()) {
      // Before the loop that it may share with others.
      body_.insert(open_ ? body_.end() - 1 : body_.end(), start(definition));
      CHECK(inner.empty(), "a reduction keeps axes within rows");
      inner = definition.reduced;
      if (const std::optional<Parts> parts = parts_of(definition, lanes_of(inner))) {
        declare(part_of(definition), definition);
        for (Statement& loop : sum_up(definition, Mark::Vector, parts, part_of(definition)))
          body_.push_back(std::move(loop));
        open_.reset();
        return;
      }
      if (sums_in_lanes(definition)) {
        sum_in_lanes(definition);
        open_.reset();
        return;
      }
    }
    Statement statement = assign(definition, places_of(definition));
    if (inner.empty()) {
      body_.push_back(std::move(statement));
      open_.reset();
      return;
    }
    if (open_ && can_share(*open_, inner, definition, body_.back())) {
      add_to(body_.back(), *open_, inner, std::move(statement));
      return;
    }
    std::vector<Statement> within;
    within.push_back(std::move(statement));
    for (Statement& loop : nested(inner, std::move(within)))
      body_.push_back(std::move(loop));
    open_ = inner;
  }

  std::vector<Statement> run() {
    shrink(body_);
    return std::move(body_);
  }

 private:
  // At least so many iterations of the last axis are vectorised.
  static int64_t lanes_of(const std::vector<Axis>& axes) {
    constexpr int64_t usual = 16;
    return axes.empty() || axes.back().size.constant().value_or(usual) < usual ? 1 : usual;
  }

  // Whether a sum over several axes, the last of which fills vectors, keeps a partial sum per lane until the
  // end: a horizontal reduction takes longer than some iterations.
  static bool sums_in_lanes(const Definition& sum) {
    constexpr int64_t kLeast = 16, kMost = 64;  // lanes, so that their sums stay in registers
    if (sum.reduced.size() < 2 || sum.combine != "+" || sum.results.front().dtype != DType::F32)
      return false;
    const int64_t lanes = sum.reduced.back().size.constant().value_or(0);
    return lanes >= kLeast && lanes <= kMost && lanes % kLeast == 0;
  }

  void sum_in_lanes(const Definition& sum) {
    const Axis& lane = sum.reduced.back();
    const Buffer lanes{.name = sum.results.front().name + "_lanes",
                       .dtype = DType::F32,
                       .sizes = {lane.size},
                       .space = loops::Space::Private};
    const Place place{lanes.name, loops::variables_of({lane})};
    body_.emplace_back(Local{lanes});
    append(body_,
           nested({lane},
                  as_list(Assign{.places = {place}, .combine = "", .values = {Scalar::zero(DType::F32)}})));
    append(body_, nested(sum.reduced, as_list(assign(sum, {place}))));
    append(body_,
           nested({lane}, as_list(Assign{.places = places_of(sum),
                                         .combine = sum.combine,
                                         .values = {Scalar::load(lanes.name, DType::F32, place.at)}})));
  }

  // A buffer of one row.
  void declare(const Buffer& buffer, const Definition& definition) {
    Buffer local{.name = buffer.name, .dtype = buffer.dtype, .sizes = {}};
    std::vector<size_t> dims;
    for (size_t i = 0; i < definition.at.size(); ++i)
      if (const auto axis = loops::axis_of(definition.axes, definition.at[i]); axis && *axis >= shared_) {
        local.sizes.push_back(buffer.sizes[i]);
        dims.push_back(i);
      }
    kept_dims_.emplace(buffer.name, std::move(dims));
    body_.insert(body_.begin(), Statement(Local{local}));
  }

  // Whether a stage can be fused into the loop before it: same iteration space, and it reads that loop's
  // results only from its own iteration.
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

  const size_t shared_;
  const std::set<std::string>& outputs_;
  std::vector<Statement> body_;
  std::optional<std::vector<Axis>> open_;  // of the loop that the last statement is, where others may join it
  std::map<std::string, std::vector<size_t>> kept_dims_;
};

}  // namespace

std::vector<Statement> do_row(const std::vector<Definition>& definitions, size_t shared,
                              const std::set<std::string>& outputs) {
  RowBuilder row(shared, outputs);
  for (const Definition& definition : definitions)
    row.add(definition);
  return row.run();
}

std::vector<Statement> do_abreast(std::vector<Statement> row, const Axis& rows, int64_t most) {
  std::set<std::string> own;  // buffers, which each row now has for itself
  std::vector<Statement> body;
  for (Statement& statement : row) {
    if (auto* local = std::get_if<Local>(&statement)) {
      own.insert(local->buffer.name);
      local->buffer.sizes.insert(local->buffer.sizes.begin(), most);
      body.push_back(std::move(statement));
      continue;
    }
    std::vector<Statement> step;
    step.push_back(std::move(statement));
    body.emplace_back(loop_over(rows, Mark::Serial, std::move(step)));
  }
  loops::change_places(body, [&](Place place) {
    if (own.contains(place.buffer))
      place.at.insert(place.at.begin(), Scalar::index(Dim::symbol(rows.variable)));
    return place;
  });
  return body;
}

}  // namespace tenon::schedule
