// conformance.h — runs the folders of the ONNX backend test suite: a model, inputs, and the outputs they must
// give.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compiler/describe.h"
#include "rewrite/journal.h"
#include "verify/engine.h"

namespace tenon {

enum class CaseStatus : uint8_t { Pass, Wrong, Error, Unsupported };
std::string_view name(CaseStatus status);

struct CaseResult {
  std::string name;
  CaseStatus status = CaseStatus::Error;
  std::string detail;  // empty for a pass
  int64_t opset = 0;   // of the standard domain; 0 when the model could not be read
  std::string dtype;   // of the first output; empty when it is no tensor, or unknown
  std::optional<compiler::Placement> placement = {};  // where it was compiled for a GPU
};

// The folders at or below `folder` that hold a model.onnx, in alphabetical order.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& folder);

// Runs a case in a process of its own, so that a crash or a case that does not end is just one more result.
// The outputs must come within the case's tol.txt (relative and absolute tolerance), or else 1e-3 and 1e-7;
// those of a model that draws random numbers need only have the right types. A case that lacks a data set, or
// an output in one, is an error: it would pass without having been checked.
// With a budget, the model is optimised first.
CaseResult run_case(const std::filesystem::path& folder,
                    std::optional<NumericsBudget> numerics = std::nullopt, Engine engine = Engine::Reference,
                    const std::string& device = "cpu");

}  // namespace tenon
