#include "target/resources.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>

#include "target/words.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// A virtual machine of two processors may show the third level of all the host's; no core has more than this
// to itself.
constexpr int64_t kMostLevel3Share = 32 << 20;

// The number that the text begins with, which is taken off it.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// Of a file of one line; empty where it cannot be read.
std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K" or "2M"; 0 where it is not a size.
int64_t parse_size(std::string_view text) {
  const int64_t number = take_number(text).value_or(0);
  return text == "K" ? number << 10 : text == "M" ? number << 20 : text.empty() ? number : 0;
}

int64_t share_of_level3(int64_t bytes, int64_t processors) {
  return std::min(bytes / processors, kMostLevel3Share);
}

using Limit = std::optional<int64_t>;  // in cores; nothing where there is none

Limit lower(Limit a, Limit b) { return a && b ? std::min(*a, *b) : a ? a : b; }

// Every group is within the limits of those around it, so the lowest from `group` up to `root` holds. Groups
// that cannot be seen, as those outside a container, set none.
Limit lowest_limit(const fs::path& root, const fs::path& group, Limit (*limit_of)(const fs::path&)) {
  Limit lowest = limit_of(root);
  for (fs::path inner = group.relative_path(); !inner.empty(); inner = inner.parent_path())
    lowest = lower(lowest, limit_of(root / inner));
  return lowest;
}

// Microseconds of processor time in every so many. -1 and "max" stand for no limit.
Limit cores_for(std::string_view quota, std::string_view period) {
  const int64_t time = take_number(quota).value_or(-1), every = take_number(period).value_or(-1);
  if (time <= 0 || every <= 0)
    return std::nullopt;
  return time / every + (time % every != 0 ? 1 : 0);
}

Limit limit_of_version1(const fs::path& group) {
  return cores_for(read_line(group / "cpu.cfs_quota_us"), read_line(group / "cpu.cfs_period_us"));
}

Limit limit_of_version2(const fs::path& group) {
  const std::string line = read_line(group / "cpu.max");
  std::string_view period = line;
  const std::string_view quota = cut(period, ' ');
  return cores_for(quota, period);
}

bool holds_word(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (cut(list, ',') == word)
      return true;
  return false;
}

}  // namespace

Caches read_caches(const fs::path& processor, const Caches& otherwise) {
  Caches caches = otherwise;
  for (int index = 0;; ++index) {
    const fs::path cache = processor / "cache" / fmt::format("index{}", index);
    const std::string level = read_line(cache / "level"), type = read_line(cache / "type");
    const int64_t bytes = parse_size(read_line(cache / "size"));
    if (level.empty())
      return caches;
    if (type == "Instruction" || bytes <= 0)
      continue;
    if (level == "1")
      caches.level1_data = bytes;
    else if (level == "2")
      caches.level2 = bytes;
    else if (level == "3")
      caches.level3_share = share_of_level3(bytes, count_processors(read_line(cache / "shared_cpu_list")));
  }
}

Caches library_caches() {
  Caches caches;
  if (const long bytes = ::sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
    caches.level1_data = bytes;
  if (const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    caches.level2 = bytes;
  if (const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0)
    caches.level3_share = share_of_level3(bytes, std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return caches;
}

int64_t count_processors(std::string_view list) {
  int64_t count = 0;
  while (!list.empty()) {
    std::string_view range = cut(list, ',');
    const std::optional<int64_t> first = take_number(range);
    cut(range, '-');
    const std::optional<int64_t> last = range.empty() ? first : take_number(range);
    if (first && last && *first <= *last)
      count += *last - *first + 1;
  }
  return std::max<int64_t>(count, 1);
}

std::optional<int64_t> read_core_limit(const fs::path& root, std::string_view memberships) {
  Limit lowest;
  while (!memberships.empty()) {
    std::string_view group =
        cut(memberships, '\n');  // "NUMBER:CONTROLLERS:GROUP"; no controllers in version 2
    cut(group, ':');
    const std::string_view controllers = cut(group, ':');
    if (controllers.empty())
      lowest = lower(lowest, lowest_limit(root, group, limit_of_version2));
    else if (holds_word(controllers, "cpu"))
      lowest = lower(lowest, lowest_limit(root / "cpu", group, limit_of_version1));
  }
  return lowest;
}

std::vector<int> allowed_processors() {
  std::vector<cpu_set_t> sets(1);
  const auto bytes = [&] { return sets.size() * sizeof(cpu_set_t); };
  while (::sched_getaffinity(0, bytes(), sets.data()) != 0) {
    if (errno != EINVAL || sets.size() > 64)
      return {0};
    sets.resize(2 * sets.size());  // the kernel knows of more processors than fit
  }
  std::vector<int> processors;
  for (int processor = 0; processor < static_cast<int>(8 * bytes()); ++processor)
    if (CPU_ISSET_S(static_cast<size_t>(processor), bytes(), sets.data()))
      processors.push_back(processor);
  return processors;
}

bool ask_for_tiles() {
#if defined(__x86_64__)
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, and which part of the state
  return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace tenon
