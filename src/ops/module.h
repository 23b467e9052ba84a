// module.h — layers with parameters of their own, to write models with:
//
//   trace({f32({1, 4})}, [](Value x) { return relu(Linear{.name = "linear", .in = 4, .out = 3}(x)); })
//
// A parameter is named after its layer (linear.weight) and filled with pseudo-random numbers that depend only
// on that name. A layer applied twice in one graph has its parameters once.
#pragma once

#include <string>

#include "ir/graph.h"
#include "ops/random.h"

namespace tenon {

// The parameter of this name, made when the graph does not have it yet: numbers drawn evenly from `range`.
Value random_parameter(Graph& graph, const std::string& name, const Extents& extents, Interval range);

struct Linear {
  std::string name;
  int64_t in, out;
  bool bias = true;

  Value operator()(Value x) const;
};

struct Conv2d {
  std::string name;
  int64_t in, out;  // channels
  int64_t kernel;
  int64_t stride = 1, padding = 0, groups = 1;
  bool bias = true;

  Value operator()(Value x) const;
};

struct ConvTranspose2d {
  std::string name;
  int64_t in, out;  // channels
  int64_t kernel;
  int64_t stride = 1, padding = 0, groups = 1;
  bool bias = true;

  Value operator()(Value x) const;
};

// With the statistics of a trained model, as when it runs.
struct BatchNorm2d {
  std::string name;
  int64_t channels;
  bool affine = true;
  double epsilon = 1e-5;

  Value operator()(Value x) const;
};

struct LayerNorm {
  std::string name;
  int64_t features;
  double epsilon = 1e-5;

  Value operator()(Value x) const;
};

}  // namespace tenon
