#include "schedule/cuda/gemv.h"

#include <algorithm>
#include <bit>

#include "loops/contraction.h"
#include "loops/edit.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/contiguous.h"
#include "schedule/cuda/loads.h"
#include "schedule/cuda/reductions.h"
#include "schedule/cuda/statements.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::Stage;

namespace {

constexpr int64_t kMostRows = 16;
constexpr int64_t kRowsOfTiles = 8;   // from which on tiles are an alternative,
constexpr int64_t kLeastVector = 4;   // unless weights come in vectors, and not of halves
constexpr int64_t kLeastColumns = 8;  // in all batches,
constexpr int64_t kManyColumns = 64;  // or where sums are not short
constexpr int64_t kShortSum = 4096;
constexpr int64_t kLeastProducts = 32;    // of each sum
constexpr int64_t kMostSums = 64;         // in the registers of a thread
constexpr int64_t kVectorsInFlight = 8;   // of weights, for each thread
constexpr int64_t kWantedThreads = 1024;  // of a multiprocessor
constexpr int64_t kMostThreadsOfBlock = 512;
constexpr int64_t kMostSharedBytes = 48 << 10;
constexpr size_t kMostLoads = 2;  // that a factor has along the sum

const std::string kBlock = "b_column0", kTrip = "trip0", kUnrolled = "unrolled0", kLane = "lane0",
                  kPart = "part0", kRow = "row0", kColumn = "column0", kProduct = "k0", kGroup = "group0",
                  kElement = "e0", kFirst = "e1";

// result[batch, row, column] += few[batch, row, k] * many[batch, column, k]
struct FewRows {
  Scalar few, many;
  std::vector<Axis> rows, columns, batch, k;
  bool is_along_k = false;  // consecutive weights are those of one sum; else of columns beside each other
  int64_t vector = 1, rows_vector = 1;  // of weights; of the other factor, along k
};

Dim size_of(const std::vector<Axis>& axes) {
  Dim size = 1;
  for (const Axis& axis : axes)
    size = size * axis.size;
  return size;
}

bool mentions_any(const Scalar& scalar, const std::vector<Axis>& axes) {
  return std::ranges::any_of(axes, [&](const Axis& axis) { return loops::mentions(scalar, axis.variable); });
}

// Different loads that vary along one of the axes.
std::vector<Scalar> loads_along(const Scalar& factor, const std::vector<Axis>& axes) {
  std::vector<Scalar> loads;
  loops::for_each_load(factor, [&](const Scalar& load) {
    if (mentions_any(load, axes) && std::ranges::find(loads, load) == loads.end())
      loads.push_back(load);
  });
  return loads;
}

// Whether it loads something in some iterations alone, as padding does.
bool loads_conditionally(const Scalar& factor) {
  size_t certain = 0, all = 0;
  for_each_certain_load(factor, [&](const Scalar&) { ++certain; });
  loops::for_each_load(factor, [&](const Scalar&) { ++all; });
  return certain < all;
}

// Elements along the axis that loads of a factor take together; 0 where the first of them are not contiguous.
int64_t vector_of(const std::vector<Scalar>& loads, const Axis& axis, const std::vector<Buffer>& buffers) {
  int64_t vector = 0;
  for (const Scalar& load : loads)
    if (const int64_t own = vector_along(load, axis, buffers); own > 0)
      vector = vector == 0 ? own : std::min(vector, own);
    else if (loops::mentions(load, axis.variable))
      return 0;
  return vector;
}

// Moves the axis along which weights are contiguous to the end.
bool put_contiguous_last(std::vector<Axis>& axes, const std::vector<Scalar>& loads,
                         const std::vector<Buffer>& buffers) {
  const auto found =
      std::ranges::find_if(axes, [&](const Axis& axis) { return vector_of(loads, axis, buffers) > 0; });
  if (found == axes.end())
    return false;
  std::rotate(found, found + 1, axes.end());
  return true;
}

int64_t count(const std::vector<Axis>& axes) { return size_of(axes).constant().value_or(INT32_MAX); }

// One block sums up each of them: where there are few, long sums are split over several.
bool has_enough_columns(const FewRows& product) {
  const int64_t columns = count(product.columns) * std::min<int64_t>(count(product.batch), kManyColumns);
  return columns >= (count(product.k) <= kShortSum ? kLeastColumns : kManyColumns);
}

// Halves that tiles copy to shared memory in vectors of 16 bytes.
bool can_use_tensor_cores(const std::vector<Scalar>& weights, const std::vector<Scalar>& inputs,
                          int64_t vector) {
  const DType dtype = weights.front().dtype();
  return (dtype == DType::F16 || dtype == DType::BF16) && inputs.front().dtype() == dtype &&
         vector * info(dtype).bytes >= kVectorBytes;
}

std::optional<FewRows> match_few_rows(const Definition& sum, const std::vector<Buffer>& buffers) {
  const std::optional<loops::Contraction> contraction = loops::match_contraction(sum);
  if (!contraction || contraction->products.size() != 1 || !contraction->product().multiplies() ||
      contraction->accumulator != DType::F32 || !is_divisible(sum))
    return std::nullopt;
  const auto axes_at = [&](const std::vector<size_t>& numbers) {
    std::vector<Axis> axes;
    for (const size_t number : numbers)
      axes.push_back(sum.axes[number]);
    return axes;
  };
  FewRows product{.few = contraction->product().lhs,
                  .many = contraction->product().rhs,
                  .rows = axes_at(contraction->m),
                  .columns = axes_at(contraction->n),
                  .batch = axes_at(contraction->batch),
                  .k = sum.reduced};
  if (count(product.rows) > count(product.columns)) {
    std::swap(product.few, product.many);
    std::swap(product.rows, product.columns);
  }
  for (const Axis& axis : sum.axes)
    if (!loops::mentions(sum.values.front(), axis.variable))
      product.batch.push_back(axis);
  const std::vector<Scalar> weights = loads_along(product.many, product.k),
                            inputs = loads_along(product.few, product.k);
  if (count(product.rows) > kMostRows || count(product.columns) <= count(product.rows) ||
      !has_enough_columns(product) || count(product.k) < kLeastProducts || weights.empty() ||
      weights.size() > kMostLoads || inputs.empty() || inputs.size() > kMostLoads ||
      loads_conditionally(product.few) || loads_conditionally(product.many))
    return std::nullopt;
  product.is_along_k = put_contiguous_last(product.k, weights, buffers);
  if (!product.is_along_k) {
    if (!put_contiguous_last(product.columns, weights, buffers))
      return std::nullopt;
    put_contiguous_last(product.k, inputs, buffers);
  }
  product.vector =
      vector_of(weights, product.is_along_k ? product.k.back() : product.columns.back(), buffers);
  if (count(product.rows) >= kRowsOfTiles &&
      (product.vector < kLeastVector || can_use_tensor_cores(weights, inputs, product.vector)))
    return std::nullopt;
  product.rows_vector = std::max<int64_t>(vector_of(inputs, product.k.back(), buffers), 1);
  return product;
}

// How threads share out a product. A block has all rows of some columns; its threads are groups of so many
// lanes with columns beside each other, and each group takes every so many-th chunk of k.
struct GemvTile {
  int64_t columns;  // of each lane
  int64_t lanes, groups;
  int64_t chunk;     // consecutive k
  int64_t unrolled;  // chunks at a time

