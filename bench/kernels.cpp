// kernels.cpp — how long each step of a compiled model takes, beside what the machine could do in that time.
//
//   bench_kernels MODEL [--threads N] [--seconds S] [--dim NAME=N]... [--json FILE]
//
// The ceilings are measured in the same run, with as many threads: multiplications with additions in
// registers, and a copy from memory to memory.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/progress.h"
#include "base/write_file.h"
#include "compiler/compile.h"
#include "compiler/describe.h"
#include "compiler/lower_graph.h"
#include "frontends/read_model.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "runtime/thread_pool.h"
#include "verify/sample_inputs.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// --- what the machine can do ---

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kRegisters = 32;
#else
constexpr int kVectorBytes = 16, kRegisters = 16;
#endif
typedef float Floats __attribute__((vector_size(kVectorBytes)));

// More chains than additions in flight, and fewer than registers.
constexpr int kChains = kRegisters * 3 / 4;
constexpr int64_t kTurns = 200'000;
constexpr double kFlopsOfChains = 2.0 * kTurns * kChains * (kVectorBytes / 4);

// The result is needed only so that it is computed.
float run_chains(float factor, float term) {
  Floats sums[kChains];
  for (int i = 0; i < kChains; ++i)
    sums[i] = Floats{} + static_cast<float>(i);
  for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma GCC unroll 32
    for (Floats& sum : sums)
      sum = sum * factor + term;
  float total = 0;
  for (const Floats& sum : sums)
    total += sum[0];
  return total;
}

class Ceilings {
 public:
  explicit Ceilings(int threads)
      : threads_(threads), from_(static_cast<size_t>(kCopied), std::byte{1}), to_(from_) {}

  // The best that is seen counts: others may use the machine, too.
  void measure() {
    for (int i = 0; i < 10; ++i) {
      const double added = rate([&](int64_t) { sink_ = run_chains(factor_, 0.5F); });
      flops_ = std::max(flops_, kFlopsOfChains * threads_ * added);
      const double copied = rate([&](int64_t task) {
        const int64_t begin = kCopied * task / threads_, end = kCopied * (task + 1) / threads_;
        std::memcpy(to_.data() + begin, from_.data() + begin, static_cast<size_t>(end - begin));
      });
      bytes_ = std::max(bytes_, 2.0 * kCopied * copied);
    }
  }

  double flops() const { return flops_; }  // in a second
  double bytes() const { return bytes_; }  // read and written, in a second

 private:
  static constexpr int64_t kCopied = 128 << 20;

  // How often all threads do this in a second.
  double rate(const std::function<void(int64_t task)>& work) const {
    const auto start = Clock::now();
    shared_pool(threads_).run(threads_, [&](int64_t task, int) { work(task); });
    return 1 / seconds_since(start);
  }

  int threads_;
  std::vector<std::byte> from_, to_;
  volatile float factor_ = 0.5F, sink_ = 0;  // so that nothing is known when this is compiled
  double flops_ = 0, bytes_ = 0;
};

// --- what the model does ---

struct Options {
  std::string model, json;
  std::map<std::string, Dim> sizes = {};
  double seconds = 2;
  int threads = std::min(this_machine().cores, kMostThreads);
};

struct TimedStep {
  std::string kind = "view";              // the name of the kernel, or of the op that runs on the host
  std::vector<std::string> sources = {};  // nodes of the model
  std::vector<std::string> reads = {}, writes = {};  // types
  double flops = 0, bytes = 0;                       // 0 where nobody knows
  std::vector<double> times = {};                    // in seconds
  double median = 0, ceiling = 0;  // ceiling: the part of the time that the machine could not do without

  void finish(const Ceilings& ceilings) {
    std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
    median = times[times.size() / 2];
    ceiling = std::max(flops / ceilings.flops(), bytes / ceilings.bytes()) / median;
  }
};

