#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tenon {

std::string format_bytes(double count) {
  // What rounds to 1024 of a unit is 1 of the next.
  constexpr double kWholeUpTo = 10'000, kStep = 1024, kRoundsToStep = 1023.95;
  if (std::fabs(count) < kWholeUpTo)
    return fmt::format("{:.0f} B", count);
  constexpr std::array kUnits = {"KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (count /= kStep; std::fabs(count) >= kRoundsToStep && unit + 1 < kUnits.size(); ++unit)
    count /= kStep;
  return fmt::format("{:.1f} {}", count, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  constexpr double kReadAtAGlance = 99.5;
  if (seconds >= kReadAtAGlance) {
    const auto whole = static_cast<int64_t>(std::llround(seconds));
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  constexpr std::array kUnits = {"s", "ms", "µs", "ns"};
  size_t unit = 0;
  // What rounds to 1000 of a unit is 1 of the next.
  for (; seconds < 0.9995 && unit + 1 < kUnits.size(); ++unit)
    seconds *= 1000;
  const int decimals = seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", seconds, decimals, kUnits[unit]);
}

std::string format_count(uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

}  // namespace tenon