  int64_t block_columns() const { return columns * lanes; }
  int64_t threads() const { return lanes * groups; }
};

int64_t shared_bytes(const GemvTile& tile, int64_t rows) {
  return tile.groups * (rows * tile.block_columns() + 1) * 4;
}

int64_t largest_divisor(const Dim& size, int64_t most) {
  while (most > 1 && !divide_exactly(size, most))
    most /= 2;
  return most;
}

GemvTile choose_gemv_tile(const FewRows& product, const Gpu& gpu) {
  const int64_t rows = *size_of(product.rows).constant(),
                k = size_of(product.k).constant().value_or(INT32_MAX),
                wanted = gpu.multiprocessors * kWantedThreads;
  const Dim columns = size_of(product.columns);
  // Where nothing says how many there are, they are enough.
  const int64_t results = (columns * size_of(product.batch)).constant().value_or(wanted);
  GemvTile tile{.columns = 1, .lanes = 1, .groups = kWarpThreads, .chunk = product.vector, .unrolled = 1};
  const auto wanted_groups = [&](int64_t most) {
    const int64_t blocks = (results + tile.block_columns() - 1) / tile.block_columns();
    int64_t threads = std::clamp<int64_t>(
        static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(wanted / blocks, 1)))),
        2 * kWarpThreads, most);
    if (product.is_along_k && results / tile.columns * kWarpThreads >= wanted / 2)
      threads = kWarpThreads;
    int64_t groups = std::max<int64_t>(threads / tile.lanes, 1);
    while (groups > 1 &&
           (groups * tile.chunk > k ||
            shared_bytes(
                {.columns = tile.columns, .lanes = tile.lanes, .groups = groups, .chunk = 1, .unrolled = 1},
                rows) > kMostSharedBytes))
      groups /= 2;
    return groups;
  };
  if (product.is_along_k) {
    // Several columns share what is loaded of the rows.
    tile.columns = largest_divisor(product.columns.empty() ? Dim(1) : columns, rows == 1 ? 2 : 4);
    while (tile.columns > 1 && results / tile.columns * kWarpThreads * 4 < wanted)
      tile.columns /= 2;
    tile.groups = wanted_groups(kMostThreadsOfBlock);
  } else {
    tile.columns = std::min(product.vector,
                            kMostSums / static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))));
    tile.lanes = kWarpThreads;
    while (tile.lanes > 2 && results < tile.block_columns() * gpu.multiprocessors * 3 / 4)
      tile.lanes /= 2;
    tile.chunk = product.rows_vector;
    while (tile.chunk > 4)
      tile.chunk /= 2;
    tile.groups = wanted_groups(kMostThreadsOfBlock);
  }
  const int64_t vectors = product.is_along_k ? tile.columns : tile.chunk;
  while (2 * tile.unrolled * vectors <= kVectorsInFlight && 2 * tile.unrolled * tile.groups * tile.chunk <= k)
    tile.unrolled *= 2;
  return tile;
}

