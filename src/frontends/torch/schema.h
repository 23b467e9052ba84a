// schema.h — what models/model.json of a torch.export archive says, as plain structures.
//
// The names are those of the format (torch/_export/serde/schema.py of PyTorch), of which only what matters
// here is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "tensor/dtype.h"

namespace tenon::torch {

constexpr int64_t kSchemaMajor = 8;  // of the only format we know

// A size: an integer, or an expression over symbols.
using SymInt = Dim;

struct TensorMeta {
  DType dtype = DType::F32;
  std::vector<SymInt> sizes, strides;
  SymInt storage_offset = 0;
};

struct GraphSpec;

// One argument of a node, or one of its outputs. What stands for a value of the graph is its name.
struct None {};
struct TensorName {
  std::string name;
};
struct SymbolName {  // of a size, number or truth that the graph computes
  std::string name;
};
struct OptionalTensors {
  std::vector<std::optional<std::string>> names;
};
struct Numbers {  // sizes, some of them named
  std::vector<std::variant<int64_t, SymbolName>> items;
};
struct Nested {
  std::string name;
  std::shared_ptr<const GraphSpec> graph;
};
struct Other {  // a kind that only matters where an op looks at it: a device, a layout
  std::string kind;
};
using Argument = std::variant<None, TensorName, std::vector<TensorName>, OptionalTensors, SymbolName, int64_t,
                              double, bool, std::string, std::vector<std::string>, Numbers,
                              std::vector<double>, std::vector<bool>, DType, Nested, Other>;

std::string describe(const Argument& argument);

struct NamedArgument {
  std::string name;  // empty for those of higher-order ops
  Argument argument;
};

struct NodeSpec {
  std::string target;  // torch.ops.aten.add.Tensor
  std::string name;
  std::string module;  // the path of the module that it was traced in: layer1.0.conv1
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
};

struct GraphSpec {
  std::vector<Argument> inputs, outputs;
  std::vector<NodeSpec> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;
  std::map<std::string, SymInt, std::less<>> sizes;  // of the named ones
};

struct InputSpec {
  enum class Kind : uint8_t { User, Parameter, Buffer, Constant };
  Kind kind = Kind::User;
  Argument argument;
  std::string target;  // the name of the parameter, buffer or constant
};

struct OutputSpec {
  enum class Kind : uint8_t { User, BufferMutation, InputMutation, Gradient };
  Kind kind = Kind::User;
  Argument argument;
  std::string target;  // the buffer or input that it is the new value of, or the gradient of
};

struct Range {
  std::optional<int64_t> least, greatest;
};

struct Program {
  GraphSpec graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, Range, std::less<>> ranges;  // of the symbols
};

// One weight or constant: a file of the archive, and the part of it.
struct Payload {
  std::string path;
  bool pickled = false;
  TensorMeta meta;
};
using Payloads = std::map<std::string, Payload, std::less<>>;

// Bad JSON, and JSON that says something else, is the user's fault.
Program parse_program(std::string_view json);
Payloads parse_payloads(std::string_view json);

}  // namespace tenon::torch
