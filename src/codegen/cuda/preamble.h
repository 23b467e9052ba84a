// preamble.h — the types and functions that emitted text uses and CUDA does not have without headers. A text
// begins with those that it uses.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

class Preamble {
 public:
  // The name, which the text may use from now on.
  std::string_view use(std::string_view name);
  // The same of a function that is made as it is needed.
  std::string_view use_made(const std::string& name, std::string text);
  std::string text() const;

  // Of all that there are.
  static std::vector<std::string_view> names();

 private:
  std::set<std::string_view> used_;
  std::map<std::string, std::string> made_;
};

}  // namespace tenon::codegen::cuda
