#include "codegen/object_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/hash.h"
#include "base/write_file.h"

namespace tenon::codegen {
namespace {

// A file holds the hash of all that follows, the length of the key, the key and the object. The key is there
// in full, so that another one of the same hash is not taken for it.
constexpr size_t kHeader = 2 * sizeof(uint64_t);

std::string number(uint64_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

uint64_t number_at(const std::string& text, size_t at) {
  uint64_t value;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

}  // namespace

std::filesystem::path ObjectCache::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.kernel", hash_string(key));
}

std::optional<std::string> ObjectCache::find(const std::string& key) const {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file_of(key), ignored))
    return std::nullopt;
  std::ifstream file(file_of(key), std::ios::binary);
  if (!file)
    return std::nullopt;
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (content.size() < kHeader ||
      number_at(content, 0) != hash_string(std::string_view(content).substr(sizeof(uint64_t))))
    return std::nullopt;
  const uint64_t length = number_at(content, sizeof(uint64_t));
  if (length > content.size() - kHeader || content.compare(kHeader, length, key) != 0)
    return std::nullopt;
  return content.substr(kHeader + length);
}

void ObjectCache::store(const std::string& key, const std::string& object) const {
  const std::string content = number(key.size()) + key + object;
  try {
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    write_file(file_of(key), number(hash_string(content)) + content);
  } catch (const UserError&) {
    // A folder that is full, read-only or not there costs time, and nothing else.
  }
}

std::optional<ObjectCache> default_cache() {
  if (const char* given = std::getenv("TENON_CACHE"))
    return *given == '\0' ? std::nullopt : std::optional<ObjectCache>(given);
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && *given != '\0')
    return ObjectCache(std::filesystem::path(given) / "tenon");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return ObjectCache(std::filesystem::path(home) / ".cache" / "tenon");
  return std::nullopt;
}

}  // namespace tenon::codegen
