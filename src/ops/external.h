// external.h — ops that somebody else computes: a function of the program that Tenon is part of, such as a
// kernel of PyTorch's that has no counterpart here; and those of ONNX files that only others know.
#pragma once

#include <functional>
#include <limits>
#include <span>

#include "ir/graph.h"
#include "ops/registry.h"
#include "tensor/datum.h"

namespace tenon {

const Family& external_ops();

using ExternalFunction = std::function<Data(std::span<const Datum> operands)>;

// Graphs name a function by its number, as long as this lives.
class ExternalHandle {
 public:
  explicit ExternalHandle(ExternalFunction function);
  ~ExternalHandle();
  ExternalHandle(const ExternalHandle&) = delete;
  ExternalHandle& operator=(const ExternalHandle&) = delete;

  int64_t number() const { return number_; }

 private:
  int64_t number_;
};

struct ExternalCall {
  std::string name;  // that errors and reports use
  int64_t function = 0;
  std::vector<DType> dtypes;   // of the results
  std::vector<int64_t> ranks;  // likewise
};
// `sizes` has those of all results, one after another; -1 where one is dynamic.
std::vector<Value> external(Graph& graph, const ExternalCall& call, const std::vector<Value>& operands,
                            Value sizes);

// A node of an ONNX file that is kept as it came, with all that is needed to write it again: nobody here
// knows its op, or several of ours would say what it does.
struct CustomNode {
  std::string op, domain;
  int64_t version = 1;  // the oldest of the domain that has it so
  int64_t newest = std::numeric_limits<int64_t>::max();
  Attribute::Strings attributes = {};
  Attribute::Strings messages = {};
  Attribute::Ints omitted_inputs = {}, omitted_outputs = {};
};
// `types` are those of the results, as the file declares them.
std::vector<Value> custom(Graph& graph, const CustomNode& node, const std::vector<Value>& operands,
                          const Types& types);

}  // namespace tenon
