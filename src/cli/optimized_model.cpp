#include "cli/optimized_model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "cli/compile_model.h"
#include "frontends/onnx/import.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// A file may become so much larger, where it has no more nodes.
constexpr double kMostGrowth = 1.01;
constexpr double kMostGrowthBytes = 4096;  // of small files, in which names count
// As often the whole model is optimised anew without a pass that did not pay.
constexpr int kMostPasses = 4;

// Ops that ONNX Runtime has no kernel for, but makes others of: with them a model takes longer than with
// their decompositions. Where the file that was read has them they are kept.
const std::string kExpandedByEngines[] = {"GroupNormalization"};

struct Size {
  int64_t nodes = 0;
  uint64_t bytes = 0;

  bool fits(const Size& limit) const {
    return nodes <= limit.nodes &&
           static_cast<double>(bytes) <= static_cast<double>(limit.bytes) * kMostGrowth + kMostGrowthBytes;
  }
  bool is_better_than(const Size& other, const Size& limit) const {
    if (fits(limit) != other.fits(limit))
      return fits(limit);
    return std::pair(nodes, bytes) < std::pair(other.nodes, other.bytes);
  }
};

// Of the weights that are in other files.
uint64_t external_bytes(const onnx::GraphProto& graph) {
  uint64_t bytes = 0;
  for (const onnx::TensorProto& weight : graph.initializer)
    for (const auto& [key, value] : weight.external_data)
      if (uint64_t length = 0;
          key == "length" && std::from_chars(value.begin(), value.end(), length).ec == std::errc())
        bytes += length;
  return bytes;
}

using Labels = std::set<std::string, std::less<>>;

// What became of the model under some conditions.
struct Attempt {
  std::unique_ptr<Graph> graph;
  Journal journal;
  std::vector<PassReport> reports;
  std::optional<onnx::Outline> outline = std::nullopt;  // nothing for what ONNX cannot say
  Counts ops = {};
  Size size = {};
};

// Nodes that nothing uses: they are not written, but were there.
int64_t count_dead(const Graph& graph) {
  const std::unique_ptr<Graph> alive = graph.clone();
  Journal forgotten;
  remove_dead(*alive, forgotten);
  return count_nodes(graph) - count_nodes(*alive);
}

class Optimizer {
 public:
  explicit Optimizer(const HowToOptimize& how)
      : how_(how), write_{.opset = how.opset, .wanted_opset = opset_of(how.model.model).value_or(0)} {
    if (!how.model.model.ends_with(".onnx"))
      return;
    const onnx::Model model = onnx::read_model(how.model.model);
    source_ops_ = count_ops(model.proto);
    for (const std::string& op : kExpandedByEngines)
      if (!source_ops_.contains(op))
        write_.avoided.insert(op);
    limit_ = {sum(source_ops_), model.file->bytes().size() + external_bytes(model.proto.graph)};
    has_other_files_ = external_bytes(model.proto.graph) > 0;
  }

  OptimizedModel run() {
    Attempt best = attempt({}, how_.passes.disabled);
    if (is_onnx() && how_.is_held_to_source)
      hold_to_limit(best);
    OptimizedModel result = {.graph = std::move(best.graph),
                             .journal = std::move(best.journal),
                             .reports = std::move(best.reports),
                             .taken_back = std::move(taken_back_)};
    result.is_as_it_came = is_as_it_came_;
    result.write = write_;
    if (is_as_it_came_)
      result.ops_after = source_ops_;
    else
      result.ops_after = best.outline ? best.ops : count_ops(*result.graph);
    result.nodes_before = is_as_it_came_ || (is_onnx() && best.outline) ? limit_.nodes
                          : best.outline && onnx_before_                ? *onnx_before_
                                                                        : before_;
    return result;
  }

 private:
  bool is_onnx() const { return limit_.bytes > 0; }

  Attempt attempt(const Labels& kept, const std::set<std::string>& disabled,
                  const std::function<void(const Pass&, const Graph&)>& after_pass = nullptr) {
    Attempt made = {load_model(how_.model, {.kept = kept}), Journal(how_.numerics), {}};
    if (!is_onnx()) {
      before_ = count_nodes(*made.graph);
      if (const auto outline = outline_of(*made.graph, {}))
        onnx_before_ = sum(ops_of(*outline)) + count_dead(*made.graph);
    }
    OptimizeOptions passes = how_.passes;
    passes.disabled = disabled;
    passes.after_pass = after_pass;
    made.reports = optimize_model(*made.graph, made.journal, passes);
    made.outline = outline_of(*made.graph, write_);
    if (made.outline) {
      made.ops = ops_of(*made.outline);
      made.size = {sum(made.ops), made.outline->bytes()};
    }
    return made;
  }

