// cluster.h — blocks of more threads than one thread block of CUDA has: a cluster of them, whose blocks run
// at once on neighbouring multiprocessors and reach each other's shared memory.
#pragma once

#include "target/gpu.h"

namespace tenon {

constexpr int64_t kThreadsOfClusterBlock = 512;
constexpr int64_t kPortableBlocksOfCluster = 8;  // that every GPU with clusters has
constexpr int64_t kMostBlocksOfCluster = 16;     // where a kernel says that it may have more
constexpr int64_t kMostThreadsOfCluster = kThreadsOfClusterBlock * kMostBlocksOfCluster;

inline bool has_clusters(const Gpu& gpu) { return gpu.architecture >= 90; }

// Those of data centres have more than what all have.
inline int64_t most_blocks_of_cluster(const Gpu& gpu) {
  return gpu.architecture >= 90 && gpu.architecture < 110 ? kMostBlocksOfCluster : kPortableBlocksOfCluster;
}

// How many thread blocks of CUDA a block of so many threads is.
constexpr int64_t blocks_of_cluster(int64_t threads) {
  return threads <= kMostThreads ? 1 : (threads + kThreadsOfClusterBlock - 1) / kThreadsOfClusterBlock;
}

}  // namespace tenon
