// sampled_hash.h — tells whether bytes changed without reading all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

// Of how many bytes there are, and of at most 4 KiB of them: blocks that are spread evenly, the first and the
// last among them. Weights that were trained further or quantised anew differ almost everywhere, and those
// that moved in their file differ in all blocks.
uint64_t sampled_hash(std::span<const std::byte> bytes);

}  // namespace tenon
