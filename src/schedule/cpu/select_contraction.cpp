#include "schedule/cpu/select_contraction.h"

#include <algorithm>

#include "base/units.h"
#include "loops/contraction.h"
#include "schedule/cpu/bf16x3_matmul.h"
#include "schedule/cpu/cache_blocks.h"
#include "schedule/cpu/conv3x3.h"
#include "schedule/cpu/gemm_tile.h"
#include "schedule/cpu/gemv.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Definition;
using loops::mentions;
using loops::Scalar;
using lowering::Algorithm;
using lowering::ContractionChoice;
using lowering::ContractionPlan;
using lowering::Decider;
using lowering::GemmTile;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::PackedB;
using lowering::PlanCandidate;
using lowering::Stage;

namespace {

constexpr std::string_view kNanoseconds = "ns", kInstructions = "instructions";

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Gemm:
      return "gemm";
    case Algorithm::Gemv:
      return "gemv";
    case Algorithm::Direct:
      return "direct";
    case Algorithm::Depthwise:
      return "depthwise";
    case Algorithm::Winograd:
      return "winograd";
  }
  return "";
}

// Whether an operand is read by windows: an index moves along an axis and the reduction at once.
bool reads_windows(const Definition& sum, const Scalar& operand) {
  const auto moves_along = [](const Scalar& index, const std::vector<Axis>& axes) {
    return std::ranges::any_of(axes, [&](const Axis& axis) { return mentions(index, axis.variable); });
  };
  bool any = false;
  loops::for_each_load(operand, [&](const Scalar& load) {
    for (const Scalar& index : load.operands())
      any = any || (moves_along(index, sum.axes) && moves_along(index, sum.reduced));
  });
  return any;
}

Algorithm algorithm_of(const Definition& sum, const std::optional<GemmTile>& tile) {
  const std::optional<loops::Contraction> contraction = match_contraction(sum);
  if (!contraction || !tile)
    return Algorithm::Direct;
  if (tile->both_along)
    return Algorithm::Depthwise;
  const loops::Product& product = contraction->product();
  if (reads_windows(sum, product.lhs) || reads_windows(sum, product.rhs))
    return Algorithm::Direct;
  return tile->row ? Algorithm::Gemm : Algorithm::Gemv;
}

class Selector {
 public:
  Selector(const Stage& stage, const KernelGraph& graph, const SelectContext& context)
      : stage_(stage), sum_(stage.definition), graph_(graph), context_(context), choice_(choice_of(stage)) {}

  ContractionPlan run() && {
    if (!uses_winograd())
      choose_gemm();
    return std::move(plan_);
  }

 private:
  Context schedule_context() const { return {context_.target, context_.threads}; }
  bool is_strict() const { return context_.numerics == NumericsBudget::Strict; }

  void decline(std::string name, std::string reason) {
    plan_.candidates.push_back({.name = std::move(name), .declined = std::move(reason)});
  }

  // Why an estimate that is less than the chosen one's, or more, was not taken.
  std::string why_not(bool is_less) const {
    if (plan_.decider == Decider::Tuning)
      return "tuning measured another to be faster";
    return is_less ? "the gain is within the error of the estimate" : "slower by the estimate";
  }

  // --- Winograd ---

  bool uses_winograd() {
    const std::optional<MatchedConv3x3> matched = match_conv3x3(sum_, graph_);
    if (!matched)
      return false;
    const Conv3x3& conv = matched->conv;
    if (is_strict()) {
      decline("winograd", "it rounds differently: numerics are strict");
      plan_.decider = Decider::Numerics;
      return false;
    }
    if (!may_use_winograd(conv, context_.target)) {
      decline("winograd", fmt::format("{} channels and {} filters are not multiples of {} lanes",
                                      conv.channels, conv.filters, lanes_of_tiles(context_.target)));
      return false;
    }
    plan_.may_use_winograd = true;
    const WinogradEstimate estimate = estimate_winograd(conv, context_.target);
    std::optional<int64_t> tile = estimate.best_tile();
    if (const std::optional<int64_t> tuned = choice_.winograd_tile; tuned == 0 || tuned == 2 || tuned == 4) {
      tile = tuned == 0 ? std::nullopt : tuned;
      plan_.decider = Decider::Tuning;
    }
    note(estimate, tile);
    if (!tile)
      return false;
    plan_.algorithm = Algorithm::Winograd;
    plan_.winograd = {*tile, choose_winograd_blocks(conv, *tile, schedule_context(), choice_)};
    return true;
  }

