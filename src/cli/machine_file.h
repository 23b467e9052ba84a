// machine_file.h — the processor of a machine as tenon devices writes it, for tenon compile --like elsewhere.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "target/target.h"

namespace tenon::cli {

nlohmann::ordered_json describe_machine(const Target& machine, const std::string& name);

// What is no such file is a user_error.
Target read_machine(const std::filesystem::path& path);

}  // namespace tenon::cli
