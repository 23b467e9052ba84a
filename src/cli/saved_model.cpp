#include "cli/saved_model.h"

#include <cstdlib>

#include "base/error.h"

namespace tenon::cli {

using compiler::OpenedProgram;
using runtime::ProgramFile;

bool is_saved_program(const std::string& model) { return model.ends_with(runtime::kProgramExtension); }

std::unique_ptr<Graph> read_saved_model(const std::string& path) {
  return compiler::read_saved_model(*ProgramFile::open(path));
}

OpenedProgram open_saved_program(const std::string& path) {
  const char* target = std::getenv("TENON_TARGET");
  return compiler::open_program(*ProgramFile::open(path), target == nullptr ? "" : target);
}

void refuse_decided(const CLI::App& command, const std::string& model,
                    std::initializer_list<const char*> options) {
  if (!is_saved_program(model))
    return;
  for (const char* option : options)
    if (command.count(option) > 0)
      throw user_error("{} is for a model: {} is a saved program, for which it was decided by tenon compile",
                       option, model);
}

}  // namespace tenon::cli
