// arithmetic.h — the formulas that several ops compute with, on numbers and on what is known of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ir/dim.h"

namespace tenon {

template <class T>
constexpr bool is_real = std::is_same_v<T, double>;

// Integers wrap around, which unsigned arithmetic does without undefined behaviour.

constexpr auto sum_of = []<class T>(T x, T y) -> T {
  if constexpr (is_real<T>)
    return x + y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
};

constexpr auto difference_of = []<class T>(T x, T y) -> T {
  if constexpr (is_real<T>)
    return x - y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
};

constexpr auto product_of = []<class T>(T x, T y) -> T {
  if constexpr (is_real<T>)
    return x * y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
};

// sum += x · y
template <class T>
void add_product(T& sum, T x, T y) {
  sum = sum_of(sum, product_of(x, y));
}

// NaN wins over every number.
constexpr auto greater_of = []<class T>(T x, T y) -> T { return x != x ? x : y != y ? y : x < y ? y : x; };
constexpr auto lesser_of = []<class T>(T x, T y) -> T { return x != x ? x : y != y ? y : y < x ? y : x; };

// The same of sizes.
constexpr auto dim_sum = [](const Dim& x, const Dim& y) { return x + y; };
constexpr auto dim_product = [](const Dim& x, const Dim& y) { return x * y; };
constexpr auto dim_maximum = [](const Dim& x, const Dim& y) { return max(x, y); };
constexpr auto dim_minimum = [](const Dim& x, const Dim& y) { return min(x, y); };

}  // namespace tenon
