// model.cpp — models: loaded, described, bound, written.
#include "api/model.h"

#include "api/sized_struct.h"
#include "api/status.h"
#include "frontends/read_model.h"
#include "ops/registry.h"
#include "optimizer/optimize_to_write.h"

using namespace tenon;
using namespace tenon::api;

namespace {

std::set<std::string> input_symbols(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    symbols.merge(symbols_of(input.type()));
  return symbols;
}

}  // namespace

tenon_model::tenon_model(std::unique_ptr<Graph> graph_, std::optional<optimizer::Source> source_)
    : graph(std::move(graph_)),
      source(std::move(source_)),
      inputs(input_ports(*graph)),
      outputs(output_ports(*graph)),
      dimensions(dimensions_of(*graph)) {}

NumericsBudget tenon::api::numerics_of(int64_t numerics) {
  switch (numerics) {
    case TENON_NUMERICS_DEFAULT:
      return NumericsBudget::Default;
    case TENON_NUMERICS_STRICT:
      return NumericsBudget::Strict;
    case TENON_NUMERICS_FAST:
      return NumericsBudget::Fast;
    default:
      throw user_error("numerics cannot be {}", numerics);
  }
}

Ports tenon::api::input_ports(const Graph& graph) {
  Ports ports;
  for (Value input : graph.inputs())
    ports.emplace_back("input", input.name(), input.type());
  return ports;
}

Ports tenon::api::output_ports(const Graph& graph) {
  Ports ports;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    ports.emplace_back("output", graph.output_names()[i], graph.outputs()[i].type());
  return ports;
}

std::vector<std::string> tenon::api::dimensions_of(const Graph& graph) {
  const std::set<std::string> symbols = input_symbols(graph);
  return {symbols.begin(), symbols.end()};
}

std::unique_ptr<Graph> tenon::api::bind_dimension(const Graph& graph, const std::string& dimension,
                                                  int64_t size) {
  if (!input_symbols(graph).contains(dimension))
    throw user_error("no input has a dimension {}", dimension);
  if (size < 0)
    throw user_error("the dimension {} cannot be {}", dimension, size);
  return graph.bind({{dimension, Dim(size)}});
}

tenon_status tenon_load(const char* model_name, tenon_model** model) {
  return guard([&] {
    register_ops();
    tenon_model*& made = given(model, "model");  // first, lest what is made is lost
    const std::string name = &given(model_name, "model_name");
    made = new tenon_model(read_model(name), optimizer::source_of(name));
  });
}

tenon_status tenon_load_memory(const void* bytes, size_t size, const char* name, const char* folder,
                               tenon_model** model) {
  return guard([&] {
    register_ops();
    tenon_model*& made = given(model, "model");
    const auto* const first = &given(static_cast<const std::byte*>(bytes), "bytes");
    const auto file = MappedFile::copy(&given(name, "name"), {first, size});
    const auto where = folder == nullptr ? std::nullopt : std::optional<std::filesystem::path>(folder);
    made = new tenon_model(read_model(file, {.folder = where}), optimizer::source_of(file, where));
  });
}

void tenon_free_model(tenon_model* model) { delete model; }

tenon_status tenon_bind(tenon_model* model, const char* dimension, int64_t size) {
  return guard([&] {
    tenon_model& bound = given(model, "model");
    const std::string name = &given(dimension, "dimension");
    std::unique_ptr<Graph> graph = bind_dimension(*bound.graph, name, size);
    std::optional<optimizer::Source> source = bound.source;
    if (source)
      source->sizes.emplace(name, size);
    bound = tenon_model(std::move(graph), std::move(source));
  });
}

tenon_status tenon_optimize(const tenon_model* model, const tenon_optimize_options* options,
                            const char* path) {
  return guard([&] {
    const tenon_model& loaded = given(model, "model");
    const tenon_optimize_options asked = read_options(options);
    const std::filesystem::path to = &given(path, "path");
    const optimizer::Form form = optimizer::form_of(to);
    if (asked.opset != 0 && form != optimizer::Form::Onnx)
      throw user_error("opset is for .onnx files, but {} is written", to.string());
    const std::optional<int64_t> opset = asked.opset == 0 ? std::nullopt : std::optional(asked.opset);
    write_optimized(
        optimize_to_write(loaded.graph->clone(), loaded.source,
                          {.form = form, .numerics = numerics_of(asked.numerics), .opset = opset}),
        to);
  });
}

size_t tenon_model_count_inputs(const tenon_model* model) {
  return found_in<size_t>(model, "model", [](const tenon_model& each) { return each.inputs.size(); });
}

size_t tenon_model_count_outputs(const tenon_model* model) {
  return found_in<size_t>(model, "model", [](const tenon_model& each) { return each.outputs.size(); });
}

const tenon_port* tenon_model_input(const tenon_model* model, size_t number) {
  return found_in<const tenon_port*>(model, "model",
                                     [&](const tenon_model& each) { return describe(each.inputs, number); });
}

const tenon_port* tenon_model_output(const tenon_model* model, size_t number) {
  return found_in<const tenon_port*>(model, "model",
                                     [&](const tenon_model& each) { return describe(each.outputs, number); });
}

const char* tenon_model_dimension(const tenon_model* model, size_t number) {
  return found_in<const char*>(model, "model", [&](const tenon_model& each) {
    return number < each.dimensions.size() ? each.dimensions[number].c_str() : nullptr;
  });
}
