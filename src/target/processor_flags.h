// processor_flags.h — what the processor itself says that it offers, where /proc/cpuinfo is not to be read:
// in a container without /proc, say.
#pragma once

#include <string>

namespace tenon {

// A line like that of /proc/cpuinfo, of what parse_processor knows: only what the system has switched on.
std::string processor_flags();

}  // namespace tenon
