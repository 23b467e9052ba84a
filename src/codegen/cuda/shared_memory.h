// shared_memory.h — which threads run an iteration of the block loops together, and the shared memory they
// have.
#pragma once

#include "codegen/cuda/tiles.h"

namespace tenon::codegen::cuda {

// Whole blocks of a cluster, whole warps, or a part of one that divides it.
Team team_of(const loops::ParallelRegion& region);

// Whether a buffer of statements that all threads run alike lies in shared memory.
bool is_shared(const loops::Buffer& buffer, const Team& team);

// The alignment of each buffer, in bytes.
int64_t alignment_of(const std::set<std::string>& swizzled);

// Of one slot in a thread block. Those of a cluster have the elements of their threads: as many as with
// vectors of 16 bytes, which are as many as there can be.
Dim shared_bytes_of(const loops::Buffer& buffer, const Team& team, int64_t alignment);

// All that a team needs.
Dim shared_bytes(const PipelinedRegion& region, const Team& team, const RegionProducts& products);

RegionProducts products_of(const PipelinedRegion& region, const Team& team);

}  // namespace tenon::codegen::cuda