class Measurement {
 public:
  explicit Measurement(const Options& options) : options_(options), ceilings_(options.threads) {
    std::unique_ptr<Graph> graph = read_model(options.model);
    if (!options.sizes.empty())
      graph = graph->bind(options.sizes);
    inputs_ = sample_inputs(*graph);
    Journal journal(NumericsBudget::Default);
    optimize(*graph, journal);
    program_ = compile(*graph);
    describe_steps(fusion_of(*graph));
  }

  void run() {
    ceilings_.measure();
    time_run();  // warms up
    const double once = time_run();
    for (TimedStep& step : steps_)
      step.times.clear();
    const auto runs = std::max<int64_t>(5, static_cast<int64_t>(options_.seconds / once));
    Progress progress("measuring run", runs);
    for (int64_t i = 0; i < runs; ++i) {
      progress.step("");
      whole_.times.push_back(time_run());
    }
    ceilings_.measure();
    for (TimedStep& step : steps_) {
      step.finish(ceilings_);
      whole_.flops += step.flops;
      whole_.bytes += step.bytes;
    }
    whole_.finish(ceilings_);
    std::erase_if(steps_, [](const TimedStep& step) { return step.kind == "view"; });
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const TimedStep& a, const TimedStep& b) { return a.median > b.median; });
  }

  std::string text() const {
    std::string text = fmt::format("{:>10} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8}  step\n", "ms", "share",
                                   "MFLOP", "MB", "GFLOP/s", "GB/s", "ceiling");
    for (const TimedStep& step : steps_)
      text += row(step);
    text += row(whole_);
    double in_steps = 0;
    for (const TimedStep& step : steps_)
      in_steps += step.median;
    text += fmt::format("{} steps take {:.3f} ms, by their medians; medians of {} runs, with {} thread{}\n",
                        steps_.size(), 1e3 * in_steps, whole_.times.size(), options_.threads,
                        options_.threads == 1 ? "" : "s");
    return text + fmt::format("ceilings: {:.1f} GFLOP/s in registers, {:.1f} GB/s from memory to memory\n",
                              ceilings_.flops() / 1e9, ceilings_.bytes() / 1e9);
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json = {{"model", options_.model},
                                   {"threads", options_.threads},
                                   {"runs", whole_.times.size()},
                                   {"peak_gflops", ceilings_.flops() / 1e9},
                                   {"copy_gbps", ceilings_.bytes() / 1e9},
                                   {"total", as_json(whole_)},
                                   {"steps", nlohmann::ordered_json::array()}};
    for (const TimedStep& step : steps_)
      json["steps"].push_back(as_json(step));
    return json;
  }

 private:
  void describe_steps(const FusionReport& fusion) {
    const Bindings sizes = sizes_of(program_->graph(), inputs_);
    size_t kernels = 0;
    for (const Step& step : program_->steps()) {
      TimedStep& timed = steps_.emplace_back();
      timed.bytes = static_cast<double>(bytes_moved(*program_, step, sizes));
      if (const auto* kernel = std::get_if<KernelStep>(&step)) {
        timed.kind = kernel->name;
        timed.sources = kernel->sources;
        const Dim& operations = fusion.after.at(kernels++).cost.operations;
        timed.flops = static_cast<double>(operations.evaluate(sizes).value_or(0));
        note_types(*kernel, timed);
      } else if (const auto* host = std::get_if<HostStep>(&step)) {
        timed.kind = fmt::format("host {}", host->node->op().name);
        timed.sources = labels_of(*host->node);
        note_types(*host, timed);
      } else if (const auto* loops = std::get_if<LoopsStep>(&step)) {
        timed.kind = "host loops";
        for (const HostStep& loop : loops->loops)
          for (const std::string& source : labels_of(*loop.node))
            timed.sources.push_back(source);
        note_types(*loops, timed);
      }
    }
  }

  template <class Call>
  void note_types(const Call& call, TimedStep& timed) const {
    for (size_t slot : call.reads)
      timed.reads.push_back(fmt::format("{}", program_->slots()[slot].type));
    for (size_t slot : call.writes)
      timed.writes.push_back(fmt::format("{}", program_->slots()[slot].type));
  }

  // Once, in seconds.
  double time_run() {
    const auto start = Clock::now();
    auto before = start;
    const std::function<void(size_t)> after_step = [&](size_t step) {
      const auto now = Clock::now();
      steps_[step].times.push_back(std::chrono::duration<double>(now - before).count());
      before = now;
    };
    program_->run(inputs_, {.threads = options_.threads, .after_step = &after_step});
    return seconds_since(start);
  }

  std::string row(const TimedStep& step) const {
    const auto number = [](double value, double unit, int digits) {
      return value == 0 ? std::string("-") : fmt::format("{:.{}f}", value / unit, digits);
    };
    return fmt::format("{:10.4f} {:5.1f}% {:>9} {:>9} {:>8} {:>8} {:>8}  {}\n", 1e3 * step.median,
                       100 * step.median / whole_.median, number(step.flops, 1e6, 2),
                       number(step.bytes, 1e6, 3), number(step.flops / step.median, 1e9, 1),
                       number(step.bytes / step.median, 1e9, 1),
                       step.ceiling == 0 ? "-" : fmt::format("{:.1f}%", 100 * step.ceiling), describe(step));
  }

  static std::string describe(const TimedStep& step) {
    if (step.sources.empty())
      return step.kind;
    constexpr size_t kMostNames = 3;
    const auto names = std::span(step.sources).first(std::min(step.sources.size(), kMostNames));
    std::string text = fmt::format("{}({}) → {}: \"{}\"", step.kind, fmt::join(step.reads, ", "),
                                   fmt::join(step.writes, ", "), fmt::join(names, "\", \""));
    if (names.size() < step.sources.size())
      text += fmt::format(" and {} more", step.sources.size() - names.size());
    return text;
  }

  nlohmann::ordered_json as_json(const TimedStep& step) const {
    return {{"kind", step.kind},
            {"sources", step.sources},
            {"reads", step.reads},
            {"writes", step.writes},
            {"median_ms", 1e3 * step.median},
            {"share", step.median / whole_.median},
            {"flops", step.flops},
            {"bytes", step.bytes},
            {"gflops", step.flops / step.median / 1e9},
            {"gbps", step.bytes / step.median / 1e9},
            {"ceiling", step.ceiling}};
  }

  const Options& options_;
  Ceilings ceilings_;
  Data inputs_;
  std::unique_ptr<Program> program_;
  std::vector<TimedStep> steps_;
  TimedStep whole_ = {.kind = "the whole run"};
};