  static std::optional<onnx::Outline> outline_of(const Graph& graph, const onnx::WriteOptions& options) {
    try {
      return onnx::outline_onnx(graph, options);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  static Counts ops_of(const onnx::Outline& outline) {
    return count_ops(onnx::decode_model(std::as_bytes(std::span(outline.model))));
  }

  void hold_to_limit(Attempt& best) {
    if (!best.outline)
      keep_unwritable(best);
    if (!best.outline)
      return;
    keep_expanded(best);
    use_all_ops(best);
    if (!best.size.fits(limit_))
      leave_out_passes(best);
    if (!best.size.fits(limit_) && may_stay_as_it_came()) {
      is_as_it_came_ = true;
      remark("the model", fmt::format("left as it came: {} nodes would become {}, and {} bytes {}",
                                      limit_.nodes, best.size.nodes, limit_.bytes, best.size.bytes));
    }
  }

  // What we read in several ops, of which ONNX has not all.
  void keep_unwritable(Attempt& best) {
    std::set<std::string> unwritable;
    try {
      unwritable = onnx::find_unwritable(*best.graph, write_);
    } catch (const UserError&) {
      return;
    }
    if (unwritable.empty())
      return;
    Labels kept(unwritable.begin(), unwritable.end());
    Attempt next = attempt(kept, how_.passes.disabled);
    if (next.outline)
      take(best, std::move(next), std::move(kept), "ONNX has no other word for it");
  }

  // What ONNX says in one op, we in several, and what no rewrite made less of.
  void keep_expanded(Attempt& best) {
    Labels kept = kept_;
    for (const auto& [name, count] : best.outline->nodes_of)
      if (count > 1)
        kept.insert(name);
    if (kept.size() == kept_.size())
      return;
    Attempt next = attempt(kept, how_.passes.disabled);
    if (next.outline && next.size.is_better_than(best.size, limit_))
      take(best, std::move(next), std::move(kept), "it would take several nodes to say the same");
  }

  // A few nodes less are not worth what engines make of such an op, but a file must not grow.
  void use_all_ops(Attempt& best) {
    if (best.size.fits(limit_))
      return;
    const auto avoided = std::exchange(write_.avoided, {});
    Attempt next = attempt(kept_, how_.passes.disabled);
    if (next.outline && next.size.is_better_than(best.size, limit_))
      best = std::move(next);
    else
      write_.avoided = avoided;
  }

  void take(Attempt& best, Attempt next, Labels kept, std::string_view why) {
    best = std::move(next);
    for (const std::string& name : kept)
      if (!kept_.contains(name))
        remark(fmt::format("node \"{}\"", name), fmt::format("kept as it came: {}", why));
    kept_ = std::move(kept);
  }

  // The passes after which there was more to write than before, one by one.
  void leave_out_passes(Attempt& best) {
    std::set<std::string> disabled = how_.passes.disabled;
    for (int i = 0; i < kMostPasses && !best.size.fits(limit_); ++i) {
      std::optional<std::string> worst;
      for (const std::string& pass : growing_passes(disabled)) {
        std::set<std::string> more = disabled;
        more.insert(pass);
        Attempt next = attempt(kept_, more);
        if (next.outline && next.size.is_better_than(best.size, limit_)) {
          best = std::move(next);
          worst = pass;
        }
      }
      if (!worst)
        return;
      disabled.insert(*worst);
      remark("the model", fmt::format("{} was taken back: it did not pay", *worst));
    }
  }

  std::set<std::string> growing_passes(const std::set<std::string>& disabled) {
    std::set<std::string> growing;
    Size before = limit_;
    attempt(kept_, disabled, [&](const Pass& pass, const Graph& graph) {
      const auto outline = outline_of(graph, write_);
      if (!outline)
        return;
      const Size size = {sum(ops_of(*outline)), outline->bytes()};
      if (size.nodes > before.nodes || size.bytes > before.bytes)
        growing.emplace(pass.name);
      before = size;
    });
    return growing;
  }

  bool may_stay_as_it_came() const { return how_.model.dims.empty() && !has_other_files_ && !how_.opset; }

  void remark(std::string node, std::string reason) {
    taken_back_.insert({"write", "write", std::move(node), std::move(reason)});
  }

  const HowToOptimize& how_;
  onnx::WriteOptions write_;
  Counts source_ops_;
  Size limit_;
  int64_t before_ = 0;                  // nodes of a graph that was no ONNX file
  std::optional<int64_t> onnx_before_;  // the same, as ONNX has them
  bool has_other_files_ = false, is_as_it_came_ = false;
  Labels kept_;
  std::set<Remark> taken_back_;
};

}  // namespace

OptimizedModel optimize_to_write(const HowToOptimize& how) { return Optimizer(how).run(); }

std::optional<int64_t> opset_of(const std::string& model) {
  if (!model.ends_with(".onnx"))
    return std::nullopt;
  for (const auto& [domain, version] : onnx::read_model(model).proto.opset_import)
    if (domain.empty() || domain == "ai.onnx")
      return version;
  return std::nullopt;
}

}  // namespace tenon::cli
