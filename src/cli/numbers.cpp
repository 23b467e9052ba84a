#include "cli/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontends/onnx/import.h"
#include "frontends/onnx/write/schemas.h"
#include "runtime/cpu/thread_pool.h"
#include "target/target.h"

namespace tenon::cli {

using runtime::kMostRunThreads;

namespace {

// Accepts what `is_allowed`, and says of anything else that it must be `wanted`.
template <class Number>
CLI::Validator in_range(const std::string& wanted, bool (*is_allowed)(Number)) {
  const auto check = [=](const std::string& text) {
    Number number{};
    const bool fits = CLI::detail::lexical_cast(text, number) && is_allowed(number);
    return fits ? std::string() : fmt::format("it must be {}, but is {}", wanted, text);
  };
  return {check, ""};
}

}  // namespace

CLI::Option* add_samples(CLI::App& command, int64_t& samples) {
  return command.add_option("--samples", samples, "how many random inputs, where none are given")
      ->check(in_range<int64_t>("a whole number from 1 up", [](int64_t number) { return number >= 1; }))
      ->option_text("N")
      ->capture_default_str();
}

CLI::Option* add_threads(CLI::App& command, int& threads) {
  threads = std::min(this_machine().cores, kMostRunThreads);
  return command.add_option("--threads", threads, "how many threads the compiled model uses")
      ->check(in_range<int>(fmt::format("a whole number from 1 to {}", kMostRunThreads),
                            [](int number) { return number >= 1 && number <= kMostRunThreads; }))
      ->option_text("N")
      ->default_str("one for each core");
}

CLI::Option* add_count(CLI::App& command, const std::string& name, std::optional<int64_t>& number,
                       const std::string& doc) {
  return command.add_option(name, number, doc)
      ->check(in_range<int64_t>("a whole number from 1 up", [](int64_t given) { return given >= 1; }))
      ->option_text("N");
}

CLI::Option* add_seconds(CLI::App& command, double& seconds) {
  return command.add_option("--seconds", seconds, "how long it measures, for 5 runs at least")
      ->check(in_range<double>("a number from 0 to 86400",
                               [](double number) { return number >= 0 && number <= 86400; }))
      ->option_text("S")
      ->capture_default_str();
}

CLI::Option* add_top(CLI::App& command, int64_t& top) {
  return command.add_option("--top", top, "how many steps are listed, the slowest first")
      ->check(in_range<int64_t>("a whole number from 1 up", [](int64_t number) { return number >= 1; }))
      ->option_text("N")
      ->capture_default_str();
}

CLI::Option* add_seed(CLI::App& command, uint64_t& seed) {
  return command.add_option("--seed", seed, "the seed of the model's random ops")
      ->check(in_range<uint64_t>("a whole number from 0 up", [](uint64_t) { return true; }))
      ->option_text("N")
      ->capture_default_str();
}

CLI::Option* add_opset(CLI::App& command, std::optional<int64_t>& opset) {
  const std::string range = fmt::format("{} to {}", onnx::kOldestWritten, onnx::kNewestOpset);
  return command
      .add_option("--opset", opset,
                  fmt::format("the opset of the ONNX file: {}, by default the oldest that all its nodes can "
                              "be written in",
                              range))
      ->check(in_range<int64_t>(
          "a whole number from " + range,
          [](int64_t number) { return number >= onnx::kOldestWritten && number <= onnx::kNewestOpset; }))
      ->option_text("N");
}

CLI::Option* add_tolerance(CLI::App& command, double& tolerance) {
  return command
      .add_option("--tolerance", tolerance,
                  "max |difference| over max |expected|; more where a model rounds to 16 bits")
      ->check(in_range<double>("a number from 0 up",
                               [](double number) { return number >= 0 && std::isfinite(number); }))
      ->option_text("T")
      ->capture_default_str();
}

}  // namespace tenon::cli
