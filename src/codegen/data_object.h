// data_object.h — bytes as an object file, for programs that are linked with them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "target/target.h"

namespace tenon::codegen {

// The most that code which refers to them reaches, beside as much of its own.
constexpr uint64_t kMostDataBytes = uint64_t{1} << 30;

// Read-only data under the name of a symbol, at a cache line. For the functions that write_file calls.
void write_data_object(const std::filesystem::path& existing, Architecture architecture,
                       const std::string& symbol, std::span<const std::byte> bytes);

}  // namespace tenon::codegen
