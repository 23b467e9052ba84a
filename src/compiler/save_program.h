// save_program.h — programs in files that run without a code generator: docs/compile.md says what is in one.
#pragma once

#include <filesystem>

#include "compiler/compile.h"
#include "runtime/program_file.h"

namespace tenon::compiler {

// A program for one target, under the name by which it is chosen.
struct TargetToSave {
  std::string name;
  CompileContext context;
};

struct GraphToSave {
  const Graph& model;      // as it was read
  const Graph& optimised;  // that is compiled
  std::string made_with;   // for who asks: options, as text
};

// What of the file each part takes, in bytes.
struct SavedSizes {
  uint64_t file = 0, weights = 0, code = 0;
};

// Compiles the graph for each target, and writes all to one file. What differs between targets is written for
// each, what is equal once. A target that no code can be generated for is a user_error.
SavedSizes save_program(const GraphToSave& graph, const std::vector<TargetToSave>& targets,
                        const std::filesystem::path& path);

// A saved program, loaded for this machine.
struct OpenedProgram {
  std::unique_ptr<runtime::Executor> executor;
  std::vector<Dim> operations;  // of the kernels that its steps call, in order
  std::string target;
};
// With code for the target that is wanted, if any; else for the best that this machine runs.
OpenedProgram open_program(const runtime::ProgramFile& file, std::string_view wanted = "");

// The model as it was read, but for the elements of large constants, which are not in the file.
std::unique_ptr<Graph> read_saved_model(const runtime::ProgramFile& file);
// Its text form, and what the program was made with.
std::string model_text(const runtime::ProgramFile& file);
std::string made_with(const runtime::ProgramFile& file);

}  // namespace tenon::compiler
