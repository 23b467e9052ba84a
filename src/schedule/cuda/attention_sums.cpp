#include "schedule/cuda/attention_sums.h"

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/statements.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Function;
using loops::Local;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

constexpr int64_t kVector = 4;    // f32 that one instruction loads
constexpr int64_t kUnrolled = 4;  // such vectors along k

const std::string kI = "i0", kJ = "j0", kH = "h0", kL = "l0", kK = "k0", kPart = "part0",
                  kPanelOfColumns = "c0";
constexpr int64_t kFragmentsOfPanel = fusion::AttentionTile::kPanel / 8;

int64_t largest_divisor(int64_t number, int64_t most) {
  while (number % most != 0)
    --most;
  return most;
}

}  // namespace

AttentionSums::AttentionSums(const fusion::AttentionTile& tile, Of of, int64_t columns,
                             const std::string& name)
    : tile_(tile), of_(of) {
  const Dim p = symbol(kThread), warp = floor_div(p, kWarpThreads);
  if (tile.on_tensor_cores) {
    lanes_ = 2;
    rows_ = {{kI, tile.thread_rows}, {kH, 2}};
    columns_ = {{kJ, columns / 8}};
    row_ = warp * (16 * tile.thread_rows) + symbol(kI) * 16 + symbol(kH) * 8 +
           floor_div(mod(p, kWarpThreads), 4);
    Dim fragment = symbol(kJ);
    if (tile.by_warpgroups && of == Of::Results) {
      columns_ = {{kPanelOfColumns, columns / fusion::AttentionTile::kPanel}, {kJ, kFragmentsOfPanel}};
      fragment = symbol(kPanelOfColumns) * kFragmentsOfPanel + fragment;
    }
    vector_of_column_ = fragment * 4 + mod(p, 4);
    at_ = {p, symbol(kI), fragment, symbol(kH), lane()};
    buffer_ = {name, DType::F32, {tile.threads(), tile.thread_rows, columns / 8, 2, 2}, Space::Private};
    return;
  }
  lanes_ = of == Of::Scores ? 1 : kVector;
  rows_ = {{kI, tile.thread_rows}};
  columns_ = {{kJ, columns / (8 * lanes_)}};
  row_ = warp * (4 * tile.thread_rows) + symbol(kI) * 4 + floor_div(mod(p, kWarpThreads), 8);
  vector_of_column_ = symbol(kJ) * 8 + mod(p, 8);
  at_ = {p, symbol(kI), symbol(kJ), lane()};
  buffer_ = {
      name, DType::F32, {tile.threads(), tile.thread_rows, columns / (8 * lanes_), lanes_}, Space::Private};
}

Dim AttentionSums::lane() { return symbol(kL); }

Dim AttentionSums::thread_of_row() const { return mod(symbol(kThread), tile_.threads_of_row()); }

Scalar AttentionSums::value() const { return element(buffer_, at_); }

Buffer AttentionSums::of_rows(const std::string& name) const {
  std::vector<Dim> sizes{tile_.threads()};
  for (const Axis& axis : rows_)
    sizes.push_back(axis.size);
  return {name, DType::F32, std::move(sizes), Space::Private};
}

std::vector<Dim> AttentionSums::at_row() const {
  std::vector<Dim> at{symbol(kThread)};
  for (const Axis& axis : rows_)
    at.push_back(symbol(axis.variable));
  return at;
}

std::vector<Statement> AttentionSums::for_each_row(std::vector<Statement> body) const {
  return around(rows_, Mark::Unrolled, std::move(body));
}
std::vector<Statement> AttentionSums::for_each_vector(std::vector<Statement> body) const {
  return around(columns_, Mark::Unrolled, std::move(body));
}
std::vector<Statement> AttentionSums::for_each_column(std::vector<Statement> body) const {
  return for_each_vector(as_list(make_loop(kL, lanes_, Mark::Unrolled, std::move(body))));
}

std::vector<Dim> AttentionSums::at_b(const Dim& k) const {
  return of_ == Of::Scores ? std::vector{column(), k} : std::vector{k, column()};
}

