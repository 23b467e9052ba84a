// arrays.h — the arrays of an .npz as the inputs or outputs of a model.
#pragma once

#include "cli/load_model.h"
#include "tensor/npy.h"

namespace tenon::cli {

// The inputs of a model from an .npz: each by the name of the input, or by its place, as input_0, input_1, …
class InputFile {
 public:
  explicit InputFile(const std::string& path);  // none where it is empty

  // An ONNX input for which the model has a value is an input where the file has another.
  std::unique_ptr<Graph> load(const ModelArguments& model, onnx::ImportOptions options = {}) const;
  // Nothing where there is no file. An array that is missing is the user's fault.
  std::optional<Data> inputs_for(const Graph& graph);
  // Says which arrays were not taken, by inputs or otherwise: a misspelt name is worth a word.
  void note_others() const;
  void take(const std::string& name) { taken_.insert(name); }
  // The array of this name, which is then taken; null where there is none.
  const Tensor* take_array(const std::string& name);

 private:
  std::string path_;
  NamedTensors arrays_;
  std::set<std::string> taken_;
};

// What a file says should come out of a model: output_0, output_1, …, or by name.
Data read_outputs(const std::string& file, const Graph& graph);

// The same as far as the file has them, by the places of the outputs, under the names of the arrays. One that
// has none of the outputs is the user's fault.
std::map<size_t, std::pair<std::string, Tensor>> find_outputs(const std::string& file, const Graph& graph);

}  // namespace tenon::cli
