#include "cli/pass_names.h"

#include <sstream>

#include "base/error.h"
#include "passes/pipeline.h"

namespace tenon::cli {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : portable_pipeline())
    names.emplace_back(pass.name);
  return names;
}

std::set<std::string> split_names(std::string_view option, const std::vector<std::string>& texts) {
  std::set<std::string> names;
  for (const std::string& text : texts) {
    std::istringstream stream(text + ",");
    for (std::string name; std::getline(stream, name, ',');) {
      if (name.empty())
        throw user_error("{} {}: a name is missing", option, text);
      names.insert(name);
    }
  }
  return names;
}

}  // namespace tenon::cli
