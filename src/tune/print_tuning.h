// print_tuning.h — what tuning has found, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tune/tune.h"

namespace tenon {

// What was adopted and what was dropped, then the whole model; of at most 100 columns.
std::string print_tuning(const TuneResult& result, int threads);

nlohmann::ordered_json tuning_as_json(const std::string& model, const TuneResult& result, int threads);

}  // namespace tenon
