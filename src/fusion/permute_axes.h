// permute_axes.h — stages that read what others made element by element, but in another order of axes.
#pragma once

#include "loops/definition.h"

namespace tenon::fusion {

// The definition with its axes in the order of those that it reads, which are given by their buffers and have
// one order. Nothing where it does not read each element at its own place, or what is side by side would not
// stay so.
std::optional<loops::Definition> permuted_like(const std::map<std::string, loops::Definition>& makers,
                                               loops::Definition definition);

}  // namespace tenon::fusion
