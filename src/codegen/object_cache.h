// object_cache.h — machine code kept on disk from one start to the next.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tenon::codegen {

// A folder of files, each named after the hash of what it was made from. It only ever saves time: what cannot
// be read, or is damaged, is made again, and what cannot be written is not kept. Of more bytes than it may
// hold, those that were used longest ago go. Several processes may use one folder at once.
class ObjectCache {
 public:
  static constexpr uint64_t kMostBytes = 1 << 30;

  explicit ObjectCache(std::filesystem::path folder, uint64_t most_bytes = kMostBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::optional<std::string> find(const std::string& key) const;
  void store(const std::string& key, const std::string& object) const;

  struct Usage {
    uint64_t objects = 0, bytes = 0;
  };
  Usage usage() const;
  // Removes all objects, and nothing else that lies in the folder; returns what went. A file that cannot be
  // removed is a user error.
  Usage clear() const;

 private:
  std::filesystem::path file_of(const std::string& key) const;
  void trim() const;

  std::filesystem::path folder_;
  uint64_t most_bytes_;
};

// TENON_CACHE, where it is set (empty: none); else tenon in XDG_CACHE_HOME or ~/.cache.
std::optional<ObjectCache> default_cache();

}  // namespace tenon::codegen
