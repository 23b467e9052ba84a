#include "codegen/llvm/transposes.h"

#include <algorithm>
#include <bit>

#include "codegen/vectors.h"
#include "loops/definition.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen {

using llvm::Value;
using loops::Assign;
using loops::Function;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr int64_t kLeastSide = 4, kMostSide = 16;
constexpr int64_t kMostOperations = 8;  // of the body, which is unrolled as often as a square has rows

// Nothing where some may only be computed where a condition holds.
std::optional<int64_t> count_operations(const Scalar& value) {
  if (value.kind() != Scalar::Kind::Apply)
    return 0;
  if (value.function() == Function::Select || value.function() == Function::Require)
    return std::nullopt;
  int64_t operations = 1;
  for (const Scalar& operand : value.operands()) {
    const std::optional<int64_t> own = count_operations(operand);
    if (!own)
      return std::nullopt;
    operations += *own;
  }
  return operations;
}

bool has_whole_squares(const Loop& loop, int64_t side) {
  return loop.step == 1 && loops::iterations_of(loop).constant().value_or(side) >= side;
}

bool depends_on(const Dim& dim, const std::string& variable) {
  return loops::mentions(Scalar::index(dim), variable);
}

// Whether an index, or an offset, of two iterations in different rows and lanes is never the same.
bool tells_apart(const Dim& index, const Loop& rows, const Loop& lanes) {
  const std::optional<Dim> by_row = slope_of(index, rows.variable), by_lane = slope_of(index, lanes.variable);
  const std::optional<int64_t> row = by_row ? by_row->constant() : std::nullopt,
                               lane = by_lane ? by_lane->constant() : std::nullopt;
  const auto exceeds = [](int64_t step, int64_t other, const Loop& loop) {
    const std::optional<int64_t> count = loops::iterations_of(loop).constant();
    return step != 0 && (other == 0 || (count && std::abs(step) / std::abs(other) >= *count));
  };
  return row && lane && (exceeds(*lane, *row, rows) || exceeds(*row, *lane, lanes));
}

// Rows of a square as its columns: each step interleaves rows of one half with those of the other.
std::vector<Value*> transpose(llvm::IRBuilderBase& builder, std::vector<Value*> rows) {
  const size_t side = rows.size(), half = side / 2;
  std::vector<int> low(side), high(side);
  for (size_t i = 0; i < half; ++i)
    for (size_t row = 0; row < 2; ++row) {
      low[2 * i + row] = static_cast<int>(i + row * side);
      high[2 * i + row] = static_cast<int>(half + i + row * side);
    }
  for (size_t step = 1; step < side; step *= 2) {
    std::vector<Value*> next;
    for (size_t i = 0; i < half; ++i)
      for (const std::vector<int>& which : {low, high})
        next.push_back(builder.CreateShuffleVector(rows[i], rows[i + half], which));
    rows = std::move(next);
  }
  return rows;
}

}  // namespace

