#include "report/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/describe.h"
#include "ops/data.h"
#include "report/explained_model.h"
#include "report/memory_use.h"
#include "report/page.h"
#include "report/print_profile.h"
#include "verify/notes.h"
#include "verify/verify_compiled.h"

namespace tenon {

using compiler::Needs;
using compiler::needs_of;
using compiler::sizes_of;
using compiler::UnfusedEdge;
using fusion::size_of;

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMostRewrites = 5000;

// Strings that stand in many places, once.
class Strings {
 public:
  size_t add(const std::string& text) {
    const auto [it, fresh] = places_.emplace(text, all_.size());
    if (fresh)
      all_.push_back(text);
    return it->second;
  }
  std::vector<size_t> add(const std::vector<std::string>& texts) {
    std::vector<size_t> places;
    for (const std::string& text : texts)
      places.push_back(add(text));
    return places;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, size_t> places_;
  std::vector<std::string> all_;
};

Json as_json(const std::vector<SeenValue>& values) {
  Json list = Json::array();
  for (const SeenValue& value : values)
    list.push_back(value.result == 0 ? Json(value.node) : Json({value.node, value.result}));
  return list;
}

int64_t count_parameters(const Graph& graph) {
  int64_t count = 0;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      if (node->is("parameter"))
        count += element_count(literal_of(*node)->extents());
  });
  return count;
}

class ReportWriter {
 public:
  ReportWriter(const ExplainedModel& model, const ReportOptions& options, const Bindings& sizes)
      : model_(model), options_(options), sizes_(sizes) {}

  Json run(int64_t parameters) {
    Json json = {{"version", options_.version}, {"model", options_.model}, {"machine", machine()}};
    json["summary"] = summary(parameters);
    Json body;
    body["nodes"] = nodes();
    body["stages"] = stages();
    body["passes"] = passes();
    body["rewrites"] = rewrites();
    if (const size_t all = model_.journal.applications().size(); all > kMostRewrites)
      body["rewrites_left_out"] = all - kMostRewrites;
    body["remarks"] = remarks();
    body["kernels"] = kernels();
    body["loops"] = loops();
    body["missed"] = missed();
    body["memory"] = memory();
    body["modules"] = modules();
    json["strings"] = strings_.all();
    json.update(body);
    return json;
  }

 private:
  Json machine() const {
    const Target& target = options_.compile.target;
    Json machine = {{"name", processor_name()},
                    {"cores", target.cores},
                    {"threads", model_.measurement.threads},
                    {"features", fmt::format("{}", fmt::join(target.features, " "))}};
    if (const std::optional<Gpu>& gpu = model_.measurement.gpu)
      machine.update(tenon::as_json(*gpu, model_.measurement));
    machine.update(tenon::as_json(model_.measurement.ceilings));
    return machine;
  }

  Json summary(int64_t parameters) const {
    const Measurement& measurement = model_.measurement;
    const Needs needs = needs_of(model_.compiled.executor->program(), sizes_);
    double optimising = 0;
    for (const PassReport& pass : model_.passes)
      optimising += pass.milliseconds;
    Json summary = {{"nodes_before", model_.history.stages().front().nodes},
                    {"nodes_after", model_.history.stages().back().nodes},
                    {"kernels", needs.kernels},
                    {"host_steps", needs.host_steps},
                    {"run_ms", 1e3 * measurement.whole.typical},
                    {"outside_steps_ms", 1e3 * measurement.outside_steps()},
                    {"optimise_ms", optimising},
                    {"compile_ms", 1e3 * model_.compiling},
                    {"arena_bytes", needs.arena_bytes},
                    {"arena_lower_bound", needs.arena_lower_bound},
                    {"bytes_moved", needs.bytes_moved},
                    {"runs", measurement.runs()},
                    {"parameters", parameters}};
    Json whole = tenon::as_json(measurement.whole, measurement);
    for (const char* field : {"flops", "gflops", "gbps", "ceiling"})
      if (whole.contains(field))
        summary[field] = whole[field];
    if (!sizes_.empty())
      summary["sizes"] = sizes_;
    return summary;
  }

  Json nodes() {
    Json list = Json::array();
    for (const SeenNode& node : model_.history.nodes()) {
      Json& row = list.emplace_back(Json{{"op", strings_.add(node.op)},
                                         {"name", strings_.add(node.name)},
                                         {"type", strings_.add(node.type)},
                                         {"inputs", as_json(node.inputs)}});
      if (!node.attributes.empty())
        row["attributes"] = strings_.add(node.attributes);
      row["module"] = strings_.add(model_.modules.of(node.sources));
      row["sources"] = strings_.add(node.sources);
      row["kind"] = node.kind;
      if (node.parent >= 0) {
        row["in"] = node.parent;
        row["region"] = strings_.add(node.region);
      }
    }
    return list;
  }

