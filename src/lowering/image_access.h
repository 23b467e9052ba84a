// image_access.h — how stages read images: tensors of batch, channels, and sizes of images.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// The dimensions from this one on are spatial.
constexpr size_t kFirstSpatial = 2;

bool applies(const loops::Scalar& scalar, loops::Function function);
bool is_zero(const loops::Scalar& scalar);
bool mentions_any(const loops::Scalar& scalar, const std::vector<loops::Axis>& axes);
std::vector<loops::Scalar> loads_of(const loops::Definition& definition);

// Whether an image is read pointwise or by windows around each pixel of the result, each image by itself.
bool reads_image(const loops::Definition& definition, const loops::Scalar& load);

// How far an index reaches below 0 and past the end of a dimension at most; nothing where it is not affine.
struct Excess {
  int64_t before = 0, after = 0;
};
std::optional<Excess> excess_of(const Dim& index, const loops::Definition& definition, const Dim& size);

// A padded load: select(within the image, load, border), with a constant border; zero for a cast load.
// Nothing for other expressions.
struct PaddedLoad {
  loops::Scalar load, border;  // of one dtype
};
std::optional<PaddedLoad> padded_load(const loops::Scalar& scalar, const BufferTable& buffers);

}  // namespace tenon::lowering
