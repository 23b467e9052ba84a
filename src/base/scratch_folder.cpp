#include "base/scratch_folder.h"

#include <stdlib.h>  // NOLINT: mkdtemp is not in <cstdlib>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

namespace tenon {
namespace {

std::filesystem::path make_folder() {
  constexpr size_t kLetters = 6;  // that mkdtemp makes up, in place of as many X
  std::string path =
      (std::filesystem::temp_directory_path() / "tenon-").string() + std::string(kLetters, 'X');
  if (::mkdtemp(path.data()) == nullptr)
    throw user_error("there is no place for temporary files: {}", std::strerror(errno));
  return path;
}

}  // namespace

ScratchFolder::ScratchFolder() : folder_(make_folder) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path(), ignored);
}

}  // namespace tenon
