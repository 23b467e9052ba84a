#include "runtime/stored_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expect_error.h"
#include "tensor/wide.h"

namespace tenon {

using lowering::PackedWeights;
using lowering::PermutedLayout;
using runtime::Corrections;
using runtime::find_corrections;
using runtime::needs_corrections;
using runtime::packed_shape;
using runtime::Packing;
using runtime::repacked;
using runtime::StoredConstant;
using runtime::TensorShape;
using runtime::unpacked;

namespace {

// Elements that differ from their neighbours.
Tensor numbers(DType dtype, const Extents& extents) {
  std::vector<double> values(static_cast<size_t>(element_count(extents)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i * 37 % 101) * (dtype == DType::F32 ? 0.7351 : 1);
  return narrow<double>(dtype, extents, values);
}

Packing panels(std::vector<size_t> order, size_t reduced, int64_t lanes, int64_t groups = 1) {
  return {.vnni_dim = {},
          .layout = PackedWeights{
              .weights = {},
              .order = {.order = std::move(order), .reduced = reduced, .lanes = lanes, .groups = groups}}};
}

Packing windows(int64_t tile, int64_t lanes) {
  Packing packing = panels({0, 1, 2}, 2, lanes);
  packing.winograd_tile = tile;
  return packing;
}

// That each of these is made of each other, and the constant of all.
void expect_repacked(const Tensor& constant, const std::vector<Packing>& packings) {
  const StoredConstant plain{.dtype = constant.dtype(), .extents = constant.extents()};
  for (const Packing& from : packings)
    for (const int threads : {1, 3}) {
      const StoredConstant stored{.dtype = constant.dtype(), .extents = constant.extents(), .packing = from};
      const Tensor elements = repacked(constant, plain, {}, from, threads);
      EXPECT_EQ(packed_shape(stored), (TensorShape{elements.dtype(), elements.extents()}));
      std::optional<std::vector<std::byte>> corrections(std::in_place);
      if (from.winograd_tile)
        corrections = find_corrections(elements, stored, constant, threads);
      ASSERT_TRUE(corrections);
      EXPECT_TRUE(identical(unpacked(elements, stored, *corrections, threads), constant));
      for (const Packing& to : packings)
        EXPECT_TRUE(
            identical(repacked(elements, stored, needs_corrections(stored, to) ? *corrections : Corrections(),
                               to, threads),
                      repacked(constant, plain, {}, to, threads)));
    }
}

TEST(StoredLayout, PacksAnewWhatIsInPanels) {
  expect_repacked(numbers(DType::F32, {35, 37}),
                  {{}, panels({1, 0}, 1, 16), panels({1, 0}, 1, 8), panels({1, 0}, 1, 37)});
  expect_repacked(numbers(DType::F32, {64, 48}), {panels({0, 1}, 1, 16), panels({0, 1}, 1, 8),
                                                  panels({0, 1}, 1, 12), panels({0, 1}, 1, 64)});
  expect_repacked(numbers(DType::F32, {3, 20, 33}),
                  {panels({0, 2, 1}, 1, 16), panels({0, 2, 1}, 1, 8), panels({0, 2, 1}, 1, 32)});
  expect_repacked(numbers(DType::F32, {24, 6, 3, 3}),
                  {{},
                   panels({0, 1, 2, 3}, 3, 12, 2),
                   panels({0, 2, 3, 1}, 3, 8, 2),
                   {.vnni_dim = {}, .layout = PermutedLayout{{2, 3, 1, 0}}}});
}

TEST(StoredLayout, PacksAnewWhatIsInWords) {
  for (const DType dtype : {DType::I8, DType::U8, DType::BF16}) {
    Packing words = panels({1, 0}, 1, 8);
    words.vnni_dim = 0;
    expect_repacked(numbers(dtype, {24, 20}), {{}, words, panels({1, 0}, 1, 16)});
  }
}

TEST(StoredLayout, JoinsPartsOfBf16) {
  Tensor constant = numbers(DType::F32, {70, 40});
  constant.mutable_data<float>()[3] = -0.0F;
  Packing split = panels({1, 0}, 1, 16);
  std::get<PackedWeights>(split.layout).split = true;
  expect_repacked(constant, {split, panels({1, 0}, 1, 8)});
}

TEST(StoredLayout, RestoresTransformedWindows) {
  const auto expect_restored = [](const Tensor& constant) {
    expect_repacked(
        constant,
        {{}, panels({0, 1, 2, 3}, 3, 8), windows(4, 8), windows(4, 16), windows(2, 16), windows(2, 4)});
  };
  Tensor constant = numbers(DType::F32, {16, 6, 3, 3});
  expect_restored(constant);
  // Zeros, and weights of very different sizes.
  const std::span<float> weights = constant.mutable_data<float>();
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = i % 7 == 0 ? 0 : std::ldexp(weights[i] - 30, static_cast<int>(i % 41) - 20);
  weights[1] = -0.0F;
  expect_restored(constant);
  // Planes of windows.
  expect_repacked(numbers(DType::F32, {8, 4, 3, 3, 3}), {{}, windows(4, 8), windows(2, 4)});
}

// A correction is a byte or two where weights are alike in size, and corners need none.
TEST(StoredLayout, TakesFewBytesToRestoreWindows) {
  const Tensor constant = numbers(DType::F32, {32, 32, 3, 3});
  const StoredConstant plain{.dtype = DType::F32, .extents = constant.extents()};
  for (const int64_t tile : {2, 4}) {
    const StoredConstant stored{
        .dtype = DType::F32, .extents = constant.extents(), .packing = windows(tile, 8)};
    const Tensor elements = repacked(constant, plain, {}, stored.packing, 1);
    const auto corrections = find_corrections(elements, stored, constant, 1);
    ASSERT_TRUE(corrections);
    EXPECT_LT(corrections->size(), constant.bytes().size() / 5);
    expect_error<UserError>([&] { unpacked(elements, stored, Corrections(*corrections).first(100), 1); },
                            "corrections of weights end early");
    std::vector<std::byte> more = *corrections;
    more.emplace_back();
    expect_error<UserError>([&] { unpacked(elements, stored, more, 1); },
                            "there are more corrections of weights than weights");
    std::ranges::fill(more, std::byte{0xff});
    expect_error<UserError>([&] { unpacked(elements, stored, more, 1); },
                            "a correction of a weight is too long");
  }
}

TEST(StoredLayout, DoesNotRestoreCornersThatTransformingChanges) {
  for (const float corner : {-0.0F, std::numeric_limits<float>::infinity()}) {
    Tensor constant = numbers(DType::F32, {8, 8, 3, 3});
    constant.mutable_data<float>()[9] = corner;
    const StoredConstant plain{.dtype = DType::F32, .extents = constant.extents()},
        stored{.dtype = DType::F32, .extents = constant.extents(), .packing = windows(4, 8)};
    const Tensor elements = repacked(constant, plain, {}, stored.packing, 1);
    EXPECT_FALSE(find_corrections(elements, stored, constant, 1)) << corner;
  }
}

TEST(StoredLayout, KnowsWhatDoesNotFit) {
  const auto shape = [](const Packing& packing, DType dtype = DType::F32, const Extents& extents = {6, 8}) {
    return packed_shape({.dtype = dtype, .extents = extents, .packing = packing});
  };
  EXPECT_EQ(shape(panels({1, 0}, 1, 3)), (TensorShape{DType::F32, {3, 6, 3}}));
  EXPECT_EQ(shape(panels({1, 1}, 1, 3)), std::nullopt);
  EXPECT_EQ(shape(panels({1}, 0, 3)), std::nullopt);
  EXPECT_EQ(shape(panels({1, 0}, 2, 3)), std::nullopt);
  EXPECT_EQ(shape(panels({1, 0}, 1, 9)), std::nullopt);
  EXPECT_EQ(shape(panels({1, 0}, 1, 0)), std::nullopt);
  EXPECT_EQ(shape(panels({1, 0}, 1, 2, 3)), std::nullopt);
  EXPECT_EQ(shape({}, DType::F32, {6, -1}), std::nullopt);
  EXPECT_EQ(shape({.vnni_dim = 0, .layout = {}}, DType::I8), std::nullopt);
  EXPECT_EQ(shape({.vnni_dim = 1, .layout = {}}, DType::I8), (TensorShape{DType::I32, {6, 2}}));
  EXPECT_EQ(shape({.vnni_dim = 1, .layout = {}}, DType::F32), std::nullopt);
  EXPECT_EQ(shape({.vnni_dim = {}, .layout = PermutedLayout{{0, 2}}}), std::nullopt);
  const Extents weights = {8, 2, 3, 3};
  EXPECT_EQ(shape(windows(4, 4), DType::F32, weights), (TensorShape{DType::F32, {2, 36, 2, 4}}));
  EXPECT_EQ(shape(windows(3, 4), DType::F32, weights), std::nullopt);
  EXPECT_EQ(shape(windows(4, 3), DType::F32, weights), std::nullopt);
  EXPECT_EQ(shape(windows(4, 4), DType::I32, weights), std::nullopt);
  EXPECT_EQ(shape(windows(4, 4), DType::F32, {8, 3, 3}), std::nullopt);
  EXPECT_EQ(shape({.vnni_dim = {}, .layout = {}, .winograd_tile = 4}, DType::F32, weights), std::nullopt);
}

}  // namespace
}  // namespace tenon
