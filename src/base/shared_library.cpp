#include "base/shared_library.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/auxv.h>

#include "base/error.h"

namespace tenon {

namespace fs = std::filesystem;

namespace {

// A program without a dynamic linker would need the very glibc that it was linked with.
bool is_static_program() { return getauxval(AT_BASE) == 0; }

struct Attempts {
  std::vector<std::string> failures = {};  // of files that are there

  void* open_file(const fs::path& file) {
    std::error_code ignored;
    if (!fs::exists(file, ignored))
      return nullptr;
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      failures.emplace_back(dlerror());
    return handle;
  }

  void* open_in(const std::vector<fs::path>& folders, const std::vector<std::string>& names) {
    for (const fs::path& folder : folders)
      for (const std::string& name : names)
        if (void* handle = open_file(folder / name))
          return handle;
    return nullptr;
  }

  void* open(const LibrarySearch& search) {
    if (void* handle = open_in(search.first, search.names))
      return handle;
    for (const int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
      for (const std::string& name : search.names)
        if (void* handle = dlopen(name.c_str(), flags))
          return handle;
    return open_in(search.then, search.names);
  }
};

std::string describe_failure(const LibrarySearch& search, const std::vector<std::string>& failures) {
  if (!failures.empty())
    return fmt::format("{} cannot be loaded\n  {}", search.names.front(), fmt::join(failures, "\n  "));
  std::vector<std::string> places;
  for (const fs::path& folder : search.first)
    places.push_back(folder.string());
  places.emplace_back("where the system looks for libraries");
  for (const fs::path& folder : search.then)
    places.push_back(folder.string());
  return fmt::format("there is no {}\n  looked for it in: {}", fmt::join(search.names, " or "),
                     fmt::join(places, ", "));
}

}  // namespace

SharedLibrary::SharedLibrary(const LibrarySearch& search) : name_(search.names.front()) {
  if (is_static_program())
    throw user_error("this build of tenon is one static file, which cannot load {}", name_);
  Attempts attempts;
  handle_.reset(attempts.open(search));
  if (!handle_)
    throw UserError(describe_failure(search, attempts.failures));
}

void SharedLibrary::Close::operator()(void* handle) const { dlclose(handle); }

std::string SharedLibrary::path() const {
  const link_map* map = nullptr;
  return dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0' ? map->l_name : name_;
}

void* SharedLibrary::address_of(const char* name) const {
  void* address = dlsym(handle_.get(), name);
  if (address == nullptr)
    throw user_error("{} has no function {}: its version is too old", path(), name);
  return address;
}

}  // namespace tenon
