#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/op.h"

namespace tenon::cli {
namespace {

std::map<const CLI::Option*, Offer>& offers() {
  static std::map<const CLI::Option*, Offer> all;
  return all;
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& word) -> std::string {
    if (std::find(words.begin(), words.end(), word) != words.end())
      return "";
    return fmt::format("it must be {}, but is {}{}", fmt::join(words, ", "), word,
                       did_you_mean(word, {words.begin(), words.end()}));
  };
  return {check, ""};
}

}  // namespace

CLI::Option* offer(CLI::Option* option, Offer offered) {
  offers().insert_or_assign(option, std::move(offered));
  return option;
}

const Offer& offer_of(const CLI::Option* option) {
  static const Offer nothing;
  const auto found = offers().find(option);
  return found == offers().end() ? nothing : found->second;
}

CLI::Option* offer_files(CLI::Option* option, std::vector<std::string> suffixes) {
  return offer(option, {.takes_files = true, .suffixes = std::move(suffixes)});
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& word, const std::string& doc,
                        const std::vector<std::string>& words) {
  CLI::Option* option = command.add_option(name, word, doc)->check(one_of(words));
  option->option_text(fmt::format("{}", fmt::join(words, "|")))->capture_default_str();
  return offer(option, {.words = words});
}

CLI::Option* add_numerics(CLI::App& command, std::string& numerics) {
  return add_choice(command, "--numerics", numerics, "how exact it must stay", {"strict", "default", "fast"});
}

CLI::Option* add_inputs(CLI::App& command, std::string& inputs, const std::string& when_left_out) {
  CLI::Option* option = command.add_option(
      "--inputs", inputs,
      fmt::format("an .npz with the inputs, by name or as input_0, input_1, …; {} when left out",
                  when_left_out));
  return offer_files(option->option_text("FILE"), {".npz"});
}

CLI::Option* add_json(CLI::App& command, std::string& json) {
  CLI::Option* option =
      command.add_option("--json", json, "writes the results to this file; -: to stdout, and nothing else");
  return offer_files(option->option_text("FILE"), {".json"});
}

std::string examples(std::initializer_list<std::string_view> commands) {
  return fmt::format("Examples:\n  {}", fmt::join(commands, "\n  "));
}

}  // namespace tenon::cli
