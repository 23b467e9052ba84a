// writer.h — lines of C++ with their indentation, and the identifiers in them.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

// Identifiers that mean one thing each.
class Names {
 public:
  Names();

  // Of what the kernel calls so: the same, unless C++ or the text around has that name already.
  const std::string& of(const std::string& name);
  // One that nothing else has.
  std::string fresh(std::string_view base);

  // Fresh names from here on are free again where the scope ends.
  void begin_scope() { scopes_.push_back(fresh_); }
  void end_scope() {
    fresh_ = std::move(scopes_.back());
    scopes_.pop_back();
  }

 private:
  using Set = std::set<std::string, std::less<>>;

  bool is_taken(std::string_view name) const;

  Set taken_, fresh_;
  std::vector<Set> scopes_;
  std::map<std::string, std::string> of_;
};

// Whether the identifier stands in the text.
bool mentions_name(std::string_view text, std::string_view name);

class Writer {
 public:
  explicit Writer(Names& names, int depth = 0) : names_(&names), depth_(depth) {}

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }
  // A line that ends with a brace; what follows stands within, and so do its names.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...) + " {");
    begin();
  }
  void open() {
    write("{");
    begin();
  }
  // A loop with a variable of its own, which the format has as {0}. Its name.
  template <class... Args>
  std::string open_loop(std::string_view variable, fmt::format_string<std::string&, Args...> format,
                        Args&&... args) {
    names_->begin_scope();
    std::string name = names_->fresh(variable);
    write(fmt::format(format, name, std::forward<Args>(args)...) + " {");
    ++depth_;
    return name;
  }
  void otherwise() {
    end();
    write("} else {");
    begin();
  }
  void close() {
    end();
    write("}");
  }
  void write(std::string_view text) {
    text_.append(static_cast<size_t>(2 * depth_), ' ').append(text).push_back('\n');
  }
  // What follows, or stands within braces that follow, to be appended later.
  Writer same() const { return Writer(*names_, depth_); }
  Writer inner() const { return Writer(*names_, depth_ + 1); }
  void append(const Writer& other) { text_ += other.text_; }

  const std::string& text() const { return text_; }

 private:
  void begin() {
    ++depth_;
    names_->begin_scope();
  }
  void end() {
    --depth_;
    names_->end_scope();
  }

  Names* names_;
  std::string text_;
  int depth_;
};

}  // namespace tenon::codegen::cuda
