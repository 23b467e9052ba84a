// order.h — one order of elements for all ops that sort or look up.
#pragma once

#include <cmath>
#include <type_traits>

namespace tenon {

// A strict weak order: NaN comes after every number, and equals NaN; -0 equals 0.
struct ComesBefore {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_same_v<T, double>)
      return a < b || (std::isnan(b) && !std::isnan(a));
    else
      return a < b;
  }
};

inline constexpr ComesBefore comes_before;

}  // namespace tenon
