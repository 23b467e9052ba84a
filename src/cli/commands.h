// commands.h — the subcommands, one file each. Each adds itself to the program, and returns from its work
// normally when it is done; `Refused` says that the answer is no (exit status 1).
#pragma once

#include <CLI/CLI.hpp>

namespace tenon::cli {

struct Refused {};

void add_tour(CLI::App& program);
void add_print(CLI::App& program);
void add_run(CLI::App& program);
void add_bench(CLI::App& program);
void add_profile(CLI::App& program);
void add_report(CLI::App& program);
void add_compile(CLI::App& program);
void add_train(CLI::App& program);
void add_train_step(CLI::App& program);
void add_tune(CLI::App& program);
void add_conformance(CLI::App& program);
void add_ops(CLI::App& program);
void add_optimize(CLI::App& program);
void add_verify(CLI::App& program);
void add_bisect(CLI::App& program);
void add_passes(CLI::App& program);
void add_rules(CLI::App& program);
void add_loops(CLI::App& program);
void add_devices(CLI::App& program);
void add_cache(CLI::App& program);
void add_completion(CLI::App& program);

}  // namespace tenon::cli