// --- the command ---

Options read_options(int count, char** words) {
  const UserError usage("bench_kernels MODEL [--threads N] [--seconds S] [--dim NAME=N]... [--json FILE]");
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&] { return i + 1 < count ? std::string(words[++i]) : throw usage; };
    if (word == "--threads") {
      options.threads = std::clamp(std::stoi(next()), 1, kMostThreads);
    } else if (word == "--seconds") {
      options.seconds = std::stod(next());
    } else if (word == "--json") {
      options.json = next();
    } else if (word == "--dim") {
      const std::string binding = next();
      const size_t equals = binding.find('=');
      if (equals == std::string::npos)
        throw usage;
      options.sizes.insert_or_assign(binding.substr(0, equals), std::stoll(binding.substr(equals + 1)));
    } else if (word.starts_with("--") || !options.model.empty()) {
      throw usage;
    } else {
      options.model = word;
    }
  }
  if (options.model.empty())
    throw usage;
  return options;
}

void measure(const Options& options) {
  Measurement measurement(options);
  measurement.run();
  fmt::print("{}", measurement.text());
  if (!options.json.empty())
    write_file(options.json, measurement.json().dump(1) + "\n");
}

}  // namespace
}  // namespace tenon

int main(int count, char** words) {
  try {
    tenon::register_ops();
    tenon::measure(tenon::read_options(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
