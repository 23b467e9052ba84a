// winograd_cost.h — the cost model of Winograd: whether it beats direct convolution, with which tile and
// blocking.
#pragma once

#include "lowering/contraction_plan.h"
#include "schedule/context.h"

namespace tenon::schedule {

// A 3 x 3 convolution with stride 1. With more dimensions, image and result have planes, of which a window
// reads some.
struct Conv3x3 {
  int64_t height, width;  // of the result
  int64_t channels, filters;
  int64_t planes = 1;  // that a window reads

  int64_t all_channels() const { return planes * channels; }
};

// Whether its sizes allow Winograd.
bool may_use_winograd(const Conv3x3& conv, const Target& target);

// Estimates in nanoseconds, for two threads: the algorithm, and so the rounding, must not depend on their
// number. With many, all take about as long, so choose for few.
struct WinogradEstimate {
  double direct = 0;
  std::map<int64_t, double> by_tile = {};

  // The fastest tile size; nothing where direct convolution is faster, or Winograd is so by less than the
  // error of the estimate.
  std::optional<int64_t> best_tile() const;
};
WinogradEstimate estimate_winograd(const Conv3x3& conv, const Target& target);

// The fastest blocking, unless one is chosen.
lowering::WinogradBlocks choose_winograd_blocks(const Conv3x3& conv, int64_t tile, const Context& context,
                                                const lowering::ContractionChoice& choice = {});

// How many channels are transformed at once, and how many filters are multiplied with.
int64_t lanes_of_tiles(const Target& target);
int64_t filters_at_once(int64_t filters, const Target& target);

int64_t divide_up(int64_t a, int64_t b);

}  // namespace tenon::schedule
