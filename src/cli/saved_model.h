// saved_model.h — saved programs where the command line takes a MODEL.
#pragma once

#include <CLI/CLI.hpp>

#include "compiler/save_program.h"

namespace tenon::cli {

// By its name.
bool is_saved_program(const std::string& model);

// The model that a program was made of, without the elements of its weights.
std::unique_ptr<Graph> read_saved_model(const std::string& path);
// With code for the target that TENON_TARGET names, or else the best for this machine.
compiler::OpenedProgram open_saved_program(const std::string& path);

// Refuses options of a command that were decided when the program was saved.
void refuse_decided(const CLI::App& command, const std::string& model,
                    std::initializer_list<const char*> options);

}  // namespace tenon::cli
