// choose_target.h — the processors that a saved program has code for, and which of that this machine runs.
#pragma once

#include "runtime/program_file.h"
#include "target/target.h"

namespace tenon::runtime {

// What a target needs of a machine.
struct SavedTarget {
  std::string name;
  Architecture architecture;
  std::string cpu;
  std::vector<std::string> features;
};

constexpr std::string_view kTargetsSection = "targets";

// A line for each: its name, architecture, processor and features.
std::string print_targets(const std::vector<SavedTarget>& targets);
std::vector<SavedTarget> parse_targets(std::string_view text);

// What the machine lacks that the target needs, in LLVM's words; empty where it runs the code.
std::vector<std::string> find_missing(const SavedTarget& target, const Target& machine);

// The one with the most features of those that the machine runs; null where it runs none.
const SavedTarget* best_target(const std::vector<SavedTarget>& targets, const Target& machine);

// The name of that in a program; where `wanted` is not empty, that one. Where none will do, a user_error says
// what is missing.
std::string choose_target(const ProgramFile& file, const Target& machine, std::string_view wanted = "");

}  // namespace tenon::runtime
