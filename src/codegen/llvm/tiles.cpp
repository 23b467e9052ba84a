#include "codegen/llvm/tiles.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "loops/parallel_regions.h"

namespace tenon::codegen {

using llvm::Value;
using loops::Assign;
using loops::Function;
using loops::Guard;
using loops::Loop;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

// A tile of AMX has 16 rows of 16 words. Four of the eight that there are hold sums, and two each the
// factors.
constexpr int64_t kSide = 16, kMostTiles = 2;
constexpr int kTiles = 8, kFirstOfRows = 4, kFirstOfLanes = 6;

// The only statement of a body, where it is of that kind.
template <class Kind>
const Kind* only(const std::vector<Statement>& body) {
  return body.size() == 1 ? std::get_if<Kind>(&body.front()) : nullptr;
}

bool is_whole(const Loop& loop, int64_t step, int64_t most) {
  const std::optional<int64_t> iterations = loops::iterations_of(loop).constant();
  return loop.step == 1 && iterations && *iterations > 0 && *iterations % step == 0 && *iterations <= most;
}

bool has_plain_indices(const Scalar& load) {
  return load.kind() == Scalar::Kind::Load && std::ranges::all_of(load.operands(), [](const Scalar& index) {
           return index.kind() == Scalar::Kind::Index;
         });
}

Place place_of(const Scalar& load) { return {load.name(), load.operands()}; }

int64_t tiles_along(const Loop& loop) { return *loops::iterations_of(loop).constant() / kSide; }

}  // namespace

TileEmitter::Steps TileEmitter::steps() const {
  if (target_.matrix_tiles)
    return {.rows = kSide, .words = kSide, .lanes = kSide, .most = kMostTiles * kSide};
  return steps_in_registers();
}

bool TileEmitter::has_instruction(Function function) const {
  if (function != Function::DotBf16x2 && function != Function::DotI8x4)
    return false;
  return target_.matrix_tiles || target_.multiplies_matrices(function == Function::DotI8x4);
}

std::optional<TileNest> TileEmitter::find_tiles(const Loop& loop) const {
  const auto [rows_step, words_step, lanes_step, most] = steps();
  if (loop.mark != loops::Mark::Tile || !is_whole(loop, rows_step, most))
    return std::nullopt;
  std::vector<const Loop*> inner;
  const Loop* next = only<Loop>(loop.body);
  for (; next != nullptr; next = only<Loop>(next->body))
    inner.push_back(next);
  if (inner.size() < 2)
    return std::nullopt;
  const Loop& lanes = *inner.back();
  inner.pop_back();
  if (!is_whole(lanes, lanes_step, most) || !is_whole(*inner.back(), words_step, INT64_MAX))
    return std::nullopt;
  TileNest nest{.rows = loop, .summed = std::move(inner), .lanes = lanes};
  for (const Statement& statement : lanes.body) {
    if (const auto* guard = std::get_if<Guard>(&statement);
        guard != nullptr && &statement == &lanes.body.front() && fetches_tiles(nest, *guard)) {
      nest.fetched = guard;
      continue;
    }
    const Assign* product = std::get_if<Assign>(&statement);
    if (product == nullptr || !has_steps(nest, *product))
      return std::nullopt;
    nest.products.push_back(product);
  }
  const auto is_like_first = [&](const Assign* product) {
    const Place &own = product->places.front(), &first = nest.products.front()->places.front();
    return own.buffer == first.buffer && own.at == first.at &&
           product->values.front().function() == nest.products.front()->values.front().function();
  };
  return !nest.products.empty() && std::ranges::all_of(nest.products, is_like_first)
             ? std::optional(std::move(nest))
             : std::nullopt;
}

bool TileEmitter::fetches_tiles(const TileNest& nest, const Guard& guard) const {
  std::vector<const Loop*> all = nest.summed;
  all.insert(all.end(), {&nest.rows, &nest.lanes});
  const auto is_same_everywhere = [&](const Dim& condition) {
    return std::ranges::none_of(all, [&](const Loop* loop) { return condition.mentions(loop->variable); });
  };
  const auto fetches = [&](const Statement& statement) {
    const auto* fetch = std::get_if<loops::Prefetch>(&statement);
    return fetch != nullptr && step_of(fetch->place, nest, nest.rows) == Dim(0) &&
           step_of(fetch->place, nest, nest.lanes) == Dim(1) &&
           step_of(fetch->place, nest, *nest.summed.back()).has_value();
  };
  return std::ranges::all_of(guard.conditions, is_same_everywhere) &&
         std::ranges::all_of(guard.body, fetches);
}

