#include "codegen/cuda/tiles.h"

#include <algorithm>

#include "codegen/cuda/accesses.h"
#include "target/gpu.h"

namespace tenon::codegen::cuda {

using loops::Loop;

namespace {

constexpr int64_t kColumnsOfFragment = 8;

const std::string kWarp = " warp", kLane = " warp lane", kI = " tile i", kJ = " tile j", kGroup = " group";

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

using Products = std::map<const Loop*, TileProduct>;

void add_products(const std::vector<loops::Statement>& body, std::map<std::string, loops::Buffer> buffers,
                  const std::map<std::string, QuadBuffer>& quads, Products& found) {
  for (const loops::Statement& statement : body) {
    if (const auto* local = std::get_if<loops::Local>(&statement))
      buffers.insert_or_assign(local->buffer.name, local->buffer);
    const auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr && loop->mark == loops::Mark::Thread)
      found.merge(find_tile_products(
          *loop,
          [&](const std::string& name) {
            const auto it = buffers.find(name);
            return it == buffers.end() ? nullptr : &it->second;
          },
          quads));
    else if (const auto* inner = body_of(statement))
      add_products(*inner, buffers, quads, found);
  }
}

// Whether all that reads them are products of which they are the first factor.
bool are_factors(const std::string& name, const QuadBuffer& quad, const Products& products) {
  return std::ranges::all_of(quad.products, [&](const Loop* loop) {
    const auto product = products.find(loop);
    return product != products.end() && product->second.a.buffer == name;
  });
}

}  // namespace

RegionProducts find_region_products(const loops::ParallelRegion& region, int64_t threads) {
  RegionProducts found{.quads = find_quad_buffers(region, threads), .swizzled = {}, .of_warpgroups = {}};
  Products products;
  add_products(region.body, {}, found.quads, products);
  if (std::erase_if(found.quads, [&](const auto& each) {
        return each.second.is_factor() && !are_factors(each.first, each.second, products);
      }) > 0) {
    products.clear();
    add_products(region.body, {}, found.quads, products);
  }
  if (std::ranges::all_of(products, [](const auto& each) { return each.second.is_of_warpgroups; }))
    for (const auto& [loop, product] : products) {
      found.swizzled.insert({product.a.buffer, product.b.buffer});
      found.of_warpgroups.insert(loop);
    }
  for (const auto& [name, quad] : found.quads)
    found.swizzled.erase(name);
  return found;
}

void TileText::find_tiles(const Loop& threads) {
  products_.clear();
  if (team_.is_cluster() || team_.threads % kWarpThreads != 0 || layouts_->vector_of(threads) != 1)
    return;
  products_ = find_tile_products(
      threads,
      [&](const std::string& name) -> const loops::Buffer* {
        const auto it = storage_.find(name);
        const bool has_place = it != storage_.end() && (it->second.kind == Storage::Kind::Pointer ||
                                                        it->second.kind == Storage::Kind::Spread ||
                                                        it->second.kind == Storage::Kind::Fragments);
        return has_place ? &it->second.buffer : nullptr;
      },
      quads_);
  std::erase_if(products_, [&](const auto& each) { return !is_in_order(each.second); });
  chained_.clear();
  find_sequences(threads.body);
}

void TileText::find_sequences(const std::vector<loops::Statement>& body) {
  for (size_t i = 0; i < body.size(); ++i) {
    const auto product = [&](size_t at) -> const Loop* {
      const auto* loop = at < body.size() ? std::get_if<Loop>(&body[at]) : nullptr;
      return loop != nullptr && products_.contains(loop) ? loop : nullptr;
    };
    if (const Loop* loop = product(i); loop != nullptr && product(i + 1) != nullptr)
      chained_.insert(loop);
    if (const auto* inner = body_of(body[i]))
      find_sequences(*inner);
  }
}

// What warps load themselves must not have changed places, nor lie in panels.
bool TileText::is_in_order(const TileProduct& product) const {
  const auto has_panels = [](const TileOperand& operand) { return operand.per_panel != operand.fragments; };
  return swizzled_.contains(product.b.buffer) || (!has_panels(product.a) && !has_panels(product.b));
}

