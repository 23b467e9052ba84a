#include "codegen/cuda/tiles.h"

#include "target/gpu.h"

namespace tenon::codegen::cuda {

using loops::Loop;

namespace {

const std::string kWarp = " warp", kLane = " warp lane", kI = " tile i", kJ = " tile j";

// Columns are loaded in pairs of fragments, where that leaves none.
int64_t fragments_per_load(const TileOperand& operand, bool is_first) {
  return is_first || operand.fragments % 2 != 0 ? 1 : 2;
}

// The row of a matrix of 8 x 8 elements that each lane says where it is: 8 lanes for each of the four. Those
// of the first factor are its rows 0 to 7 and 8 to 15, then these for the next elements of k; those of the
// second are the two halves of k, then these for the next columns.
Dim row_of_lane(const TileOperand& operand, bool is_first) {
  const Dim lane = Dim::symbol(kLane), row = mod(lane, 8), low = mod(floor_div(lane, 8), 2),
            high = floor_div(lane, 16);
  const int64_t stride = operand.stride, of_k = operand.stride_of_k;
  if (is_first)
    return operand.is_along_k() ? mod(lane, 16) * stride + high * 8 : (row + high * 8) * of_k + low * 8;
  const Dim pair = fragments_per_load(operand, is_first) == 2 ? high * operand.step : Dim(0);
  return operand.is_along_k() ? row * stride + low * 8 + pair : mod(lane, 16) * of_k + pair;
}

}  // namespace

void TileText::find_tiles(const Loop& threads) {
  products_.clear();
  if (team_.is_cluster() || team_.threads % kWarpThreads != 0 || layouts_->vector_of(threads) != 1)
    return;
  products_ = find_tile_products(threads, [&](const std::string& name) -> const loops::Buffer* {
    const auto it = storage_.find(name);
    const bool has_place = it != storage_.end() && (it->second.kind == Storage::Kind::Pointer ||
                                                    it->second.kind == Storage::Kind::Spread);
    return has_place ? &it->second.buffer : nullptr;
  });
}

bool TileText::run_tile(const Loop& loop) {
  const auto it = products_.find(&loop);
  if (it == products_.end())
    return false;
  const TileProduct& product = it->second;
  writer_.open();
  const std::string warp = names_.fresh("warp"), lane = names_.fresh("lane");
  const IndexText::Symbol& thread = indices_.symbol(at_->loop->variable);
  const int64_t warps = thread.range.high / kWarpThreads;
  writer_.line("const int {} = {} / {}, {} = thread % {};", warp, thread.text.at(Binding::Product),
               kWarpThreads, lane, kWarpThreads);
  indices_.set(kWarp, {warp}, {0, warps});
  indices_.set(kLane, {lane}, {0, kWarpThreads - 1});
  writer_.write("#pragma unroll");
  const std::string k = names_.of(loop.variable);
  const Range range{indices_.range_of(loop.begin).low, indices_.range_of(loop.end).high};
  writer_.open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", IndexText::type_of(range), k,
               indices_.text(loop.begin).text, indices_.text(loop.end).at(Binding::Sum), kTileK);
  indices_.set(loop.variable, {k}, range);
  const std::string a = names_.fresh(product.a.buffer + "_fragments"),
                    b = names_.fresh(product.b.buffer + "_fragments");
  load_fragments(product.a, a, /*is_first=*/true);
  load_fragments(product.b, b, /*is_first=*/false);
  multiply(product, a, b);
  writer_.close();
  writer_.close();
  return true;
}

void TileText::load_fragments(const TileOperand& operand, const std::string& to, bool is_first) {
  const int64_t per_load = fragments_per_load(operand, is_first), loads = operand.fragments / per_load;
  const std::string& variable = is_first ? kI : kJ;
  writer_.line("unsigned {}[{}][{}];", to, loads, is_first || per_load == 2 ? 4 : 2);
  writer_.write("#pragma unroll");
  const std::string number =
      writer_.open_loop(is_first ? "i" : "j", "for (int {0} = 0; {0} < {1}; ++{0})", loads);
  indices_.set(variable, {number}, {0, loads - 1});
  const Dim first = operand.first.substitute({{at_->loop->variable, Dim::symbol(kWarp) * kWarpThreads}});
  const Dim offset =
      first + Dim::symbol(variable) * (operand.step * per_load) + row_of_lane(operand, is_first);
  writer_.line("{}({}[{}], {} + {});",
               preamble_.use(operand.is_along_k() ? "load_matrices" : "load_matrices_transposed"), to, number,
               storage_.at(operand.buffer).name, indices_.text(offset).at(Binding::Sum));
  writer_.close();
}

void TileText::multiply(const TileProduct& product, const std::string& a, const std::string& b) {
  writer_.write("#pragma unroll");
  const std::string i = writer_.open_loop("i", "for (int {0} = 0; {0} < {1}; ++{0})", product.a.fragments);
  writer_.write("#pragma unroll");
  const std::string j = writer_.open_loop("j", "for (int {0} = 0; {0} < {1}; ++{0})", product.b.fragments);
  indices_.set(kI, {i}, {0, product.a.fragments - 1});
  indices_.set(kJ, {j}, {0, product.b.fragments - 1});
  const TileSums& sums = product.sums;
  const Storage& storage = storage_.at(sums.buffer);
  std::vector<std::string> operands;
  for (const int64_t h : {0, 1})
    for (const int64_t l : {0, 1}) {
      const Dim offset = Dim::symbol(kI) * sums.of_i + Dim::symbol(kJ) * sums.of_j + sums.first +
                         h * sums.of_h + l * sums.of_l;
      operands.push_back(fmt::format("{}[{}][{}]", storage.name, at_->trip, indices_.text(offset).text));
    }
  operands.push_back(fmt::format("{}[{}]", a, i));
  for (const int64_t half : {0, 1})
    operands.push_back(fragments_per_load(product.b, /*is_first=*/false) == 1
                           ? fmt::format("{}[{}][{}]", b, j, half)
                           : fmt::format("{0}[{1} / 2][{1} % 2 * 2 + {2}]", b, j, half));
  writer_.line("{}({});",
               preamble_.use(product.dtype == DType::F16 ? "multiply_add_f16" : "multiply_add_bf16"),
               fmt::join(operands, ", "));
  writer_.close();
  writer_.close();
}

}  // namespace tenon::codegen::cuda
