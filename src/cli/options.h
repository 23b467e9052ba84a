// options.h — options that several commands have, and what a shell can offer for an option or argument.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tenon::cli {

struct Offer {
  std::vector<std::string> words = {};
  bool is_list = false;  // several of them, with commas between
  bool takes_files = false;
  std::vector<std::string> suffixes = {};  // of files; any where there are none
};

// Remembers what can be offered for the option, for `tenon completion`.
CLI::Option* offer(CLI::Option* option, Offer offered);
// Nothing is offered for one that is not known.
const Offer& offer_of(const CLI::Option* option);

// Offers files; of these endings, if any.
CLI::Option* offer_files(CLI::Option* option, std::vector<std::string> suffixes = {});

// An option that takes one of these words.
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& word, const std::string& doc,
                        const std::vector<std::string>& words);

CLI::Option* add_numerics(CLI::App& command, std::string& numerics);
CLI::Option* add_inputs(CLI::App& command, std::string& inputs, const std::string& when_left_out);
CLI::Option* add_json(CLI::App& command, std::string& json);

// What follows the options in the help of a command: how it is used.
std::string examples(std::initializer_list<std::string_view> commands);

}  // namespace tenon::cli
