// zip_writer.h — writes a zip archive whose entries are stored as they are. Equal entries make equal files:
// none has a date.
#pragma once

#include <initializer_list>
#include <set>
#include <span>
#include <string>

#include "base/write_file.h"

namespace tenon {

class ZipWriter {
 public:
  explicit ZipWriter(FileWriter& file) : file_(file) {}

  // An entry whose content is these parts, one behind the other. Two of one name are a user error.
  void add(const std::string& name, std::initializer_list<std::span<const std::byte>> parts);
  // The directory, without which it is no archive.
  void finish();

 private:
  FileWriter& file_;
  std::string directory_;
  std::set<std::string> names_;
};

}  // namespace tenon
