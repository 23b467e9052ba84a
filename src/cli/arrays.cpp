#include "cli/arrays.h"

#include "base/edit_distance.h"
#include "base/error.h"
#include "cli/output.h"

namespace tenon::cli {
namespace {

const Tensor* find(const NamedTensors& arrays, const std::string& name) {
  const auto it = std::ranges::find(arrays, name, &NamedTensors::value_type::first);
  return it == arrays.end() ? nullptr : &it->second;
}

// What the file holds and no value takes, and which names there are: first the one that was probably meant.
std::string names_hint(std::string_view what, std::vector<std::string> names, const NamedTensors& arrays,
                       const std::set<std::string>& taken) {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : arrays)
    if (!taken.contains(name) && std::ranges::find(names, name) == names.end())
      others.push_back(name);
  if (others.empty())
    return "";
  const auto distance = [&](const std::string& name) {
    size_t least = std::string::npos;
    for (const std::string& other : others)
      least = std::min(least, edit_distance(other, name));
    return least;
  };
  std::ranges::stable_sort(names, {}, distance);
  return fmt::format("\n  hint: it has {}, but the {}s are {}", fmt::join(others, ", "), what,
                     fmt::join(names, ", "));
}

// The array for the value of the name at that place: "input_0" stands for the first, unless a value is called
// so.
std::string name_of_array(std::string_view what, const std::vector<std::string>& names, size_t place,
                          const NamedTensors& arrays) {
  std::string by_place = fmt::format("{}_{}", what, place);
  const bool is_taken = std::ranges::find(names, by_place) != names.end();
  return find(arrays, names[place]) == nullptr && !is_taken ? by_place : names[place];
}

// What a file has for the values of those names, each an input or each an output ("input", "output").
Data arrays_for(std::string_view what, const std::vector<std::string>& names,
                const std::vector<Value>& values, const std::string& file, const NamedTensors& arrays,
                std::set<std::string>& taken) {
  Data data;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = name_of_array(what, names, i, arrays);
    const Tensor* array = find(arrays, name);
    if (array == nullptr)
      throw user_error("{}: there is no \"{}\" (nor {}_{}) for the {} of type {}{}", file, names[i], what, i,
                       what, values[i].type(), names_hint(what, names, arrays, taken));
    taken.insert(name);
    data.emplace_back(*array);
  }
  return data;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (Value input : graph.inputs())
    names.push_back(input.name());
  return names;
}

}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), arrays_(path.empty() ? NamedTensors() : read_npz(path)) {}

std::unique_ptr<Graph> InputFile::load(const ModelArguments& model, onnx::ImportOptions options) const {
  for (const auto& [name, tensor] : arrays_)
    options.overridden.insert(name);
  return load_model(model, options);
}

std::optional<Data> InputFile::inputs_for(const Graph& graph) {
  if (path_.empty())
    return std::nullopt;
  return arrays_for("input", input_names(graph), graph.inputs(), path_, arrays_, taken_);
}

const Tensor* InputFile::take_array(const std::string& name) {
  take(name);
  return find(arrays_, name);
}

void InputFile::note_others() const {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : arrays_)
    if (!taken_.contains(name))
      others.push_back(name);
  if (!others.empty())
    write_note(fmt::format("note: {}: no input takes {}\n", path_, fmt::join(others, ", ")));
}

Data read_outputs(const std::string& file, const Graph& graph) {
  std::set<std::string> taken;
  return arrays_for("output", graph.output_names(), graph.outputs(), file, read_npz(file), taken);
}

std::map<size_t, std::pair<std::string, Tensor>> find_outputs(const std::string& file, const Graph& graph) {
  const NamedTensors arrays = read_npz(file);
  const std::vector<std::string> names = graph.output_names();
  std::map<size_t, std::pair<std::string, Tensor>> found;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = name_of_array("output", names, i, arrays);
    if (const Tensor* array = find(arrays, name))
      found.emplace(i, std::pair(name, *array));
  }
  if (found.empty())
    throw user_error("{}: it has none of the outputs, by name or as output_0, output_1, …{}", file,
                     names_hint("output", names, arrays, {}));
  return found;
}

}  // namespace tenon::cli
