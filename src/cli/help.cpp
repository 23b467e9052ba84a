#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "base/utf8.h"

namespace tenon::cli {
namespace {

constexpr size_t kWidth = 80;                    // columns of all
constexpr size_t kOptions = 28, kCommands = 16;  // of what stands on the left, with what separates it

std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// What stands on the left gets a line of its own where it is long.
std::string entry(const std::string& left, const std::string& right, size_t column) {
  std::string text, line = fmt::format("  {:<{}}", left, column - 2);
  if (left.size() + 4 > column) {
    text = "  " + left + "\n";
    line = std::string(column, ' ');
  }
  std::istringstream words(right);
  bool is_first = true;  // of the line
  for (std::string word; words >> word; is_first = false) {
    if (!is_first && count_characters(line) + 1 + count_characters(word) > kWidth) {
      text += line + "\n";
      line = std::string(column, ' ');
      is_first = true;
    }
    line += (is_first ? "" : " ") + word;
  }
  return text + line + "\n";
}

}  // namespace

HelpFormatter::HelpFormatter() {
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string name = is_positional ? option->get_name(true, false) : names_of(*option);
  const std::string takes = option->get_option_text(), value = option->get_default_str();
  return entry(takes.empty() ? name : name + " " + takes,
               option->get_description() + (value.empty() ? "" : fmt::format(" [default: {}]", value)),
               kOptions);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description(), kCommands);
}

}  // namespace tenon::cli
