// model_source.h — what an architecture takes from a GGUF file: its sizes and numbers by key, its weights by
// name. What is taken is remembered, because what would be left over changes what the model computes.
#pragma once

#include <set>
#include <string>

#include "frontends/gguf/container.h"
#include "ir/graph.h"

namespace tenon::gguf {

// A matrix or vector of the file, as f32 where it is used.
class Weight {
 public:
  Weight(Graph& graph, const Container& container, const std::string& name, const TensorInfo& info);

  Value whole() const;
  // Of the rows that an integer tensor names, picked while they are small.
  Value rows(Value indices) const;

 private:
  template <class Pick>
  Value values(Pick pick) const;

  const BlockType& type_;
  Value quants_, scales_, minima_, scales_of_scales_, scales_of_minima_;  // quants alone where it is plain
};

class ModelSource {
 public:
  ModelSource(const Container& container, std::string architecture);

  // Keys are named without the architecture: "block_count" for "llama.block_count".
  bool has(const std::string& key) const;
  int64_t size(const std::string& key);  // from 1 on
  int64_t size(const std::string& key, int64_t otherwise);
  double number(const std::string& key);
  double number(const std::string& key, double otherwise);
  std::string text(const std::string& key, const std::string& otherwise);
  // They describe the file, and are no part of what is computed.
  void ignore(std::initializer_list<std::string_view> keys);

  int64_t tensor_count() const { return static_cast<int64_t>(container_.tensors().size()); }
  bool has_tensor(const std::string& name) const;
  // The extents that it must have; an empty one is open.
  const TensorInfo& tensor(const std::string& name, const std::vector<std::optional<int64_t>>& extents);
  Weight weight(Graph& graph, const std::string& name, const Extents& extents);

  // Keys of the architecture, and tensors, that nobody took.
  void refuse_unused() const;

 private:
  const KeyValue* find(const std::string& key);
  const KeyValue& get(const std::string& key);

  const Container& container_;
  std::string architecture_;
  std::set<std::string, std::less<>> used_keys_, used_tensors_;
};

}  // namespace tenon::gguf