  Json stages() {
    Json list = Json::array();
    for (const GraphStage& stage : model_.history.stages()) {
      Json& row = list.emplace_back(Json{{"name", stage.name},
                                         {"milliseconds", stage.milliseconds},
                                         {"changes", stage.changes},
                                         {"nodes", stage.nodes},
                                         {"added", stage.added},
                                         {"removed", stage.removed},
                                         {"rewired", Json::array()},
                                         {"retyped", Json::array()},
                                         {"fixed", stage.fixed},
                                         {"unfixed", stage.unfixed}});
      for (const auto& [node, inputs] : stage.rewired)
        row["rewired"].push_back({node, as_json(inputs)});
      for (const auto& [node, type] : stage.retyped)
        row["retyped"].push_back({node, strings_.add(type)});
    }
    return list;
  }

  Json passes() const {
    Json list = Json::array();
    for (const PassReport& pass : model_.passes)
      list.push_back({{"pass", pass.pass},
                      {"round", pass.round},
                      {"milliseconds", pass.milliseconds},
                      {"changes", pass.changes},
                      {"nodes", pass.nodes}});
    return list;
  }

  Json rewrites() {
    Json list = Json::array();
    const std::vector<Application>& all = model_.journal.applications();
    for (size_t i = 0; i < std::min(all.size(), kMostRewrites); ++i)
      list.push_back({{"stage", model_.stages[i]},
                      {"rule", strings_.add(all[i].rule)},
                      {"removed", strings_.add(all[i].nodes)},
                      {"numerics", strings_.add(std::string(name(all[i].numerics)))}});
    return list;
  }

  Json remarks() {
    Json list = Json::array();
    for (const Remark& remark : model_.journal.remarks())
      list.push_back({{"pass", strings_.add(remark.pass)},
                      {"rule", strings_.add(remark.rule)},
                      {"node", strings_.add(remark.node)},
                      {"text", strings_.add(remark.reason)}});
    return list;
  }

  // One for each step of the program.
  Json kernels() {
    Json list = Json::array();
    size_t kernel = 0;
    const std::vector<MeasuredStep>& steps = model_.measurement.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      Json row = tenon::as_json(steps[i], model_.measurement);
      row["sources"] = strings_.add(steps[i].sources);
      row["nodes"] = model_.nodes[i];
      row["module"] = strings_.add(model_.modules.of(steps[i].sources));
      if (steps[i].kind == MeasuredStep::Kind::Kernel) {
        steps_of_kernels_.push_back(i);
        row["loops"] = place_of_loops(steps[i].name, kernel++);
      }
      list.push_back(std::move(row));
    }
    return list;
  }

  // Equal kernels have one name.
  size_t place_of_loops(const std::string& name, size_t kernel) {
    const auto [it, fresh] = loops_of_names_.emplace(name, kernels_with_loops_.size());
    if (fresh)
      kernels_with_loops_.push_back(kernel);
    return it->second;
  }

  Json loops() const {
    Json list = Json::array();
    for (size_t kernel : kernels_with_loops_) {
      tenon::loops::Kernel before = model_.compiled.plain[kernel], after = model_.compiled.kernels[kernel];
      for (tenon::loops::Kernel* each : {&before, &after})
        each->name = model_.measurement.steps[steps_of_kernels_[kernel]].name;
      list.push_back({{"before", print(before)}, {"after", print(after)}});
    }
    return list;
  }

  // What writing a value and reading it again takes at the rates that were measured. It is no more than what
  // its two steps took: they may be among those that are faster than the machine's ceilings.
  double microseconds_lost(const UnfusedEdge& edge) const {
    const Measurement& measurement = model_.measurement;
    const auto bytes = static_cast<double>(size_of(edge.buffer).evaluate(measurement.sizes).value_or(0));
    const auto time_of = [&](size_t kernel) { return measurement.steps[steps_of_kernels_[kernel]].typical; };
    return 1e6 * std::min(2 * bytes / measurement.ceilings.bandwidth_for(bytes),
                          time_of(edge.from) + time_of(edge.to));
  }

  Json missed() const {
    Json list = Json::array();
    std::vector<UnfusedEdge> edges = model_.compiled.fusion.edges;
    const auto lost = [&](const UnfusedEdge& edge) { return microseconds_lost(edge); };
    std::stable_sort(edges.begin(), edges.end(),
                     [&](const UnfusedEdge& a, const UnfusedEdge& b) { return lost(a) > lost(b); });
    for (const UnfusedEdge& edge : edges)
      list.push_back({{"from", steps_of_kernels_[edge.from]},
                      {"to", steps_of_kernels_[edge.to]},
                      {"buffer", fmt::format("{}[{}]", edge.buffer.dtype, fmt::join(edge.buffer.sizes, ","))},
                      {"reason", edge.reason},
                      {"microseconds", lost(edge)}});
    return list;
  }

  Json memory() const {
    const MemoryUse use = memory_use_of(model_.compiled.executor->program(), sizes_);
    Json tensors = Json::array();
    for (const StoredTensor& tensor : use.tensors)
      tensors.push_back({{"name", name_of(tensor)},
                         {"type", tensor.type},
                         {"bytes", tensor.bytes},
                         {"offset", tensor.offset},
                         {"from", tensor.from},
                         {"to", tensor.to}});
    Json memory = {
        {"lower_bound", use.lower_bound}, {"arena", use.arena}, {"live", use.live}, {"tensors", tensors}};
    if (const std::optional<Gpu>& gpu = model_.measurement.gpu) {
      memory["device"] = gpu->name;
      memory["device_constants"] = use.kernel_constants;
    }
    return memory;
  }

  // The user knows the nodes that made it, not what the compiler calls it.
  const std::string& name_of(const StoredTensor& tensor) const {
    const MeasuredStep& maker = model_.measurement.steps[static_cast<size_t>(tensor.from)];
    return maker.sources.empty() ? tensor.name : maker.sources.front();
  }

  Json modules() const {
    Json list = Json::array();
    for (const ModuleTime& time : times_of_modules(model_.measurement, model_.modules))
      list.push_back(
          {{"module", time.module}, {"milliseconds", 1e3 * time.seconds}, {"kernels", time.steps}});
    return list;
  }

  const ExplainedModel& model_;
  const ReportOptions& options_;
  const Bindings sizes_;
  Strings strings_;
  std::vector<size_t> steps_of_kernels_;          // the step that each kernel is
  std::map<std::string, size_t> loops_of_names_;  // where the loops of a name stand
  std::vector<size_t> kernels_with_loops_;        // a kernel of each name
};

