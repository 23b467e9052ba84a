// open.cpp — saved programs.
#include "api/program.h"
#include "compiler/save_program.h"
#include "ops/registry.h"

namespace tenon::api {

std::unique_ptr<runtime::Executor> load_program(const runtime::ProgramFile& file, std::string_view target) {
  register_ops();
  return compiler::open_program(file, target).executor;
}

}  // namespace tenon::api