  void note(const WinogradEstimate& estimate, const std::optional<int64_t>& chosen) {
    const double least = chosen ? estimate.by_tile.at(*chosen) : estimate.direct;
    const auto reason = [&](double time) { return why_not(time < least); };
    plan_.candidates.push_back(
        {"direct", estimate.direct, kNanoseconds, chosen ? reason(estimate.direct) : ""});
    for (const auto& [tile, time] : estimate.by_tile)
      plan_.candidates.push_back(
          {fmt::format("winograd {0}x{0}", tile), time, kNanoseconds, chosen == tile ? "" : reason(time)});
  }

  // --- register tiles ---

  void choose_gemm() {
    plan_.pack_b = choose_packed_b(
        sum_, context_.target, [&](const std::string& buffer) { return graph_.is_constant(buffer); },
        graph_.buffers, choice_);
    const std::optional<PackedB> packed_b = plan_.pack_b ? std::optional(plan_.pack_b->layout) : std::nullopt;
    const std::optional<Bf16x3Product> product = packed_b ? bf16x3_product(*packed_b) : std::nullopt;
    plan_.may_use_bf16x3 = product.has_value();
    plan_.bf16x3 = product && choice_.bf16x3.value_or(false);
    const Definition built =
        plan_.bf16x3 ? split_definition(sum_, *product, {"x0", "x1", "x2"}, product->w.name()) : sum_;
    plan_.tile = choose_gemm_tile(built, context_.target, true, packed_b, choice_);
    plan_.algorithm = algorithm_of(built, plan_.tile);
    if (!plan_.tile) {
      plan_.decider = Decider::Shape;
      plan_.candidates.push_back({.name = describe(plan_)});
      return;
    }
    if (packed_b && !plan_.bf16x3 && context_.may_pack_a)
      choose_packed_rows(*packed_b);
    plan_.cache_blocks = choose_cache_blocks(
        built, *plan_.tile, {.b = packed_b, .a = plan_.pack_a.has_value()}, true, schedule_context());
    note_tiles();
  }

  std::optional<Bf16x3Product> bf16x3_product(const PackedB& packed_b) {
    if (!stage_.contraction || packed_b.lanes != 2 * kMatrixTileSide)
      return std::nullopt;
    std::optional<Bf16x3Product> product =
        match_bf16x3(sum_, [&](const Scalar& load) { return load == plan_.pack_b->load; });
    if (!product)
      return std::nullopt;
    if (is_strict())
      decline("bf16x3", "it rounds differently: numerics are strict");
    else if (!context_.target.matrix_tiles)
      decline("bf16x3", "the target has no matrix unit for bf16");
    else if (!choice_.bf16x3.value_or(false))
      decline("bf16x3", "only tuning chooses it");
    return !is_strict() && context_.target.matrix_tiles ? product : std::nullopt;
  }

  void choose_packed_rows(const PackedB& packed_b) {
    plan_.pack_a = choose_packed_a(sum_, packed_b, context_.target, graph_.buffers, choice_);
    plan_.may_pack_a = plan_.pack_a || choose_packed_a(sum_, packed_b, context_.target, graph_.buffers,
                                                       {.mr = plan_.tile->mr, .pack_a = true})
                                           .has_value();
  }

