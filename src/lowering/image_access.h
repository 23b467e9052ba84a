// image_access.h — how stages read images: tensors of batch, channels, and sizes of images.
#pragma once

#include "loops/definition.h"

namespace tenon::lowering {

// The dimensions before this one stand for no place in an image.
constexpr size_t kFirstSpatial = 2;

bool applies(const loops::Scalar& scalar, loops::Function function);
bool is_zero(const loops::Scalar& scalar);
bool mentions_any(const loops::Scalar& scalar, const std::vector<loops::Axis>& axes);
std::vector<loops::Scalar> loads_of(const loops::Definition& definition);

// Whether the elements of an image are read for the pixels of the result, place by place or by windows around
// them, each image by itself.
bool reads_image(const loops::Definition& definition, const loops::Scalar& load);

// How far an index along a dimension of a size goes below 0, and past the last at most; nothing where it does
// not rise evenly with each loop.
struct Excess {
  int64_t before = 0, after = 0;
};
std::optional<Excess> excess_of(const Dim& index, const loops::Definition& definition, const Dim& size);

// select(it is within its image, load, border), where the border is a number; a load that is cast has zeros
// around it. Nothing for other formulas.
struct PaddedLoad {
  loops::Scalar load, border;  // of one dtype
};
std::optional<PaddedLoad> padded_load(const loops::Scalar& scalar,
                                      const std::map<std::string, loops::Buffer>& buffers);

}  // namespace tenon::lowering
