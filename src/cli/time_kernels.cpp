#include "cli/time_kernels.h"

#include <algorithm>

#include "base/units.h"
#include "cli/compare_kernels.h"
#include "cli/milliseconds.h"
#include "codegen/run_kernel.h"

namespace tenon::cli {

using codegen::LoadedKernel;

namespace {

constexpr double kMeasuredMs = 500;  // of each nest
constexpr double kLeastMs = 0.2;     // what one measurement takes, so that the clock is exact enough
constexpr size_t kLeastRuns = 5;

// A nest with its code, and how long a run took each time.
class Timed {
 public:
  Timed(LoadedKernel& kernel, int threads) : kernel_(kernel), threads_(threads) {
    const double first = milliseconds_of([&] { run(); });
    repeats_ = std::max<int64_t>(1, static_cast<int64_t>(kLeastMs / std::max(first, 1e-4)));
  }

  void measure() {
    times_.push_back(milliseconds_of([&] {
                       for (int64_t i = 0; i < repeats_; ++i)
                         run();
                     }) /
                     static_cast<double>(repeats_));
    total_ += times_.back() * static_cast<double>(repeats_);
  }
  double total() const { return total_; }
  size_t runs() const { return times_.size(); }
  double median() const {
    std::vector<double> sorted = times_;
    std::ranges::nth_element(sorted, sorted.begin() + std::ssize(sorted) / 2);
    return sorted[sorted.size() / 2];
  }
  double least() const { return std::ranges::min(times_); }

 private:
  void run() { kernel_.run(threads_); }

  LoadedKernel& kernel_;
  int threads_;
  int64_t repeats_ = 1;
  std::vector<double> times_;  // in milliseconds
  double total_ = 0;
};

}  // namespace

std::string time_kernels(const std::vector<NamedKernel>& kernels, const std::map<std::string, int64_t>& sizes,
                         int threads) {
  const std::vector<Tensor> inputs = make_up_inputs(*kernels.front().kernel, sizes);
  std::vector<std::unique_ptr<LoadedKernel>> loaded;
  std::vector<Timed> timed;
  for (const auto& [title, kernel] : kernels) {
    loaded.push_back(std::make_unique<LoadedKernel>(*kernel, inputs, sizes, this_machine()));
    timed.emplace_back(*loaded.back(), threads);
    check_outputs(*kernel, loaded.back()->outputs(), loaded.front()->outputs());
  }
  const auto is_done = [](const Timed& each) {
    return each.runs() >= kLeastRuns && each.total() >= kMeasuredMs;
  };
  while (!std::ranges::all_of(timed, is_done))
    for (Timed& each : timed)
      each.measure();

  std::string text = fmt::format("{:<12}", "");
  for (const NamedKernel& each : kernels)
    text += fmt::format(" {:>12}", each.title);
  const auto row = [&](std::string_view title, const auto& cell) {
    text += fmt::format("\n{:<12}", title);
    for (const Timed& each : timed)
      text += fmt::format(" {:>12}", cell(each));
  };
  row("median", [](const Timed& each) { return format_seconds(each.median() / 1000); });
  row("min", [](const Timed& each) { return format_seconds(each.least() / 1000); });
  if (timed.size() > 1)
    row("speed-up",
        [&](const Timed& each) { return fmt::format("{:.2f}x", timed.front().median() / each.median()); });
  std::vector<std::string> with;
  for (const auto& [name, size] : sizes)
    with.push_back(fmt::format("{} = {}", name, size));
  with.push_back(format_count(static_cast<uint64_t>(threads), "thread"));
  return fmt::format("{}\nwith {}\n", text, fmt::join(with, ", "));
}

}  // namespace tenon::cli
