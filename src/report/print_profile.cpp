#include "report/print_profile.h"

#include <algorithm>
#include <set>

#include "base/names.h"
#include "base/units.h"
#include "base/utf8.h"

namespace tenon {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kMostModules = 16;  // of those that are listed

std::string percent(double part) { return fmt::format("{:.1f}%", 100 * part); }

// In thousands of millions; a dash where it is not known.
std::string rate(std::optional<double> count, double seconds) {
  return count && *count > 0 ? fmt::format("{:.1f}", *count / seconds / 1e9) : "-";
}

class ProfilePrinter {
 public:
  ProfilePrinter(const Measurement& measurement, const Modules& modules)
      : measurement_(measurement), modules_(modules) {}

  std::string run(size_t top) {
    print_steps(top);
    print_launches(top);
    print_modules();
    print_ceilings();
    return std::move(text_);
  }

 private:
  // From the slowest to the fastest.
  std::vector<const MeasuredStep*> steps_by_time() const {
    std::vector<const MeasuredStep*> steps;
    for (const MeasuredStep& step : measurement_.steps)
      if (step.kind != MeasuredStep::Kind::View)
        steps.push_back(&step);
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto* a, const auto* b) { return a->typical > b->typical; });
    return steps;
  }

  // Of the steps that are shown, where they run on a GPU; each kernel once.
  void print_launches(size_t top) {
    std::vector<const MeasuredStep*> steps = steps_by_time();
    steps.resize(std::min(top, steps.size()));
    std::set<std::string> known;
    for (const MeasuredStep* step : steps)
      for (const runtime::RegionLaunch& launch : step->launches) {
        if (known.empty())
          text_ += fmt::format("\n{:>10} {:>7} {:>9} {:>9} {:>9} {:>9}  {}\n", "blocks", "threads",
                               "registers", "spilled", "shared", "occupancy", "kernel");
        if (known.insert(step->name).second || &launch != &step->launches.front())
          text_ += fmt::format("{:>10} {:>7} {:>9} {:>9} {:>9} {:>9}  {}\n", launch.blocks, launch.threads,
                               launch.registers, format_bytes(static_cast<double>(launch.spilled_bytes)),
                               format_bytes(static_cast<double>(launch.shared_bytes)),
                               percent(measurement_.occupancy(launch)), step->name);
      }
  }

  void print_steps(size_t top) {
    const std::vector<const MeasuredStep*> steps = steps_by_time();
    text_ += fmt::format("{:>8} {:>6} {:>8} {:>7} {:>7}  {:<8}  {}\n", "time", "share", "GFLOP/s", "GB/s",
                         "ceiling", "bound by", "step");
    double others = 0;
    for (size_t i = 0; i < steps.size(); ++i)
      if (i < top)
        print_step(*steps[i]);
      else
        others += steps[i]->typical;
    if (top < steps.size())
      print_time(others, format_count(steps.size() - top, "other"));
    print_time(measurement_.outside_steps(), "outside the steps");
    print_step(measurement_.whole);
  }

  void print_time(double seconds, std::string_view what) {
    text_ += fmt::format("{:>8} {:>6} {:34}  {}\n", format_seconds(seconds),
                         percent(seconds / measurement_.whole.typical), "", what);
  }

  void print_step(const MeasuredStep& step) {
    is_above_ceiling_ |= step.ceiling() > 1;
    const std::string row =
        fmt::format("{:>8} {:>6} {:>8} {:>7} {:>7}  {:<8}  ", format_seconds(step.typical),
                    percent(step.typical / measurement_.whole.typical), rate(step.flops, step.typical),
                    rate(step.bytes, step.typical), step.at_least > 0 ? percent(step.ceiling()) : "-",
                    step.bound ? name(*step.bound) : "");
    text_ += row + describe(step, kColumns - count_characters(row)) + "\n";
  }

  // The name, and as much of the first source as there is room for.
  static std::string describe(const MeasuredStep& step, size_t room) {
    std::string text = step.kind == MeasuredStep::Kind::Host ? "host " + step.name : step.name;
    if (step.sources.empty())
      return text;
    const size_t taken = text.size() + 1;
    return fmt::format("{} {}", text, first_and_count(step.sources, std::max(room, taken) - taken));
  }

  // By as many components of their paths as do not make the list too long.
  void print_modules() {
    const std::vector<ModuleTime> all = times_of_modules(measurement_, modules_);
    const auto components = [](const ModuleTime& time) {
      return 1 + std::count(time.module.begin(), time.module.end(), '/');
    };
    int64_t depth = 1;
    for (const ModuleTime& time : all)
      depth = std::max(depth, components(time));
    while (depth > 1 && cut_at(all, static_cast<size_t>(depth)).size() > kMostModules)
      --depth;
    const std::vector<ModuleTime> shown = cut_at(all, static_cast<size_t>(depth));
    if (shown.size() < 2)
      return;
    text_ += fmt::format("\n{:>8} {:>6} {:>6}  {}\n", "time", "share", "steps", "module");
    for (const ModuleTime& module : shown)
      text_ += fmt::format("{:>8} {:>6} {:>6}  {}\n", format_seconds(module.seconds),
                           percent(module.seconds / measurement_.whole.typical), module.steps,
                           module.module.empty() ? "(none)" : end_of(module.module, 70));
  }

  static std::vector<ModuleTime> cut_at(const std::vector<ModuleTime>& all, size_t depth) {
    std::vector<ModuleTime> cut;
    for (const ModuleTime& each : all) {
      const std::string module = cut_module(each.module, depth);
      auto known = std::find_if(cut.begin(), cut.end(), [&](const auto& a) { return a.module == module; });
      if (known == cut.end())
        known = cut.insert(cut.end(), {.module = module});
      known->seconds += each.seconds;
      known->steps += each.steps;
    }
    std::stable_sort(cut.begin(), cut.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return cut;
  }

  void print_ceilings() {
    const Ceilings& ceilings = measurement_.ceilings;
    std::vector<std::string> copies;
    for (const Ceilings::Bandwidth& level : ceilings.bandwidths)
      copies.push_back(fmt::format("{:.1f} GB/s in {}", level.bytes_per_second / 1e9, level.name));
    text_ +=
        fmt::format("\nmeans of the middle half of {}, with {}\n", format_count(measurement_.runs(), "run"),
                    measurement_.gpu ? "kernels by the clock of the device"
                                     : format_count(static_cast<uint64_t>(measurement_.threads), "thread"));
    if (measurement_.gpu)
      text_ += fmt::format("kernels {}, host steps {}, copies {}\n",
                           format_seconds(measurement_.seconds_of(MeasuredStep::Kind::Kernel)),
                           format_seconds(measurement_.seconds_of(MeasuredStep::Kind::Host)),
                           format_seconds(measurement_.seconds_of(MeasuredStep::Kind::Copy)));
    if (const auto tuned = std::ranges::count_if(measurement_.steps, &MeasuredStep::is_tuned); tuned > 0)
      text_ += fmt::format("computed as tenon tune has chosen: {}\n",
                           format_count(static_cast<uint64_t>(tuned), "step"));
    text_ += fmt::format("{}: {:.1f} GFLOP/s; copies {}\n",
                         measurement_.gpu ? measurement_.gpu->name : "this machine",
                         ceilings.flops_per_second / 1e9, fmt::join(copies, ", "));
    if (is_above_ceiling_)
      text_ +=
          "above 100 %: fewer multiplications than counted (Winograd), narrow numbers, data in a nearer "
          "cache\n";
  }

  const Measurement& measurement_;
  const Modules& modules_;
  std::string text_;
  bool is_above_ceiling_ = false;  // one of the steps that are shown
};

}  // namespace

std::string print_profile(const Measurement& measurement, const Modules& modules, size_t top) {
  return ProfilePrinter(measurement, modules).run(top);
}

std::vector<ModuleTime> times_of_modules(const Measurement& measurement, const Modules& modules) {
  std::map<std::string, ModuleTime> by_module;
  for (const MeasuredStep& step : measurement.steps) {
    if (step.kind == MeasuredStep::Kind::View)
      continue;
    const std::string module = modules.of(step.sources);
    ModuleTime& time = by_module[module];
    time.module = module;
    time.seconds += step.typical;
    ++time.steps;
  }
  std::vector<ModuleTime> times;
  for (auto& [module, time] : by_module)
    times.push_back(std::move(time));
  std::stable_sort(times.begin(), times.end(),
                   [](const ModuleTime& a, const ModuleTime& b) { return a.seconds > b.seconds; });
  return times;
}

}  // namespace tenon
