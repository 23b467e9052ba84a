// program.h — a compiled program as callers in C hold it.
#pragma once

#include "api/port.h"
#include "runtime/executor.h"

struct tenon_program {
  // The device is the one that the program was compiled for.
  tenon_program(std::unique_ptr<tenon::runtime::Executor> compiled, tenon_device runs_on);

  std::unique_ptr<tenon::runtime::Executor> program;
  tenon_device device;
  tenon::api::Ports inputs, outputs;
};