bool TileText::run_tile(const Loop& loop) {
  const auto it = products_.find(&loop);
  if (it == products_.end())
    return false;
  if (swizzled_.contains(it->second.b.buffer))
    run_warpgroups(loop, it->second);
  else
    run_warps(loop, it->second);
  return true;
}

void TileText::for_each_step(const Loop& loop, const std::function<void()>& f) {
  writer_.write("#pragma unroll");
  const std::string k = names_.of(loop.variable);
  const Range range{indices_.range_of(loop.begin).low, indices_.range_of(loop.end).high};
  writer_.open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", IndexText::type_of(range), k,
               indices_.text(loop.begin).text, indices_.text(loop.end).at(Binding::Sum), kTileK);
  indices_.set(loop.variable, {k}, range);
  f();
  writer_.close();
}

void TileText::run_warpgroups(const Loop& loop, const TileProduct& product) {
  writer_.open();
  const std::string group = names_.fresh("group");
  const IndexText::Symbol& thread = indices_.symbol(at_->loop->variable);
  const int64_t groups = thread.range.high / kThreadsOfWarpgroup;
  const std::string declaration =
      fmt::format("const int {} = {} / {};", group, thread.text.at(Binding::Product), kThreadsOfWarpgroup);
  indices_.set(kGroup, {group}, {0, groups});
  Writer before = std::move(writer_);
  writer_ = before.same();
  const auto matrix = [&](const TileOperand& operand) {
    const Dim first =
        operand.first.substitute({{at_->loop->variable, Dim::symbol(kGroup) * kThreadsOfWarpgroup}});
    return fmt::format("{}({} + {}, {})", preamble_.use("wgmma_descriptor"), storage_.at(operand.buffer).name,
                       indices_.text(first).at(Binding::Sum), 2 * operand.panel_step);
  };
  if (!is_multiplying_)
    writer_.line("{}();", preamble_.use("wgmma_fence"));
  is_multiplying_ = chained_.contains(&loop);
  for_each_step(loop, [&] {
    const std::vector<std::string> a =
        quads_.contains(product.a.buffer) ? fragments_at(product, "0") : std::vector{matrix(product.a)};
    writer_.line("{}({}[{}], {}, {});", multiply_by_warpgroup(product), storage_.at(product.sums.buffer).name,
                 at_->trip, fmt::join(a, ", "), matrix(product.b));
  });
  if (mentions_name(writer_.text(), group))
    before.write(declaration);
  before.append(writer_);
  writer_ = std::move(before);
  if (is_multiplying_)
    return writer_.close();
  writer_.line("{}();", preamble_.use("wgmma_commit"));
  accumulators_.insert(product.sums.buffer);
  if (const auto meanwhile = std::exchange(overlapped_, {})) {
    const std::optional<Iterations> around = at_;
    meanwhile();
    at_ = around;
  }
  writer_.close();
}

void TileText::wait_for_products(int later) {
  writer_.line("{}<{}>();", preamble_.use("wait_for_wgmma"), later);
  accumulators_.clear();
}

void TileText::wait_for_products_of(const loops::Statement& statement) {
  bool uses = false;
  const auto look = [&](const loops::Use& use) { uses = uses || accumulators_.contains(use.place.buffer); };
  if (accumulators_.empty())
    return;
  loops::for_each_use(statement, look);
  if (const auto* inner = body_of(statement))
    for_each_use(*inner, look);
  if (uses)
    wait_for_products(0);
}

