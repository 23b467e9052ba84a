// arrays.h — the arrays of an .npz as the inputs or outputs of a model.
#pragma once

#include "ir/graph.h"
#include "tensor/npy.h"

namespace tenon::cli {

std::vector<std::string> names_of(const NamedTensors& arrays);
std::vector<std::string> input_names(const Graph& graph);

// Each by the name of the input or output, or by its place, as input_0, output_0, …; one that is missing is
// the user's fault. Those that were taken are added to `taken`.
Data inputs_from(const std::string& file, const NamedTensors& arrays, const Graph& graph,
                 std::set<std::string>& taken);
Data outputs_from(const std::string& file, const NamedTensors& arrays, const Graph& graph,
                  std::set<std::string>& taken);

// A misspelt name is worth a word.
void note_others(const std::string& file, const NamedTensors& arrays, const std::set<std::string>& taken);

}  // namespace tenon::cli
