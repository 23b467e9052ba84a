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
    for (const auto& [name, function] : kFunctions)
      if (name == name_)
        return function(kernel, *this);
    std::vector<std::string_view> names;
    for (const auto& [name, function] : kFunctions)
      names.push_back(name);
    throw user_error("'{}' is no transformation; there are {}", name_, fmt::join(names, ", "));
  }

 private:
  using Function = Transformed (*)(const Kernel&, const Request&);
  static const std::vector<std::pair<std::string_view, Function>> kFunctions;

  void expect_count(size_t least, size_t most) const {
    if (arguments_.size() < least || arguments_.size() > most)
      throw user_error("'{}': {} takes {} arguments", text_, name_,
                       least == most ? std::to_string(least) : fmt::format("{} or {}", least, most));
  }
  const std::string& word(size_t i) const { return arguments_[i]; }
  int64_t number(size_t i) const {
    const std::optional<int64_t> value = dim(i).constant();
    if (!value)
      throw user_error("'{}': {} should be an integer", text_, arguments_[i]);
    return *value;
  }
  Dim dim(size_t i) const {
    return with_context([&] { return fmt::format("'{}'", text_); },
                        [&] { return Dim::parse(arguments_[i]); });
  }

  std::string text_, name_;
  std::vector<std::string> arguments_;
};

const std::vector<std::pair<std::string_view, Request::Function>> Request::kFunctions = {
    {"split",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(2, 2);
       return split(kernel, r.word(0), r.number(1));
     }},
    {"tile",
     [](const Kernel& kernel, const Request& r) {
       const size_t loops = r.arguments_.size() / 2;
       if (r.arguments_.size() % 2 != 0)
         throw user_error("'{}': tile takes loops, then as many sizes", r.text_);
       std::vector<int64_t> sizes;
       for (size_t i = loops; i < r.arguments_.size(); ++i)
         sizes.push_back(r.number(i));
       return tile(kernel, {r.arguments_.begin(), r.arguments_.begin() + static_cast<std::ptrdiff_t>(loops)},
                   sizes);
     }},
    {"permute", [](const Kernel& kernel, const Request& r) { return permute(kernel, r.arguments_); }},
    {"unroll",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(1, 2);
       return unroll(kernel, r.word(0), r.arguments_.size() == 2 ? std::optional(r.number(1)) : std::nullopt);
     }},
    {"vectorise",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(1, 1);
       return vectorise(kernel, r.word(0));
     }},
    {"parallelise",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(1, 1);
       return parallelise(kernel, r.word(0));
     }},
    {"fuse",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(2, 2);
       return fuse(kernel, r.word(0), r.word(1));
     }},
    {"fission",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(1, 1);
       return fission(kernel, r.word(0));
     }},
    {"skew",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(3, 3);
       return skew(kernel, r.word(0), r.word(1), r.number(2));
     }},
    {"divide",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(2, 2);
       return divide(kernel, r.word(0), r.dim(1));
     }},
    {"peel",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(2, 2);
       return peel(kernel, r.word(0), r.number(1));
     }},
    {"cache",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(2, 2);
       return cache(kernel, r.word(0), r.word(1));
     }},
    {"shrink",
     [](const Kernel& kernel, const Request& r) {
       r.expect_count(1, 1);
       return shrink(kernel, r.word(0));
     }},
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