std::optional<TransposedNest> TransposeEmitter::find_transposed(const Loop& loop) const {
  const Loop* inner = loop.body.size() == 1 ? std::get_if<Loop>(&loop.body.front()) : nullptr;
  if (loop.mark != Mark::Serial || inner == nullptr || inner->mark != Mark::Vector || lanes_ ||
      mask_ != nullptr || depends_on(inner->begin, loop.variable) || depends_on(inner->end, loop.variable))
    return std::nullopt;
  TransposedNest nest{.along = loop, .lanes = *inner, .loads = {}, .side = 0};
  int64_t operations = 0;
  std::set<std::string> written;
  for (const Statement& statement : inner->body) {
    const auto* assign = std::get_if<Assign>(&statement);
    if (assign == nullptr || !assign->combine.empty())
      return std::nullopt;
    for (const loops::Place& place : assign->places)
      if (!written.insert(place.buffer).second || !is_apart(place, loop, *inner))
        return std::nullopt;
    for (const Scalar& value : assign->values) {
      const std::optional<int64_t> own = count_operations(value);
      if (!own)
        return std::nullopt;
      operations += *own;
    }
  }
  nest.side = std::min(kMostSide, lanes_for(*inner, target_));
  if (operations > kMostOperations || nest.side < kLeastSide ||
      !std::has_single_bit(static_cast<uint64_t>(nest.side)) || !has_whole_squares(loop, nest.side) ||
      !has_whole_squares(*inner, nest.side) || !find_folded(*inner).empty())
    return std::nullopt;
  bool reads_written = false;
  for (const Statement& statement : inner->body)
    for (const Scalar& value : std::get<Assign>(statement).values)
      loops::for_each_load(value, [&](const Scalar& load) {
        reads_written |= written.contains(load.name());
        const Storage& storage = storage_.at(load.name());
        const std::optional<Dim> whole = whole_offset(storage, load.operands());
        const auto slope = [&](const Loop& of) {
          return whole ? slope_of(*whole, of.variable).value_or(Dim()).constant() : std::nullopt;
        };
        if (slope(loop) == 1 && std::abs(slope(*inner).value_or(0)) > 1 &&
            std::ranges::find(nest.loads, load) == nest.loads.end())
          nest.loads.push_back(load);
      });
  return reads_written || nest.loads.empty() ? std::nullopt : std::optional(nest);
}

bool TransposeEmitter::is_apart(const loops::Place& place, const Loop& rows, const Loop& lanes) const {
  const std::optional<Dim> whole = whole_offset(storage_.at(place.buffer), place.at);
  return (whole && tells_apart(*whole, rows, lanes)) || std::ranges::any_of(place.at, [&](const Scalar& at) {
           return at.kind() == Scalar::Kind::Index && tells_apart(at.index(), rows, lanes);
         });
}

bool TransposeEmitter::has_whole_squares_alone(const Loop& loop, int64_t side) {
  return loops::iterations_of(loop).constant().value_or(1) % side == 0;
}

Value* TransposeEmitter::run_squares(const TransposedNest& nest, const std::function<void()>& run,
                                     const std::function<void(Value* begin, Value* end)>& run_rest) {
  const Loop &along = nest.along, &lanes = nest.lanes;
  Value *begin = indices_.value(along.begin), *end = indices_.value(along.end);
  return count(begin, end, nest.side, nest.side, [&](Value* first) {
    Value *lane_begin = indices_.value(lanes.begin), *lane_end = indices_.value(lanes.end);
    Value* rest = count(lane_begin, lane_end, nest.side, nest.side, [&](Value* first_lane) {
      lanes_ = Lanes{lanes.variable, nest.side};
      indices_.set(along.variable, first);
      indices_.set(lanes.variable, first_lane, nest.side);
      for (const Scalar& load : nest.loads)
        columns_.push_back({load, load_columns(load, nest.side)});
      for (column_ = 0; column_ < nest.side; ++column_) {
        indices_.set(along.variable,
                     builder_.CreateAdd(first, builder_.getInt64(static_cast<uint64_t>(column_))));
        run();
      }
      columns_.clear();
      lanes_.reset();
    });
    if (!has_whole_squares_alone(lanes, nest.side))
      count(first, builder_.CreateAdd(first, builder_.getInt64(static_cast<uint64_t>(nest.side))), 1, 1,
            [&](Value* each) {
              indices_.set(along.variable, each);
              run_rest(rest, lane_end);
            });
  });
}

std::vector<Value*> TransposeEmitter::load_columns(const Scalar& load, int64_t side) {
  const Storage& storage = storage_.at(load.name());
  const Offset offset = offset_of(storage, load.operands());
  std::vector<Value*> rows;
  for (int64_t row = 0; row < side; ++row) {
    Value* from =
        builder_.CreateAdd(offset.first, builder_.getInt64(static_cast<uint64_t>(row * *offset.step)));
    llvm::Instruction* read = builder_.CreateAlignedLoad(stored_type(context_, storage.dtype, side),
                                                         address(storage, from), alignment(storage.dtype));
    mark(read, storage);
    rows.push_back(read);
  }
  return transpose(builder_, std::move(rows));
}

}  // namespace tenon::codegen
