// read_program.h — opens saved programs: see write_program.h.
#pragma once

#include "runtime/cpu/code_image.h"
#include "runtime/program.h"
#include "runtime/program_file.h"

namespace tenon::runtime {

// Makes a node of the text of its graph, for who has the ops.
using ParseCall = std::shared_ptr<const OpCall> (*)(const std::string& graph);

struct ReadProgram {
  std::shared_ptr<Program> program;
  std::shared_ptr<Device> device;  // that has its code
  std::vector<Dim> operations;     // see write_program.h
};

// The sections of a target, by its name.
std::string tables_section(std::string_view target);
std::string code_section(std::string_view target);

// Where calls cannot be parsed (null), a step that is one is an UnsupportedError that names it. Tables that
// cannot be are a user_error.
ReadProgram read_program(const ProgramFile& file, std::string_view target, ParseCall parse_call);

}  // namespace tenon::runtime
