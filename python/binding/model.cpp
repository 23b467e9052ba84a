// model.cpp — what the command line does with models, for models in memory: each result as the text that the
// command prints, and as JSON.
#include "binding/model.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "api/model.h"
#include "base/write_file.h"
#include "binding/graph.h"
#include "binding/passes.h"
#include "binding/program.h"
#include "binding/tensors.h"
#include "cli/benchmark.h"
#include "cli/compile_model.h"
#include "cli/culprit.h"
#include "cli/listen.h"
#include "cli/optimization.h"
#include "cli/show_model.h"
#include "cli/verification.h"
#include "cli/version.h"
#include "compiler/compile.h"
#include "frontends/onnx/write/write.h"
#include "frontends/read_model.h"
#include "ir/print.h"
#include "ops/data.h"
#include "optimizer/optimize_to_write.h"
#include "report/print_profile.h"
#include "report/report.h"
#include "verify/bisect.h"
#include "verify/random_inputs.h"
#include "verify/sample_inputs.h"
#include "verify/small_sizes.h"
#include "verify/verify_compiled.h"

namespace tenon::python {
namespace {

using GraphPointer = std::shared_ptr<Graph>;

// What the command prints, and its numbers.
struct Result {
  std::string text, json;
  bool passed = true;
};

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

using Tensors = std::optional<nb::object>;  // any sequence of them

std::optional<Data> data_of(const Graph& graph, const Tensors& arguments) {
  if (!arguments)
    return std::nullopt;
  Data data;
  const std::vector<Value> inputs = graph.inputs();
  size_t next = 0;
  for (nb::handle each : *arguments) {
    if (next == inputs.size())
      throw user_error("the model takes {} inputs, but more were given", inputs.size());
    data.push_back(to_datum(each, "input " + inputs[next].name()));
    if (inputs[next++].type().is_optional() && !std::holds_alternative<Optional>(data.back()))
      data.back() = Optional{std::make_shared<Datum>(std::move(data.back()))};
  }
  if (next < inputs.size())
    throw user_error("the model takes {} inputs, but {} were given", inputs.size(), next);
  return data;
}

Data expected_of(const Graph& graph, nb::handle outputs) {
  Data data;
  for (nb::handle each : outputs)
    data.push_back(to_datum(each, "an expected output"));
  if (data.size() != graph.outputs().size())
    throw user_error("the model has {} outputs, but {} are expected", graph.outputs().size(), data.size());
  return data;
}

compiler::CompileContext context_of(const std::string& numerics, const std::string& precision,
                                    int64_t threads, const std::optional<std::string>& device,
                                    const std::optional<std::string>& cache) {
  if (precision != "f32" && precision != "bf16")
    throw user_error("precision is f32 or bf16, but not {}", precision);
  if (threads < 0 || threads > 1024)
    throw user_error("a program runs with 1 to 1024 threads, not with {}", threads);
  compiler::CompileContext context =
      api::default_context({.numerics = parse_numerics_budget(numerics),
                            .precision = precision == "bf16" ? MatmulPrecision::BF16 : MatmulPrecision::F32,
                            .threads = static_cast<int>(threads),
                            .device = device.value_or(api::default_device())});
  if (cache)
    context.cache = cache->empty() ? std::nullopt : std::optional(codegen::ObjectCache(*cache));
  return context;
}

int threads_or_all(int64_t threads) { return threads > 0 ? static_cast<int>(threads) : this_machine().cores; }

// --- models ---

using SourcePointer = std::shared_ptr<const optimizer::Source>;  // none where the model is not an ONNX file
using Loaded = std::tuple<GraphPointer, SourcePointer>;

SourcePointer pointer_to(std::optional<optimizer::Source> source) {
  return source ? std::make_shared<const optimizer::Source>(std::move(*source)) : nullptr;
}

Loaded load(const std::string& path) {
  const nb::gil_scoped_release released;
  return {read_model(path), pointer_to(optimizer::source_of(path))};
}

Loaded load_bytes(const nb::bytes& bytes, const std::string& name, const std::optional<std::string>& folder) {
  const std::span<const std::byte> span(static_cast<const std::byte*>(bytes.data()), bytes.size());
  const nb::gil_scoped_release released;
  const auto file = MappedFile::copy(name, span);
  const auto where = folder ? std::optional<std::filesystem::path>(*folder) : std::nullopt;
  return {read_model(file, {.folder = where}), pointer_to(optimizer::source_of(file, where))};
}

SourcePointer bind_source(const optimizer::Source& source, const std::map<std::string, int64_t>& sizes) {
  optimizer::Source bound = source;
  for (const auto& [dimension, size] : sizes)
    bound.sizes.emplace(dimension, size);
  return pointer_to(std::move(bound));
}

GraphPointer bind(const Graph& graph, const std::map<std::string, int64_t>& sizes) {
  std::unique_ptr<Graph> bound = graph.clone();
  for (const auto& [dimension, size] : sizes)
    bound = api::bind_dimension(*bound, dimension, size);
  return bound;
}

GraphPointer rename_dimensions(const Graph& graph, const std::map<std::string, std::string>& names) {
  std::map<std::string, Dim> sizes;
  for (const auto& [before, after] : names)
    sizes.emplace(before, Dim::symbol(after));
  return graph.bind(sizes);
}

void save_model(const Graph& graph, const std::string& path, std::optional<int64_t> opset) {
  if (optimizer::form_of(path) == optimizer::Form::Onnx) {
    onnx::write_onnx(graph, path, {.opset = opset});
    return;
  }
  if (opset)
    throw user_error("opset is for .onnx files, but {} is written", path);
  save(graph, path);
}

// A graph that was optimised, to an ONNX file that is not larger than the one that it was read from.
void save_optimized(const Graph& graph, const optimizer::Source& source, const std::string& path,
                    std::optional<int64_t> opset, const std::string& numerics,
                    const std::vector<std::string>& only, const std::vector<std::string>& disabled,
                    const AddedPasses& added) {
  const std::vector<Pass> pipeline = pipeline_with(added);
  const nb::gil_scoped_release released;
  write_optimized(optimize_to_write(graph.clone(), source,
                                    {.passes = {.pipeline = pipeline,
                                                .only = {only.begin(), only.end()},
                                                .disabled = {disabled.begin(), disabled.end()}},
                                     .numerics = parse_numerics_budget(numerics),
                                     .opset = opset}),
                  path);
}

nb::object ports_of(const api::Ports& ports) {
  nb::list list;
  for (const api::Port& port : ports) {
    const tenon_port& description = port.description();
    nb::object shape = nb::none();
    if (description.rank >= 0) {
      nb::list sizes;
      for (int32_t i = 0; i < description.rank; ++i)
        if (description.sizes[i] >= 0)
          sizes.append(description.sizes[i]);
        else
          sizes.append(std::string(description.dimensions[i]));
      shape = nb::tuple(sizes);
    }
    const char* const dtype = tenon_dtype_name(description.dtype);
    list.append(nb::make_tuple(description.name, description.type,
                               dtype == nullptr ? nb::object(nb::none()) : nb::cast(dtype), shape));
  }
  return std::move(list);
}

std::string show_model(const Graph& graph, const std::string& form, const std::string& stage,
                       const std::optional<std::string>& device, const std::string& why,
                       const AddedPasses& added) {
  if (std::ranges::find(cli::kStages, stage) == cli::kStages.end())
    throw user_error("there is no stage {}: it is one of {}", stage, fmt::join(cli::kStages, ", "));
  const cli::ShowOptions options{.as = form,
                                 .stage = stage,
                                 .why = why,
                                 .device = device.value_or(api::default_device()),
                                 .pipeline = pipeline_with(added)};
  const nb::gil_scoped_release released;
  cli::check_options(options);
  return cli::show(*cli::graph_at_stage(graph.clone(), options), options);
}

// --- what is done with them ---

std::tuple<GraphPointer, Result, std::string> optimize_graph(const Graph& graph, const std::string& numerics,
                                                             const std::vector<std::string>& only,
                                                             const std::vector<std::string>& disabled,
                                                             const AddedPasses& added) {
  const std::vector<Pass> pipeline = pipeline_with(added);
  const nb::gil_scoped_release released;
  std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(parse_numerics_budget(numerics));
  const std::vector<PassReport> reports =
      cli::optimize_model(*optimised, journal,
                          {.pipeline = pipeline,
                           .only = {only.begin(), only.end()},
                           .disabled = {disabled.begin(), disabled.end()}});
  nlohmann::ordered_json rewrites = nlohmann::ordered_json::array(), passes = nlohmann::ordered_json::array(),
                         remarks = nlohmann::ordered_json::array();
  for (const Application& each : journal.applications())
    rewrites.push_back({{"number", each.number},
                        {"pass", each.pass},
                        {"rule", each.rule},
                        {"nodes", each.nodes},
                        {"numerics", name(each.numerics)}});
  for (const PassReport& each : reports)
    passes.push_back(
        {{"name", each.pass}, {"ms", each.milliseconds}, {"changes", each.changes}, {"nodes", each.nodes}});
  for (const Remark& each : journal.remarks())
    remarks.push_back(
        {{"pass", each.pass}, {"rule", each.rule}, {"node", each.node}, {"reason", each.reason}});
  const std::string text = cli::pass_table(reports) +
                           fmt::format("{} nodes became {}\n", count_nodes(graph), count_nodes(*optimised));
  return {std::move(optimised),
          Result{text, dump({{"passes", passes}, {"rewrites", rewrites}, {"remarks", remarks}})},
          cli::remark_list(journal.remarks())};
}

std::unique_ptr<Program> compile_graph(const Graph& graph, const std::string& numerics,
                                       const std::string& precision, int64_t threads,
                                       const std::optional<std::string>& device,
                                       const std::optional<std::string>& cache, const AddedPasses& added,
                                       const std::vector<std::string>& disabled) {
  const std::vector<Pass> pipeline = pipeline_with(added);
  const nb::gil_scoped_release released;
  const compiler::CompileContext context = context_of(numerics, precision, threads, device, cache);
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(context.numerics);
  cli::optimize_model(*optimised, journal,
                      {.pipeline = pipeline, .disabled = {disabled.begin(), disabled.end()}});
  return std::make_unique<Program>(cli::compile_model(*optimised, context), context);
}

// Runs `work` on the inputs that are given, or on some that it makes up, which not every model takes: then an
// error says what to give.
template <class Work>
auto with_hint_at_inputs(const Graph& graph, bool are_given, Work&& work) {
  try {
    return work();
  } catch (const UnsupportedError&) {
    throw;
  } catch (const UserError& error) {
    if (are_given || !takes_integers(graph))
      throw;
    const std::string text = error.what();
    std::vector<std::string> names, types;
    for (Value input : graph.inputs()) {
      names.push_back(fmt::format("\"{}\": …", input.name()));
      types.push_back(fmt::format("{}: {}", input.name(), input.type()));
    }
    // What the command line says of it ends in its own option.
    throw user_error(
        "{}\n  hint: the inputs were made up, and integers among them may name what is not there; give "
        "your own, inputs={{{}}}, for {}",
        text.substr(0, text.find("\n  hint: the inputs ")), fmt::join(names, ", "), fmt::join(types, ", "));
  }
}

GradientChecks parse_gradients(const std::string& word) {
  if (word != "auto" && word != "always" && word != "never")
    throw user_error("gradients is auto, always or never, but not {}", word);
  return word == "always"  ? GradientChecks::Always
         : word == "never" ? GradientChecks::Never
                           : GradientChecks::Auto;
}

Result verify_graph(const Graph& graph, const Tensors& inputs, int64_t samples, double tolerance,
                    const std::string& numerics, const std::string& gradients,
                    const std::optional<std::string>& device, const AddedPasses& added) {
  VerifyOptions options{.samples = samples,
                        .inputs = data_of(graph, inputs),
                        .tolerance = tolerance,
                        .numerics = parse_numerics_budget(numerics),
                        .gradients = parse_gradients(gradients),
                        .pipeline = pipeline_with(added)};
  const nb::gil_scoped_release released;
  std::optional<Progress> progress;
  options.listener = cli::listener_for(progress);
  const compiler::CompileContext context = context_of(numerics, "f32", 0, device, std::nullopt);
  const std::vector<PassVerification> results = with_hint_at_inputs(
      graph, options.inputs.has_value(), [&] { return verify_model(graph, context, options); });
  progress.reset();
  return {cli::verification_table(results), dump(cli::verification_json(results)),
          std::ranges::none_of(results, &PassVerification::failed)};
}

// A parameter whose elements are others than those that it had before is not the one that it was, though it
// has its name: its gradient is another, too.
std::unique_ptr<Graph> with_changed_parameters_renamed(const Graph& after, const Graph& before) {
  std::map<std::string, const Literal*> had;
  for (const Node* node : before.nodes())
    if (node->is("parameter"))
      had.emplace(node->attr("name"), literal_of(*node));
  std::unique_ptr<Graph> renamed = after.clone();
  for (Node* node : renamed->nodes()) {
    const auto found = node->is("parameter") ? had.find(node->attr("name")) : had.end();
    if (found == had.end() || *found->second == *literal_of(*node))
      continue;
    const InsertBefore here(node);
    renamed->replace(node, {parameter(*renamed, found->first + " (changed)", *literal_of(*node))});
  }
  return renamed;
}

// One graph against another that it should be the same as. Sizes that are open are small, but where inputs
// are given.
Result verify_against(const Graph& before, const Graph& after, const Tensors& inputs, int64_t samples,
                      double tolerance, const std::string& gradients) {
  if (before.input_count() != after.input_count())
    throw user_error("one model takes {} inputs, the other {}", before.input_count(), after.input_count());
  VerifyOptions options{.samples = samples,
                        .inputs = data_of(before, inputs),
                        .tolerance = tolerance,
                        .gradients = parse_gradients(gradients)};
  const nb::gil_scoped_release released;
  if (options.gradients == GradientChecks::Auto && is_large(before))
    options.gradients = GradientChecks::Never;
  const std::unique_ptr<Graph> renamed = with_changed_parameters_renamed(after, before);
  std::vector<PassVerification> results;
  if (options.inputs) {
    results = {verify_graphs(before, *renamed, options)};
  } else {
    const std::unique_ptr<Graph> small = with_small_sizes(before);
    results = {verify_graphs(*small, *with_sizes_of(*renamed, sample_inputs(*small)), options)};
  }
  results.front().pass = "both models";
  return {cli::verification_table(results), dump(cli::verification_json(results)), !results.front().failed()};
}

struct PythonCulprit {
  Culprit culprit;
  BisectOptions options;
};

nb::object bisect_graph(const Graph& graph, const Tensors& inputs, const Tensors& expected, double tolerance,
                        const std::string& numerics, const AddedPasses& added) {
  BisectOptions options;
  options.verify.tolerance = tolerance;
  options.verify.numerics = parse_numerics_budget(numerics);
  options.verify.pipeline = pipeline_with(added);
  options.inputs = data_of(graph, inputs);
  if (expected) {
    if (!options.inputs)
      throw user_error("expected says what comes out for some inputs: give those, too");
    options.expected = expected_of(graph, *expected);
  }
  options.context = context_of(numerics, "f32", 0, "cpu", std::nullopt);
  std::optional<Culprit> culprit;
  {
    const nb::gil_scoped_release released;
    std::optional<Progress> progress;
    options.verify.listener = cli::listener_for(progress);
    culprit = with_hint_at_inputs(graph, options.inputs.has_value(), [&] { return bisect(graph, options); });
    options.verify.listener = {};
  }
  if (!culprit)
    return nb::none();
  return nb::cast(std::make_unique<PythonCulprit>(PythonCulprit{std::move(*culprit), std::move(options)}));
}

std::tuple<std::string, std::string> save_culprit(const PythonCulprit& culprit, const std::string& path) {
  if (!culprit.culprit.model)
    throw user_error("no smaller model shows it, so that there is nothing to save");
  const WrittenCulprit written = write_culprit(culprit.culprit, path, culprit.options);
  return {written.model.string(), written.inputs.string()};
}

Result bench_model(const Graph& graph, const Tensors& inputs, const std::string& model,
                   const std::string& against, double seconds, int64_t threads, const std::string& numerics,
                   const std::string& precision, const std::optional<std::string>& device,
                   const AddedPasses& added) {
  cli::BenchmarkOptions options{.model = model,
                                .numerics = numerics,
                                .precision = precision,
                                .against = against,
                                .device = device.value_or(api::default_device()),
                                .seconds = seconds,
                                .run = {.threads = threads_or_all(threads)},
                                .pipeline = pipeline_with(added)};
  const std::optional<Data> data = data_of(graph, inputs);
  const nb::gil_scoped_release released;
  cli::check_against(options);
  context_of(numerics, precision, threads, device, std::nullopt);  // whose errors are not of inputs
  const std::unique_ptr<Graph> copy = graph.clone();
  const cli::Benchmark benchmark =
      with_hint_at_inputs(graph, data.has_value(), [&] { return cli::bench_graph(*copy, data, options); });
  return {cli::text_of(benchmark), dump(benchmark.json)};
}

// The data of the page, and the page.
std::tuple<std::string, std::string> report_on(const Graph& graph, const Tensors& inputs,
                                               const std::string& model, double seconds, bool verify,
                                               int64_t threads, const std::string& numerics,
                                               const std::string& precision,
                                               const std::optional<std::string>& device,
                                               const AddedPasses& added) {
  const std::optional<Data> given = data_of(graph, inputs);
  const std::vector<Pass> pipeline = pipeline_with(added);
  const nb::gil_scoped_release released;
  std::optional<Progress> progress;
  ReportOptions options{.model = model,
                        .version = tenon_version(),
                        .compile = context_of(numerics, precision, threads, device, std::nullopt),
                        .measure = {.threads = threads_or_all(threads), .seconds = seconds},
                        .pipeline = pipeline,
                        .not_verified = verify ? "" : "it was not wanted",
                        .verifies_on_inputs = given.has_value(),
                        .listener = cli::listener_for(progress)};
  options.measure.listener = options.listener;
  const std::unique_ptr<Graph> copy = graph.clone();
  const nlohmann::ordered_json data = with_hint_at_inputs(graph, given.has_value(), [&] {
    return make_report(*copy, given ? *given : sample_inputs(graph), options);
  });
  return {dump(data), page_of(data)};
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<Result>(module, "Result")
      .def_ro("text", &Result::text)
      .def_ro("json", &Result::json)
      .def_ro("passed", &Result::passed);
  nb::class_<PythonCulprit>(module, "Culprit")
      .def_prop_ro("text", [](const PythonCulprit& each) { return cli::describe_culprit(each.culprit); })
      .def_prop_ro("level", [](const PythonCulprit& each) { return std::string(name(each.culprit.level)); })
      .def_prop_ro("number", [](const PythonCulprit& each) { return each.culprit.application.number; })
      .def_prop_ro("rule", [](const PythonCulprit& each) { return each.culprit.application.rule; })
      .def_prop_ro("pass_name", [](const PythonCulprit& each) { return each.culprit.application.pass; })
      .def_prop_ro("nodes",
                   [](const PythonCulprit& each) {
                     return each.culprit.program ? each.culprit.program->sources
                                                 : each.culprit.application.nodes;
                   })
      .def_prop_ro(
          "part",
          [](const PythonCulprit& each) { return each.culprit.program ? each.culprit.program->part : ""; })
      .def_prop_ro("error", [](const PythonCulprit& each) { return each.culprit.numbers.error; })
      .def("save", save_culprit);

  nb::class_<Graph>(module, "ModelGraph");
  nb::class_<optimizer::Source>(module, "Source");
  module.def("load", load);
  module.def("load_bytes", load_bytes);
  module.def("bind", bind);
  module.def("rename_dimensions", rename_dimensions);
  module.def("bind_source", bind_source);
  module.def("save", save_model);
  module.def("save_optimized", save_optimized);
  module.def("show", show_model);
  module.def("inputs", [](const Graph& graph) { return ports_of(api::input_ports(graph)); });
  module.def("outputs", [](const Graph& graph) { return ports_of(api::output_ports(graph)); });
  module.def("dimensions", [](const Graph& graph) { return api::dimensions_of(graph); });
  module.def("program_inputs",
             [](const Program& program) { return ports_of(api::input_ports(program.executor().program())); });
  module.def("program_outputs", [](const Program& program) {
    return ports_of(api::output_ports(program.executor().program()));
  });
  module.def("node_count", [](const Graph& graph) { return count_nodes(graph); });
  module.def("edit", [](const Graph& graph) { return std::make_shared<EditedGraph>(graph.clone()); });
  module.def("finish", [](const EditedGraph& graph) -> GraphPointer { return graph.get().clone(); });
  module.def("optimize", optimize_graph);
  module.def("compile", compile_graph);
  module.def("verify", verify_graph);
  module.def("verify_against", verify_against);
  module.def("bisect", bisect_graph);
  module.def("bench", bench_model);
  module.def("report", report_on);
  module.def("describe_build", cli::describe_build);
}

}  // namespace tenon::python