class Gemv {
 public:
  Gemv(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
       const FewRows& product, const GemvTile& tile, const Kernel& kernel)
      : definitions_(definitions),
        outputs_(outputs),
        product_(product),
        tile_(tile),
        rows_(*size_of(product.rows).constant()),
        names_(loops::names_in(kernel)) {
    sums_ = buffer("sums", {rows_, tile_.columns}, Space::Private);
    // Lanes write columns beside each other; groups of one lane, one column in different banks.
    parts_ = buffer("parts", {tile_.groups, elements_of_block() + (tile_.lanes == 1 ? 1 : 0)}, Space::Shared);
    total_ = buffer("total", {}, Space::Private);
    k_ = flatten(product.k, "k_of_sum0");
    columns_ = flatten(product.columns, "column_of_product0");
    all_rows_ = flatten(product.rows, "row_of_product0");
    weights_ = held("weights", product.many,
                    {tile_.unrolled, product.is_along_k ? tile_.columns : tile_.chunk,
                     product.is_along_k ? tile_.chunk : tile_.columns});
    inputs_ = held("inputs", product.few, {tile_.chunk});
  }

  Statement run() {
    std::vector<Statement> block;
    block.emplace_back(Local{parts_});
    block.push_back(over_threads(kThread, tile_.threads(), add_products()));
    if (const int64_t left = groups_left(); left < tile_.groups)
      block.push_back(over_threads(kFirst, left * elements_of_block(), combine_groups(left)));
    append(block, loop(kElement, elements_of_block(), Mark::Thread, combine_left()));
    std::vector<Axis> blocks = product_.batch;
    blocks.push_back({kBlock, ceil_div(columns_.size, tile_.block_columns())});
    std::map<std::string, Dim> only;  // those of one iteration
    for (const Axis& axis : blocks)
      if (axis.size == Dim(1))
        only.emplace(axis.variable, 0);
    std::erase_if(blocks, [](const Axis& axis) { return axis.size == Dim(1); });
    return over_blocks(blocks, tile_.threads(), substitute(block, only));
  }

