// verification.h — what verifying a model found, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "verify/verify.h"

namespace tenon::cli {

// A row for each pass, and below it what is to be said about its checks.
std::string verification_table(const std::vector<PassVerification>& results);

nlohmann::ordered_json verification_json(const std::vector<PassVerification>& results);

}  // namespace tenon::cli