  void note_tiles() {
    const GemmTile& tile = *plan_.tile;
    const WeighedTiles weighed = plan_.bf16x3 ? WeighedTiles() : weigh_tiles(sum_, tile, context_.target);
    if (choice_.mr || choice_.nr || choice_.bf16x3 || choice_.pack_a)
      plan_.decider = Decider::Tuning;
    else if (weighed.empty() && plan_.decider == Decider::CostModel && !plan_.may_use_winograd)
      plan_.decider = tile.tiles ? Decider::Target : Decider::Shape;
    if (weighed.empty()) {
      plan_.candidates.push_back({.name = describe(plan_)});
      return;
    }
    const auto is_chosen = [&](const WeighedTile& each) { return each.mr == tile.mr && each.nr == tile.nr; };
    const double least = std::ranges::find_if(weighed, is_chosen)->instructions;
    for (const WeighedTile& each : weighed) {
      const bool is_less = each.instructions < least;
      plan_.candidates.push_back({fmt::format("{} {}x{}", name_of(plan_.algorithm), each.mr, each.nr),
                                  each.instructions, kInstructions, is_chosen(each) ? "" : why_not(is_less)});
    }
  }

  const Stage& stage_;
  const Definition& sum_;
  const KernelGraph& graph_;
  const SelectContext& context_;
  const ContractionChoice choice_;
  ContractionPlan plan_;
};

}  // namespace

ContractionPlan select_contraction(const Stage& stage, const KernelGraph& graph,
                                   const SelectContext& context) {
  return Selector(stage, graph, context).run();
}

void select_contractions(KernelGraph& graph, const SelectContext& context) {
  for (KernelNode& node : graph.nodes)
    if (node.stage && node.stage->definition.reduces())
      node.stage->plan =
          std::make_shared<const ContractionPlan>(select_contraction(*node.stage, graph, context));
}

ContractionPlan select_inner_product(const Definition& product, const Context& context) {
  ContractionPlan plan;
  if (const std::optional<GemvTile> tile = choose_gemv_tile(product, context.target)) {
    plan.algorithm = Algorithm::Gemv;
    plan.tile.emplace().nr = tile->nr;
    plan.accumulators = tile->accumulators;
    return plan;
  }
  for (const bool may_pack : {false, true})
    if ((plan.tile = choose_gemm_tile(product, context.target, may_pack))) {
      plan.cache_blocks = choose_cache_blocks(product, *plan.tile, {}, may_pack, context);
      break;
    }
  plan.algorithm = algorithm_of(product, plan.tile);
  return plan;
}

ContractionPlan select_part(const Stage& part, const Context& context) {
  ContractionPlan plan;
  plan.tile = choose_gemm_tile(part.definition, context.target, true, part.packed_b, choice_of(part));
  plan.algorithm = algorithm_of(part.definition, plan.tile);
  if (plan.tile)
    plan.cache_blocks = choose_cache_blocks(
        part.definition, *plan.tile, {.b = part.packed_b, .a = part.packed_a.has_value()}, true, context);
  return plan;
}

std::string describe(const ContractionPlan& plan) {
  std::string text(name_of(plan.algorithm));
  if (plan.winograd)
    return fmt::format("{0} {1}x{1}, {2} x {3}", text, plan.winograd->tile,
                       format_count(static_cast<uint64_t>(plan.winograd->blocks.rows), "row"),
                       format_count(static_cast<uint64_t>(plan.winograd->blocks.parts), "part"));
  if (!plan.tile)
    return text + ", no tile";
  text += fmt::format(" {}x{}", plan.tile->mr, plan.tile->nr);
  if (plan.tile->tiles)
    text += " in matrix tiles";
  if (plan.bf16x3)
    text += ", bf16x3";
  if (plan.pack_b)
    text += ", packed B";
  else if (plan.tile->packs)
    text += ", B packed while running";
  if (plan.pack_a)
    text += ", packed A";
  if (plan.cache_blocks.parts > 1)
    text += fmt::format(", {} parts", plan.cache_blocks.parts);
  if (plan.cache_blocks.k_blocks)
    text += fmt::format(", k in blocks of {}", plan.cache_blocks.k_blocks->iterations);
  return text;
}

}  // namespace tenon::schedule