// One instruction, with as many registers as a thread has sums.
std::string TileText::multiply_by_warpgroup(const TileProduct& product) {
  const std::string_view dtype = product.dtype == DType::F16 ? "f16" : "bf16";
  const int64_t columns = 8 * product.b.fragments, sums = columns / 2;
  const bool has_fragments = quads_.contains(product.a.buffer);
  const auto order = [](const TileOperand& operand) { return operand.is_along_k() ? "along" : "across"; };
  const std::string name = fmt::format("multiply_{}_64x{}_{}_and_{}_k", dtype, columns,
                                       has_fragments ? "fragments" : order(product.a), order(product.b));
  std::vector<std::string> registers, operands;
  for (int64_t i = 0; i < sums; ++i) {
    registers.push_back(fmt::format("%{}", i));
    operands.push_back(fmt::format("\"+f\"(s[{}])", i));
  }
  const auto in_lines = [](const std::vector<std::string>& all, size_t per_line, std::string_view begin,
                           std::string_view end) {
    std::string text;
    for (size_t i = 0; i < all.size(); i += per_line) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(i);
      const auto to = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + per_line));
      text += fmt::format("{}{}{}{}\n", begin, fmt::join(from, to, ", "), to == all.end() ? "" : ", ", end);
    }
    return text;
  };
  // The first factor as a matrix in shared memory, or as fragments in registers.
  const std::string_view parameters =
      has_fragments ? "unsigned a0, unsigned a1, unsigned a2, unsigned a3" : "unsigned long long a";
  const std::string_view inputs =
      has_fragments ? "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3), \"l\"(b)" : "\"l\"(a), \"l\"(b)";
  const std::string factors =
      has_fragments ? fmt::format("{{%{}, %{}, %{}, %{}}}, %{}", sums, sums + 1, sums + 2, sums + 3, sums + 4)
                    : fmt::format("%{}, %{}", sums, sums + 1);
  const std::string transposed = fmt::format("{}{}",
                                             has_fragments            ? ""
                                             : product.a.is_along_k() ? "0, "
                                                                      : "1, ",
                                             product.b.is_along_k() ? 0 : 1);
  preamble_.use_made(
      name,
      fmt::format("// 64 x 16 by 16 x {1} elements of a warpgroup. Each thread has, of its row and the "
                  "eighth after, two\n"
                  "// sums in 8 columns each.\n"
                  "__device__ __forceinline__ void {0}(float (&s)[{2}], {3},\n"
                  "    unsigned long long b) {{\n"
                  "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{4}.{4} {{\"\n{5}"
                  "               \"}}, {6}, 1, 1, 1, {7};\"\n"
                  "               :\n{8}               : {9});\n}}\n",
                  name, columns, sums, parameters, dtype, in_lines(registers, 16, "               \"", "\""),
                  factors, transposed, in_lines(operands, 8, "                 ", ""), inputs));
  return name;
}

// Element 8*f + … of k is in fragment f; of each there are two rows.
std::vector<std::string> TileText::fragments_at(const TileProduct& product, const std::string& row) {
  const Dim first = floor_div(Dim::symbol(product.k), kColumnsOfFragment);
  std::vector<std::string> registers;
  for (const int64_t half : {0, 1})
    for (const int64_t of_row : {0, 1})
      registers.push_back(fmt::format("{}[{}][{}][{}]", storage_.at(product.a.buffer).name, row,
                                      indices_.text(first + half).text, of_row));
  return registers;
}

void TileText::run_warps(const Loop& loop, const TileProduct& product) {
  writer_.open();
  const std::string warp = names_.fresh("warp"), lane = names_.fresh("lane");
  const IndexText::Symbol& thread = indices_.symbol(at_->loop->variable);
  const int64_t warps = thread.range.high / kWarpThreads;
  writer_.line("const int {} = {} / {}, {} = thread % {};", warp, thread.text.at(Binding::Product),
               kWarpThreads, lane, kWarpThreads);
  indices_.set(kWarp, {warp}, {0, warps});
  indices_.set(kLane, {lane}, {0, kWarpThreads - 1});
  for_each_step(loop, [&] {
    const std::string a = names_.fresh(product.a.buffer + "_fragments"),
                      b = names_.fresh(product.b.buffer + "_fragments");
    if (!quads_.contains(product.a.buffer))
      load_fragments(product.a, a, /*is_first=*/true);
    load_fragments(product.b, b, /*is_first=*/false);
    multiply(product, a, b);
  });
  writer_.close();
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
  operands.push_back(quads_.contains(product.a.buffer)
                         ? fmt::format("{{{}}}", fmt::join(fragments_at(product, i), ", "))
                         : fmt::format("{}[{}]", a, i));
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
