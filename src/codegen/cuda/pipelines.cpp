#include "codegen/cuda/pipelines.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/cuda/accesses.h"

namespace tenon::codegen::cuda {

using loops::Access;
using loops::Assign;
using loops::Copy;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::ParallelRegion;
using loops::Place;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

void find_names(const std::vector<Statement>& body, std::set<std::string>& names) {
  for (const Statement& statement : body) {
    if (const auto* local = std::get_if<Local>(&statement))
      names.insert(local->buffer.name);
    if (const auto* loop = std::get_if<Loop>(&statement))
      names.insert(loop->variable);
    for_each_use(statement, [&](const loops::Use& use) { names.insert(use.place.buffer); });
    if (const auto* inner = body_of(statement))
      find_names(*inner, names);
  }
}

// With the statements within.
template <class F>
void for_each_use_within(const Statement& statement, F&& f) {
  loops::for_each_use(statement, f);
  if (const auto* inner = body_of(statement))
    for_each_use(*inner, f);
}

bool uses(const Statement& statement, const std::set<std::string>& buffers) {
  bool found = false;
  for_each_use_within(statement,
                      [&](const loops::Use& use) { found = found || buffers.contains(use.place.buffer); });
  return found;
}

int count_writers(const std::vector<Statement>& body, const std::string& buffer) {
  int writers = 0;
  for_each_use(body, [&](const loops::Use& use) {
    writers += use.place.buffer == buffer && use.access != Access::Read ? 1 : 0;
  });
  return writers;
}

// What these statements copy, within loops; false where they do something else.
bool find_copies(const std::vector<Statement>& body, std::vector<const Assign*>& copies) {
  return std::ranges::all_of(body, [&](const Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement))
      return find_copies(loop->body, copies);
    const auto* assign = std::get_if<Assign>(&statement);
    if (assign == nullptr || copied_by(*assign) == nullptr)
      return false;
    copies.push_back(assign);
    return true;
  });
}

std::vector<const Assign*> copies_of(const Loop& loop) {
  std::vector<const Assign*> copies;
  return loop.mark == Mark::Thread && find_copies(loop.body, copies) ? copies : std::vector<const Assign*>{};
}

// One loop over the elements of the box.
Loop loop_of(const Copy& copy, DType dtype, const std::string& variable) {
  Dim count = 1;
  std::vector<Dim> beyond(copy.sizes.size());
  for (size_t i = copy.sizes.size(); i-- > 0;) {
    const Dim outer = floor_div(Dim::symbol(variable), count);
    beyond[i] = i == 0 ? outer : mod(outer, copy.sizes[i]);
    count = count * copy.sizes[i];
  }
  const auto element = [&](Place place) {
    const size_t whole = place.at.size() - beyond.size();
    for (size_t i = 0; i < beyond.size(); ++i)
      place.at[whole + i] = Scalar::index(place.at[whole + i].index() + beyond[i]);
    return place;
  };
  const Place from = element(copy.from);
  Loop loop{.variable = variable, .begin = 0, .end = count, .mark = Mark::Thread, .body = {}};
  loop.body.emplace_back(Assign{
      .places = {element(copy.to)}, .combine = "", .values = {Scalar::load(from.buffer, dtype, from.at)}});
  return loop;
}

// The block loops as one serial loop over all of their iterations.
Loop loop_over_blocks(const ParallelRegion& region, std::vector<Statement> body, const std::string& name) {
  const Loop& first = region.parallel.front();
  Loop loop{.variable = region.parallel.size() == 1 && first.begin == Dim(0) && first.step == 1
                            ? first.variable
                            : name,
            .begin = 0,
            .end = region.iterations,
            .stages = first.stages,
            .body = {}};
  std::map<std::string, Dim> variables;
  Dim inner = 1;
  for (size_t i = region.parallel.size(); i-- > 0;) {
    const Loop& each = region.parallel[i];
    const Dim outer = floor_div(Dim::symbol(loop.variable), inner);
    variables.emplace(each.variable,
                      each.begin + (i == 0 ? outer : mod(outer, loops::iterations_of(each))) * each.step);
    inner = inner * loops::iterations_of(each);
  }
  if (loop.variable == first.variable)
    loop.body = std::move(body);
  else
    for (const Statement& statement : body)
      loop.body.push_back(loops::substitute(statement, variables));
  return loop;
}

std::string fresh(std::set<std::string>& names, const std::string& like) {
  std::string name = like;
  for (int i = 1; !names.insert(name).second; ++i)
    name = fmt::format("{}_{}", like, i);
  return name;
}

}  // namespace