std::vector<Statement> AttentionSums::add_products(const Buffer& a, const Buffer& b, int64_t k) const {
  return tile_.by_warpgroups     ? add_by_warpgroups(a, b, k)
         : tile_.on_tensor_cores ? add_in_tiles(a, b, k)
                                 : add_in_vectors(a, b, k);
}

Statement AttentionSums::add_tile(const Scalar& a, const Scalar& b, int64_t k) const {
  const Scalar product =
      Scalar::apply(Function::Multiply, {Scalar::cast(DType::F32, a), Scalar::cast(DType::F32, b)});
  return make_loop(kK, k, Mark::Tile,
                   for_each_row(for_each_column(as_list(store(buffer_, at_, product, "+")))));
}

std::vector<Statement> AttentionSums::add_by_warpgroups(const Buffer& a, const Buffer& b, int64_t k) const {
  const Dim of_k = symbol(kK);
  if (of_ == Of::Results)
    return as_list(add_tile(
        element(a, {row_, of_k}),
        element(b, {symbol(kPanelOfColumns), of_k, symbol(kJ) * 8 + mod(symbol(kThread), 4) * 2 + lane()}),
        k));
  std::vector<Statement> panels;
  for (int64_t panel = 0; panel < k / fusion::AttentionTile::kPanel; ++panel)
    panels.push_back(add_tile(element(a, {panel, row_, of_k}), element(b, {panel, column(), of_k}),
                              fusion::AttentionTile::kPanel));
  return panels;
}

std::vector<Statement> AttentionSums::add_in_tiles(const Buffer& a, const Buffer& b, int64_t k) const {
  return as_list(add_tile(element(a, {row_, symbol(kK)}), element(b, at_b(symbol(kK))), k));
}

// Vectors of both come to registers; scores have them along k.
std::vector<Statement> AttentionSums::add_in_vectors(const Buffer& a, const Buffer& b, int64_t k) const {
  const int64_t steps = k / kVector, unrolled = largest_divisor(steps, kUnrolled);
  const Dim vector = symbol(kK) * unrolled + symbol("u0"), along = vector * kVector;
  const bool is_along_k = of_ == Of::Scores;
  const Dim columns = columns_.front().size;
  const Buffer of_a{"of_a0", DType::F32, {tile_.thread_rows, kVector}, Space::Private},
      of_b{"of_b0", DType::F32, {columns, kVector}, Space::Private};
  const auto in_lanes = [](Statement statement) {
    return as_list(make_loop(kL, kVector, Mark::Vector, as_list(std::move(statement))));
  };
  std::vector<Statement> body;
  body.emplace_back(Local{of_a});
  append(body, for_each_row(in_lanes(store(of_a, {symbol(kI), lane()}, element(a, {row_, along + lane()})))));
  const auto load_b = [&](const Dim& part) {
    const std::vector<Dim> at =
        is_along_k ? std::vector{vector_of_column_, along + lane()} : std::vector{along + part, column()};
    std::vector<Statement> loads;
    loads.emplace_back(Local{of_b});
    append(loads, for_each_vector(in_lanes(store(of_b, {symbol(kJ), lane()}, element(b, at)))));
    return loads;
  };
  const auto add = [&](const Dim& of_k, const Dim& in_b) {
    return store(buffer_, at_,
                 Scalar::apply(Function::Multiply,
                               {element(of_a, {symbol(kI), of_k}), element(of_b, {symbol(kJ), in_b})}),
                 "+");
  };
  if (is_along_k) {
    append(body, load_b(0));
    const Statement sum = substitute(as_list(add(symbol(kPart), symbol(kPart))), {{kL, 0}}).front();
    append(body,
           for_each_row(for_each_vector(as_list(make_loop(kPart, kVector, Mark::Unrolled, as_list(sum))))));
  } else {
    std::vector<Statement> part = load_b(symbol(kPart));
    append(part, for_each_row(for_each_column(as_list(add(symbol(kPart), lane())))));
    body.push_back(make_loop(kPart, kVector, Mark::Unrolled, std::move(part)));
  }
  return loop(kK, steps / unrolled, Mark::Serial, loop("u0", unrolled, Mark::Unrolled, std::move(body)));
}

}  // namespace tenon::schedule::cuda
