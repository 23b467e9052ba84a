#include "schedule/cuda/tiled_contraction.h"

#include <algorithm>
#include <array>

#include "loops/edit.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/contraction_tiles.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Guard;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::Stage;

namespace {

// The threads of a warp have so many rows by so many columns of small tiles, which they load as vectors.
constexpr int64_t kLanesM = 4, kLanesN = 8, kVector = 4;

// Loop variables, which end in a number, as no size does.
const std::string kTileM = "tile_m0", kTileN = "tile_n0", kStep = "step0", kThread = "p0", kPart = "part0",
                  kLane = "lane0", kAcross = "across0", kAlong = "along0", kProduct = "k0", kI = "i0",
                  kJ = "j0", kRow = "row0", kColumn = "column0";

Dim symbol(const std::string& variable) { return Dim::symbol(variable); }
Scalar index(const Dim& dim) { return Scalar::index(dim); }

std::vector<Scalar> indices(const std::vector<Dim>& dims) {
  std::vector<Scalar> result;
  for (const Dim& dim : dims)
    result.push_back(index(dim));
  return result;
}

Statement store(const Buffer& to, const std::vector<Dim>& at, const Scalar& value,
                const std::string& combine = "") {
  return Assign{.places = {{to.name, indices(at)}}, .combine = combine, .values = {value}};
}

Scalar element(const Buffer& from, const std::vector<Dim>& at) {
  return Scalar::load(from.name, from.dtype, indices(at));
}

std::vector<Statement> loop(const std::string& variable, const Dim& count, Mark mark,
                            std::vector<Statement> body) {
  if (count == Dim(1))
    return substitute(body, {{variable, 0}});
  return as_list(make_loop(variable, count, mark, std::move(body)));
}

// The body with a variable of one value.
std::vector<Statement> where(const std::string& variable, const Dim& value, std::vector<Statement> body) {
  return as_list(Loop{.variable = variable,
                      .begin = value,
                      .end = value + 1,
                      .mark = Mark::Unrolled,
                      .body = std::move(body)});
}

std::vector<Statement> guarded(const std::vector<Dim>& conditions, std::vector<Statement> body) {
  return conditions.empty() ? std::move(body) : as_list(Guard{conditions, std::move(body)});
}

// Axes counted in vectors of elements of the last.
struct VectorAxes {
  Dim vectors;
  std::map<std::string, Dim> variables;  // in terms of which vector it is, and kLane
};
VectorAxes in_vectors(std::vector<Axis> axes, int64_t vector, const std::string& variable) {
  if (axes.empty())
    return {1, {}};
  if (vector == 1) {
    FlatAxes flat = flatten(axes, variable);
    return {flat.size, std::move(flat.variables)};
  }
  axes.back().size = *divide_exactly(axes.back().size, vector);
  FlatAxes flat = flatten(axes, variable);
  Dim& last = flat.variables.at(axes.back().variable);
  last = last * vector + symbol(kLane);
  return {flat.size, std::move(flat.variables)};
}

// Indices of many axes can grow beyond what a Dim says.
bool has_unknown_index(const std::vector<Statement>& body) {
  bool any = false;
  const auto look_at = [&](const Dim& dim) { any = any || dim.is_unknown(); };
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement))
      std::ranges::for_each(std::array{loop->begin, loop->end}, look_at);
    if (const auto* guard = std::get_if<Guard>(&statement))
      std::ranges::for_each(guard->conditions, look_at);
    if (const auto* assign = std::get_if<Assign>(&statement)) {
      for (const Place& place : assign->places)
        for (const Scalar& at : place.at)
          loops::for_each_index(at, look_at);
      for (const Scalar& value : assign->values)
        loops::for_each_index(value, look_at);
    }
    if (const std::vector<Statement>* inner = body_of(statement))
      any = any || has_unknown_index(*inner);
  }
  return any;
}

