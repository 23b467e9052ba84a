#include "schedule/cpu/fused_attention.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "fusion/cost.h"
#include "fusion/fused_attention.h"
#include "fusion/permute_axes.h"
#include "loops/uses.h"
#include "schedule/assign.h"
#include "schedule/cpu/gemm.h"
#include "schedule/cpu/gemm_tile.h"
#include "schedule/cpu/gemv.h"
#include "schedule/cpu/select_contraction.h"
#include "schedule/rows.h"

namespace tenon::schedule {

using fusion::cost_of;
using fusion::Factors;
using fusion::factors_of;
using fusion::find_block_axis;
using fusion::FormulaCost;
using fusion::permuted_like;
using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Guard;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::mentions;
using loops::Place;
using loops::Scalar;
using loops::Statement;
using lowering::ContractionPlan;

namespace {

// Local buffers.
constexpr const char *kShared = "shared", *kOwn = "own", *kScores = "scores", *kWeights = "weights",
                     *kValues = "values", *kResults = "results";
// Loop variables, which end in a number: no size of the user's does when it gets here.
constexpr const char *kShareVariable = "share0", *kQueriesVariable = "queries0", *kQueryVariable = "query0",
                     *kGroupVariable = "group0", *kMemberVariable = "member0", *kPanelVariable = "panel0",
                     *kPlaceVariable = "place0";

constexpr int64_t kLeastQueries = 4;         // of a block, that pay for packing the keys
constexpr int64_t kMostQueries = 64;         // of a block
constexpr int64_t kUsualKeys = 1024;         // where their number is dynamic
constexpr int64_t kIterationsPerThread = 2;  // at least, so that threads end at about the same time

Scalar index(const char* variable) { return Scalar::index(Dim::symbol(variable)); }

// Rounded up: the last part may be smaller.
int64_t parts_in(int64_t all, int64_t size) { return (all + size - 1) / size; }

class FusedAttentionBuilder {
 public:
  FusedAttentionBuilder(const std::vector<Definition>& definitions, size_t rows,
                        const std::set<std::string>& outputs, const Context& context)
      : rows_(rows),
        outputs_(outputs),
        context_(context),
        target_(context.target),
        first_(renamed(definitions.front(), rows, "s0")) {
    size_t at = 1;
    for (; !(definitions[at].reduces() && definitions[at].axes.size() > rows); ++at)
      between_.push_back(renamed(definitions[at], rows, fmt::format("s{}", at)));
    std::map<std::string, Definition> results;
    for (; at < definitions.size(); ++at) {
      const Definition last = results.empty() ? definitions[at] : *permuted_like(results, definitions[at]);
      results.emplace(last.results.front().name, last);
      last_.push_back(renamed(last, rows, "e"));
    }
    forward_cheap_stages();
    block_ = find_block_axis(first_, second());
    choose_sizes();
    if (block_)
      choose_parallel_axes();
  }

  // A dynamic number of queries may be small: these are then done one by one.
  std::vector<Statement> run() {
    std::vector<Statement> body;
    const std::optional<int64_t> queries = block_ ? query_count().constant() : 0;
    if (!queries || *queries >= kLeastQueries)
      append(body, block_by_block());
    if (!queries || *queries < kLeastQueries)
      append(body, row_by_row());
    return body;
  }

 private:
  const Definition& second() const { return last_.front(); }
  const Axis& key() const { return first_.axes.back(); }

  // --- sizes ---

  const Dim& query_count() const { return first_.axes[*block_].size; }