 private:
  // What a factor loads along k, kept in registers.
  struct Held {
    Scalar load;
    Buffer registers;
    int64_t lanes;  // that one instruction loads
  };

  Buffer buffer(const std::string& name, std::vector<Dim> sizes, Space space, DType dtype = DType::F32) {
    return {loops::fresh_among(names_, name), dtype, std::move(sizes), space};
  }

  std::vector<Held> held(const std::string& name, const Scalar& factor, const std::vector<Dim>& sizes) {
    std::vector<Held> all;
    for (const Scalar& load : loads_along(factor, product_.k))
      all.push_back({load, buffer(name, sizes, Space::Private, load.dtype()),
                     std::min<int64_t>(*sizes.back().constant(), kVectorBytes / info(load.dtype()).bytes)});
    return all;
  }

  // The factor, of what is held.
  static Scalar of_registers(const Scalar& factor, const std::vector<Held>& all, const std::vector<Dim>& at) {
    return loops::replace_loads(factor, [&](const Scalar& load) {
      const auto found = std::ranges::find(all, load, &Held::load);
      return found == all.end() ? load : element(found->registers, at);
    });
  }

  static Scalar substituted(const Scalar& scalar, const FlatAxes& axes, const std::string& variable,
                            const Dim& value) {
    return scalar.substitute(axes.variables).substitute({{variable, value}});
  }
  Scalar at_k(const Scalar& scalar, const Dim& k) const { return substituted(scalar, k_, "k_of_sum0", k); }
  Scalar at_column(const Scalar& scalar, const Dim& column) const {
    return substituted(scalar, columns_, "column_of_product0", column);
  }
  Scalar at_row(const Scalar& scalar, const Dim& row) const {
    return substituted(scalar, all_rows_, "row_of_product0", row);
  }

  int64_t elements_of_block() const { return rows_ * tile_.block_columns(); }

  // After a first step in which threads combine parts, so that the second has about as many.
  int64_t groups_left() const {
    const int64_t threads = tile_.threads() / elements_of_block();
    int64_t left = 1;
    while (2 * left <= threads && 4 * left * left <= tile_.groups)
      left *= 2;
    return left == 1 ? tile_.groups : left;
  }

  Dim group() const { return floor_div(symbol(kThread), tile_.lanes); }
  // The first column of the thread, counted in what each lane has.
  Dim lane_column() const { return symbol(kBlock) * tile_.lanes + mod(symbol(kThread), tile_.lanes); }

  // Chunks of k are whole, as the vectors of weights are; blocks of columns need not be.
  std::vector<Statement> where_columns(std::vector<Statement> body) const {
    if (divide_exactly(columns_.size, tile_.block_columns()))
      return body;
    return guarded({*divide_exactly(columns_.size, tile_.columns) - 1 - lane_column()}, std::move(body));
  }