std::optional<TileEmitter::Word> TileEmitter::word_of(const Scalar& factor) {
  if (has_plain_indices(factor))
    return Word{place_of(factor), 1};
  const Scalar* first = loops::first_of_word(factor);
  return first == nullptr
             ? std::nullopt
             : std::optional(Word{place_of(*first), static_cast<int64_t>(factor.operands().size())});
}

Dim TileEmitter::offset_in(const Place& place) const {
  const Storage& storage = storage_.at(place.buffer);
  Dim offset = 0, stride = 1;
  for (size_t i = place.at.size(); i-- > 0; stride = stride * storage.sizes[i])
    offset = offset + place.at[i].index() * stride;
  return offset;
}

std::optional<Dim> TileEmitter::step_of(const Place& place, const TileNest& nest, const Loop& loop) const {
  const std::optional<Dim> step = slope_of(offset_in(place), loop.variable);
  if (!step || step->mentions(nest.rows.variable) || step->mentions(nest.lanes.variable))
    return std::nullopt;
  const bool moves =
      std::ranges::any_of(nest.summed, [&](const Loop* summed) { return step->mentions(summed->variable); });
  return moves ? std::nullopt : step;
}

// The sums move with rows and lanes, the first factor with rows and what is summed, the second with that and
// lanes; the innermost is contiguous.
bool TileEmitter::has_steps(const TileNest& nest, const Assign& product) const {
  const Scalar& value = product.values.front();
  if (product.combine != "+" || product.places.size() != 1 || value.kind() != Scalar::Kind::Apply ||
      !has_instruction(value.function()))
    return false;
  const std::vector<Scalar>& factors = value.operands();
  const std::optional<Word> a = word_of(factors[0]), b = word_of(factors[1]);
  if (!a || !b)
    return false;
  const Word sums{product.places.front(), 1};
  const auto moves = [&](const Word& word, const Loop& loop, std::optional<int64_t> words) {
    const std::optional<Dim> step = step_of(word.place, nest, loop);
    return step && (!words || *step == Dim(*words * word.elements));
  };
  for (const Loop* summed : nest.summed)
    if (!moves(sums, *summed, 0))
      return false;
  const Loop& last = *nest.summed.back();
  return moves(sums, nest.rows, std::nullopt) && moves(sums, nest.lanes, 1) &&
         moves(*a, nest.rows, std::nullopt) && moves(*a, nest.lanes, 0) && moves(*a, last, 1) &&
         moves(*b, nest.rows, 0) && moves(*b, nest.lanes, 1) && moves(*b, last, std::nullopt);
}

TileEmitter::Matrix TileEmitter::matrix_at(const Word& word, const std::string& row_variable) {
  const Dim offset = offset_in(word.place);
  return {address(storage_.at(word.place.buffer), indices_.value(offset)),
          indices_.value(*slope_of(offset, row_variable) * (kWordBytes / word.elements))};
}

// In words.
Value* TileEmitter::place_in(const Matrix& matrix, int64_t row, int64_t column) {
  const auto number = [&](int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); };
  Value* offset =
      builder_.CreateAdd(builder_.CreateMul(matrix.bytes_per_row, number(row)), number(column * kWordBytes));
  return builder_.CreateGEP(builder_.getInt8Ty(), matrix.start, offset);
}

void TileEmitter::access(llvm::Intrinsic::ID instruction, int tile, const Matrix& matrix, int64_t row,
                         int64_t column) {
  builder_.CreateIntrinsic(instruction, {},
                           {builder_.getInt8(static_cast<uint8_t>(tile)),
                            place_in(matrix, row * kSide, column * kSide), matrix.bytes_per_row});
}

// The loops of what is summed from one on; the last goes by as many words as instructions take.
void TileEmitter::sum_products(const TileNest& nest, size_t level) {
  const Loop& loop = *nest.summed[level];
  const bool is_last = level + 1 == nest.summed.size();
  const int64_t step = is_last ? steps().words : loop.step;
  count(indices_.value(loop.begin), indices_.value(loop.end), step, is_last ? step : 1, [&](Value* at) {
    indices_.set(loop.variable, at);
    if (!is_last)
      sum_products(nest, level + 1);
    else if (target_.matrix_tiles)
      multiply(nest);
    else
      multiply_in_registers(nest);
  });
}

