#include "optimizer/optimize_to_write.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/write_file.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/wire.h"
#include "ir/print.h"
#include "passes/running_nodes.h"

namespace tenon::optimizer {
namespace {

// A file may become so much larger, where it has no more nodes.
constexpr double kMostGrowth = 1.01;
constexpr double kMostGrowthBytes = 4096;  // of small files, in which names count
constexpr int kMostReverted = 4;           // passes of one model

// Functions of ONNX that ONNX Runtime has no kernel for, and whose definition takes longer than our
// decomposition: written only where the file that was read has them. That a function has no kernel is not
// enough: HardSwish and Mish have none, either, but their definition is the decomposition.
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

std::optional<int64_t> opset_of(const onnx::ModelProto& model) {
  for (const auto& [domain, version] : model.opset_import)
    if (domain.empty() || domain == "ai.onnx")
      return version;
  return std::nullopt;
}

using Labels = std::set<std::string, std::less<>>;
using PassNames = std::set<std::string>;

// What the model becomes, with some of its nodes kept and some passes left out.
struct Candidate {
  std::unique_ptr<Graph> graph;
  Journal journal;
  std::vector<PassReport> reports = {};
  std::optional<onnx::Outline> outline = std::nullopt;  // nothing where ONNX cannot express it
  Counts ops = {};
  Size size = {};
  PassNames growing = {};  // passes after which it was larger than before, where that was asked for
};

std::optional<onnx::Outline> outline_of(const Graph& graph, const onnx::WriteOptions& options) {
  try {
    return onnx::outline_onnx(graph, options);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

Counts ops_of(const onnx::Outline& outline) {
  return count_ops(onnx::decode_model(std::as_bytes(std::span(outline.model))));
}

// Nodes that nothing uses: they are not written, but were there.
int64_t count_dead(const Graph& graph) {
  const std::unique_ptr<Graph> alive = graph.clone();
  Journal forgotten;
  remove_dead(*alive, forgotten);
  return count_nodes(graph) - count_nodes(*alive);
}

bool was_changed_by_added_pass(const PipelineOptions& passes, const std::vector<PassReport>& reports) {
  return std::ranges::any_of(reports, [&](const PassReport& report) {
    return report.changes > 0 && std::ranges::find(passes.pipeline, report.pass, &Pass::name)->is_added;
  });
}

class Optimizer {
 public:
  Optimizer(const std::optional<Source>& source, const OptimizeToWriteOptions& options)
      : source_(source), options_(options), write_{.opset = options.opset} {
    if (!source)
      return;
    const onnx::ModelProto model = onnx::read_model(source->file).proto;
    source_opset_ = opset_of(model);
    source_ops_ = count_ops(model);
    write_.wanted_opset = source_opset_.value_or(0);
    for (const std::string& op : kExpandedByEngines)
      if (!source_ops_.contains(op))
        write_.avoided.insert(op);
    const uint64_t external = external_bytes(model.graph);
    limit_ = {sum(source_ops_), source->file->bytes().size() + external};
    has_external_weights_ = external > 0;
  }

  OptimizedModel run(std::unique_ptr<Graph> graph) {
    const int64_t own_nodes_before = count_nodes(*graph);
    int64_t nodes_before = source_ ? limit_.nodes : own_nodes_before;
    bool has_limit = source_.has_value();
    if (!source_)
      if (const auto outline = outline_of(*graph, write_)) {
        limit_ = {sum(ops_of(*outline)), outline->bytes()};
        has_limit = true;
        nodes_before = limit_.nodes + count_dead(*graph);
        original_ = graph->clone();
      }
    Candidate best = optimize(std::move(graph), options_.passes.disabled);
    if (has_limit && options_.form == Form::Onnx && !was_changed_by_added_pass(options_.passes, best.reports))
      enforce_limit(best);
    OptimizedModel result = {.form = options_.form,
                             .graph = std::move(best.graph),
                             .journal = std::move(best.journal),
                             .reports = std::move(best.reports),
                             .reverted = std::move(reverted_),
                             .write = write_,
                             .source_opset = source_opset_};
    if (is_unchanged_) {
      result.unchanged = source_->file;
      result.ops_after = source_ops_;
    } else {
      result.ops_after = best.outline ? best.ops : count_ops(*result.graph);
    }
    result.nodes_before = is_unchanged_ || best.outline ? nodes_before : own_nodes_before;
    return result;
  }

 private:
  Candidate optimize(std::unique_ptr<Graph> graph, const PassNames& disabled, bool finds_growing = false) {
    Candidate made = {std::move(graph), Journal(options_.numerics)};
    PipelineOptions passes = options_.passes;
    passes.disabled = disabled;
    if (finds_growing)
      passes.after_pass = [&, before = limit_](const Pass& pass, const Graph& after) mutable {
        const auto outline = outline_of(after, write_);
        if (!outline)
          return;
        const Size size = {sum(ops_of(*outline)), outline->bytes()};
        if (size.nodes > before.nodes || size.bytes > before.bytes)
          made.growing.emplace(pass.name);
        before = size;
      };
    made.reports = tenon::optimize(*made.graph, made.journal, passes);
    made.outline = outline_of(*made.graph, write_);
    if (made.outline) {
      made.ops = ops_of(*made.outline);
      made.size = {sum(made.ops), made.outline->bytes()};
    }
    return made;
  }

  Candidate optimize_again(const Labels& kept, const PassNames& disabled, bool finds_growing = false) {
    return optimize(source_ ? source_->read({.kept = kept}) : original_->clone(), disabled, finds_growing);
  }

  void enforce_limit(Candidate& best) {
    if (!best.outline && source_)
      keep_inexpressible(best);
    if (!best.outline)
      return;
    if (source_)
      keep_decomposed(best);
    if (best.size.fits(limit_))
      return;
    use_all_ops(best);
    if (!best.size.fits(limit_))
      revert_passes(best);
    if (!best.size.fits(limit_) && may_be_unchanged()) {
      is_unchanged_ = true;
      remark("the model", fmt::format("left unchanged: {} nodes would become {}, and {} bytes {}",
                                      limit_.nodes, best.size.nodes, limit_.bytes, best.size.bytes));
    }
  }

  // Nodes that are read as several ops, not all of which ONNX has.
  void keep_inexpressible(Candidate& best) {
    PassNames inexpressible;
    try {
      inexpressible = onnx::find_unwritable(*best.graph, write_);
    } catch (const UserError&) {
      return;
    }
    if (inexpressible.empty())
      return;
    Labels kept(inexpressible.begin(), inexpressible.end());
    Candidate next = optimize_again(kept, options_.passes.disabled);
    if (next.outline)
      take(best, std::move(next), std::move(kept), "ONNX has no other way to express it");
  }

  // Nodes that are read as several ops, which no rewrite makes fewer of.
  void keep_decomposed(Candidate& best) {
    Labels kept = kept_;
    for (const auto& [name, count] : best.outline->nodes_of)
      if (count > 1)
        kept.insert(name);
    if (kept.size() == kept_.size())
      return;
    Candidate next = optimize_again(kept, options_.passes.disabled);
    if (next.outline && next.size.is_better_than(best.size, limit_))
      take(best, std::move(next), std::move(kept), "it decomposes into several nodes");
  }

  // A few nodes less are not worth what engines make of such an op, but a file must not grow.
  void use_all_ops(Candidate& best) {
    const auto avoided = std::exchange(write_.avoided, {});
    Candidate next = optimize_again(kept_, options_.passes.disabled);
    if (next.outline && next.size.is_better_than(best.size, limit_))
      best = std::move(next);
    else
      write_.avoided = avoided;
  }

  void take(Candidate& best, Candidate next, Labels kept, std::string_view why) {
    best = std::move(next);
    for (const std::string& name : kept)
      if (!kept_.contains(name))
        remark(fmt::format("node \"{}\"", name), fmt::format("kept unchanged: {}", why));
    kept_ = std::move(kept);
  }

  // Greedily, the passes that make the model larger.
  void revert_passes(Candidate& best) {
    PassNames disabled = options_.passes.disabled;
    PassNames growing = optimize_again(kept_, disabled, true).growing;
    for (int i = 0; i < kMostReverted && !best.size.fits(limit_); ++i) {
      std::string reverted;
      for (const std::string& pass : growing) {
        PassNames more = disabled;
        more.insert(pass);
        Candidate next = optimize_again(kept_, more, true);
        if (next.outline && next.size.is_better_than(best.size, limit_)) {
          best = std::move(next);
          reverted = pass;
        }
      }
      if (reverted.empty())
        return;
      disabled.insert(reverted);
      growing = best.growing;
      remark("the model", fmt::format("{} was reverted: the model grew", reverted));
    }
  }

  bool may_be_unchanged() const {
    return source_ && source_->sizes.empty() && !has_external_weights_ && !options_.opset;
  }

  void remark(std::string node, std::string reason) {
    reverted_.insert({"write", "write", std::move(node), std::move(reason)});
  }

  const std::optional<Source>& source_;
  const OptimizeToWriteOptions& options_;
  onnx::WriteOptions write_;
  std::optional<int64_t> source_opset_;
  Counts source_ops_;
  std::unique_ptr<Graph> original_;  // where there is no source
  Size limit_;
  bool has_external_weights_ = false, is_unchanged_ = false;
  Labels kept_;
  std::set<Remark> reverted_;
};

}  // namespace

Form form_of(const std::filesystem::path& path) {
  const std::string extension = path.extension();
  if (extension != ".onnx" && extension != ".tenon")
    throw user_error("cannot write {}: its name must end in .onnx or .tenon", path.string());
  return extension == ".onnx" ? Form::Onnx : Form::Text;
}

OptimizedModel optimize_to_write(std::unique_ptr<Graph> graph, const std::optional<Source>& source,
                                 const OptimizeToWriteOptions& options) {
  return Optimizer(source, options).run(std::move(graph));
}

WrittenModel write_optimized(const OptimizedModel& model, const std::filesystem::path& path) {
  if (model.form == Form::Text) {
    save(*model.graph, path);
    return {};
  }
  if (model.unchanged) {
    write_file(path, onnx::as_text(model.unchanged->bytes()));
    return {.is_unchanged = true};
  }
  return {.onnx = onnx::write_onnx(*model.graph, path, model.write)};
}

}  // namespace tenon::optimizer