  std::vector<Statement> add_products() const {
    std::vector<Statement> body;
    body.emplace_back(Local{sums_});
    for (const std::vector<Held>* all : {&weights_, &inputs_})
      for (const Held& each : *all)
        body.emplace_back(Local{each.registers});
    append(body,
           loop(kRow, rows_, Mark::Unrolled,
                loop(kColumn, tile_.columns, Mark::Unrolled,
                     as_list(store(sums_, {symbol(kRow), symbol(kColumn)}, Scalar::zero(DType::F32))))));
    append(body, where_columns(add_chunks()));
    const Dim element_of_block =
        symbol(kRow) * tile_.block_columns() + mod(symbol(kThread), tile_.lanes) * tile_.columns;
    append(body, loop(kRow, rows_, Mark::Unrolled,
                      loop(kColumn, tile_.columns, Mark::Unrolled,
                           as_list(store(parts_, {group(), element_of_block + symbol(kColumn)},
                                         element(sums_, {symbol(kRow), symbol(kColumn)}))))));
    return body;
  }

  // As many as are loaded together, then the rest one by one.
  std::vector<Statement> add_chunks() const {
    const Dim chunks = *divide_exactly(k_.size, tile_.chunk);
    const int64_t at_once = tile_.unrolled * tile_.groups;
    const Dim whole = floor_div(chunks, at_once);
    std::vector<Statement> body =
        loop(kTrip, whole, Mark::Serial, add_chunks(tile_.unrolled, symbol(kTrip) * tile_.unrolled));
    if (const Dim rest = chunks - whole * at_once; rest != Dim(0)) {
      const Dim first = whole * tile_.unrolled + symbol(kTrip);
      std::vector<Statement> one =
          guarded({chunks - 1 - (first * tile_.groups + group())}, add_chunks(1, first));
      append(body, loop(kTrip, ceil_div(rest, tile_.groups), Mark::Serial, std::move(one)));
    }
    return body;
  }

  // So many chunks of the group, from this one on.
  std::vector<Statement> add_chunks(int64_t count, const Dim& first) const {
    const Dim number = (first + symbol(kUnrolled)) * tile_.groups + group();
    std::vector<Statement> body;
    std::vector<Statement> loads;
    for (const Held& each : weights_)
      append(loads, load_weights(each, number * tile_.chunk));
    append(body, loop(kUnrolled, count, Mark::Unrolled, std::move(loads)));
    std::vector<Statement> row;
    for (const Held& each : inputs_)
      append(row, load_inputs(each, number * tile_.chunk));
    append(row, multiply(number * tile_.chunk));
    append(body, loop(kUnrolled, count, Mark::Unrolled, loop(kRow, rows_, Mark::Unrolled, std::move(row))));
    return body;
  }

  // A loop over vectors and one over the lanes of each.
  static std::vector<Statement> in_vectors(int64_t count, int64_t lanes,
                                           const std::function<Statement(const Dim&)>& body) {
    return loop(kPart, count / lanes, Mark::Unrolled,
                loop(kLane, lanes, Mark::Vector, as_list(body(symbol(kPart) * lanes + symbol(kLane)))));
  }

  std::vector<Statement> load_weights(const Held& weights, const Dim& k) const {
    const bool along_k = product_.is_along_k;
    const int64_t across = along_k ? tile_.columns : tile_.chunk,
                  along = along_k ? tile_.chunk : tile_.columns;
    const Dim column = lane_column() * tile_.columns;
    return loop(kColumn, across, Mark::Unrolled, in_vectors(along, weights.lanes, [&](const Dim& lane) {
                  const Scalar load = along_k
                                          ? at_column(at_k(weights.load, k + lane), column + symbol(kColumn))
                                          : at_column(at_k(weights.load, k + symbol(kColumn)), column + lane);
                  return store(weights.registers, {symbol(kUnrolled), symbol(kColumn), lane}, load);
                }));
  }

  std::vector<Statement> load_inputs(const Held& inputs, const Dim& k) const {
    return in_vectors(tile_.chunk, inputs.lanes, [&](const Dim& lane) {
      return store(inputs.registers, {lane}, at_row(at_k(inputs.load, k + lane), symbol(kRow)));
    });
  }

