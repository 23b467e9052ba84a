#include "schedule/cuda/tensor_contraction.h"

#include <algorithm>
#include <array>

#include "loops/arithmetic.h"
#include "loops/edit.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/copied_factor.h"
#include "schedule/cuda/staged_factor.h"
#include "schedule/cuda/tensor_tiles.h"
#include "schedule/cuda/tile_results.h"
#include "schedule/cuda/tile_statements.h"

namespace tenon::schedule::cuda {

using loops::Definition;
using loops::Function;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Statement;
using lowering::BlockTile;

namespace {

const std::string kStep = "step0";

// The parts of a and b that are multiplied, the smallest products first.
constexpr std::array<std::pair<size_t, size_t>, 6> kProductsOfParts = {
    {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}}};
constexpr size_t kParts = 3;

// Three numbers of bf16 whose sum is this one of f32.
std::vector<Scalar> parts_of(const Scalar& value) {
  std::vector<Scalar> parts;
  Scalar rest = value;
  for (size_t i = 0; i < kParts; ++i) {
    parts.push_back(Scalar::cast(DType::BF16, rest));
    rest = rest - Scalar::cast(DType::F32, parts.back());
  }
  return parts;
}

TensorTile tensor_tile(const BlockTile& tile) {
  return {.m = tile.m,
          .n = tile.n,
          .k = tile.k,
          .warp_m = tile.part_m,
          .warp_n = tile.part_n,
          .by_warpgroups = tile.by_warpgroups};
}

class TensorContraction {
 public:
  TensorContraction(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
                    const MatrixProduct& product, const BlockTile& tile, const Kernel& kernel)
      : definitions_(definitions),
        product_(product),
        tile_(tensor_tile(tile)),
        stages_(tile.stages),
        in_parts_(tile.arithmetic == BlockTile::Arithmetic::Bf16x6),
        tiles_(tile.by_warpgroups && stages_ == 1 &&
                       size_of(product.k).constant().value_or(tile.k + 1) > tile.k
                   ? 2
                   : 1),
        names_(loops::names_in(kernel)),
        results_(definitions, outputs, product, tile.m, tile.n),
        sums_(tile_, loops::fresh_among(names_, "sums")),
        step_sums_(tile_, loops::fresh_among(names_, "step_sums")) {
    a_ = factor(product.first, tile.m, kTileM, "a");
    b_ = factor(product.second, tile.n, kTileN, "b");
    results_.overlap(a_->staging == Staging::Box, b_->staging == Staging::Box);
  }

  Statement run() {
    std::vector<Statement> block;
    for (const Factor* factor : {&*a_, &*b_})
      if (factor->staging == Staging::Registers) {
        declare(block, *factor);
        block.emplace_back(Local{factor->by_vectors.next()});
      }
    block.emplace_back(Local{sums_.buffer()});
    if (in_parts_)
      block.emplace_back(Local{step_sums_.buffer()});
    block.push_back(clear(sums_, definitions_.front().initial.front()));
    stage(block, [](const StagedFactor& staged) { return staged.load(0); });
    const Dim steps = ceil_div(size_of(product_.k), tile_.k);
    if (tiles_ > 1) {
      add_steps_in_pairs(block, steps);
    } else {
      Loop loop{.variable = kStep, .begin = 0, .end = steps, .stages = stages_, .body = {}};
      add_step(loop.body, steps);
      block.emplace_back(std::move(loop));
    }
    block.push_back(by_threads(store_results()));
    return over_tiles(product_, tile_.m, tile_.n, tile_.threads(), block);
  }

 private:
  // How a factor is staged in shared memory: copied as a box, or by vectors; or through registers.
  enum class Staging : uint8_t { Box, Vectors, Registers };

  // In shared memory, in so many parts.
  struct Factor {
    std::vector<std::vector<SharedTile>> shared;  // tiles, of parts
    TiledFactor from;
    std::string tile;
    int64_t rows;
    Staging staging;
    StagedFactor by_vectors;  // but for a box
  };

