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
#include "cli/options.h"
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

// What the command does not take: an option that may be misspelt, or an argument too many.
tenon::UserError not_taken(const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with("-"))
    return tenon::user_error("{} takes no further argument, but got {}", command.get_name(), argument);
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      options.push_back("--" + name);
  const std::string option = argument.substr(0, argument.find('='));
  const std::string hint = tenon::did_you_mean(option, {options.begin(), options.end()});
  const std::string words = command.get_parent() == nullptr ? "tenon" : "tenon " + command.get_name();
  return tenon::user_error("{} has no option {}{}", command.get_name(), option,
                           hint.empty() ? fmt::format("\n  hint: {} --help lists them", words) : hint);
}

// Tells of what was not taken, if anything was not: that says more than what is missing in its place.
void refuse_others(const CLI::App& program) {
  const std::vector<CLI::App*> commands = program.get_subcommands();
  const CLI::App& command = commands.empty() ? program : *commands.front();
  const std::vector<std::string> others = command.remaining(true);
  const auto option = std::find_if(others.begin(), others.end(),
                                   [](const std::string& each) { return each.starts_with("-"); });
  if (!others.empty())
    throw not_taken(command, option == others.end() ? others.front() : *option);
}

// Before the command, or behind it.
void add_quiet(CLI::App& program) {
  const auto add = [](CLI::App& command) {
    command.add_flag_callback("-q,--quiet", tenon::be_quiet, "shows no progress and no remarks on stderr");
  };
  add(program);
  for (CLI::App* command : program.get_subcommands(nullptr))
    add(*command);
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
  tenon::cli::add_report(program);
  tenon::cli::add_loops(program);
  tenon::cli::add_passes(program);
  tenon::cli::add_rules(program);
  tenon::cli::add_ops(program);
  tenon::cli::add_conformance(program);
  tenon::cli::add_completion(program);
  add_quiet(program);
}

int parse(CLI::App& program, int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-')
    refuse_unknown_command(program, argv[1]);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const bool is_fault = error.get_exit_code() != 0;  // help and version are none
    if (is_fault)
      refuse_others(program);
    program.exit(error);
    return is_fault ? 2 : 0;
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
  program.set_version_flag("--version", "tenon " TENON_VERSION, "Print the version and exit");
  program.footer(
      "MODEL is a file (.onnx, .pt2, .tenon) or a built-in model (builtin:NAME), which tenon print --help "
      "lists.\n"
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
