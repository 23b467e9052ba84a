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

// The features that generated code may use, in LLVM's spelling, and what Linux calls one; empty where there
// is none such.
std::vector<std::string_view> feature_names(Architecture architecture);
std::string_view flag_of(Architecture architecture, std::string_view feature);

// As if it had no instructions for tiles of matrices.
void forbid_tiles(Target& target);

}  // namespace tenon
