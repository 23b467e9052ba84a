#include "schedule/cuda/tiled_contraction.h"

#include "loops/edit.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/contraction_tiles.h"
#include "schedule/cuda/select_contraction.h"
#include "schedule/cuda/staged_factor.h"
#include "schedule/cuda/tensor_contraction.h"
#include "schedule/cuda/tile_results.h"
#include "schedule/cuda/tile_statements.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::BlockTile;
using lowering::Stage;

namespace {

// The threads of a warp have so many rows by so many columns of small tiles, which they load as vectors.
constexpr int64_t kLanesM = 4, kLanesN = 8, kVector = 4;

const std::string kStep = "step0", kI = "i0", kJ = "j0";

class ContractionTiles {
 public:
  ContractionTiles(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
                   const MatrixProduct& product, const BlockTile& tile, const Kernel& kernel)
      : definitions_(definitions),
        product_(product),
        tile_{tile.m, tile.n, tile.k, tile.part_m, tile.part_n},
        results_(definitions, outputs, product, tile.m, tile.n) {
    std::set<std::string> names = loops::names_in(kernel);
    const int64_t threads = tile_.threads();
    const auto buffer = [&](const std::string& name, std::vector<Dim> sizes, Space space) {
      return Buffer{loops::fresh_among(names, name), DType::F32, std::move(sizes), space};
    };
    const auto factor = [&](const TiledFactor& from, int64_t rows, const std::string& name) {
      // Rows of shared memory begin in different banks where threads write them across.
      const int64_t padding = from.is_along_k ? kVector : 0;
      Buffer shared = buffer(name, {tile.k, rows + padding}, Space::Shared);
      return Factor{StagedFactor(from, product.k, rows, tile.k, threads, name == "a" ? kTileM : kTileN,
                                 loops::fresh_among(names, "next_" + name), DType::F32),
                    std::move(shared)};
    };
    a_ = factor(product.first, tile.m, "a");
    b_ = factor(product.second, tile.n, "b");
    sums_ = buffer("sums", {threads, tile_.thread_m, tile_.thread_n}, Space::Private);
    of_a_ = buffer("of_a", {tile_.thread_m}, Space::Private);
    of_b_ = buffer("of_b", {tile_.thread_n}, Space::Private);
  }

  Statement run() {
    std::vector<Statement> block;
    for (const Buffer& local : {a_->shared, b_->shared, a_->staged.next(), b_->staged.next(), sums_})
      block.emplace_back(Local{local});
    block.push_back(by_threads(clear_sums()));
    block.push_back(by_threads(load_next(0)));
    const Dim steps = ceil_div(size_of(product_.k), tile_.k);
    std::vector<Statement> step;
    step.push_back(by_threads(fill_shared()));
    if (steps != Dim(1))
      step.push_back(by_threads(guarded({steps - 2 - symbol(kStep)}, load_next(symbol(kStep) + 1))));
    step.push_back(by_threads(add_products()));
    append(block, loop(kStep, steps, Mark::Serial, std::move(step)));
    block.push_back(by_threads(store_results()));
    return over_tiles(product_, tile_.m, tile_.n, tile_.threads(), std::move(block));
  }

 private:
  struct Factor {
    StagedFactor staged;
    Buffer shared;
  };

  Statement by_threads(std::vector<Statement> body) const {
    return over_threads(kThread, tile_.threads(), std::move(body));
  }

  std::vector<Statement> clear_sums() const {
    const Statement clear =
        store(sums_, {symbol(kThread), symbol(kI), symbol(kJ)}, definitions_.front().initial.front());
    return loop(kI, tile_.thread_m, Mark::Unrolled, loop(kJ, tile_.thread_n, Mark::Unrolled, as_list(clear)));
  }

  // --- from memory to shared memory ---

  std::vector<Statement> load_next(const Dim& step) const {
    std::vector<Statement> body = a_->staged.load(step);
    append(body, b_->staged.load(step));
    return body;
  }

  std::vector<Statement> fill_shared() const {
    std::vector<Statement> body;
    for (const Factor& factor : {*a_, *b_})
      append(body, factor.staged.for_each([&](const Dim& row, const Dim& product, const Scalar& value) {
        return as_list(store(factor.shared, {product, row}, value));
      }));
    return body;
  }

  // --- sums ---

