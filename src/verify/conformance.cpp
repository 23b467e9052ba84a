#include "verify/conformance.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/child_process.h"
#include "base/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/tensor_proto.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "passes/pipeline.h"
#include "verify/compare.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecondsPerCase = 60;
constexpr std::string_view kNoDType = "-";  // in the report of a case, whose fields are words

// Some cases store bf16 as the unsigned integers of the same bits.
Datum as_declared(Datum datum, const Type& type) {
  if (type.is_tensor() && std::holds_alternative<Tensor>(datum)) {
    const Tensor& tensor = datum.tensor();
    if (type.as_tensor().dtype == DType::BF16 && tensor.dtype() == DType::U16) {
      Tensor bits(DType::BF16, tensor.extents());
      std::ranges::copy(tensor.bytes(), bits.mutable_bytes().begin());
      return bits;
    }
  }
  return datum;
}

Datum read(const fs::path& path, const Type& type) {
  const auto kind = type.is_tensor()     ? onnx::DatumKind::Tensor
                    : type.is_sequence() ? onnx::DatumKind::Sequence
                                         : onnx::DatumKind::Optional;
  return as_declared(onnx::read_datum(path, kind), type);
}

// The inputs of one data set. Old models list weights among their inputs, and data sets then count those too.
Data read_inputs(const fs::path& set, const Graph& graph, const onnx::GraphProto& proto) {
  size_t files = 0;
  while (fs::exists(set / fmt::format("input_{}.pb", files)))
    ++files;
  Data inputs;
  for (int64_t i = 0; i < graph.input_count(); ++i) {
    size_t number = static_cast<size_t>(i);
    if (files == proto.input.size())
      number = static_cast<size_t>(std::ranges::find(proto.input, std::string_view(graph.input(i).name()),
                                                     &onnx::ValueInfoProto::name) -
                                   proto.input.begin());
    inputs.push_back(read(set / fmt::format("input_{}.pb", number), graph.input(i).type()));
  }
  return inputs;
}

bool is_random(Graph& graph) {
  bool random = false;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      random |= node->op().traits.random;
  });
  return random;
}

// The folders test_data_set_0, test_data_set_1, … of a case.
std::vector<fs::path> find_data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  const auto next = [&] { return folder / fmt::format("test_data_set_{}", sets.size()); };
  while (fs::exists(next()))
    sets.push_back(next());
  if (sets.empty())
    throw user_error("there is no test_data_set_0, so there is nothing to compare with");
  return sets;
}

// The outputs one data set wants.
Data read_outputs(const fs::path& set, const Graph& graph) {
  const auto file = [&](size_t number) { return set / fmt::format("output_{}.pb", number); };
  Data outputs;
  for (Value output : graph.outputs()) {
    if (!fs::exists(file(outputs.size())))
      throw user_error("{} has no {} for the output \"{}\"", set.filename().string(),
                       file(outputs.size()).filename().string(), graph.output_names()[outputs.size()]);
    outputs.push_back(read(file(outputs.size()), output.type()));
  }
  if (fs::exists(file(outputs.size())))
    throw user_error("{} has {}, but the model's outputs are {}", set.filename().string(),
                     file(outputs.size()).filename().string(), fmt::join(graph.output_names(), ", "));
  return outputs;
}

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

Tolerance read_tolerance(const fs::path& folder) {
  Tolerance tolerance;
  if (std::ifstream file(folder / "tol.txt"); file && !(file >> tolerance.relative >> tolerance.absolute))
    throw user_error("tol.txt does not hold two numbers");
  return tolerance;
}

// What is wrong with the first output that is not as expected; empty when all are.
std::string find_mismatch(const Graph& graph, const Data& actual, const Data& expected, Tolerance tolerance,
                          bool random) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (random && type_of(actual[i]) == type_of(expected[i]))
      continue;
    const std::string mismatch =
        first_mismatch(actual[i], expected[i], tolerance.relative, tolerance.absolute);
    if (!mismatch.empty())
      return fmt::format("output \"{}\": {}", graph.output_names()[i], mismatch);
  }
  return "";
}

