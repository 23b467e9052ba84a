#include "cli/pass_names.h"

#include <algorithm>
#include <sstream>

#include "passes/pipeline.h"
#include "passes/target_pipeline.h"

namespace tenon::cli {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : portable_pipeline())
    names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> pass_names_of_compiling() {
  std::vector<std::string> names = pass_names();
  for (const TargetPass& pass : target_passes())
    names.emplace_back(pass.name);
  return names;
}

UserError no_pass(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> compiling = pass_names_of_compiling();
  if (std::ranges::find(compiling, name) != compiling.end())
    return user_error(
        "{} is a target pass: it runs where a model is compiled\n  hint: tenon bench --against without={}",
        name, name);
  const std::string hint = did_you_mean(name, {known.begin(), known.end()});
  return user_error("there is no pass \"{}\"{}", name,
                    hint.empty() ? "\n  hint: tenon passes lists them" : hint);
}

std::set<std::string> split_names(std::string_view option, const std::vector<std::string>& texts,
                                  const std::vector<std::string>& known) {
  std::set<std::string> names;
  for (const std::string& text : texts) {
    std::istringstream stream(text + ",");
    for (std::string name; std::getline(stream, name, ',');) {
      if (name.empty())
        throw user_error("{} {}: a name is missing", option, text);
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw no_pass(name, known);
      names.insert(name);
    }
  }
  return names;
}

}  // namespace tenon::cli
