// open.cpp — saved programs without ops: what libtenonrt has in place of api/open.cpp. Steps that the
// reference evaluator runs are refused by name.
#include "api/program.h"
#include "runtime/choose_target.h"
#include "runtime/prepare.h"
#include "runtime/read_program.h"

namespace tenon::api {

std::unique_ptr<runtime::Executor> load_program(const runtime::ProgramFile& file, std::string_view wanted) {
  const std::string target = runtime::choose_target(file, this_machine(), wanted);
  const runtime::ReadProgram read = runtime::read_program(file, target, nullptr);
  return std::make_unique<runtime::Executor>(read.program, read.device, runtime::frozen_constants);
}

}  // namespace tenon::api
