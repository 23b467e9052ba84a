// model.cpp — models: loaded, described, bound.
#include "api/model.h"

#include "api/status.h"
#include "frontends/read_model.h"
#include "ops/registry.h"

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

tenon_model::tenon_model(std::unique_ptr<Graph> graph_)
    : graph(std::move(graph_)), inputs(input_ports(*graph)), outputs(output_ports(*graph)) {
  const std::set<std::string> symbols = input_symbols(*graph);
  dimensions.assign(symbols.begin(), symbols.end());
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
    made = new tenon_model(read_model(&given(model_name, "model_name")));
  });
}

tenon_status tenon_load_memory(const void* bytes, size_t size, const char* name, const char* folder,
                               tenon_model** model) {
  return guard([&] {
    register_ops();
    tenon_model*& made = given(model, "model");
    const auto* const first = &given(static_cast<const std::byte*>(bytes), "bytes");
    made = new tenon_model(read_model_from_memory(
        {first, size}, &given(name, "name"),
        folder == nullptr ? std::nullopt : std::optional<std::filesystem::path>(folder)));
  });
}

void tenon_free_model(tenon_model* model) { delete model; }

tenon_status tenon_bind(tenon_model* model, const char* dimension, int64_t size) {
  return guard([&] {
    tenon_model& bound = given(model, "model");
    bound = tenon_model(bind_dimension(*bound.graph, &given(dimension, "dimension"), size));
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
