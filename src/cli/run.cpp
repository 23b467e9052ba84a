// run.cpp — tenon run: runs a model once.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/progress.h"
#include "base/units.h"
#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/made_up.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_compiled.h"
#include "cli/saved_model.h"
#include "compiler/describe.h"
#include "ir/evaluate.h"
#include "ir/summary.h"
#include "tensor/rounding.h"
#include "verify/compare.h"
#include "verify/engine.h"
#include "verify/tolerances.h"

namespace tenon::cli {

using compiler::CompileContext;

namespace {

using RunModel = std::function<Data(const Data& inputs, const runtime::RunOptions& options)>;

// That the outputs can be written is known before the model runs.
void check_outputs(const std::string& file, const Graph& graph) {
  check_writable(file);
  if (!file.ends_with(".npz"))
    throw user_error(
        "cannot write {}: its name must end in .npz\n"
        "  hint: --outputs names the file that all outputs are written to, each under its own name",
        file);
  if (graph.outputs().empty())
    throw user_error("cannot write {}: the model has no outputs", file);
  const std::vector<Value> outputs = graph.outputs();
  std::map<std::string, Value> named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.output_names()[i];
    if (named.emplace(name, outputs[i]).first->second != outputs[i])
      throw unsupported("two outputs have the name \"{}\", which an .npz cannot hold", name);
    if (!outputs[i].type().is_tensor())
      throw unsupported("the output \"{}\" is no tensor, which an .npz cannot hold", name);
  }
}

RunModel run_program(std::shared_ptr<const runtime::Executor> program) {
  if (const std::optional<compiler::Placement> placement = compiler::placement_of(program->program()))
    write_note(describe(*placement) + "\n");
  return [program](const Data& inputs, const runtime::RunOptions& options) {
    return run_compiled([&] { return program->run(inputs, options); });
  };
}

// What runs the model, which must outlive it.
RunModel prepare(Graph& graph, Engine engine, const CompileContext& how) {
  if (engine == Engine::Reference && how.precision != MatmulPrecision::F32)
    throw user_error(
        "--precision is for the compiled engine; the reference computes with what the model has");
  if (engine == Engine::Reference)
    return [&graph](const Data& inputs, const runtime::RunOptions& options) {
      Progress progress("running node", graph.node_count());
      return evaluate(graph, inputs, {.seed = options.seed, .before_node = [&](const Node& node) {
                                        progress.step(node.op().name);
                                      }});
    };
  optimize_model(graph, how.numerics);
  return run_program(compile_model(graph, how));
}

void write_outputs(const std::string& file, const Graph& graph, const Data& outputs) {
  std::map<std::string, Tensor> named;  // an output that is listed twice is written once
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace(graph.output_names()[i], outputs[i].tensor());
  write_npz(file, {named.begin(), named.end()});
}

RunModel open(const std::string& program, bool checks_weights) {
  if (checks_weights)
    runtime::ProgramFile::open(program)->check_weights();
  return run_program(open_saved_program(program).executor);
}

struct RunArguments {
  ModelArguments model;
  std::string inputs, outputs, expected, engine = "compiled", numerics = "default", precision = "f32";
  std::string device = api::default_device();
  double tolerance = 1e-4;
  bool checks_weights = false;
  runtime::RunOptions run;
};

// What should come out, and how close it must come.
class Expectation {
 public:
  // The graph is as it was read: what it rounds says how close its outputs can come.
  Expectation(const RunArguments& options, const Graph& graph)
      : names_(graph.output_names()),
        file_(options.expected),
        arrays_(find_outputs(options.expected, graph)),
        tolerances_(tolerances_of(graph, options.tolerance)) {
    if (parse_precision(options.precision) == MatmulPrecision::BF16)
      for (double& tolerance : tolerances_)
        tolerance = std::max(tolerance, kRoundingSteps * rounding_step(DType::BF16));
  }

  // In one file they may stand beside the inputs.
  void take_from(InputFile& inputs) const {
    for (const auto& [output, array] : arrays_)
      inputs.take(array.first);
  }

  // Writes a line for each output; whether all agree that the file has.
  bool compare_with(const Data& outputs) const {
    bool agree = true;
    for (size_t i = 0; i < outputs.size(); ++i)
      agree = write_comparison(i, outputs[i]) && agree;
    return agree;
  }

