// staged_factor.h — tiles of a factor on their way from memory to shared memory, vector by vector of each
// thread: through registers, where those of the next step are loaded while one is multiplied, or as
// asynchronous copies.
#pragma once

#include "schedule/cuda/contraction_tiles.h"

namespace tenon::schedule::cuda {

class StagedFactor {
 public:
  // Tiles of so many rows by so many products, each loaded by all threads. `tile` is the variable that says
  // which rows those are. `next` is the name of what threads hold, in that dtype.
  StagedFactor(const TiledFactor& from, const std::vector<loops::Axis>& k, int64_t rows, int64_t products,
               int64_t threads, std::string tile, std::string next, DType dtype);

  const loops::Buffer& next() const { return next_; }

  // What each thread does to load its part of a tile.
  std::vector<loops::Statement> load(const Dim& step) const;
  // What it does to copy that to shared memory: where these elements of a tile have their places.
  using PlaceOf = std::function<std::vector<Dim>(const Dim& row, const Dim& product)>;
  std::vector<loops::Statement> copy(const Dim& step, const loops::Buffer& to, const PlaceOf& place_of) const;
  // What it does with each of its elements then: of this row of the tile, and this product.
  using Store = std::function<std::vector<loops::Statement>(const Dim& row, const Dim& product,
                                                            const loops::Scalar& value)>;
  std::vector<loops::Statement> for_each(const Store& store) const;

 private:
  // Where a vector of a tile lies: across the direction of loads, and along it, in vectors.
  struct Vector {
    Dim across, along;
  };
  Vector vector_of_thread() const;
  std::vector<Dim> place_of_next() const;
  // The body for each vector of a thread in this step, of the factor's variables, where it is no padding.
  using Body = std::function<std::vector<loops::Statement>(const std::map<std::string, Dim>& variables,
                                                           const std::vector<Dim>& conditions)>;
  std::vector<loops::Statement> for_each_vector(const Dim& step, const Body& body) const;

  TiledFactor from_;
  std::vector<loops::Axis> k_;
  int64_t rows_, products_, threads_;
  std::string tile_;
  int64_t parts_;  // vectors of each thread
  loops::Buffer next_;
};

// Whether threads can copy tiles of so many rows by so many products: in memory lies what is multiplied, in
// whole vectors.
bool can_gather(const TiledFactor& from, int64_t rows, int64_t products, int64_t threads);

}  // namespace tenon::schedule::cuda
