// completion.cpp — tenon completion: what a shell offers for a command line of tenon that is half typed.
//
// The scripts for the shells ask `tenon complete WORD…`, whose last word is the one to complete, so that all
// that is known stands here. It answers with a word a line, and "@files .onnx .pt2" where files may stand.
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kBash =
    R"sh(# bash completion for tenon. Read it with: source <(tenon completion bash)
_tenon() {
  # Split at spaces alone: bash's own words end at : and =, too.
  local line="${COMP_LINE:0:COMP_POINT}" words=() answer file suffix
  read -ra words <<<"$line"
  [[ "$line" != *[[:space:]] ]] || words+=("")
  local current="${words[-1]}"
  COMPREPLY=()
  while IFS= read -r answer; do
    if [[ "$answer" != "@files"* ]]; then
      COMPREPLY+=("$answer")
      continue
    fi
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
      for suffix in ${answer#@files}; do
        [[ -d "$file" || "$file" == *"$suffix" ]] && COMPREPLY+=("$file") && break
      done
      [[ "$answer" != "@files" ]] || COMPREPLY+=("$file")
    done < <(compgen -f -- "$current")
  done < <("${words[0]}" complete "${words[@]:1}" 2>/dev/null)
  # Bash replaces only what follows the last : or =.
  local before="${current%"${current##*[:=]}"}"
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
complete -F _tenon tenon
)sh";

constexpr std::string_view kZsh = R"sh(#compdef tenon
# zsh completion for tenon. Read it with: source <(tenon completion zsh)
_tenon() {
  local answer
  local -a candidates suffixes
  for answer in "${(@f)$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ "$answer" == "@files" ]]; then
      _files
    elif [[ "$answer" == "@files "* ]]; then
      suffixes=(${=answer#@files })
      _files -g "*${(j: *:)suffixes}"
    elif [[ -n "$answer" ]]; then
      candidates+=("$answer")
    fi
  done
  compadd -a candidates
}
compdef _tenon tenon
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion for tenon. Read it with: tenon completion fish | source
function __tenon_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  for answer in ($program complete $words "$current" 2>/dev/null)
    if string match -q '@files*' -- $answer
      __fish_complete_path "$current"
    else
      echo $answer
    end
  end
end
complete -c tenon -f -a '(__tenon_complete)'
)sh";

const std::vector<std::pair<std::string, std::string_view>> kScripts = {
    {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  return names;
}

bool takes_a_value(const CLI::Option& option) { return option.get_type_size_max() > 0; }

// The option of this name; null where there is none.
const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = names_of(*option);
    if (std::find(names.begin(), names.end(), name) != names.end())
      return option;
  }
  return nullptr;
}

// The argument that is not named and stands at this place; the last takes all that follow, if it can.
const CLI::Option* find_positional(const CLI::App& command, size_t place) {
  std::vector<const CLI::Option*> positionals;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      positionals.push_back(option);
  if (place < positionals.size())
    return positionals[place];
  const bool takes_all = !positionals.empty() && positionals.back()->get_expected_max() > 1;
  return takes_all ? positionals.back() : nullptr;
}

class Completer {
 public:
  explicit Completer(std::string current) : current_(std::move(current)) {}

  void add(const std::string& word) {
    if (word.starts_with(current_))
      text_ += word + "\n";
  }

  // `before` is what of the word stands before the value: "--as=".
  void add(const Offer& offer, const std::string& before = "") {
    const size_t comma = current_.rfind(',');
    const std::string others =
        offer.is_list && comma != std::string::npos ? current_.substr(0, comma + 1) : before;
    for (const std::string& word : offer.words)
      add(others + word);
    if (offer.takes_files && before.empty())
      text_ += fmt::format("@files{}{}\n", offer.suffixes.empty() ? "" : " ", fmt::join(offer.suffixes, " "));
  }

  void add_options(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : names_of(*option))
        add(name);
  }

  const std::string& text() const { return text_; }

 private:
  std::string current_, text_;
};

void complete_arguments(const CLI::App& command, const std::vector<std::string>& words,
                        Completer& completer) {
  const CLI::Option* wanting = nullptr;  // the option that the next word is the value of
  size_t positionals = 0;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (wanting != nullptr) {
      wanting = nullptr;
    } else if (words[i].starts_with("-")) {
      const CLI::Option* option = find_option(command, words[i]);
      wanting = option != nullptr && takes_a_value(*option) ? option : nullptr;
    } else {
      ++positionals;
    }
  }
  const std::string& current = words.back();
  const size_t equals = current.find('=');
  if (wanting != nullptr)
    return completer.add(offer_of(wanting));
  if (current.starts_with("--") && equals != std::string::npos) {
    if (const CLI::Option* option = find_option(command, current.substr(0, equals)))
      completer.add(offer_of(option), current.substr(0, equals + 1));
    return;
  }
  if (current.starts_with("-"))
    return completer.add_options(command);
  if (const CLI::Option* positional = find_positional(command, positionals))
    completer.add(offer_of(positional));
}

}  // namespace

std::string completions(const CLI::App& program, std::vector<std::string> words) {
  // Options of tenon itself, which take no values, may stand before the command.
  while (words.size() > 1 && words[0].starts_with("-"))
    words.erase(words.begin());
  if (words.empty())
    return "";
  Completer completer(words.back());
  if (words.size() == 1) {
    for (const CLI::App* command : program.get_subcommands(nullptr))
      completer.add(command->get_name());
    if (words[0].starts_with("-"))
      completer.add_options(program);
    return completer.text();
  }
  for (const CLI::App* command : program.get_subcommands(nullptr))
    if (command->get_name() == words[0])
      complete_arguments(*command, words, completer);
  return completer.text();
}

void add_completion(CLI::App& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("completion", "prints a script that has a shell complete tenon's arguments");
  std::vector<std::string> shells;
  shells.reserve(kScripts.size());
  for (const auto& [name, script] : kScripts)
    shells.push_back(name);
  add_choice(*command, "SHELL", *shell, "the shell", shells)->required();
  command->footer(
      "For bash, put `source <(tenon completion bash)` into ~/.bashrc; for zsh, the same into ~/.zshrc "
      "behind compinit;\n"
      "for fish, write it to ~/.config/fish/completions/tenon.fish.\n" +
      examples({"tenon completion bash >tenon.bash"}));
  command->callback([shell] {
    for (const auto& [name, script] : kScripts)
      if (name == *shell)
        write_output(std::string(script));
  });
}

}  // namespace tenon::cli