class ContractionTiles {
 public:
  ContractionTiles(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
                   const MatrixProduct& product, const ContractionTile& tile, const Kernel& kernel)
      : definitions_(definitions), outputs_(outputs), product_(product), tile_(tile) {
    std::set<std::string> names = loops::names_in(kernel);
    const auto buffer = [&](const std::string& name, std::vector<Dim> sizes, Space space) {
      return Buffer{loops::fresh_among(names, name), DType::F32, std::move(sizes), space};
    };
    const auto factor = [&](const TiledFactor& from, int64_t rows, const std::string& name) {
      // Rows of shared memory begin in different banks where threads write them across.
      const int64_t padding = from.is_along_k ? kVector : 0;
      const int64_t parts = rows * tile.k / (from.vector * tile.threads());
      return Factor{from,
                    rows,
                    name == "a" ? kTileM : kTileN,
                    parts,
                    buffer(name, {tile.k, rows + padding}, Space::Shared),
                    buffer("next_" + name, {tile.threads(), parts, from.vector}, Space::Private)};
    };
    a_ = factor(product.first, tile.m, "a");
    b_ = factor(product.second, tile.n, "b");
    sums_ = buffer("sums", {tile.threads(), tile.thread_m, tile.thread_n}, Space::Private);
    of_a_ = buffer("of_a", {tile.thread_m}, Space::Private);
    of_b_ = buffer("of_b", {tile.thread_n}, Space::Private);
  }

  Statement run() {
    std::vector<Statement> block;
    for (const Buffer& local : {a_->shared, b_->shared, a_->next, b_->next, sums_})
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
    std::vector<Axis> blocks = product_.batch;
    blocks.push_back({kTileM, ceil_div(size_of(product_.m()), tile_.m)});
    blocks.push_back({kTileN, ceil_div(size_of(product_.n()), tile_.n)});
    std::map<std::string, Dim> only;  // those of one iteration
    for (const Axis& axis : blocks)
      if (axis.size == Dim(1))
        only.emplace(axis.variable, 0);
    std::erase_if(blocks, [](const Axis& axis) { return axis.size == Dim(1); });
    return over_blocks(blocks, tile_.threads(), substitute(block, only));
  }

 private:
  struct Factor {
    TiledFactor from;
    int64_t rows;      // of a tile
    std::string tile;  // which of them
    int64_t parts;     // vectors that each thread loads
    Buffer shared, next;
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

  // Where a vector of a tile lies: across the direction of loads, and along it, in vectors.
  struct Vector {
    Dim across, along;
  };
  Vector part_of_tile(const Factor& factor) const {
    const Dim number = symbol(kPart) * tile_.threads() + symbol(kThread);
    const int64_t row_of_vectors = (factor.from.is_along_k ? tile_.k : factor.rows) / factor.from.vector;
    return {floor_div(number, row_of_vectors), mod(number, row_of_vectors)};
  }

  std::vector<Statement> for_each_part(const Factor& factor, std::vector<Statement> body) const {
    return loop(kPart, factor.parts, Mark::Unrolled, std::move(body));
  }

  static std::vector<Statement> in_lanes(int64_t vector, std::vector<Statement> body) {
    return loop(kLane, vector, Mark::Vector, std::move(body));
  }
  std::vector<Dim> place_of_next() const { return {symbol(kThread), symbol(kPart), symbol(kLane)}; }

  std::vector<Statement> load_next(const Dim& step) const {
    std::vector<Statement> body = load_next(*a_, step);
    append(body, load_next(*b_, step));
    return body;
  }

