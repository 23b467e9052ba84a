// command_line.cpp — the commands of tenon: finds the one asked for, and turns errors into exit statuses.
//
// 0 done, 1 the answer is no, 2 the user's input is at fault, 3 our bug.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <tenon/extend.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "ir/op.h"
#include "ops/registry.h"

namespace {

// An argument that should be a subcommand, but is none.
void refuse_unknown_command(CLI::App& program, std::string_view name) {
  std::vector<std::string> commands;
  for (const CLI::App* command : program.get_subcommands(nullptr))
    commands.push_back(command->get_name());
  const std::vector<std::string_view> names(commands.begin(), commands.end());
  if (std::find(names.begin(), names.end(), name) != names.end())
    return;
  const std::string hint = tenon::did_you_mean(name, names);
  throw tenon::user_error("there is no command {}{}", name,
                          hint.empty() ? "\n  hint: tenon --help lists them" : hint);
}

int run_command(int argc, char** argv) {
  CLI::App program{
      "Tenon reads a machine-learning model, shows it, optimises it, runs it, and checks each of its "
      "changes.",
      "tenon"};
  program.require_subcommand(1);
  program.set_version_flag("--version", "tenon " TENON_VERSION, "Print the version and exit");
  program.footer(
      "MODEL is a file (.onnx, .pt2, .tenon) or a built-in model (builtin:NAME), which tenon print --help "
      "lists.\n"
      "Exit status: 0 done, 1 the answer is no, 2 the input is at fault, 3 a bug in tenon.");
  tenon::cli::add_tour(program);
  tenon::cli::add_print(program);
  tenon::cli::add_run(program);
  tenon::cli::add_bench(program);
  tenon::cli::add_profile(program);
  tenon::cli::add_report(program);
  tenon::cli::add_conformance(program);
  tenon::cli::add_ops(program);
  tenon::cli::add_optimize(program);
  tenon::cli::add_verify(program);
  tenon::cli::add_bisect(program);
  tenon::cli::add_passes(program);
  tenon::cli::add_rules(program);
  tenon::cli::add_loops(program);
  if (argc > 1 && argv[1][0] != '-')
    refuse_unknown_command(program, argv[1]);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const tenon::cli::Refused&) {
    return 1;
  }
}

int run(int argc, char** argv) {
  try {
    const int status = run_command(argc, argv);
    tenon::cli::flush_output();
    return status;
  } catch (const tenon::UserError& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "tenon: %s: %s\n", error.path1().c_str(), error.code().message().c_str());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tenon: there is not enough memory for this\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: this is a bug in tenon, please report it: %s\n", error.what());
    return 3;
  }
}

}  // namespace

int tenon::command_line(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // output that nobody reads any more ends us, quietly
  remove_leftovers_when_ended();
  register_ops();
  return ::run(argc, argv);
}
