#include "runtime/cuda/cuda_library.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace tenon::runtime::cuda {

namespace fs = std::filesystem;

namespace {

using Folders = std::vector<fs::path>;

// Those in `folder` whose names begin so, the last by name first.
Folders folders_in(const fs::path& folder, std::string_view beginning) {
  Folders found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (it->path().filename().string().starts_with(beginning))
      found.push_back(it->path());
  std::ranges::sort(found, std::greater());
  return found;
}

// lib64 is where NVIDIA's installers put libraries, lib where others do.
void add_toolkit(Folders& folders, const fs::path& toolkit) {
  folders.push_back(toolkit / "lib64");
  folders.push_back(toolkit / "lib");
}

// What pip installs below PREFIX/lib/python3.*/site-packages: CUDA 13 as one folder, 12 as one for each.
void add_packages(Folders& folders, const fs::path& prefix) {
  for (const fs::path& python : folders_in(prefix / "lib", "python3"))
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const char* library : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"})
        folders.push_back(python / packages / library);
}

// PREFIX where the first python3 in `path` is PREFIX/bin/python3.
std::optional<fs::path> python_prefix(const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code ignored;
    if (!folder.empty() && fs::exists(fs::path(folder) / "python3", ignored))
      return fs::path(folder).parent_path();
  }
  return std::nullopt;
}

}  // namespace

LibrarySearch search_cuda(std::vector<std::string> names, const Environment& environment) {
  LibrarySearch search{.names = std::move(names)};
  if (const auto named = environment("TENON_CUDA_PATH")) {
    search.first.emplace_back(*named);
    add_toolkit(search.first, *named);
  }
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"})
    if (const auto toolkit = environment(variable))
      add_toolkit(search.then, *toolkit);
  for (const fs::path& toolkit : folders_in("/usr/local", "cuda"))
    add_toolkit(search.then, toolkit);
  if (const auto prefix = environment("VIRTUAL_ENV"))
    add_packages(search.then, *prefix);
  if (const auto path = environment("PATH"))
    if (const auto prefix = python_prefix(*path))
      add_packages(search.then, *prefix);
  if (const auto home = environment("HOME"))
    add_packages(search.then, fs::path(*home) / ".local");
  std::erase_if(search.then, [](const fs::path& folder) {
    std::error_code ignored;
    return !fs::is_directory(folder, ignored);
  });
  return search;
}

SharedLibrary open_cuda_library(std::vector<std::string> names) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  };
  return SharedLibrary(search_cuda(std::move(names), environment));
}

}  // namespace tenon::runtime::cuda