// The prefetches of one iteration, by cache line.
void TileEmitter::fetch_tiles(const TileNest& nest) {
  run_where(condition_of(*nest.fetched), [&] {
    for (const Statement& statement : nest.fetched->body) {
      const Place& place = std::get<loops::Prefetch>(statement).place;
      const Matrix matrix = matrix_at({place, 1}, nest.summed.back()->variable);
      for (uint64_t row = 0; row < kSide; ++row)
        fetch(builder_.CreateGEP(builder_.getInt8Ty(), matrix.start,
                                 builder_.CreateMul(matrix.bytes_per_row, builder_.getInt64(row))),
              tiles_along(nest.lanes) * kSide * kWordBytes);
    }
  });
}

// All products of one iteration. What the one before has loaded is there.
void TileEmitter::multiply(const TileNest& nest) {
  const int rows = static_cast<int>(tiles_along(nest.rows)),
            lanes = static_cast<int>(tiles_along(nest.lanes));
  if (nest.fetched != nullptr)
    fetch_tiles(nest);
  std::optional<Word> held_rows, held_lanes;
  for (const Assign* assign : nest.products) {
    const Scalar& product = assign->values.front();
    const auto instruction = product.function() == Function::DotBf16x2 ? llvm::Intrinsic::x86_tdpbf16ps
                                                                       : llvm::Intrinsic::x86_tdpbusd;
    const Word a = *word_of(product.operands()[0]), b = *word_of(product.operands()[1]);
    if (held_lanes != b) {
      const Matrix matrix = matrix_at(b, nest.summed.back()->variable);
      for (int j = 0; j < lanes; ++j)
        access(llvm::Intrinsic::x86_tileloadd64, kFirstOfLanes + j, matrix, 0, j);
    }
    const std::optional<Matrix> matrix =
        held_rows == a ? std::nullopt : std::optional(matrix_at(a, nest.rows.variable));
    for (int i = 0; i < rows; ++i) {
      if (matrix)
        access(llvm::Intrinsic::x86_tileloadd64, kFirstOfRows + i, *matrix, i, 0);
      for (int j = 0; j < lanes; ++j)
        builder_.CreateIntrinsic(instruction, {},
                                 {builder_.getInt8(static_cast<uint8_t>(i * lanes + j)),
                                  builder_.getInt8(static_cast<uint8_t>(kFirstOfRows + i)),
                                  builder_.getInt8(static_cast<uint8_t>(kFirstOfLanes + j))});
    }
    held_rows = a;
    held_lanes = b;
  }
}

void TileEmitter::run_tiles(const TileNest& nest) {
  for (const Loop* loop : {&nest.rows, &nest.lanes})
    indices_.set(loop->variable, indices_.value(loop->begin));
  if (!target_.matrix_tiles)
    return run_in_registers(nest);
  uses_tiles_ = true;
  const Matrix sums = matrix_at({nest.products.front()->places.front(), 1}, nest.rows.variable);
  const auto for_each_sum = [&](llvm::Intrinsic::ID instruction) {
    const int64_t lanes = tiles_along(nest.lanes);
    for (int64_t i = 0; i < tiles_along(nest.rows); ++i)
      for (int64_t j = 0; j < lanes; ++j)
        access(instruction, static_cast<int>(i * lanes + j), sums, i, j);
  };
  for_each_sum(llvm::Intrinsic::x86_tileloadd64);
  sum_products(nest, 0);
  for_each_sum(llvm::Intrinsic::x86_tilestored64);
}

// All tiles are whole: palette 1, and the bytes of a row and the rows of each.
void TileEmitter::configure_tiles() {
  if (!uses_tiles_)
    return;
  constexpr size_t kSize = 64, kBytesOfRows = 16, kRows = 48;
  std::array<uint8_t, kSize> bytes{1};
  for (size_t i = 0; i < kTiles; ++i) {
    bytes[kBytesOfRows + 2 * i] = static_cast<uint8_t>(kSide * kWordBytes);
    bytes[kRows + i] = static_cast<uint8_t>(kSide);
  }
  llvm::Constant* content = llvm::ConstantDataArray::get(context_, bytes);
  auto* configuration =
      new llvm::GlobalVariable(*function_->getParent(), content->getType(), true,
                               llvm::GlobalValue::PrivateLinkage, content, "tiles");  // the module owns it
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {configuration});
}

void TileEmitter::release_tiles() {
  if (uses_tiles_)
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

}  // namespace tenon::codegen