bool is_persistent(const ParallelRegion& region) {
  return !region.parallel.empty() && region.parallel.front().stages > 1;
}

PipelinedRegion::PipelinedRegion(ParallelRegion region) : region_(std::move(region)) {
  find_names(region_.body, names_);
  for (const Loop& loop : region_.parallel)
    names_.insert(loop.variable);
  std::vector<Statement> body = without_copies(region_.body, {});
  if (is_persistent(region_)) {
    Loop loop = loop_over_blocks(region_, std::move(body), fresh(names_, "iteration"));
    body.clear();
    body.emplace_back(std::move(loop));
  }
  region_.body = std::move(body);
  if (is_persistent(region_))
    persistent_ = &std::get<Loop>(region_.body.front());
  find_pipelines(region_.body);
}

const Pipeline* PipelinedRegion::find(const Loop& loop) const {
  const auto it = pipelines_.find(&loop);
  return it == pipelines_.end() ? nullptr : &it->second;
}

int64_t PipelinedRegion::slots_of(const std::string& buffer) const {
  for (const auto& [loop, pipeline] : pipelines_)
    if (pipeline.buffers.contains(buffer))
      return pipeline.slots;
  return 1;
}

std::vector<Statement> PipelinedRegion::without_copies(const std::vector<Statement>& body,
                                                       std::map<std::string, DType> dtypes) {
  std::vector<Statement> result;
  for (Statement statement : body) {
    if (const auto* local = std::get_if<Local>(&statement))
      dtypes.insert_or_assign(local->buffer.name, local->buffer.dtype);
    if (auto* inner = body_of(statement))
      *inner = without_copies(*inner, dtypes);
    if (const auto* copy = std::get_if<Copy>(&statement)) {
      const std::string variable = fresh(names_, "copied");
      copies_.insert(variable);
      result.emplace_back(loop_of(*copy, dtypes.at(copy->to.buffer), variable));
    } else {
      result.push_back(std::move(statement));
    }
  }
  return result;
}

void PipelinedRegion::find_pipelines(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement); loop != nullptr && loop->stages > 1)
      if (std::optional<Pipeline> pipeline = pipeline_of(*loop))
        pipelines_.emplace(loop, std::move(*pipeline));
    if (const auto* inner = body_of(statement))
      find_pipelines(*inner);
  }
}

std::optional<Pipeline> PipelinedRegion::pipeline_of(const Loop& loop) const {
  Pipeline pipeline{.buffers = {}, .copies = {}, .ahead = loop.stages - 1, .slots = loop.stages};
  for (const Statement& statement : loop.body)
    if (const auto* copy = std::get_if<Loop>(&statement); copy != nullptr && can_run_ahead(loop, *copy)) {
      pipeline.copies.push_back(&statement);
      for (const Assign* assign : copies_of(*copy))
        pipeline.buffers.insert(assign->places.front().buffer);
    }
  if (pipeline.copies.empty())
    return std::nullopt;
  for (const Statement& statement : loop.body)
    if (uses(statement, pipeline.buffers))
      pipeline.last_reader = &statement;
  if (pipeline.last_reader == &loop.body.back())
    pipeline.last_reader = nullptr;
  else
    --pipeline.slots;
  return pipeline;
}

// What it reads stays as it is, and nothing but copies writes the buffers, which each iteration has for
// itself.
bool PipelinedRegion::can_run_ahead(const Loop& around, const Loop& copy) const {
  const std::vector<const Assign*> own = copies_of(copy);
  const auto copies_to = [&](const std::string& to) {
    std::ptrdiff_t count = 0;
    for (const Statement& statement : around.body)
      if (const auto* loop = std::get_if<Loop>(&statement))
        count += std::ranges::count_if(
            copies_of(*loop), [&](const Assign* assign) { return assign->places.front().buffer == to; });
    return count;
  };
  return !own.empty() && std::ranges::all_of(own, [&](const Assign* assign) {
    const std::string& to = assign->places.front().buffer;
    bool is_there = true;  // also what says where it is
    loops::for_each_load(assign->values.front(), [&](const Scalar& load) {
      is_there = is_there && count_writers(region_.body, load.name()) == 0;
    });
    return is_there && count_writers(around.body, to) == copies_to(to) &&
           std::ranges::any_of(around.body, [&](const Statement& statement) {
             const auto* local = std::get_if<Local>(&statement);
             return local != nullptr && local->buffer.name == to && local->buffer.space == Space::Shared;
           });
  });
}

}  // namespace tenon::codegen::cuda