void run_here(const fs::path& folder, std::optional<NumericsBudget> numerics, Engine engine,
              const std::string& device, CaseResult& result) {
  const onnx::Model model = onnx::read_model(folder / "model.onnx");
  for (const onnx::OperatorSetId& opset : model.proto.opset_import)
    if (opset.domain.empty() || opset.domain == "ai.onnx")
      result.opset = opset.version;
  const std::unique_ptr<Graph> graph = onnx::read_onnx(folder / "model.onnx");
  if (const Types types = graph->output_types(); !types.empty() && types.front().is_tensor())
    result.dtype = name(types.front().as_tensor().dtype);
  if (const std::vector<std::string> problems = lint(*graph); !problems.empty())
    throw InternalError("lint: " + problems.front());
  const Tolerance tolerance = read_tolerance(folder);
  const bool random = is_random(*graph);
  if (numerics) {
    Journal journal(*numerics);
    optimize(*graph, journal, {.lint_everything = true});
  }
  const Runner run(*graph, engine,
                   {.numerics = numerics.value_or(NumericsBudget::Default), .device = device});
  if (run.executor() != nullptr)
    result.placement = compiler::placement_of(run.executor()->program());
  for (const fs::path& set : find_data_sets(folder)) {
    const Data expected = read_outputs(set, *graph);
    const Data actual = run(read_inputs(set, *graph, model.proto.graph));
    result.detail = find_mismatch(*graph, actual, expected, tolerance, random);
    if (!result.detail.empty()) {
      result.status = CaseStatus::Wrong;
      return;
    }
  }
  result.status = CaseStatus::Pass;
}

// Everything a case says, inside its own process.
CaseResult run_and_catch(const fs::path& folder, std::optional<NumericsBudget> numerics, Engine engine,
                         const std::string& device) {
  CaseResult result;
  try {
    run_here(folder, numerics, engine, device, result);
  } catch (const UnsupportedError& error) {
    result.status = CaseStatus::Unsupported;
    result.detail = error.what();
  } catch (const std::exception& error) {
    result.detail = error.what();
  }
  return result;
}

}  // namespace

std::string_view name(CaseStatus status) {
  constexpr std::string_view names[] = {"pass", "wrong", "error", "unsupported"};
  return names[static_cast<size_t>(status)];
}

std::vector<fs::path> find_cases(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw user_error("{} is not a folder", folder.string());
  std::vector<fs::path> cases;
  if (fs::exists(folder / "model.onnx"))
    cases.push_back(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory() && fs::exists(entry.path() / "model.onnx"))
      cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

CaseResult run_case(const fs::path& folder, std::optional<NumericsBudget> numerics, Engine engine,
                    const std::string& device) {
  if (device != "cpu" && engine == Engine::Compiled)  // a GPU takes longer to start than most cases to run
    return run_and_catch(folder, numerics, engine, device);
  const ChildEnd end = run_in_child(kSecondsPerCase, [&] {
    const CaseResult result = run_and_catch(folder, numerics, engine, device);
    return fmt::format("{} {} {} {}", static_cast<int>(result.status), result.opset,
                       result.dtype.empty() ? kNoDType : result.dtype, result.detail);
  });
  CaseResult result;
  if (!end.failure.empty()) {
    result.detail = end.failure;
    return result;
  }
  std::istringstream fields(end.report);
  int status = 0;
  fields >> status >> result.opset >> result.dtype;
  result.status = static_cast<CaseStatus>(status);
  if (result.dtype == kNoDType)
    result.dtype.clear();
  fields.get();
  result.detail.assign(std::istreambuf_iterator<char>(fields), {});
  return result;
}

}  // namespace tenon
