// scratch_folder.h — a folder that nobody else uses, for as long as it is needed.
#pragma once

#include "base/interrupt.h"

namespace tenon {

class ScratchFolder {
 public:
  // Where files cannot be written at all, it is the user's fault.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  Leftover folder_;
};

}  // namespace tenon