  std::vector<Statement> multiply(const Dim& k) const {
    const Dim column = lane_column() * tile_.columns + symbol(kColumn), own = k + symbol(kProduct);
    const Scalar weight = of_registers(
                     product_.many, weights_,
                     product_.is_along_k
                         ? std::vector<Dim>{symbol(kUnrolled), symbol(kColumn), symbol(kProduct)}
                         : std::vector<Dim>{symbol(kUnrolled), symbol(kProduct), symbol(kColumn)}),
                 input = of_registers(product_.few, inputs_, {symbol(kProduct)});
    const Scalar product = Scalar::apply(loops::Function::Multiply, {at_row(at_k(input, own), symbol(kRow)),
                                                                     at_column(at_k(weight, own), column)});
    return loop(kProduct, tile_.chunk, Mark::Unrolled,
                loop(kColumn, tile_.columns, Mark::Unrolled,
                     as_list(store(sums_, {symbol(kRow), symbol(kColumn)}, product, "+"))));
  }

  // Every so many-th of the parts, in the place of the first.
  std::vector<Statement> combine_groups(int64_t left) const {
    const Dim first = floor_div(symbol(kFirst), elements_of_block()),
              element_of_block = mod(symbol(kFirst), elements_of_block());
    const Scalar part = element(parts_, {first + (symbol(kGroup) + 1) * left, element_of_block});
    return loop(kGroup, tile_.groups / left - 1, Mark::Unrolled,
                as_list(store(parts_, {first, element_of_block}, part, "+")));
  }

  // The parts of each element that are left, and what is computed of their sum.
  std::vector<Statement> combine_left() const {
    const Dim row = floor_div(symbol(kElement), tile_.block_columns()),
              column = symbol(kBlock) * tile_.block_columns() + mod(symbol(kElement), tile_.block_columns());
    std::vector<Statement> body;
    body.emplace_back(Local{total_});
    body.push_back(store(total_, {}, definitions_.front().initial.front()));
    append(body, loop(kGroup, groups_left(), Mark::Unrolled,
                      as_list(store(total_, {}, element(parts_, {symbol(kGroup), symbol(kElement)}), "+"))));
    const auto placed = [&](const Scalar& scalar) { return at_column(at_row(scalar, row), column); };
    for (Assign& each : build_epilogue(definitions_, outputs_, element(total_, {}), placed))
      body.emplace_back(std::move(each));
    if (divide_exactly(columns_.size, tile_.block_columns()))
      return body;
    return guarded({columns_.size - 1 - column}, std::move(body));
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const FewRows& product_;
  const GemvTile tile_;
  const int64_t rows_;
  std::set<std::string> names_;
  FlatAxes k_, columns_, all_rows_;
  Buffer sums_, parts_, total_;
  std::vector<Held> weights_, inputs_;
};

}  // namespace

bool is_gemv(const Definition& sum, const std::vector<Buffer>& buffers) {
  return match_few_rows(sum, buffers).has_value();
}

bool gemv(Kernel& kernel, const std::vector<Stage>& stages, const std::set<std::string>& outputs,
          const Gpu& gpu) {
  std::vector<Definition> definitions;
  for (size_t i = 0; i < stages.size(); ++i)
    definitions.push_back(
        renamed(stages[i].definition, stages[i].definition.axes.size(), fmt::format("s{}", i)));
  const std::optional<FewRows> product = match_few_rows(definitions.front(), kernel.inputs);
  if (!product)
    return false;
  std::vector<Statement> body =
      as_list(Gemv(definitions, outputs, *product, choose_gemv_tile(*product, gpu), kernel).run());
  if (has_unknown_index(body))
    return false;
  kernel.body = std::move(body);
  return true;
}

}  // namespace tenon::schedule::cuda
