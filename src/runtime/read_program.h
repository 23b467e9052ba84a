// read_program.h — opens saved programs: see write_program.h.
#pragma once

#include "runtime/cpu/code_image.h"
#include "runtime/program.h"
#include "runtime/program_file.h"

namespace tenon::runtime {

// What is made of the text of a graph, by who has the ops. A runtime without them has none.
struct GraphParts {
  OpCall (*call)(const std::string& graph);
  std::shared_ptr<SizeChecks> (*size_checks)(const std::vector<SizeCheckText>& texts);
};

struct ReadProgram {
  std::shared_ptr<Program> program;
  std::shared_ptr<Device> device;  // that has its code
  std::vector<Dim> operations;     // see write_program.h
};

// The sections of a target, by its name.
std::string tables_section(std::string_view target);
std::string code_section(std::string_view target);

// Without graph parts, a step that needs them is an UnsupportedError that names it. Tables that cannot be are
// a user_error.
ReadProgram read_program(const ProgramFile& file, std::string_view target, const GraphParts* parts);

}  // namespace tenon::runtime
