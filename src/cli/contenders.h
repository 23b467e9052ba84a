// contenders.h — ways to run one model, measured in turn: how long each takes, and what it needs.
#pragma once

#include "base/scratch_folder.h"
#include "cli/compile_model.h"
#include "compiler/describe.h"

namespace tenon::cli {

// One way to run the model, and what was found out about it.
struct Contender {
  std::string name;
  std::unique_ptr<runtime::Executor> executor = nullptr;  // null: the reference evaluator runs `graph`
  std::unique_ptr<Graph> graph = nullptr;
  double compile_ms = 0, cached_compile_ms = 0;
  std::optional<compiler::Needs> needs = {};  // of a program
  std::vector<double> times = {};             // in milliseconds, sorted in the end
  std::vector<double> device_times = {};      // the same by the clock of a device with memory of its own
  std::vector<Tensor> outputs = {};           // memory for them, where their sizes are fixed
  // The same of a device, and of the inputs, where it has memory of its own.
  std::vector<std::shared_ptr<std::byte[]>> device_inputs = {}, device_outputs = {};
  runtime::DevicePorts device_ports = {};
  std::unique_ptr<ScratchFolder> folder = std::make_unique<ScratchFolder>();  // for code, as long as it runs

  // Twice, the second time with what the first left in a cache. Optimising counts as compiling.
  void compile(const Graph& optimised, double optimize_ms, compiler::CompileContext how);
  // The same of a saved program, which is opened twice.
  void open(const std::string& program);
  void run(const Data& inputs, const runtime::RunOptions& options);
  // By the clock of the device, behind another run: launches are queued, as those of a caller who does not
  // wait for each. Nothing where the model runs on the host.
  void time_on_device(const runtime::RunOptions& options);

  double median() const;
  double p95() const;
  double least() const { return times.front(); }
  std::optional<double> device_median() const;  // nothing where the model runs on the host

 private:
  void run_into(const Data& inputs, const runtime::RunOptions& options);
  void run_on_device(runtime::RunOptions options);
  void make_outputs();
  void place_on_device(const Data& inputs, runtime::DeviceMemory& memory);
};

// Runs all once after another, so that what slows the machine down for a while slows all of them; for that
// many seconds, and five times at least.
void measure(std::vector<Contender>& contenders, const Data& inputs, double seconds,
             const runtime::RunOptions& options);

// A table with a column for each contender, and whatever else `beside` puts behind the row of that title.
class ContenderTable {
 public:
  using Beside = std::function<std::string(std::string_view title)>;

  explicit ContenderTable(const std::vector<Contender>& contenders, Beside beside = nullptr)
      : contenders_(contenders), beside_(std::move(beside)) {}

  template <class Cell>
  void add(std::string_view title, Cell&& cell) {
    text_ += fmt::format("{:<20}", title);
    for (const Contender& contender : contenders_)
      text_ += fmt::format(" {:>14}", cell(contender));
    text_ += beside_ ? beside_(title) + "\n" : "\n";
  }
  // What only programs have.
  template <class Cell>
  void add_need(std::string_view title, Cell&& cell) {
    add(title, [&](const Contender& each) { return each.needs ? cell(*each.needs) : std::string("-"); });
  }
  void add_times();      // median and p95
  void add_speed_ups();  // over the last contender
  void add_bytes_moved();
  void add_memory();  // between steps

  const std::string& text() const { return text_; }

 private:
  const std::vector<Contender>& contenders_;
  Beside beside_;
  std::string text_;
};

}  // namespace tenon::cli
