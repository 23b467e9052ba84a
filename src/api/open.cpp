// open.cpp — saved programs.
#include "api/program.h"
#include "compiler/save_program.h"
#include "ops/registry.h"

using namespace tenon;

tenon_status tenon_open(const char* path, const tenon_open_options* options, tenon_program** program) {
  return api::open_with(path, options, program,
                        [](const runtime::ProgramFile& file, std::string_view target) {
                          register_ops();
                          return compiler::open_program(file, target).executor;
                        });
}
