#include "frontends/torch/window.h"

#include "base/error.h"

namespace tenon::torch {

std::vector<int64_t> for_each_axis(const NodeView& n, std::string_view name, size_t rank,
                                   const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> given = n.integers(name, {});
  if (given.empty())
    return otherwise;
  if (given.size() == 1)
    given.assign(rank, int64_t{given.front()});
  if (given.size() != rank)
    throw user_error("{}: {} has {} numbers for {} spatial dimensions", n.op(), name, given.size(), rank);
  return given;
}

std::vector<int64_t> on_both_sides(const std::vector<int64_t>& pads) {
  std::vector<int64_t> both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

}  // namespace tenon::torch
