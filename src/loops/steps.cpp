// steps.cpp — transformations asked for in words.
#include "base/error.h"
#include "loops/transform.h"

namespace tenon::loops {

namespace {

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

std::vector<std::string> split_outside_brackets(std::string_view text, char separator) {
  std::vector<std::string> parts = {""};
  int depth = 0;
  for (char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == separator && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts)
    part = trimmed(part);
  return parts;
}

constexpr size_t kMany = 100;  // arguments

// One request: what to do, and to what.
class Request {
 public:
  explicit Request(const std::string& text) : text_(text) {
    const size_t open = text.find('(');
    if (open == std::string::npos || text.back() != ')')
      throw user_error("'{}' should look like tile(i,j,2,2)", text);
    name_ = trimmed(text.substr(0, open));
    arguments_ = split_outside_brackets(text.substr(open + 1, text.size() - open - 2), ',');
  }

  Transformed apply(const Kernel& kernel) const {
    for (const Entry& entry : kEntries)
      if (entry.name == name_) {
        expect_count(entry.least, entry.most);
        return with_context([&] { return fmt::format("'{}'", text_); },
                            [&] { return entry.function(kernel, *this); });
      }
    std::vector<std::string_view> names;
    for (const Entry& entry : kEntries)
      names.push_back(entry.name);
    throw user_error("'{}' is no transformation; there are {}", name_, fmt::join(names, ", "));
  }

 private:
  // A transformation, and how many arguments it takes.
  struct Entry {
    std::string_view name;
    size_t least, most;
    Transformed (*function)(const Kernel&, const Request&);
  };
  static const std::vector<Entry> kEntries;

  void expect_count(size_t least, size_t most) const {
    if (arguments_.size() >= least && arguments_.size() <= most)
      return;
    throw user_error("'{}': {} takes {} arguments", text_, name_,
                     least == most   ? std::to_string(least)
                     : most == kMany ? fmt::format("{} or more", least)
                                     : fmt::format("{} or {}", least, most));
  }
  const std::string& word(size_t i) const { return arguments_[i]; }
  int64_t number(size_t i) const {
    const std::optional<int64_t> value = dim(i).constant();
    if (!value)
      throw user_error("{} should be an integer", arguments_[i]);
    return *value;
  }
  Dim dim(size_t i) const { return Dim::parse(arguments_[i]); }
  Transformed tile_all(const Kernel& kernel) const {
    if (arguments_.size() % 2 != 0)
      throw user_error("tile takes loops, then as many sizes");
    const auto half = static_cast<std::ptrdiff_t>(arguments_.size() / 2);
    std::vector<int64_t> sizes;
    for (size_t i = arguments_.size() / 2; i < arguments_.size(); ++i)
      sizes.push_back(number(i));
    return tile(kernel, {arguments_.begin(), arguments_.begin() + half}, sizes);
  }

  std::string text_, name_;
  std::vector<std::string> arguments_;
};

const std::vector<Request::Entry> Request::kEntries = {
    {"split", 2, 2, [](const Kernel& k, const Request& r) { return split(k, r.word(0), r.number(1)); }},
    {"tile", 2, kMany, [](const Kernel& k, const Request& r) { return r.tile_all(k); }},
    {"permute", 1, kMany, [](const Kernel& k, const Request& r) { return permute(k, r.arguments_); }},
    {"unroll", 1, 2,
     [](const Kernel& k, const Request& r) {
       return unroll(k, r.word(0), r.arguments_.size() == 2 ? std::optional(r.number(1)) : std::nullopt);
     }},
    {"vectorise", 1, 1, [](const Kernel& k, const Request& r) { return vectorise(k, r.word(0)); }},
    {"parallelise", 1, 1, [](const Kernel& k, const Request& r) { return parallelise(k, r.word(0)); }},
    {"fuse", 2, 2, [](const Kernel& k, const Request& r) { return fuse(k, r.word(0), r.word(1)); }},
    {"fission", 1, 1, [](const Kernel& k, const Request& r) { return fission(k, r.word(0)); }},
    {"skew", 3, 3,
     [](const Kernel& k, const Request& r) { return skew(k, r.word(0), r.word(1), r.number(2)); }},
    {"divide", 2, 2, [](const Kernel& k, const Request& r) { return divide(k, r.word(0), r.dim(1)); }},
    {"peel", 2, 2, [](const Kernel& k, const Request& r) { return peel(k, r.word(0), r.number(1)); }},
    {"cache", 2, 2, [](const Kernel& k, const Request& r) { return cache(k, r.word(0), r.word(1)); }},
    {"shrink", 1, 1, [](const Kernel& k, const Request& r) { return shrink(k, r.word(0)); }},
};

}  // namespace

std::vector<Step> apply_steps(const Kernel& kernel, std::string_view steps) {
  std::vector<Step> done;
  for (const std::string& text : split_outside_brackets(steps, ';')) {
    if (text.empty())
      continue;
    const Kernel& last = done.empty() ? kernel : *done.back().result.kernel;
    done.push_back({text, Request(text).apply(last)});
    if (!done.back().result.kernel)
      break;
  }
  return done;
}

}  // namespace tenon::loops
