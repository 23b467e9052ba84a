// processor.h — what the processor offers, by the text of /proc/cpuinfo.
#pragma once

#include <string>
#include <string_view>

#include "target/target.h"

namespace tenon {

// Without caches and cores. A text that says nothing gives what every processor of the architecture has.
Target parse_processor(Architecture architecture, std::string_view cpuinfo);

// What its maker calls it; empty where the text does not say.
std::string parse_processor_name(std::string_view cpuinfo);

// As if it had no instructions for tiles of matrices.
void forbid_tiles(Target& target);

}  // namespace tenon