  Factor factor(const TiledFactor& from, int64_t rows, const std::string& tile, const std::string& name) {
    TiledFactor own = in_parts_ ? from : without_cast(from);
    const DType stored = own.value.dtype(), dtype = in_parts_ ? DType::BF16 : stored;
    const Staging staging = stages_ > 1 && can_copy(own, product_.k, rows, tile_.k) ? Staging::Box
                            : stages_ > 1 && can_gather(own, rows, tile_.k, tile_.threads())
                                ? Staging::Vectors
                                : Staging::Registers;
    Factor factor{.shared = {},
                  .from = own,
                  .tile = tile,
                  .rows = rows,
                  .staging = staging,
                  .by_vectors = StagedFactor(own, product_.k, rows, tile_.k, tile_.threads(), tile,
                                             loops::fresh_among(names_, "next_" + name), stored)};
    factor.shared.resize(tiles_);
    for (std::vector<SharedTile>& parts : factor.shared)
      for (size_t i = 0; i < (in_parts_ ? kParts : 1); ++i)
        parts.push_back(shared_tile(loops::fresh_among(names_, name), dtype, tile_, rows, !from.is_along_k));
    return factor;
  }

  static void declare(std::vector<Statement>& body, const Factor& factor) {
    for (const std::vector<SharedTile>& parts : factor.shared)
      for (const SharedTile& tile : parts)
        body.emplace_back(Local{tile.buffer});
  }

  Statement by_threads(std::vector<Statement> body) const {
    return over_threads(kThread, tile_.threads(), std::move(body));
  }

  Statement clear(const TensorSums& sums, const Scalar& value) const {
    return by_threads(
        sums.for_each([&](const std::vector<Dim>& place) { return store(sums.buffer(), place, value); }));
  }

  // What each thread does for the factors that go through registers.
  void stage(std::vector<Statement>& body,
             const std::function<std::vector<Statement>(const StagedFactor&)>& what) const {
    std::vector<Statement> all;
    for (const Factor* factor : {&*a_, &*b_})
      if (factor->staging == Staging::Registers)
        append(all, what(factor->by_vectors));
    if (!all.empty())
      body.push_back(by_threads(std::move(all)));
  }

  void add_step(std::vector<Statement>& body, const Dim& steps) const {
    for (const Factor* factor : {&*a_, &*b_})
      if (factor->staging != Staging::Registers)
        declare(body, *factor);
    for (const Factor* factor : {&*a_, &*b_}) {
      const SharedTile& to = factor->shared.front().front();
      if (factor->staging == Staging::Box)
        append(body, copy_tile(factor->from, product_.k.front(), factor->rows, tile_.k, factor->tile,
                               to.buffer, symbol(kStep)));
      else if (factor->staging == Staging::Vectors)
        body.push_back(by_threads(factor->by_vectors.copy(
            symbol(kStep), to.buffer, [&](const Dim& row, const Dim& k) { return to.place(row, k); })));
    }
    if (std::vector<Statement> fill = fill_shared(0); !fill.empty())
      body.push_back(by_threads(std::move(fill)));
    if (steps != Dim(1))
      stage(body, [&](const StagedFactor& staged) {
        return guarded({steps - 2 - symbol(kStep)}, staged.load(symbol(kStep) + 1));
      });
    if (in_parts_)
      body.push_back(clear(step_sums_, Scalar::zero(DType::F32)));
    body.push_back(by_threads(multiply(0)));
    if (in_parts_)
      body.push_back(by_threads(add_step_sums()));
  }