  std::vector<Statement> load_next(const Factor& factor, const Dim& step) const {
    const bool along_k = factor.from.is_along_k;
    const int64_t vector = factor.from.vector;
    const VectorAxes rows = in_vectors(factor.from.rows, along_k ? 1 : vector, along_k ? kAcross : kAlong),
                     k = in_vectors(product_.k, along_k ? vector : 1, along_k ? kAlong : kAcross);
    const Dim first_row = symbol(factor.tile) * (factor.rows / (along_k ? 1 : vector)),
              first_k = step * (tile_.k / (along_k ? vector : 1));
    std::vector<Dim> conditions;
    if (!divide_exactly(size_of(factor.from.rows), factor.rows))
      conditions.push_back(rows.vectors - 1 - symbol(along_k ? kAcross : kAlong));
    // Of no products there is no first step, which is loaded all the same.
    if (!divide_exactly(size_of(product_.k), tile_.k) || size_of(product_.k).lower_bound().value_or(0) < 1)
      conditions.push_back(k.vectors - 1 - symbol(along_k ? kAlong : kAcross));
    std::map<std::string, Dim> variables = rows.variables;
    variables.insert(k.variables.begin(), k.variables.end());
    for (const Dim& condition : factor.from.conditions)
      conditions.push_back(condition.substitute(variables));
    std::vector<Statement> loads;
    if (!conditions.empty())
      append(loads, in_lanes(vector, as_list(store(factor.next, place_of_next(), Scalar::zero(DType::F32)))));
    append(loads,
           guarded(conditions, in_lanes(vector, as_list(store(factor.next, place_of_next(),
                                                              factor.from.value.substitute(variables))))));
    const Vector at = part_of_tile(factor);
    return for_each_part(factor, where(kAcross, (along_k ? first_row : first_k) + at.across,
                                       where(kAlong, (along_k ? first_k : first_row) + at.along, loads)));
  }

  std::vector<Statement> fill_shared() const {
    std::vector<Statement> body = fill_shared(*a_);
    append(body, fill_shared(*b_));
    return body;
  }

  std::vector<Statement> fill_shared(const Factor& factor) const {
    const Vector at = part_of_tile(factor);
    const Dim along = at.along * factor.from.vector + symbol(kLane);
    const std::vector<Dim> place =
        factor.from.is_along_k ? std::vector{along, at.across} : std::vector{at.across, along};
    return for_each_part(
        factor, in_lanes(factor.from.vector,
                         as_list(store(factor.shared, place, element(factor.next, place_of_next())))));
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

  // Of columns that are stored together.
  int64_t stored_vector() const {
    int64_t vector = kVector;
    while (vector > 1 && !divide_exactly(product_.n().back().size, vector))
      vector /= 2;
    return vector;
  }

  std::vector<Statement> store_results() const {
    const int64_t vector = stored_vector();
    const VectorAxes rows = in_vectors(product_.m(), 1, kRow),
                     columns = in_vectors(product_.n(), vector, kColumn);
    std::map<std::string, Dim> variables = rows.variables;
    variables.insert(columns.variables.begin(), columns.variables.end());
    // Column kJ*vector of the thread.
    const Dim j = symbol(kJ) * vector;
    const Scalar sum = element(sums_, {symbol(kThread), symbol(kI), j + symbol(kLane)});
    std::vector<Statement> stores;
    for (Assign& each : build_epilogue(definitions_, outputs_, sum,
                                       [&](const Scalar& scalar) { return scalar.substitute(variables); }))
      stores.emplace_back(std::move(each));
    std::vector<Statement> body = in_lanes(vector, std::move(stores));
    if (!divide_exactly(size_of(product_.n()), tile_.n))
      body = guarded({columns.vectors - 1 - symbol(kColumn)}, std::move(body));
    const Dim column = column_of(floor_div(j, kVector)) + mod(j, kVector);
    body = loop(
        kJ, tile_.thread_n / vector, Mark::Unrolled,
        where(kColumn, symbol(kTileN) * (tile_.n / vector) + floor_div(column, vector), std::move(body)));
    if (!divide_exactly(size_of(product_.m()), tile_.m))
      body = guarded({rows.vectors - 1 - symbol(kRow)}, std::move(body));
    const Dim row = row_of(floor_div(symbol(kI), kVector)) + mod(symbol(kI), kVector);
    return loop(kI, tile_.thread_m, Mark::Unrolled,
                where(kRow, symbol(kTileM) * tile_.m + row, std::move(body)));
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const MatrixProduct& product_;
  const ContractionTile tile_;
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
  const ContractionTile tile = choose_tile(*product, gpu);
  std::vector<Statement> body = as_list(ContractionTiles(definitions, outputs, *product, tile, kernel).run());
  if (has_unknown_index(body))
    return false;
  kernel.body = std::move(body);
  return true;
}

}  // namespace tenon::schedule::cuda
