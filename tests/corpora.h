// corpora.h — where the tests find models with data of their own: a few small ones that come with the tests,
// and, where a folder of corpora is at hand (TENON_CORPORA, or shared/corpora beside the checkout), many
// more.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>

#include "source_tree.h"
#include "tensor/npy.h"

namespace tenon {

inline std::filesystem::path models_of_tests() { return source_tree() / "tests/data/models"; }

// The folder of that name, where it is at hand.
inline std::optional<std::filesystem::path> corpus(const char* name) {
  const char* given = std::getenv("TENON_CORPORA");
  const std::filesystem::path corpora =
      given != nullptr ? std::filesystem::path(given) : source_tree().parent_path() / "shared/corpora";
  return std::filesystem::exists(corpora / name) ? std::optional(corpora / name) : std::nullopt;
}

// Calls f for every .onnx and .pt2 of a folder, with the .npz of its name up to the first dot, where there is
// one.
inline void for_each_model(
    const std::filesystem::path& folder,
    const std::function<void(const std::filesystem::path& model, const std::filesystem::path& data)>& f) {
  int models = 0;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx" && entry.path().extension() != ".pt2")
      continue;
    const std::string name = entry.path().filename().string();
    const std::filesystem::path data = folder / (name.substr(0, name.find('.')) + ".npz");
    if (!std::filesystem::exists(data))
      continue;
    SCOPED_TRACE(name);
    f(entry.path(), data);
    ++models;
  }
  EXPECT_GT(models, 0) << "no models in " << folder;
}

// The array of that name; null when there is none.
inline const Tensor* find_array(const NamedTensors& arrays, const std::string& name) {
  for (const auto& [key, tensor] : arrays)
    if (key == name)
      return &tensor;
  return nullptr;
}

}  // namespace tenon
