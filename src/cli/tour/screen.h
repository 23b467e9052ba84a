// screen.h — how the tour looks: headings, paragraphs, excerpts and commands, at 100 columns.
#pragma once

#include <string>
#include <string_view>

namespace tenon::cli {

class Screen {
 public:
  explicit Screen(bool coloured) : coloured_(coloured) {}

  void heading(std::string_view text);
  void subheading(std::string_view text);
  void paragraph(std::string_view text);  // broken into lines at its spaces
  void notes(std::string_view text);      // the same for each of its lines, which keep their indentation
  void excerpt(std::string_view text);    // as it is, but for what is too wide
  void command(std::string_view text);    // one that the reader can type
  void question(std::string_view text);   // the cursor stays behind it

 private:
  std::string in(std::string_view style, std::string_view text) const;

  bool coloured_;
};

// The lines of a text that hold one of these words.
std::string lines_with(std::string_view text, std::initializer_list<std::string_view> words);

}  // namespace tenon::cli