  // As many queries as stay in cache with what they are multiplied by, and no more than there are.
  void choose_sizes() {
    const DType dtype = first_.results.front().dtype;
    const std::optional<int64_t> keys = key().size.constant();
    const int64_t length = std::max<int64_t>(keys.value_or(kUsualKeys), 1);
    lanes_ = lanes_of_block(dtype, target_);
    if (keys)
      lanes_ =
          std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length))), 4, lanes_);
    together_ = usual_rows_of_block(target_);
    queries_per_block_ = std::clamp<int64_t>(target_.caches.level2 / 4 / (length * info(dtype).bytes),
                                             2 * together_, kMostQueries);
    if (const std::optional<int64_t> all = block_ ? query_count().constant() : std::nullopt;
        all && *all > 0) {
      queries_per_block_ = parts_in(*all, parts_in(*all, queries_per_block_));
      together_ = rows_of_block(queries_per_block_, kRegistersPerVector, length, target_);
    }
    abreast_ =
        std::clamp<int64_t>(target_.caches.level1_data / 2 / (length * info(dtype).bytes), 1, together_);
    queries_per_block_ = parts_in(queries_per_block_, together_) * together_;
  }

  Dim panels() const { return ceil_div(key().size, lanes_); }
  bool panels_are_full() const { return key().size.is_constant() && *key().size.constant() % lanes_ == 0; }
  Dim key_index() const { return Dim::symbol(kPanelVariable) * lanes_ + Dim::symbol(kPlaceVariable); }

  Dim block_count() const { return ceil_div(query_count(), queries_per_block_); }
  bool blocks_are_full() const {
    return query_count().is_constant() && *query_count().constant() % queries_per_block_ == 0;
  }
  Dim query_index(const Dim& in_block) const {
    return Dim::symbol(kQueriesVariable) * queries_per_block_ + in_block;
  }
  Dim clamped_query_index(const Dim& in_block) const {
    const Dim place = query_index(in_block);
    return blocks_are_full() ? place : min(place, query_count() - 1);
  }
  Dim queries_of_block() const {
    return blocks_are_full() ? Dim(queries_per_block_)
                             : min(queries_per_block_, query_count() - query_index(0));
  }
  // A product takes several queries at once; beyond the last of a block, the last is computed repeatedly.
  Dim groups() const { return ceil_div(queries_of_block(), together_); }
  Dim query_of_group() const {
    return Dim::symbol(kGroupVariable) * together_ + Dim::symbol(kMemberVariable);
  }

  std::vector<Axis> result_axes() const {
    return {second().axes.begin() + static_cast<int64_t>(rows_), second().axes.end()};
  }

  // Heads that share keys run sequentially in one parallel iteration, which packs the keys once, where that
  // leaves enough iterations.
  void choose_parallel_axes() {
    const Scalar shared = factors_of(first_, key())->along;
    std::vector<Axis> all(first_.axes.begin(), first_.axes.end() - 1);
    all.erase(all.begin() + static_cast<int64_t>(*block_));
    for (const Axis& axis : all)
      (mentions(shared, axis.variable) ? outer_ : inner_).push_back(axis);
    if (outer_iterations() * block_count().constant().value_or(1) < kIterationsPerThread * context_.threads) {
      outer_ = std::move(all);
      inner_.clear();
    }
  }
  int64_t outer_iterations() const {
    int64_t iterations = 1;
    for (const Axis& axis : outer_)
      iterations *= axis.size.constant().value_or(1);
    return iterations;
  }
  // Into how many parts the query blocks of an iteration are split, where parallel iterations are few.
  int64_t shares() const {
    const int64_t wanted =
        parts_in(kIterationsPerThread * context_.threads, std::max<int64_t>(outer_iterations(), 1));
    return std::min(wanted, block_count().constant().value_or(wanted));
  }

  // --- buffers ---

  // Of one query, or of all queries of a block.
  Buffer local(const char* name, DType dtype, std::vector<Dim> sizes) const {
    if (in_blocks_)
      sizes.insert(sizes.begin(), queries_per_block_);
    return {.name = name, .dtype = dtype, .sizes = std::move(sizes)};
  }
  std::vector<Scalar> of_query(std::vector<Scalar> at) const {
    if (in_blocks_)
      at.insert(at.begin(), index(kQueryVariable));
    return at;
  }

  // Pad rows: power-of-two strides cause cache-set conflicts.
  Dim length() const { return in_blocks_ ? (panels() + 1) * lanes_ : key().size; }
  Buffer scores() const { return local(kScores, first_.results.front().dtype, {length()}); }
  // What the second product multiplies by: in place of the scores, where the dtype is the same.
  Buffer weights() const {
    const DType dtype = weights_stage().results.front().dtype;
    return dtype == scores().dtype ? scores() : local(kWeights, dtype, {length()});
  }
  Buffer results() const {
    std::vector<Dim> sizes;
    for (const Axis& axis : result_axes())
      sizes.push_back(axis.size);
    return local(kResults, second().results.front().dtype, std::move(sizes));
  }

  // --- the first product ---

  // Packs the keys, which all queries read, into panels.
  std::vector<Statement> pack_shared() const {
    const Scalar shared = factors_of(first_, key())->along;
    std::vector<Dim> sizes{panels()};
    for (const Axis& axis : first_.reduced)
      sizes.push_back(axis.size);
    sizes.emplace_back(lanes_);
    const Dim place = panels_are_full() ? key_index() : min(key_index(), key().size - 1);
    std::vector<Statement> pack =
        as_list(loop_over({kPlaceVariable, lanes_}, Mark::Vector,
                          as_list(Assign{.places = {{kShared, place_in_shared()}},
                                         .combine = "",
                                         .values = {shared.substitute({{key().variable, place}})}})));
    std::vector<Axis> axes = first_.reduced;
    axes.insert(axes.begin(), {kPanelVariable, panels()});
    pack = around(axes, Mark::Serial, std::move(pack));
    pack.insert(pack.begin(), Local{{.name = kShared, .dtype = shared.dtype(), .sizes = std::move(sizes)}});
    return pack;
  }
  std::vector<Scalar> place_in_shared() const {
    std::vector<Scalar> place = loops::variables_of(first_.reduced);
    place.insert(place.begin(), index(kPanelVariable));
    place.push_back(index(kPlaceVariable));
    return place;
  }

  // The scores of a block, padded to whole panels.
  std::vector<Statement> fill_scores() const {
    const Factors factors = *factors_of(first_, key());
    const Scalar query = Scalar::index(query_of_group());
    std::vector<Statement> body;
    Scalar across = at_query(factors.across, clamped_query_index(query.index()));
    if (across.kind() != Scalar::Kind::Load)
      across = keep_once(factors.across, query, body);
    Definition product = first_;
    product.results = {scores()};
    product.axes = {{kMemberVariable, together_}, {kPlaceVariable, lanes_}};
    product.at = {query, Scalar::index(key_index())};
    product.values = {Scalar::apply(
        Function::Multiply, {across, Scalar::load(kShared, factors.along.dtype(), place_in_shared())})};
    append(body, around({{kPanelVariable, panels()}, {kGroupVariable, groups()}}, Mark::Serial,
                        multiply(product, "first_")));
    return body;
  }

  Scalar at_query(const Scalar& scalar, const Dim& place) const {
    return scalar.substitute({{first_.axes[*block_].variable, place}});
  }

  // Stores a computed factor in a buffer instead of recomputing it for each panel; its load for one query.
  Scalar keep_once(const Scalar& across, const Scalar& query, std::vector<Statement>& body) const {
    std::vector<Axis> axes = first_.reduced;
    std::vector<Dim> sizes;
    for (const Axis& axis : axes)
      sizes.push_back(axis.size);
    axes.insert(axes.begin(), {kQueryVariable, groups() * together_});
    std::vector<Scalar> place = loops::variables_of(axes);
    body.emplace_back(Local{local(kOwn, across.dtype(), std::move(sizes))});
    append(
        body,
        nested(axes, as_list(Assign{.places = {{kOwn, place}},
                                    .combine = "",
                                    .values = {at_query(across, clamped_query_index(place[0].index()))}})));
    place.front() = query;
    return Scalar::load(kOwn, across.dtype(), std::move(place));
  }

  // One row of scores, one key at a time.
  std::vector<Statement> fill_row() const {
    Definition sum = first_;
    sum.results = {scores()};
    sum.axes = {key()};
    sum.at = loops::variables_of(sum.axes);
    return as_list(loop_over(key(), Mark::Serial, do_row({sum}, 1, {kScores})));
  }

  // A product by a microkernel, or in plain loops where it is too small for one.
  std::vector<Statement> multiply(const Definition& product, const std::string& prefix) const {
    const ContractionPlan plan = select_inner_product(product, context_);
    std::vector<Statement> body;
    if (plan.accumulators > 1) {
      body = build_gemv(product, {plan.tile->nr, plan.accumulators});
    } else if (plan.tile) {
      body = build_gemm({product}, {product.results.front().name}, plan, target_);
    } else {
      const std::optional<Parts> parts = parts_of(product);
      std::vector<Statement> sum{start(product)};
      append(sum, sum_up(product, Mark::Serial, parts, part_of(product)));
      body = nested(product.axes, std::move(sum));
      if (parts)
        body.insert(body.begin(), Local{part_of(product)});
    }
    loops::rename_locals(body, prefix);
    return body;
  }

  // --- what is done with rows ---

  // Recomputes stages as cheap as adding a mask where they are read: storing and reloading a row is slower.
  void forward_cheap_stages() {
    for (size_t i = 0; i + 1 < between_.size();) {
      const Definition stage = between_[i];
      const FormulaCost cost = cost_of(stage.values.front());
      if (stage.reduces() || stage.axes.size() == rows_ || cost.operations > 1 || cost.loads > 2) {
        ++i;
        continue;
      }
      between_.erase(between_.begin() + static_cast<int64_t>(i));
      for (size_t j = i; j < between_.size(); ++j) {
        const Axis& along = between_[j].reduces() ? between_[j].reduced.front() : between_[j].axes.back();
        for (Scalar& value : between_[j].values)
          value = loops::replace_loads(value, [&](const Scalar& load) {
            return load.name() == stage.results.front().name
                       ? stage.values.front().substitute(
                             {{stage.axes.back().variable, Dim::symbol(along.variable)}})
                       : load;
          });
      }
    }
  }

  // What the second product multiplies by, from what the last stage before it reads.
  Definition weights_stage() const {
    Definition stage = between_.back();
    const Scalar factor = factors_of(second(), second().axes.back())
                              ->across.substitute({{second().reduced.front().variable,
                                                    Dim::symbol(stage.axes.back().variable)}});
    stage.values = {loops::replace_loads(factor, [&](const Scalar& load) {
      return load.name() == stage.results.front().name ? stage.values.front() : load;
    })};
    stage.results = {{.name = kWeights, .dtype = stage.values.front().dtype(), .sizes = {}}};
    stage.at = {Scalar::index(Dim::symbol(stage.axes.back().variable))};
    return stage;
  }

  std::vector<Statement> work_on_row() const {
    std::vector<Definition> stages = between_;
    stages.back() = weights_stage();
    std::vector<Statement> body = do_row(stages, rows_, {kWeights});
    loops::change_places(body, [&](Place place) {
      if (place.buffer == first_.results.front().name)
        return Place{kScores, of_query({place.at[dim_of_key()]})};
      return place.buffer == kWeights ? Place{weights().name, of_query(place.at)} : place;
    });
    return body;
  }

  // The dimension of the scores that keys run along.
  size_t dim_of_key() const {
    for (size_t i = 0; i < first_.at.size(); ++i)
      if (loops::axis_of(first_.axes, first_.at[i]) == rows_)
        return i;
    CHECK(false, "no index of {} goes along its rows", first_.results.front().name);
  }

  // --- the second product and its epilogue ---

  Scalar factor_along() const { return factors_of(second(), second().axes.back())->along; }

  // Whether values are not contiguous along the results, so that transposing them once for all queries of an
  // iteration pays.
  bool transposes_values() const {
    const Scalar along = factor_along();
    const auto differs = [&](const Axis& axis) { return mentions(along, axis.variable); };
    if (differs(first_.axes[*block_]) || std::ranges::any_of(inner_, differs))
      return false;
    bool apart = false;
    loops::for_each_load(along, [&](const Scalar& load) {
      for (size_t i = 0; i + 1 < load.operands().size(); ++i)
        apart = apart || mentions(load.operands()[i], second().axes.back().variable);
    });
    return apart;
  }
  std::vector<Axis> axes_of_values() const {
    std::vector<Axis> axes = second().reduced;
    for (const Axis& axis : result_axes())
      axes.push_back(axis);
    return axes;
  }

  std::vector<Statement> transpose_values() const {
    std::vector<Dim> sizes;
    for (const Axis& axis : axes_of_values())
      sizes.push_back(axis.size);
    const DType dtype = factor_along().dtype();
    std::vector<Statement> body{Local{{.name = kValues, .dtype = dtype, .sizes = std::move(sizes)}}};
    append(body, nested(axes_of_values(),
                        as_list(Assign{.places = {{kValues, loops::variables_of(axes_of_values())}},
                                       .combine = "",
                                       .values = {factor_along()}})));
    return body;
  }

  // What a query multiplies its weights by.
  Scalar value() const {
    const Scalar along = factor_along();
    return in_blocks_ && transposes_values()
               ? Scalar::load(kValues, along.dtype(), loops::variables_of(axes_of_values()))
               : along;
  }

  std::vector<Statement> sum_rows() const {
    Definition product = second();
    product.results = {results()};
    product.axes = result_axes();
    product.at = loops::variables_of(product.axes);
    std::vector<Scalar> weight = loops::variables_of(product.reduced);
    if (in_blocks_) {
      product.axes.insert(product.axes.begin(), {kMemberVariable, together_});
      product.at.insert(product.at.begin(), Scalar::index(query_of_group()));
      weight.insert(weight.begin(), Scalar::index(query_of_group()));
    }
    product.values = {Scalar::apply(
        Function::Multiply, {Scalar::load(weights().name, weights().dtype, std::move(weight)), value()})};
    std::vector<Statement> body = multiply(product, "second_");
    return in_blocks_ ? around({{kGroupVariable, groups()}}, Mark::Serial, std::move(body)) : body;
  }

  std::vector<Statement> store_row() const {
    std::vector<Statement> stores;
    for (Assign& assign :
         build_epilogue(last_, outputs_,
                        Scalar::load(kResults, results().dtype, of_query(loops::variables_of(result_axes()))),
                        [](const Scalar& scalar) { return scalar; }))
      stores.emplace_back(std::move(assign));
    return nested(result_axes(), std::move(stores));
  }

  // --- all of it ---

  std::vector<Statement> row_by_row() {
    in_blocks_ = false;
    std::vector<Statement> body = declare();
    append(body, fill_row());
    append(body, work_on_row());
    append(body, sum_rows());
    append(body, store_row());
    loops::rename_locals(body, "row_");
    std::vector<Axis> axes(first_.axes.begin(), first_.axes.end() - 1);
    // No iterations, where there are enough queries for blocks.
    if (block_ && !query_count().is_constant())
      axes[*block_].size = query_count() * max(1 - floor_div(query_count(), kLeastQueries), 0);
    return around(axes, Mark::Parallel, std::move(body));
  }

  std::vector<Statement> block_by_block() {
    in_blocks_ = true;
    std::vector<Statement> block = declare();
    append(block, fill_scores());
    append(block, step_by_step(work_on_row()));
    append(block, sum_rows());
    block.emplace_back(over_queries(store_row()));
    std::vector<Statement> body = pack_shared();
    if (transposes_values())
      append(body, transpose_values());
    Loop all = loop_over({kQueriesVariable, block_count()}, Mark::Serial, std::move(block));
    std::vector<Axis> axes = outer_;
    Dim iterations = shares();
    if (shares() > 1) {
      all.begin = Dim::symbol(kShareVariable) * ceil_div(block_count(), shares());
      all.end = min(block_count(), all.begin + ceil_div(block_count(), shares()));
    }
    const Dim first = all.begin;
    append(body, around(inner_, Mark::Serial, as_list(std::move(all))));
    if (!block_count().is_constant())  // nothing is packed for a share without blocks
      body = as_list(Guard{{block_count() - 1 - first}, std::move(body)});
    if (!query_count().is_constant())
      iterations = iterations * min(floor_div(query_count(), kLeastQueries), 1);
    if (iterations != Dim(1) || axes.empty())
      axes.push_back({kShareVariable, iterations});
    return around(axes, Mark::Parallel, std::move(body));
  }

  std::vector<Statement> declare() const {
    std::vector<Statement> locals{Local{scores()}, Local{results()}};
    if (weights().name != scores().name)
      locals.emplace_back(Local{weights()});
    return locals;
  }

  // Interleaves several rows, to hide the latency of each.
  std::vector<Statement> step_by_step(std::vector<Statement> row) const {
    const Dim first = Dim::symbol(kGroupVariable) * abreast_, query = first + Dim::symbol(kMemberVariable);
    for (Statement& statement : row)
      statement = loops::substitute(
          statement, {{first_.axes[*block_].variable, query_index(query)}, {kQueryVariable, query}});
    return around(
        {{kGroupVariable, ceil_div(queries_of_block(), abreast_)}}, Mark::Serial,
        do_abreast(std::move(row), {kMemberVariable, min(abreast_, queries_of_block() - first)}, abreast_));
  }

  Loop over_queries(std::vector<Statement> body) const {
    for (Statement& statement : body)
      statement = loops::substitute(
          statement, {{first_.axes[*block_].variable, query_index(Dim::symbol(kQueryVariable))}});
    return loop_over({kQueryVariable, queries_of_block()}, Mark::Serial, std::move(body));
  }

  const size_t rows_;  // axes that are shared
  const std::set<std::string>& outputs_;
  const Context& context_;
  const Target& target_;
  const Definition first_;
  std::vector<Definition> between_, last_;  // the second product is the first of the last
  std::optional<size_t> block_;             // the axis of queries
  std::vector<Axis> outer_, inner_;         // other axes of the rows: around the packed keys, and within
  int64_t queries_per_block_ = 1, lanes_ = 1;
  int64_t together_ = 1;    // queries that are multiplied at once
  int64_t abreast_ = 1;     // queries whose rows are interleaved
  bool in_blocks_ = false;  // or one row at a time
};

}  // namespace

std::vector<Statement> build_fused_attention(const std::vector<Definition>& definitions, size_t rows,
                                             const std::set<std::string>& outputs, const Context& context) {
  return FusedAttentionBuilder(definitions, rows, outputs, context).run();
}

}  // namespace tenon::schedule
