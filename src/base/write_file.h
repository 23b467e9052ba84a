// write_file.h — files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace tenon {

// Calls `write` with the name of a temporary file beside `path`, which is renamed to `path` when it returns
// and removed when it throws. Errors, also those of `write`, say "cannot write PATH: " first.
void write_file(const std::filesystem::path& path,
                const std::function<void(const std::filesystem::path& temporary)>& write);
void write_file(const std::filesystem::path& path, std::string_view content);

// Throws what write_file would throw at once: there is no such folder, it is read-only, or the path is
// something else than a regular file. For paths that are written only after long work.
void check_writable(const std::filesystem::path& path);

}  // namespace tenon
