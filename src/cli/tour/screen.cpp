#include "cli/tour/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/utf8.h"
#include "cli/output.h"

namespace tenon::cli {
namespace {

constexpr size_t kColumns = 100, kIndent = 2;

constexpr std::string_view kHeading = "1;36", kSubheading = "1", kCommand = "32", kQuestion = "2";

std::string cut_off(const std::string& line) {
  constexpr size_t kMost = kColumns - kIndent;
  if (first_characters(line, kMost).size() == line.size())
    return line;
  return std::string(first_characters(line, kMost - 1)) + "…";
}

// A paragraph as lines that begin with `indent`.
std::string broken(std::string_view text, const std::string& indent) {
  std::istringstream words{std::string(text)};
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? indent : " ") + word;
  }
  return lines + line + "\n";
}

}  // namespace

std::string Screen::in(std::string_view style, std::string_view text) const {
  return coloured_ ? fmt::format("\033[{}m{}\033[0m", style, text) : std::string(text);
}

void Screen::heading(std::string_view text) {
  write_output("\n" + in(kHeading, text) + "\n" + in(kHeading, std::string(kColumns, '-')) + "\n");
}

void Screen::subheading(std::string_view text) { write_output("\n" + in(kSubheading, text) + "\n"); }

void Screen::paragraph(std::string_view text) { write_output(broken(text, "")); }

void Screen::notes(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    write_output(broken(line, std::string(kIndent + line.find_first_not_of(' '), ' ')));
}

void Screen::excerpt(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    write_output(line.empty() ? "\n" : std::string(kIndent, ' ') + cut_off(line) + "\n");
}

void Screen::command(std::string_view text) { write_output("  $ " + in(kCommand, text) + "\n"); }

void Screen::question(std::string_view text) { write_output("\n" + in(kQuestion, text)); }

std::string lines_with(std::string_view text, std::initializer_list<std::string_view> words) {
  std::istringstream lines{std::string(text)};
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (std::any_of(words.begin(), words.end(),
                    [&](std::string_view word) { return line.find(word) != std::string::npos; }))
      kept += line + "\n";
  return kept;
}

}  // namespace tenon::cli