 private:
  bool write_comparison(size_t output, const Datum& actual) const {
    const std::string& output_name = names_[output];
    const auto it = arrays_.find(output);
    if (it == arrays_.end()) {
      write_output(fmt::format("{}: not compared: {} does not have it\n", output_name, file_));
      return true;
    }
    const auto& [name, expected] = it->second;
    if (type_of(actual) != type_of(Datum(expected)))
      throw user_error("{}: \"{}\" is {}, but the output \"{}\" is {}", file_, name, type_of(expected),
                       output_name, type_of(actual));
    const Comparison comparison = compare(actual.tensor(), expected, tolerances_[output]);
    const bool proves_nothing = comparison.proves_nothing && comparison.worst_error < kNearlyZero;
    const double error = comparison.scale > 0 ? comparison.worst_error / comparison.scale : 0;
    write_output(
        proves_nothing
            ? fmt::format("{}: nearly zero, as {} is, so that comparing proves nothing\n", output_name, name)
        : comparison.agree ? fmt::format("{}: agrees with {}, off by {:.1e}\n", output_name, name, error)
                           : fmt::format("{}: differs from {}: {}\n", output_name, name, comparison.detail));
    return comparison.agree || proves_nothing;
  }

  std::vector<std::string> names_;
  std::string file_;
  std::map<size_t, std::pair<std::string, Tensor>> arrays_;
  std::vector<double> tolerances_;
};

void run(const RunArguments& options) {
  const bool is_saved = is_saved_program(options.model.model);
  if (options.checks_weights && !is_saved)
    throw user_error("--check is for a saved program, which {} is not", options.model.model);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  if (!options.outputs.empty()) {
    refuse_overwriting(options.model, options.outputs);
    check_outputs(options.outputs, *graph);
  }
  const std::optional<Data> inputs = file.inputs_for(*graph);
  std::optional<Expectation> expectation;
  if (!options.expected.empty()) {
    expectation.emplace(options, *graph);
    if (options.expected == options.inputs)
      expectation->take_from(file);
  }
  file.note_others();
  const RunModel execute =
      is_saved ? open(options.model.model, options.checks_weights)
               : prepare(*graph, parse_engine(options.engine),
                         api::default_context({.numerics = parse_numerics_budget(options.numerics),
                                               .precision = parse_precision(options.precision),
                                               .threads = options.run.threads,
                                               .device = options.device}));
  const auto start = std::chrono::steady_clock::now();
  const Data outputs =
      inputs
          ? execute(*inputs, options.run)
          : with_made_up_inputs(*graph, [&](const Data& samples) { return execute(samples, options.run); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!options.outputs.empty())
    write_outputs(options.outputs, *graph, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    write_output(fmt::format("{}: {}\n", graph->output_names()[i], summary(outputs[i])));
  if (::isatty(STDERR_FILENO) != 0)
    write_note(
        fmt::format("ran in {} with the {} engine\n", format_seconds(seconds.count()), options.engine));
  if (expectation && !expectation->compare_with(outputs))
    throw Refused();
}

}  // namespace

void add_run(CLI::App& program) {
  auto options = std::make_shared<RunArguments>();
  CLI::App* command = program.add_subcommand("run", "runs a model once, and shows what comes out");
  options->model.takes_programs = true;
  options->model.add_to(*command);
  add_inputs(*command, options->inputs, "made by rule");
  offer_files(command->add_option("--outputs", options->outputs, "writes the outputs to this .npz")
                  ->option_text("FILE"),
              {".npz"});
  CLI::Option* expected =
      command
          ->add_option("--expected", options->expected,
                       "an .npz with what should come out, by name or as output_0, …; exit "
                       "status 1 where something else does")
          ->option_text("FILE");
  offer_files(expected, {".npz"});
  add_tolerance(*command, options->tolerance)->needs(expected);
  add_choice(*command, "--engine", options->engine,
             "what runs it: the optimised model as code for this machine, or as it is, node by node",
             {"compiled", "reference"});
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_device(*command, options->device);
  add_threads(*command, options->run.threads);
  add_seed(*command, options->run.seed);
  command->add_flag("--check", options->checks_weights,
                    "reads all weights of a saved program first, to find out whether they are damaged");
  command->footer(
      "An input of an ONNX model that has a value in the model keeps it unless --inputs holds another.\n"
      "Inputs made by rule: element i is sin(0.37 i) + 0.1 for floats, 7919 i mod 1000 for integers\n"
      "(mod the size of what they are looked up in, if that is smaller), true for booleans. A symbolic "
      "dimension\n"
      "is 1 unless --dim says otherwise.\n" +
      examples({"tenon run builtin:tiny", "tenon run builtin:attention --outputs out.npz --threads 1",
                "tenon run builtin:attention_any_length --dim length=100 --engine reference",
                "tenon run builtin:attention --expected out.npz"}));
  command->callback([command, options] {
    refuse_decided(*command, options->model.model, {"--engine", "--numerics", "--precision", "--device"});
    run(*options);
  });
}

}  // namespace tenon::cli
