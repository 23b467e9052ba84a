// model.h — a saved program as a model of KServe's protocol, version 2: requests as tensors, several at once.
#pragma once

#include <tenon/tenon.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

using Json = nlohmann::json;

struct Tensor {
  std::vector<int64_t> sizes;
  std::vector<std::byte> elements;
};
using Tensors = std::vector<Tensor>;

class Model {
 public:
  // A program whose tensors the protocol does not have as JSON is a runtime_error, and so is one that cannot
  // be opened.
  Model(std::string name, const std::string& path, int threads);

  const std::string& name() const { return name_; }
  Json metadata() const;

  // In the order of the program's inputs. An HttpError says what is wrong with the request.
  Tensors read_inputs(const Json& request) const;
  // Those that the request asks for; all, where it does not say.
  Json write_outputs(const Json& request, const Tensors& outputs) const;

  // Whether requests run together: where every input and output has the rows of all of them.
  bool is_batched() const { return is_batched_; }
  static int64_t count_rows(const Tensors& inputs) { return inputs.front().sizes.front(); }
  static bool go_together(const Tensors& a, const Tensors& b);
  // The outputs of each.
  std::vector<Tensors> run(std::span<const Tensors* const> requests) const;

 private:
  struct Free {
    void operator()(tenon_program* program) const { tenon_free_program(program); }
  };
  using CountPorts = size_t (*)(const tenon_program*);
  using FindPort = const tenon_port* (*)(const tenon_program*, size_t);
  std::vector<const tenon_port*> ports(CountPorts count, FindPort find) const;
  bool has_rows_everywhere() const;
  Tensors run_once(const Tensors& inputs) const;

  std::string name_;
  std::unique_ptr<tenon_program, Free> program_;
  std::vector<const tenon_port*> inputs_, outputs_;
  int threads_;
  bool is_batched_;
};
