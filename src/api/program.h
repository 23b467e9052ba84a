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

// The program that `open` reads from a file, which it gets with the name of the wanted target.
template <class Open>
tenon_status open_with(const char* path, const tenon_open_options* options, tenon_program** program,
                       Open&& open) {
  return guard([&] {
    const std::string file_name = &given(path, "path");
    tenon_program*& made = given(program, "program");
    const tenon_open_options asked = read_options(options);
    const auto file = runtime::ProgramFile::open(file_name);
    if (asked.check_weights != 0)
      file->check_weights();
    made = new tenon_program(open(*file, std::string_view(asked.target == nullptr ? "" : asked.target)),
                             {.type = TENON_DEVICE_CPU, .index = 0});
  });
}

}  // namespace tenon::api
