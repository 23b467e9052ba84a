#include "schedule/cpu/winograd_weights.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "base/run_all.h"
#include "schedule/cpu/pack_constant.h"

namespace tenon::schedule {
namespace {

constexpr size_t kWindow = 9;  // weights

// Which weights of a window are no corners.
constexpr std::array<size_t, 5> kInner = {1, 3, 4, 5, 7};

struct Sizes {
  explicit Sizes(const Extents& weights)
      : filters(weights[0]),
        channels(weights[1]),
        planes(element_count({weights.begin() + 2, weights.end() - 2})) {}
  int64_t all_channels() const { return channels * planes; }
  // Where a window begins; channels are counted plane by plane.
  size_t window(int64_t filter, int64_t channel) const {
    return static_cast<size_t>((filter * channels + channel % channels) * planes + channel / channels) *
           kWindow;
  }

  int64_t filters, channels, planes;
};

// The bits of f32 as numbers in the order of what they stand for; -0 is before 0.
constexpr uint32_t kSign = uint32_t{1} << 31;
uint32_t ordered(uint32_t bits) { return (bits & kSign) != 0 ? ~(bits & ~kSign) : bits; }
uint32_t bits_of(uint32_t ordered) { return (ordered & kSign) != 0 ? ~ordered | kSign : ordered; }

// Small numbers of either sign are small.
uint32_t folded(uint32_t distance) { return distance << 1 ^ (0U - (distance >> 31)); }
uint32_t unfolded(uint32_t folded) { return folded >> 1 ^ (0U - (folded & 1)); }

}  // namespace

bool has_winograd_tiles(int64_t tile) { return tile == 2 || tile == 4; }

const WinogradTransforms& winograd_transforms(int64_t tile) {
  static const WinogradTransforms two{
      .image = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
      .weights = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
      .back = {{1, 1, 1, 0}, {0, 1, -1, -1}},
      .middle = {{1, 1}, {2, -1}},
  };
  // By the points 0, 1, -1, 1/2 and -2: with 2 and -2 sums of 192 channels err by 2.3 times as much (B.
  // Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for deep neural
  // networks", 2020).
  static const WinogradTransforms four{
      .image = {{1, -1.5, -2, 1.5, 1, 0},
                {0, -1, 0.5, 2.5, 1, 0},
                {0, 1, -2.5, 0.5, 1, 0},
                {0, -2, -1, 2, 1, 0},
                {0, 0.5, -1, -0.5, 1, 0},
                {0, 1, -1.5, -2, 1.5, 1}},
      .weights = {{1, 0, 0},
                  {1.0 / 3, 1.0 / 3, 1.0 / 3},
                  {-1.0 / 3, 1.0 / 3, -1.0 / 3},
                  {-16.0 / 15, -8.0 / 15, -4.0 / 15},
                  {1.0 / 15, -2.0 / 15, 4.0 / 15},
                  {0, 0, 1}},
      .back = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 0.5, -2, 0}, {0, 1, 1, 0.25, 4, 0}, {0, 1, -1, 0.125, -8, 1}},
      // By the smallest of what the weights become, which rounding changes least.
      .middle = {{0, 0.5}, {4, -7.5}, {5, 2}},
  };
  CHECK(has_winograd_tiles(tile), "there are no tiles of {}", tile);
  return tile == 2 ? two : four;
}

Extents transformed_extents(const Extents& weights, int64_t tile) {
  return {weights[0], (tile + 2) * (tile + 2), Sizes(weights).all_channels()};
}

lowering::PackedBLayout winograd_panels(int64_t lanes) {
  return {.order = {0, 1, 2}, .reduced = 2, .lanes = lanes};
}

Tensor transformed_windows(const Tensor& weights, int64_t tile, int64_t lanes, int threads) {
  const Sizes sizes(weights.extents());
  const int64_t channels = sizes.all_channels();
  const auto in_panel = static_cast<size_t>(lanes);
  const WinogradTransforms::Matrix& transform = winograd_transforms(tile).weights;
  Tensor result(DType::F32,
                packed_b_extents(transformed_extents(weights.extents(), tile), winograd_panels(lanes)));
  const int64_t elements = result.extent(1);
  const float* from = weights.data<float>().data();
  float* to = result.mutable_data<float>().data();
  run_all(static_cast<size_t>(sizes.filters / lanes), threads, [&](size_t panel) {
    const auto first = static_cast<int64_t>(panel) * lanes;
    std::vector<double> windows(kWindow * in_panel), half(3 * in_panel);  // [weights][lanes]
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (size_t lane = 0; lane < in_panel; ++lane) {
        const float* window = from + sizes.window(first + static_cast<int64_t>(lane), channel);
        for (size_t i = 0; i < kWindow; ++i)
          windows[i * in_panel + lane] = static_cast<double>(window[i]);
      }
      float* element = to + first * elements * channels + channel * lanes;
      for (const std::vector<double>& down : transform) {
        std::ranges::fill(half, 0.0);
        for (size_t k = 0; k < 3; ++k)
          for (size_t i = 0; i < 3 * in_panel; ++i)
            half[i] += down[k] * windows[k * 3 * in_panel + i];
        for (const std::vector<double>& across : transform) {
          for (size_t lane = 0; lane < in_panel; ++lane)
            element[lane] = static_cast<float>(across[0] * half[lane] + across[1] * half[in_panel + lane] +
                                               across[2] * half[2 * in_panel + lane]);
          element += channels * lanes;
        }
      }
    }
  });
  return result;
}

