#include "cli/pass_choice.h"

#include "cli/options.h"
#include "cli/pass_names.h"

namespace tenon::cli {

void PassChoice::add_to(CLI::App& command, const std::vector<std::string>& known) {
  add_numerics(command, numerics);
  offer(command.add_option("--passes", only, "runs these passes alone")->option_text("NAME,..."),
        {.words = pass_names(), .is_list = true});
  offer(command.add_option("--disable", disabled, "leaves these passes out")->option_text("NAME,..."),
        {.words = known, .is_list = true});
}

// A pass that is both asked for and left out would never run, which nobody wants.
PipelineOptions PassChoice::portable(const std::vector<std::string>& known) const {
  PipelineOptions options = {.only = split_names("--passes", only, pass_names())};
  const std::set<std::string> all = left_out(known);
  for (const std::string& name : pass_names())
    if (all.contains(name))
      options.disabled.insert(name);
  for (const std::string& name : options.only)
    if (options.disabled.contains(name))
      throw user_error("--passes and --disable both name {}", name);
  return options;
}

std::set<std::string> PassChoice::left_out(const std::vector<std::string>& known) const {
  return split_names("--disable", disabled, known);
}

}  // namespace tenon::cli
