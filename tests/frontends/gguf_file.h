// gguf_file.h — GGUF files for tests, written key by key and tensor by tensor; and a little model in one.
#pragma once

#include <cmath>
#include <cstring>

#include "base/temporary_folder.h"
#include "frontends/gguf/import.h"
#include "ir/graph_text.h"

namespace tenon::gguf::write {

using Bytes = std::string;

template <class T>
Bytes number(T value) {
  Bytes bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline Bytes text(const std::string& text) { return number<uint64_t>(text.size()) + text; }

inline Bytes value(uint32_t number_) { return number<uint32_t>(4) + number(number_); }
inline Bytes value(float number_) { return number<uint32_t>(6) + number(number_); }
inline Bytes value(const char* string) { return number<uint32_t>(8) + text(string); }

struct TensorText {
  std::string name;
  std::vector<uint64_t> sizes;  // the first is that of elements side by side
  uint32_t type = 0;
  Bytes data = {};
};

struct FileText {
  std::map<std::string, Bytes> keys;
  std::vector<TensorText> tensors;
  uint32_t version = 3;
  uint64_t alignment = 32;

  Bytes bytes() const {
    const auto padded = [&](Bytes all) {
      all.resize((all.size() + alignment - 1) / alignment * alignment);
      return all;
    };
    Bytes header =
              "GGUF" + number(version) + number<uint64_t>(tensors.size()) + number<uint64_t>(keys.size()),
          data;
    for (const auto& [name, value] : keys)
      header += text(name) + value;
    for (const TensorText& tensor : tensors) {
      header += text(tensor.name) + number(static_cast<uint32_t>(tensor.sizes.size()));
      for (const uint64_t size : tensor.sizes)
        header += number(size);
      header += number(tensor.type) + number<uint64_t>(data.size());
      data = padded(data + tensor.data);
    }
    return padded(header) + data;
  }

  TensorText& tensor(const std::string& name) { return *std::ranges::find(tensors, name, &TensorText::name); }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const TensorText& each) { return each.name == name; });
  }
};

// Plain f32 numbers, which differ.
inline TensorText floats(const std::string& name, const std::vector<uint64_t>& sizes) {
  Bytes data;
  uint64_t count = 1;
  for (const uint64_t size : sizes)
    count *= size;
  for (uint64_t i = 0; i < count; ++i)
    data += number(std::sin(static_cast<float>(i + name.size())));
  return {name, sizes, 0, data};
}

// A llama of one layer: a width of 4, two heads of 2 that share one of keys, three tokens.
inline FileText llama() {
  return {.keys = {{"general.architecture", value("llama")},
                   {"llama.block_count", value(1U)},
                   {"llama.context_length", value(16U)},
                   {"llama.embedding_length", value(4U)},
                   {"llama.feed_forward_length", value(6U)},
                   {"llama.attention.head_count", value(2U)},
                   {"llama.attention.head_count_kv", value(1U)},
                   {"llama.attention.layer_norm_rms_epsilon", value(1e-5F)}},
          .tensors = {floats("token_embd.weight", {4, 3}), floats("output_norm.weight", {4}),
                      floats("output.weight", {4, 3}), floats("blk.0.attn_norm.weight", {4}),
                      floats("blk.0.attn_q.weight", {4, 4}), floats("blk.0.attn_k.weight", {4, 2}),
                      floats("blk.0.attn_v.weight", {4, 2}), floats("blk.0.attn_output.weight", {4, 4}),
                      floats("blk.0.ffn_norm.weight", {4}), floats("blk.0.ffn_gate.weight", {4, 6}),
                      floats("blk.0.ffn_up.weight", {4, 6}), floats("blk.0.ffn_down.weight", {6, 4})}};
}

inline std::unique_ptr<Graph> import(const Bytes& bytes) {
  register_ops();
  const TemporaryFolder folder;
  std::unique_ptr<Graph> graph = read_gguf(folder.write("m.gguf", bytes));
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  return graph;
}

// The message, less the name of the file in front of it.
template <class Error = UserError>
void refuse(const Bytes& bytes, const std::string& message) {
  register_ops();
  const TemporaryFolder folder;
  const auto path = folder.write("m.gguf", bytes);
  expect_error<Error>([&] { read_gguf(path); }, path.string() + ": " + message);
}
template <class Error = UserError>
void refuse(const FileText& file, const std::string& message) {
  refuse<Error>(file.bytes(), message);
}

}  // namespace tenon::gguf::write