namespace {

// One of three weights, of what they became, of which `stride` says where each begins: all lanes of it.
template <class T>
void restore(size_t which, const WinogradTransforms& transforms, const T* become, size_t stride,
             std::span<double> lanes) {
  const auto add = [&](size_t i, double factor) {
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] += factor * static_cast<double>(become[i * stride + lane]);
  };
  std::ranges::fill(lanes, 0.0);
  if (which == 1)
    for (const auto& [i, factor] : transforms.middle)
      add(i, factor);
  else
    add(which == 0 ? 0 : transforms.weights.size() - 1, 1);
}

}  // namespace

Tensor restored_windows(const Tensor& panels, const Extents& weights, int64_t tile, int threads) {
  const Sizes sizes(weights);
  const WinogradTransforms& transforms = winograd_transforms(tile);
  const auto channels = static_cast<size_t>(sizes.all_channels()),
             lanes = static_cast<size_t>(panels.extents().back()), side = transforms.weights.size();
  std::vector<size_t> columns = {0, side - 1};  // that windows are restored of
  for (const auto& [i, factor] : transforms.middle)
    columns.push_back(i);
  Tensor result(DType::F32, weights);
  const float* from = panels.data<float>().data();
  float* to = result.mutable_data<float>().data();
  run_all(static_cast<size_t>(sizes.filters) / lanes, threads, [&](size_t panel) {
    std::vector<double> rows(3 * side * lanes), window(lanes);  // [rows][columns][lanes]
    for (size_t channel = 0; channel < channels; ++channel) {
      const float* elements = from + (panel * side * side * channels + channel) * lanes;
      for (size_t k = 0; k < 3; ++k)
        for (const size_t j : columns)
          restore(k, transforms, elements + j * channels * lanes, side * channels * lanes,
                  std::span(rows).subspan((k * side + j) * lanes, lanes));
      for (size_t i = 0; i < kWindow; ++i) {
        restore(i % 3, transforms, rows.data() + i / 3 * side * lanes, lanes, window);
        for (size_t lane = 0; lane < lanes; ++lane)
          to[sizes.window(static_cast<int64_t>(panel * lanes + lane), static_cast<int64_t>(channel)) + i] =
              static_cast<float>(window[lane]);
      }
    }
  });
  return result;
}

std::optional<std::vector<std::byte>> window_corrections(const Tensor& restored, const Tensor& weights) {
  const std::span<const uint32_t> from = restored.data<uint32_t>(), to = weights.data<uint32_t>();
  std::vector<std::byte> corrections;
  for (size_t window = 0; window < from.size(); window += kWindow) {
    for (const size_t corner : {0, 2, 6, 8})
      if (from[window + corner] != to[window + corner])
        return std::nullopt;
    for (const size_t inner : kInner) {
      uint32_t rest = folded(ordered(to[window + inner]) - ordered(from[window + inner]));
      for (; rest >= 0x80; rest >>= 7)
        corrections.push_back(static_cast<std::byte>(rest | 0x80));
      corrections.push_back(static_cast<std::byte>(rest));
    }
  }
  return corrections;
}

void correct_windows(Tensor& restored, std::span<const std::byte> corrections) {
  const std::span<uint32_t> weights = restored.mutable_data<uint32_t>();
  size_t next = 0;
  const auto read = [&] {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (next == corrections.size())
        throw user_error("corrections of weights end early");
      const auto byte = std::to_integer<uint32_t>(corrections[next++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    throw user_error("a correction of a weight is too long");
  };
  for (size_t window = 0; window < weights.size(); window += kWindow)
    for (const size_t inner : kInner)
      weights[window + inner] = bits_of(ordered(weights[window + inner]) + unfolded(read()));
  if (next != corrections.size())
    throw user_error("there are more corrections of weights than weights");
}

}  // namespace tenon::schedule
