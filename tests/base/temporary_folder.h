// temporary_folder.h — an empty folder that lives as long as a test.
#pragma once

#include <fstream>
#include <string>

#include "base/scratch_folder.h"

namespace tenon {

class TemporaryFolder : public ScratchFolder {
 public:
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(path() / name, std::ios::binary) << content;
    return path() / name;
  }
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tenon
