// tuned_choices.h — what measuring has shown to be best, kept on disk from one start to the next.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "codegen/object_cache.h"
#include "lowering/contraction_choice.h"

namespace tenon::compiler {

struct TunedChoice {
  lowering::ContractionChoice choice;
  double before = 0, after = 0;  // seconds in one run of the model that it was measured in

  friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};
using TunedChoices = std::map<lowering::ContractionKey, TunedChoice>;

// What it says, by the names of its members.
nlohmann::ordered_json as_json(const lowering::ContractionChoice& choice);

// A file in the folder of the cache; nothing where there is no cache.
std::optional<std::filesystem::path> tuned_file(const std::optional<codegen::ObjectCache>& cache);

// Empty where there is no file, or it is damaged or cannot be read: then estimates choose.
TunedChoices read_tuned(const std::filesystem::path& file);
// Puts these in place of those that the file has for the same keys.
void add_tuned(const std::filesystem::path& file, const TunedChoices& choices);

// Those of the file above.
lowering::ContractionChoices tuned_choices(const std::optional<codegen::ObjectCache>& cache);

}  // namespace tenon::compiler
