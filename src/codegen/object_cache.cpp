#include "codegen/object_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/write_file.h"

namespace tenon::codegen {

namespace fs = std::filesystem;

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

constexpr std::string_view kExtension = ".kernel";
constexpr size_t kNameLength = 16;  // of a hash

// The folder may hold what is not ours. What another process is still writing has more behind its name.
bool is_of_cache(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.find_first_not_of("0123456789abcdef") == kNameLength &&
         std::string_view(name).substr(kNameLength).starts_with(kExtension);
}

struct Kept {
  fs::file_time_type used;
  uint64_t bytes;
  fs::path file;
};

// What others remove meanwhile is left out.
std::vector<Kept> list(const fs::path& folder) {
  std::vector<Kept> all;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (!is_of_cache(it->path()))
      continue;
    std::error_code gone;
    const bool is_file = it->is_regular_file(gone);
    const fs::file_time_type used = gone ? fs::file_time_type() : it->last_write_time(gone);
    const uint64_t bytes = gone || !is_file ? 0 : it->file_size(gone);
    if (is_file && !gone)
      all.push_back({used, bytes, it->path()});
  }
  return all;
}

}  // namespace

fs::path ObjectCache::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:0{}x}{}", hash_string(key), kNameLength, kExtension);
}

std::optional<std::string> ObjectCache::find(const std::string& key) const {
  std::error_code ignored;
  if (!fs::is_regular_file(file_of(key), ignored))
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
  fs::last_write_time(file_of(key), fs::file_time_type::clock::now(), ignored);  // for trim
  return content.substr(kHeader + length);
}

void ObjectCache::store(const std::string& key, const std::string& object) const {
  const std::string content = number(key.size()) + key + object;
  try {
    // A scratch folder that a signal has removed must not come back.
    without_interruption([&] {
      std::error_code ignored;
      fs::create_directories(folder_, ignored);
    });
    write_file(file_of(key), number(hash_string(content)) + content);
    // To look at all files takes as long as to make several. The more an object takes, the likelier it is the
    // one that has a look: one for each 64th part of the bound, however many processes store them.
    if (hash_string(key) % std::max<uint64_t>(most_bytes_ / 64, 1) < content.size())
      trim();
  } catch (const UserError&) {
    // A folder that is full, read-only or not there costs time, and nothing else.
  }
}

// A reader that has a file open goes on reading it, and a writer whose file goes before it is whole has
// nothing to keep.
void ObjectCache::trim() const {
  std::vector<Kept> all = list(folder_);
  uint64_t bytes = 0;
  for (const Kept& each : all)
    bytes += each.bytes;
  if (bytes <= most_bytes_ / 16 * 15)  // the rest is for what comes before the next look
    return;
  std::ranges::sort(all, {}, &Kept::used);
  for (const Kept& each : all) {
    if (bytes <= most_bytes_ / 16 * 15)
      return;
    std::error_code ignored;
    fs::remove(each.file, ignored);
    bytes -= each.bytes;
  }
}

ObjectCache::Usage ObjectCache::usage() const {
  Usage usage;
  for (const Kept& each : list(folder_)) {
    ++usage.objects;
    usage.bytes += each.bytes;
  }
  return usage;
}

ObjectCache::Usage ObjectCache::clear() const {
  Usage removed;
  for (const Kept& each : list(folder_)) {
    std::error_code error;
    if (fs::remove(each.file, error)) {
      ++removed.objects;
      removed.bytes += each.bytes;
    } else if (error) {
      throw user_error("cannot remove {}: {}", each.file.string(), error.message());
    }
  }
  return removed;
}

std::optional<ObjectCache> default_cache() {
  if (const char* given = std::getenv("TENON_CACHE"))
    return *given == '\0' ? std::nullopt : std::optional<ObjectCache>(given);
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && *given != '\0')
    return ObjectCache(fs::path(given) / "tenon");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return ObjectCache(fs::path(home) / ".cache" / "tenon");
  return std::nullopt;
}

}  // namespace tenon::codegen
