// program.h — a compiled program as callers in C hold it.
#pragma once

#include "api/port.h"
#include "api/sized_struct.h"
#include "api/status.h"
#include "runtime/executor.h"
#include "runtime/program_file.h"

struct tenon_program {
  // The device is the one that the program was compiled for.
  tenon_program(std::unique_ptr<tenon::runtime::Executor> compiled, tenon_device runs_on);

  std::unique_ptr<tenon::runtime::Executor> program;
  tenon_device device;
  tenon::api::Ports inputs, outputs;
};

namespace tenon::api {

// 0: as many as there are cores.
int count_threads(int64_t asked);

// Loads a program with code for the target of this name, or the best where it is empty. One for each library:
// see api/open.cpp and deploy/open.cpp.
std::unique_ptr<runtime::Executor> load_program(const runtime::ProgramFile& file, std::string_view target);

}  // namespace tenon::api
