// shared_library.h — libraries that are loaded while the program runs, so that it also starts where they are
// not installed.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

// Where a library is looked for, in this order: in `first`; among those that the process has loaded; where
// the system looks; in `then`. In each of these places, by its names in their order.
struct LibrarySearch {
  std::vector<std::string> names;  // "libz.so.1"
  std::vector<std::filesystem::path> first = {}, then = {};
};

class SharedLibrary {
 public:
  // None found, or none that can be loaded, is a user_error that says what was looked for and where.
  explicit SharedLibrary(const LibrarySearch& search);

  std::string path() const;  // of the file that was loaded

  // Sets `function` to the one of this name. A library without it is a user_error.
  template <class Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

 private:
  struct Close {
    void operator()(void* handle) const;
  };

  void* address_of(const char* name) const;

  std::string name_;
  std::unique_ptr<void, Close> handle_;
};

}  // namespace tenon