  // The first row and column of a vector of this thread, within the tile.
  Dim row_of(const Dim& vector) const {
    const int64_t warps_n = tile_.n / (kLanesN * tile_.thread_n);
    const Dim warp = floor_div(symbol(kThread), kLanesM * kLanesN * warps_n),
              lane = mod(floor_div(symbol(kThread), kLanesN), kLanesM);
    return warp * (kLanesM * tile_.thread_m) + vector * (kLanesM * kVector) + lane * kVector;
  }
  Dim column_of(const Dim& vector) const {
    const int64_t warps_n = tile_.n / (kLanesN * tile_.thread_n);
    const Dim warp = mod(floor_div(symbol(kThread), kLanesM * kLanesN), warps_n),
              lane = mod(symbol(kThread), kLanesN);
    return warp * (kLanesN * tile_.thread_n) + vector * (kLanesN * kVector) + lane * kVector;
  }

  std::vector<Statement> add_products() const {
    std::vector<Statement> body;
    body.emplace_back(Local{of_a_});
    body.emplace_back(Local{of_b_});
    const auto read = [&](const Buffer& to, const Buffer& from, int64_t count, const Dim& first) {
      append(body, loop(kPart, count / kVector, Mark::Unrolled,
                        in_lanes(kVector,
                                 as_list(store(to, {symbol(kPart) * kVector + symbol(kLane)},
                                               element(from, {symbol(kProduct), first + symbol(kLane)}))))));
    };
    read(of_a_, a_->shared, tile_.thread_m, row_of(symbol(kPart)));
    read(of_b_, b_->shared, tile_.thread_n, column_of(symbol(kPart)));
    const Scalar product = Scalar::apply(loops::Function::Multiply,
                                         {element(of_a_, {symbol(kI)}), element(of_b_, {symbol(kJ)})});
    const Statement add = store(sums_, {symbol(kThread), symbol(kI), symbol(kJ)}, product, "+");
    append(body,
           loop(kI, tile_.thread_m, Mark::Unrolled, loop(kJ, tile_.thread_n, Mark::Unrolled, as_list(add))));
    return loop(kProduct, tile_.k, Mark::Unrolled, std::move(body));
  }

  // --- results ---

  std::vector<Statement> store_results() const {
    const int64_t vector = results_.vector(kVector);
    // Column kJ*vector of the thread.
    const Dim j = symbol(kJ) * vector, column = column_of(floor_div(j, kVector)) + mod(j, kVector),
              row = row_of(floor_div(symbol(kI), kVector)) + mod(symbol(kI), kVector);
    const Scalar sum = element(sums_, {symbol(kThread), symbol(kI), j + symbol(kLane)});
    return loop(kI, tile_.thread_m, Mark::Unrolled,
                results_.at_row(row, loop(kJ, tile_.thread_n / vector, Mark::Unrolled,
                                          results_.store_columns(column, vector, sum))));
  }

  const std::vector<Definition>& definitions_;
  const MatrixProduct& product_;
  const ContractionTile tile_;
  TileResults results_;
  std::optional<Factor> a_, b_;
  Buffer sums_, of_a_, of_b_;
};

}  // namespace

bool tile_contraction(Kernel& kernel, const std::vector<Stage>& stages, const std::set<std::string>& outputs,
                      const Gpu& gpu) {
  std::vector<Definition> definitions;
  for (size_t i = 0; i < stages.size(); ++i)
    definitions.push_back(
        renamed(stages[i].definition, stages[i].definition.axes.size(), fmt::format("s{}", i)));
  const std::optional<MatrixProduct> product = match_matrix_product(definitions.front(), kernel.inputs);
  if (!product)
    return false;
  const BlockTile tile = stages.front().plan && stages.front().plan->block_tile
                             ? *stages.front().plan->block_tile
                             : *select_contraction(*product, gpu, NumericsBudget::Strict).block_tile;
  std::vector<Statement> body =
      as_list(tile.arithmetic == BlockTile::Arithmetic::Fma
                  ? ContractionTiles(definitions, outputs, *product, tile, kernel).run()
                  : tensor_contraction(definitions, outputs, *product, tile, kernel));
  if (has_unknown_index(body))
    return false;
  kernel.body = std::move(body);
  return true;
}

}  // namespace tenon::schedule::cuda
