#include <algorithm>

#include "base/units.h"
#include "compiler/print_program.h"

namespace tenon::compiler {

using fusion::KernelCost;
using fusion::rates_of;
using fusion::size_of;

namespace {

class FusionPrinter {
 public:
  FusionPrinter(const FusionReport& report, const Target& target, const Bindings& sizes)
      : report_(report), target_(target), sizes_(sizes) {}

  std::string run() {
    text_ = fmt::format("{} became {}\n", format_count(report_.before.size(), "step"),
                        format_count(report_.after.size(), "kernel"));
    if (!sizes_.empty())
      text_ += fmt::format("counted with {}\n", sizes());
    for (const FusedKernel& kernel : report_.after)
      text_ += fmt::format("  {}: {}, {:.3g} operations\n", names(kernel),
                           format_bytes(number(kernel.cost.bytes)), number(kernel.cost.operations));
    print_edges();
    print_totals();
    return std::move(text_);
  }

 private:
  // Dynamic sizes count as 0.
  double number(const Dim& dim) const { return static_cast<double>(dim.evaluate(sizes_).value_or(0)); }

  std::string sizes() const {
    std::vector<std::string> words;
    for (const auto& [name, size] : sizes_)
      words.push_back(fmt::format("{} = {}", name, size));
    return fmt::format("{}", fmt::join(words, ", "));
  }

  static std::string names(const FusedKernel& kernel) {
    std::vector<std::string> quoted;
    for (const std::string& source : kernel.sources)
      quoted.push_back(fmt::format("\"{}\"", source));
    return fmt::format("{}", fmt::join(quoted, ", "));
  }

  // How long it takes to write what an edge stands for and to read it again, about.
  double microseconds_lost(const UnfusedEdge& edge) const {
    const double bytes = number(size_of(edge.buffer));
    return 2 * bytes / rates_of(target_).bytes_between_kernels(bytes, target_.caches) / 1000;
  }

  void print_edges() {
    if (report_.edges.empty())
      return;
    const auto lost = [&](const UnfusedEdge& edge) { return microseconds_lost(edge); };
    std::vector<UnfusedEdge> edges = report_.edges;
    std::stable_sort(edges.begin(), edges.end(),
                     [&](const UnfusedEdge& a, const UnfusedEdge& b) { return lost(a) > lost(b); });
    text_ += "not fused, by the time that it costs:\n";
    for (const UnfusedEdge& edge : edges)
      text_ += fmt::format("  {:.2f} µs: {}[{}] from {} to {}: {}\n", lost(edge), edge.buffer.dtype,
                           fmt::join(edge.buffer.sizes, ","), names(report_.after[edge.from]),
                           names(report_.after[edge.to]), edge.reason);
  }

  void print_totals() {
    double moved[2] = {}, operations[2] = {};
    for (const KernelCost& cost : report_.before) {
      moved[0] += number(cost.bytes);
      operations[0] += number(cost.operations);
    }
    for (const FusedKernel& kernel : report_.after) {
      moved[1] += number(kernel.cost.bytes);
      operations[1] += number(kernel.cost.operations);
    }
    text_ += fmt::format("moved: {} before, {} after\n", format_bytes(moved[0]), format_bytes(moved[1]));
    text_ += fmt::format("operations: {:.3g} before, {:.3g} after\n", operations[0], operations[1]);
    const auto intensity = [&](int i) { return moved[i] == 0 ? 0 : operations[i] / moved[i]; };
    text_ += fmt::format("operations per byte: {:.2f} before, {:.2f} after\n", intensity(0), intensity(1));
  }

  const FusionReport& report_;
  const Target& target_;
  const Bindings& sizes_;
  std::string text_;
};

}  // namespace

std::string print_fusion(const FusionReport& report, const Target& target, const Bindings& sizes) {
  return FusionPrinter(report, target, sizes).run();
}

}  // namespace tenon::compiler
