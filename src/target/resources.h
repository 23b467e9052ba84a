// resources.h — how much of this machine the process may use: its caches and its cores.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace tenon {

// The caches of one processor, from its folder in sysfs, /sys/devices/system/cpu/cpuN; `otherwise` where that
// names none.
Caches read_caches(const std::filesystem::path& processor, const Caches& otherwise);

// The caches that the C library knows of, shared by all processors; as in Caches() where it knows none.
Caches library_caches();

// How many processors a list such as "0-3,8" names; at least 1, whatever it says.
int64_t count_processors(std::string_view list);

// How many cores' time the control groups of this process leave it, rounded up; nothing where they set no
// limit. `root` is where the groups are mounted, as a rule /sys/fs/cgroup, and `memberships` is the text of
// /proc/self/cgroup.
std::optional<int64_t> read_core_limit(const std::filesystem::path& root, std::string_view memberships);

// The processors on which this thread may run, in order; never none.
std::vector<int> allowed_processors();

// How many cores this process may use: those it may run on, or fewer where its control groups limit its time.
int available_cores();

// Asks Linux for leave to use tiles of matrices (AMX), which holds for all threads; false where it says no.
bool ask_for_tiles();

}  // namespace tenon
