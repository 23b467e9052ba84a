#include "cli/usage_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "ir/op.h"

namespace tenon::cli {
namespace {

// How the command is called.
std::string words_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? "tenon" : "tenon " + command.get_name();
}

// What the command does not take: an option that may be misspelt, or an argument too many.
UserError not_taken(const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with("-"))
    return user_error("{} takes no further argument, but got {}", command.get_name(), argument);
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      options.push_back("--" + name);
  const std::string option = argument.substr(0, argument.find('='));
  const std::string hint = did_you_mean(option, {options.begin(), options.end()});
  return user_error("{} has no option {}{}", command.get_name(), option,
                    hint.empty() ? fmt::format("\n  hint: {} --help lists them", words_of(command)) : hint);
}

UserError no_command(const CLI::App& program) {
  std::string list;
  for (const CLI::App* command : program.get_subcommands(nullptr))
    list += fmt::format("\n  {:<12} {}", command->get_name(), command->get_description());
  return user_error("a command is missing; there are{}\n  hint: tenon COMMAND --help tells about one", list);
}

UserError something_missing(const CLI::App& command) {
  std::vector<std::string> missing;
  for (const CLI::Option* option : command.get_options())
    if (option->get_required() && option->count() == 0)
      missing.push_back(option->get_name());
  return user_error("{} needs {}\n  hint: {} --help says more", command.get_name(),
                    fmt::join(missing, " and "), words_of(command));
}

bool is_model(std::string_view word) {
  return word.starts_with("builtin:") || word.ends_with(".onnx") || word.ends_with(".pt2") ||
         word.ends_with(".gguf") || word.ends_with(".tenon");
}

// What the parser says of a wrong number of values; it begins with the option's name.
std::string wrong_count(const std::string& text) {
  const std::string option = text.substr(0, text.find_first_of(": "));
  if (text.ends_with("missing"))
    return fmt::format("{} needs a value", option);
  if (text.find("At Most 1 ") != std::string::npos)
    return fmt::format("{} is given more than once", option);
  return text;
}

}  // namespace

void refuse_unknown_command(const CLI::App& program, std::string_view name) {
  std::vector<std::string> commands;
  for (const CLI::App* command : program.get_subcommands(nullptr))
    commands.push_back(command->get_name());
  const std::vector<std::string_view> names(commands.begin(), commands.end());
  if (std::find(names.begin(), names.end(), name) != names.end())
    return;
  if (is_model(name))
    throw user_error("there is no command {}\n  hint: what to do with a model comes first: tenon run {}",
                     name, name);
  const std::string hint = did_you_mean(name, names);
  throw user_error("there is no command {}{}", name,
                   hint.empty() ? "\n  hint: tenon --help lists them" : hint);
}

void refuse(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<CLI::App*> commands = program.get_subcommands();
  const CLI::App& command = commands.empty() ? program : *commands.front();
  // What was not taken says more than what is missing in its place.
  const std::vector<std::string> others = command.remaining(true);
  const auto option = std::find_if(others.begin(), others.end(),
                                   [](const std::string& each) { return each.starts_with("-"); });
  if (!others.empty())
    throw not_taken(command, option == others.end() ? others.front() : *option);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    throw commands.empty() ? no_command(program) : something_missing(command);
  const bool is_count = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  const std::string message = is_count ? wrong_count(error.what()) : error.what();
  const bool has_hint = message.find("\n  hint: ") != std::string::npos;
  throw user_error("{}{}", message,
                   has_hint ? "" : fmt::format("\n  hint: {} --help says more", words_of(command)));
}

}  // namespace tenon::cli