Json as_json(const std::vector<PassVerification>& results) {
  Json list = Json::array();
  for (const PassVerification& result : results) {
    Json row = {{"level", name(result.level)}, {"pass", result.pass}, {"changes", result.changes}};
    row["numbers"] = name(result.numbers.verdict);
    if (result.numbers.verdict == Verdict::Passed || result.numbers.verdict == Verdict::Failed)
      row["difference"] = result.numbers.error;
    row["gradients"] = name(result.gradients.verdict);
    if (result.gradients.verdict == Verdict::Passed || result.gradients.verdict == Verdict::Failed)
      row["gradient_difference"] = result.gradients.error;
    row["lint"] = name(result.lint.verdict);
    row["parameters"] = name(result.parameters.verdict);
    row["notes"] = Json::array();
    for (const Check* check : {&result.numbers, &result.gradients, &result.lint, &result.parameters})
      for (std::string& note : notes_of(*check))
        row["notes"].push_back(std::move(note));
    list.push_back(std::move(row));
  }
  return list;
}

// What could not be verified is said, and ends nothing.
void add_verification(Json& json, const Graph& as_read, const Data& inputs, const ReportOptions& options) {
  json["verification"] = Json::array();
  std::string reason = options.not_verified;
  if (reason.empty()) {
    try {
      const auto given = options.verifies_on_inputs ? std::optional(inputs) : std::nullopt;
      json["verification"] = as_json(verify_model(as_read, options.compile,
                                                  {.samples = 1,
                                                   .inputs = given,
                                                   .numerics = options.compile.numerics,
                                                   .pipeline = options.pipeline,
                                                   .listener = options.listener}));
    } catch (const UserError& error) {
      reason = error.what();
    }
  }
  if (!reason.empty())
    json["not_verified"] = reason;
}

}  // namespace

Json make_report(Graph& graph, const Data& inputs, const ReportOptions& options) {
  const std::unique_ptr<Graph> as_read = graph.clone();
  const ExplainedModel model = explain(graph, inputs, options.compile, options.measure, options.pipeline);
  const Bindings sizes = sizes_of(model.compiled.executor->program(), inputs);
  Json json = ReportWriter(model, options, sizes).run(count_parameters(*as_read));
  add_verification(json, *as_read, inputs, options);
  return json;
}

std::string page_of(const Json& data) {
  // Bytes that are not UTF-8, as names in models may hold, become U+FFFD.
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string_view page = page_template();
  const size_t place = page.find(kPageDataPlace);
  CHECK(place != std::string_view::npos, "the page has no place for its data");
  std::string filled(page.substr(0, place));
  for (char letter : text)
    letter == '<' ? filled += "\\u003c" : filled += letter;  // only strings hold it
  return filled.append(page.substr(place + kPageDataPlace.size()));
}

}  // namespace tenon