  // While tensor cores multiply one tile of each factor, threads fill the other with what they loaded, and
  // load the next but one.
  void add_steps_in_pairs(std::vector<Statement>& block, const Dim& steps) const {
    const auto load = [&](const Dim& step) {
      std::vector<Statement> loads;
      for (const Factor* factor : {&*a_, &*b_})
        append(loads, factor->by_vectors.load(step));
      return guarded({steps - 1 - step}, std::move(loads));
    };
    block.push_back(by_threads(fill_shared(0)));
    block.push_back(by_threads(load(1)));
    if (in_parts_)
      block.push_back(clear(step_sums_, Scalar::zero(DType::F32)));
    Loop loop{.variable = kStep, .begin = 0, .end = ceil_div(steps, 2), .body = {}};
    for (size_t tile = 0; tile < 2; ++tile) {
      const Dim step = symbol(kStep) * 2 + static_cast<int64_t>(tile);
      std::vector<Statement> body = multiply(tile);
      append(body, guarded({steps - 2 - step}, fill_shared(1 - tile)));
      append(body, load(step + 2));
      if (in_parts_) {
        append(body, add_step_sums());
        append(body, step_sums_.for_each([&](const std::vector<Dim>& place) {
          return store(step_sums_.buffer(), place, Scalar::zero(DType::F32));
        }));
      }
      const bool is_there = tile == 0 || mod(steps, 2) == Dim(0);
      append(loop.body, guarded(is_there ? std::vector<Dim>{} : std::vector{steps - 1 - step},
                                as_list(by_threads(std::move(body)))));
    }
    block.emplace_back(std::move(loop));
  }

  std::vector<Statement> multiply(size_t tile) const {
    const std::vector<SharedTile>&a = a_->shared[tile], &b = b_->shared[tile];
    if (!in_parts_)
      return sums_.add_products(a.front(), b.front());
    std::vector<Statement> products;
    for (const auto& [of_a, of_b] : kProductsOfParts)
      append(products, step_sums_.add_products(a[of_a], b[of_b]));
    return products;
  }

  std::vector<Statement> add_step_sums() const {
    return sums_.for_each([&](const std::vector<Dim>& place) {
      return store(sums_.buffer(), place, element(step_sums_.buffer(), place), "+");
    });
  }

  // What threads hold of the factors, to a tile.
  std::vector<Statement> fill_shared(size_t tile) const {
    std::vector<Statement> fill;
    for (const Factor* factor : {&*a_, &*b_})
      if (factor->staging == Staging::Registers)
        append(fill, factor->by_vectors.for_each([&](const Dim& row, const Dim& k, const Scalar& value) {
          const std::vector<Scalar> parts = in_parts_ ? parts_of(value) : std::vector{value};
          std::vector<Statement> stores;
          for (size_t i = 0; i < parts.size(); ++i) {
            const SharedTile& to = factor->shared[tile][i];
            stores.push_back(store(to.buffer, to.place(row, k), parts[i]));
          }
          return stores;
        }));
    return fill;
  }

  std::vector<Statement> store_results() const {
    const int64_t vector = results_.vector(2);
    std::vector<Statement> stores;
    for (int64_t first = 0; first < 2; first += vector)
      append(stores, results_.store_columns(sums_.column() + first, vector,
                                            sums_.element(vector == 2 ? symbol(kLane) : Dim(first))));
    return sums_.for_each_row(results_.at_row(sums_.row(), sums_.for_each_fragment(std::move(stores))));
  }

  const std::vector<Definition>& definitions_;
  const MatrixProduct& product_;
  const TensorTile tile_;
  const int64_t stages_;
  const bool in_parts_;
  const size_t tiles_;  // of each factor that are in shared memory at a time
  std::set<std::string> names_;
  TileResults results_;
  TensorSums sums_, step_sums_;
  std::optional<Factor> a_, b_;
};

}  // namespace

std::optional<DType> tensor_dtype(const MatrixProduct& product) {
  const auto converted = [](const Scalar& value) -> std::optional<DType> {
    if (value.kind() != Scalar::Kind::Apply || value.function() != Function::Cast)
      return std::nullopt;
    const DType dtype = value.operands().front().dtype();
    return dtype == DType::F16 || dtype == DType::BF16 ? std::optional(dtype) : std::nullopt;
  };
  const std::optional<DType> first = converted(product.first.value);
  return first == converted(product.second.value) ? first : std::nullopt;
}

TiledFactor without_cast(TiledFactor factor) {
  factor.value = Scalar(factor.value.operands().front());
  return factor;
}

Statement tensor_contraction(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
                             const MatrixProduct& product, const BlockTile& tile, const Kernel& kernel) {
  return TensorContraction(definitions, outputs, product, tile, kernel).run();
}

}  // namespace tenon::schedule::cuda
