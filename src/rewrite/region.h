// region.h — a piece of a graph that computes one value of another, with nothing besides but what is fixed;
// and running it alone, on numbers of our choice.
#pragma once

#include "base/hash.h"
#include "ir/graph.h"
#include "rewrite/nested_probes.h"
#include "tensor/tensor.h"

namespace tenon {

// A text with its hash, which tables need often.
struct RegionDescription {
  std::string text;
  uint64_t hash = 0;

  friend bool operator==(const RegionDescription&, const RegionDescription&) = default;
};

struct UnaryRegion {
  Value root;                  // what it computes …
  Value x;                     // … of this
  std::vector<Value> numbers;  // constants it uses, all of whose elements are the same
  std::vector<Value> fixed;    // other constants and parameters
  std::vector<Node*> nodes;    // in the graph's order; the last makes the root

  // All that running it depends on, and no more: regions of layers that are built alike have the same.
  RegionDescription description;

  // Where all regions up to this one are elementwise and have no fixed values: what they make of a few
  // numbers, and which of them this is.
  std::shared_ptr<const NestedProbes> probes = nullptr;
  size_t number = 0;

  bool has(std::string_view op) const;
  bool is_elementwise() const;
};

// The regions that end in a value, the smallest first. All is float or bool in them, and all their nodes work
// element by element or along fixed axes.
std::vector<UnaryRegion> regions_of(Value root);

// The same, found once while rule after rule asks for those of one value and the graph stays as it is.
class KnownRegions {
 public:
  const std::vector<UnaryRegion>& of(Value root) {
    if (root != root_) {
      regions_ = regions_of(root);
      root_ = root;
    }
    return regions_;
  }

 private:
  Value root_;
  std::vector<UnaryRegion> regions_;
};

// The ops that the nodes of a region may have.
bool can_stand_in_region(const OpDef& op);

enum class Precision : uint8_t {
  Own,    // every value has its own dtype
  Exact,  // every float is an f64, and casts between floats do nothing
};

// The number that all elements of a constant are, and what a node makes of its operands.
Tensor number_tensor(Value number, Precision precision);
Tensor evaluate_in(const Node& node, const Data& operands, Precision precision);

struct RegionRun {
  Tensor result;
  std::vector<Tensor> inner;  // what the other nodes gave
};

// `fixed` stand for the region's, in its order. x and they may have other sizes than in the graph.
RegionRun run(const UnaryRegion& region, const Tensor& x, const std::vector<Tensor>& fixed,
              Precision precision);

}  // namespace tenon
