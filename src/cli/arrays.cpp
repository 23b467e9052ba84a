#include "cli/arrays.h"

#include <cstdio>

#include "base/error.h"

namespace tenon::cli {
namespace {

const Tensor* find(const NamedTensors& arrays, const std::string& name) {
  const auto it = std::ranges::find(arrays, name, &NamedTensors::value_type::first);
  return it == arrays.end() ? nullptr : &it->second;
}

// What a file has for the values of those names, each an input or each an output ("input", "output").
Data arrays_for(std::string_view what, const std::vector<std::string>& names,
                const std::vector<Value>& values, const std::string& file, const NamedTensors& arrays,
                std::set<std::string>& taken) {
  Data data;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string place = fmt::format("{}_{}", what, i);
    std::string name = names[i];
    if (find(arrays, name) == nullptr && std::ranges::find(names, place) == names.end())
      name = place;
    const Tensor* array = find(arrays, name);
    if (array == nullptr)
      throw user_error("{}: there is no \"{}\" (nor {}) for the {} of type {}", file, names[i], place, what,
                       values[i].type());
    taken.insert(name);
    data.emplace_back(*array);
  }
  return data;
}

}  // namespace

std::vector<std::string> names_of(const NamedTensors& arrays) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : arrays)
    names.push_back(name);
  return names;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (Value input : graph.inputs())
    names.push_back(input.name());
  return names;
}

Data inputs_from(const std::string& file, const NamedTensors& arrays, const Graph& graph,
                 std::set<std::string>& taken) {
  return arrays_for("input", input_names(graph), graph.inputs(), file, arrays, taken);
}

Data outputs_from(const std::string& file, const NamedTensors& arrays, const Graph& graph,
                  std::set<std::string>& taken) {
  return arrays_for("output", graph.output_names(), graph.outputs(), file, arrays, taken);
}

void note_others(const std::string& file, const NamedTensors& arrays, const std::set<std::string>& taken) {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : arrays)
    if (!taken.contains(name))
      others.push_back(name);
  if (!others.empty())
    std::fputs(fmt::format("note: {}: no input takes {}\n", file, fmt::join(others, ", ")).c_str(), stderr);
}

}  // namespace tenon::cli
