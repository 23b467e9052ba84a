// command_line.cpp — the commands of tenon: finds the one asked for, and turns errors into exit statuses.
//
// 0 done, 1 the answer is no, 2 the user's input is at fault, 3 our bug.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>
#include <tenon/extend.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/usage_errors.h"
#include "cli/version.h"
#include "ops/registry.h"

namespace {

// Before the command, or behind it.
void add_quiet(CLI::App& program) {
  const auto add = [](CLI::App& command) {
    command.add_flag_callback("-q,--quiet", tenon::be_quiet, "shows no progress and no remarks on stderr");
  };
  add(program);
  for (CLI::App* command : program.get_subcommands(nullptr))
    add(*command->group("Commands"));
}

void add_commands(CLI::App& program) {
  tenon::cli::add_tour(program);
  tenon::cli::add_print(program);
  tenon::cli::add_run(program);
  tenon::cli::add_optimize(program);
  tenon::cli::add_verify(program);
  tenon::cli::add_bisect(program);
  tenon::cli::add_bench(program);
  tenon::cli::add_profile(program);
  tenon::cli::add_tune(program);
  tenon::cli::add_report(program);
  tenon::cli::add_compile(program);
  tenon::cli::add_train(program);
  tenon::cli::add_train_step(program);
  tenon::cli::add_loops(program);
  tenon::cli::add_passes(program);
  tenon::cli::add_rules(program);
  tenon::cli::add_ops(program);
  tenon::cli::add_conformance(program);
  tenon::cli::add_devices(program);
  tenon::cli::add_cache(program);
  tenon::cli::add_completion(program);
  add_quiet(program);
}

int parse(CLI::App& program, int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-')
    tenon::cli::refuse_unknown_command(program, argv[1]);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      tenon::cli::refuse(program, error);
    return program.exit(error);  // which prints the help or the version
  } catch (const tenon::cli::Refused&) {
    return 1;
  }
}

int run_command(int argc, char** argv) {
  CLI::App program{
      "Tenon reads a machine-learning model, shows it, optimises it, runs it, and checks each of its "
      "changes.",
      "tenon"};
  program.require_subcommand(1);
  program.formatter(std::make_shared<tenon::cli::HelpFormatter>());
  program.set_help_flag("-h,--help", "prints this");
  program.set_version_flag("--version", tenon::cli::describe_build,
                           "prints the version, and what is built in");
  program.footer(
      "MODEL is a file (.onnx, .pt2, .gguf, .tenon) or a built-in model (builtin:NAME), which tenon print "
      "--help lists.\n"
      "Exit status: 0 done, 1 the answer is no, 2 the input is at fault, 3 a bug in tenon.\n" +
      tenon::cli::examples({"tenon tour", "tenon print builtin:tiny", "tenon optimize --help"}));
  add_commands(program);
  if (argc > 1 && argv[1] == std::string_view("complete")) {  // for the scripts of tenon completion
    tenon::cli::write_output(tenon::cli::completions(program, {argv + 2, argv + argc}));
    return 0;
  }
  return parse(program, argc, argv);
}

int run(int argc, char** argv) {
  try {
    tenon::remove_leftovers_when_ended();
    tenon::register_ops();
    tenon::portable_pipeline();  // throws what is wrong with what was added to it
    tenon::onnx::check_added_ops();
    const int status = run_command(argc, argv);
    tenon::cli::flush_output();
    return status;
  } catch (const tenon::UserError& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "tenon: %s: %s\n", error.path1().c_str(), error.code().message().c_str());
    return 2;
  } catch (const std::system_error& error) {  // a thread that cannot start
    std::fprintf(stderr, "tenon: the system refuses: %s\n", error.code().message().c_str());
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
  return ::run(argc, argv);
}
