#include "schedule/cuda/reduce_columns.h"

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/reductions.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Guard;
using loops::Kernel;
using loops::Local;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::Stage;

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kGroups = kThreads / kColumnsOfBlock;  // of threads, each with rows of its own
constexpr int64_t kUnrolled = 8;                         // loads of a thread in flight
constexpr int64_t kLeastRows = 2 * kGroups;              // below, a thread for each column does as well

class ColumnReduction {
 public:
  ColumnReduction(const std::vector<Stage>& stages, const std::set<std::string>& outputs)
      : outputs_(outputs) {
    for (const Stage& stage : stages)
      definitions_.push_back(renamed(stage.definition, stage.definition.axes.size(), ""));
    columns_ = flatten(sum().axes, "column0");
    rows_ = flatten(sum().reduced, "row0");
  }

  std::vector<Statement> run() {
    std::vector<Statement> body;
    body.emplace_back(Local{{"parts0", dtype(), {kGroups, kColumnsOfBlock}, Space::Shared}});
    const Dim thread = Dim::symbol("thread_of_block0");
    body.push_back(over_threads("thread_of_block0", kThreads,
                                add_up(floor_div(thread, kColumnsOfBlock), mod(thread, kColumnsOfBlock))));
    body.push_back(over_threads("lane0", kColumnsOfBlock, combine_parts(Dim::symbol("lane0"))));
    return as_list(
        over_blocks({{"b_column0", ceil_div(columns_.size, kColumnsOfBlock)}}, kThreads, std::move(body)));
  }

 private:
  const Definition& sum() const { return definitions_.front(); }
  DType dtype() const { return sum().results.front().dtype; }

  static Dim column_at(const Dim& lane) { return Dim::symbol("b_column0") * kColumnsOfBlock + lane; }
  Statement where_there_is(const Dim& column, std::vector<Statement> body) const {
    return Guard{.conditions = {columns_.size - 1 - column}, .body = std::move(body)};
  }
  static Place place(const std::string& local) { return {local, {}}; }
  static Scalar load(const std::string& local, DType dtype) { return Scalar::load(local, dtype, {}); }
  Statement start(const std::string& local) const {
    return Assign{.places = {place(local)}, .combine = "", .values = sum().initial};
  }

  // What one thread reduces: every so many rows of one column.
  std::vector<Statement> add_up(const Dim& group, const Dim& lane) const {
    const Dim row = (Dim::symbol("trip0") * kUnrolled + Dim::symbol("unrolled0")) * kGroups + group;
    const Assign term = assign(sum(), {place("partial0")});
    std::vector<Statement> step = substitute(as_list(term), rows_.variables);
    step = substitute(substitute(step, columns_.variables), {{"row0", row}, {"column0", column_at(lane)}});
    const std::optional<int64_t> rows = rows_.size.constant();
    if (!rows || *rows % (kGroups * kUnrolled) != 0)
      step = as_list(Guard{.conditions = {rows_.size - 1 - row}, .body = std::move(step)});
    step = as_list(make_loop("unrolled0", kUnrolled, Mark::Unrolled, std::move(step)));
    std::vector<Statement> body;
    body.emplace_back(Local{{"partial0", dtype(), {}, Space::Private}});
    body.push_back(start("partial0"));
    body.emplace_back(
        make_loop("trip0", ceil_div(rows_.size, kGroups * kUnrolled), Mark::Serial, std::move(step)));
    body.emplace_back(Assign{.places = {{"parts0", {Scalar::index(group), Scalar::index(lane)}}},
                             .combine = "",
                             .values = {load("partial0", dtype())}});
    return as_list(where_there_is(column_at(lane), std::move(body)));
  }

  // The groups of one column together, and what is computed of that.
  std::vector<Statement> combine_parts(const Dim& lane) const {
    std::vector<Statement> body;
    body.emplace_back(Local{{"total0", dtype(), {}, Space::Private}});
    body.push_back(start("total0"));
    const std::vector<Scalar> part{Scalar::index(Dim::symbol("group0")), Scalar::index(lane)};
    body.emplace_back(make_loop("group0", kGroups, Mark::Unrolled,
                                as_list(Assign{.places = {place("total0")},
                                               .combine = sum().combine,
                                               .values = {Scalar::load("parts0", dtype(), part)}})));
    const auto placed = [&](const Scalar& scalar) {
      return scalar.substitute(columns_.variables).substitute({{"column0", column_at(lane)}});
    };
    for (Assign& store : build_epilogue(definitions_, outputs_, load("total0", dtype()), placed))
      body.emplace_back(std::move(store));
    return as_list(where_there_is(column_at(lane), std::move(body)));
  }

  const std::set<std::string>& outputs_;
  std::vector<Definition> definitions_;
  FlatAxes columns_, rows_;
};

}  // namespace

bool reduce_columns(Kernel& kernel, const std::vector<Stage>& stages, const std::set<std::string>& outputs) {
  const Definition& sum = stages.front().definition;
  if (!sum.reduces() || sum.axes.empty() || !is_divisible(sum) || reduces_consecutive(sum))
    return false;
  Dim rows = 1;
  for (const Axis& axis : sum.reduced)
    rows = rows * axis.size;
  if (rows.constant().value_or(kLeastRows) < kLeastRows)
    return false;
  kernel.body = ColumnReduction(stages, outputs).run();
  return true;
}

}  // namespace tenon::schedule::cuda
