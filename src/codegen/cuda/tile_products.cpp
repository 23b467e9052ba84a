#include "codegen/cuda/tile_products.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/accesses.h"
#include "ir/dim_expression.h"
#include "loops/contraction.h"
#include "loops/parallel_regions.h"
#include "target/gpu.h"

namespace tenon::codegen::cuda {

using loops::Assign;
using loops::Buffer;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

constexpr int64_t kRowOfMatrix = 8;  // elements, which are loaded together
constexpr int64_t kMostFragments = 32;

using Bindings = std::map<std::string, int64_t>;

// The terms of a dim by what they speak of: the thread, k, the loops within that of k, or none of these.
struct Parts {
  Dim of_thread = 0, of_loops = 0, rest = 0;
  int64_t of_k = 0;
};

std::vector<Bindings> all_values(const std::vector<const Loop*>& loops) {
  std::vector<Bindings> all = {{}};
  for (const Loop* loop : loops) {
    std::vector<Bindings> longer;
    for (const Bindings& each : all)
      for (int64_t value = *loop->begin.constant(); value < *loop->end.constant(); value += loop->step) {
        longer.push_back(each);
        longer.back().emplace(loop->variable, value);
      }
    all = std::move(longer);
  }
  return all;
}

Bindings joined(Bindings a, const Bindings& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// How far fragments are from each other.
struct Steps {
  int64_t step, per_panel, panel_step;
};

// Which iterations of the loops are a fragment: those of its first and second half, or column.
struct Fragment {
  Bindings at[2];
  int64_t offset;
};

class TileMatcher {
 public:
  TileMatcher(const Loop& threads, const Loop& tile, const FindBuffer& find_buffer,
              const std::map<std::string, QuadBuffer>& quads)
      : threads_(threads), tile_(tile), find_buffer_(find_buffer), quads_(quads) {}

  std::optional<TileProduct> match() {
    const Assign* assign = find_assign(tile_.body);
    if (assign == nullptr || assign->combine != "+" || assign->places.size() != 1)
      return std::nullopt;
    const std::optional<loops::Product> product = loops::match_product(assign->values.front());
    if (!product || !product->multiplies())
      return std::nullopt;
    if (std::optional<TileProduct> found = match(*assign, product->lhs, product->rhs))
      return found;
    return match(*assign, product->rhs, product->lhs);
  }

 private:
  // The only one within loops of constant lengths; those of one iteration name a place.
  const Assign* find_assign(const std::vector<Statement>& body) {
    if (body.size() != 1)
      return nullptr;
    const auto* loop = std::get_if<Loop>(&body.front());
    if (loop == nullptr)
      return std::get_if<Assign>(&body.front());
    if (loop->mark == Mark::Tile)
      return nullptr;
    if (loops::iterations_of(*loop) == Dim(1))
      named_.insert_or_assign(loop->variable, loop->begin.substitute(named_));
    else if (!loop->begin.is_constant() || !loop->end.is_constant())
      return nullptr;
    else
      loops_.push_back(loop);
    return find_assign(loop->body);
  }

  std::optional<TileProduct> match(const Assign& assign, const Scalar& lhs, const Scalar& rhs) {
    TileProduct product{
        .k = tile_.variable, .dtype = {}, .a = {}, .b = {}, .sums = {}, .is_of_warpgroups = false};
    std::vector<Fragment> rows, columns;
    if (!match_operand(lhs, product.a, rows, /*is_first=*/true) ||
        !match_operand(rhs, product.b, columns, /*is_first=*/false))
      return std::nullopt;
    product.dtype = find_buffer_(product.a.buffer)->dtype;
    const std::optional<TileSums> sums = match_sums(assign.places.front(), rows, columns);
    if (!sums || find_buffer_(product.b.buffer)->dtype != product.dtype)
      return std::nullopt;
    product.sums = *sums;
    product.is_of_warpgroups = is_of_warpgroups(product);
    const bool has_panels =
        product.a.per_panel != product.a.fragments || product.b.per_panel != product.b.fragments;
    return product.is_of_warpgroups || !has_panels ? std::optional(product) : std::nullopt;
  }

  // Each warp of a group has 16 rows after those of the one before, and the same columns.
  bool is_of_warpgroups(const TileProduct& product) const {
    const TileSums& sums = product.sums;
    if (*threads_.end.constant() % kThreadsOfWarpgroup != 0 || product.a.fragments != 1 || sums.first != 0 ||
        sums.of_l != 1 || sums.of_h != 2 || (product.b.fragments > 1 && sums.of_j != 4))
      return false;
    return has_rows_of_group(product.a, 2 * kRowOfMatrix * product.a.stride) &&
           has_rows_of_group(product.b, 0) && (quads_.contains(product.a.buffer) || has_panels(product.a)) &&
           has_panels(product.b);
  }
  bool has_panels(const TileOperand& operand) const {
    constexpr int64_t kSwizzled = kRowOfMatrix * kRowOfPanel;
    const Dim at_0 = operand.first.substitute({{tile_.variable, 0}});
    if ((operand.is_along_k() ? operand.stride : operand.stride_of_k) != kRowOfPanel)
      return false;
    for (int64_t thread = 0; thread < *threads_.end.constant(); thread += kThreadsOfWarpgroup)
      if (mod(at_0.substitute({{threads_.variable, thread}}), kSwizzled) != Dim(0))
        return false;
    return true;
  }
  bool has_rows_of_group(const TileOperand& operand, int64_t of_warp) const {
    const Dim at_0 = operand.first.substitute({{tile_.variable, 0}});
    for (int64_t thread = 0; thread < *threads_.end.constant(); thread += kWarpThreads) {
      const auto at = [&](int64_t number) { return at_0.substitute({{threads_.variable, number}}); };
      const int64_t group = thread / kThreadsOfWarpgroup * kThreadsOfWarpgroup;
      if (at(thread) - at(group) != Dim((thread - group) / kWarpThreads * of_warp))
        return false;
    }
    return true;
  }

  std::optional<Parts> parts_of(const Dim& offset) const {
    Parts parts;
    for (const DimTerm& term : terms_of(offset.substitute(named_))) {
      const Dim dim = DimExpression::sum({term});
      const bool by_thread = dim.mentions(threads_.variable), by_k = dim.mentions(tile_.variable);
      const bool by_loops =
          std::ranges::any_of(loops_, [&](const Loop* loop) { return dim.mentions(loop->variable); });
      if (by_thread + by_k + by_loops > 1)
        return std::nullopt;
      if (by_k) {
        if (term.factors.size() != 1 || term.factors.front()->function != DimFunction::Symbol)
          return std::nullopt;
        parts.of_k = term.coefficient;
      } else {
        Dim& part = by_thread ? parts.of_thread : by_loops ? parts.of_loops : parts.rest;
        part = part + dim;
      }
    }
    return parts;
  }

  // f32(a[…]) of a narrow float in shared memory.
  const Buffer* shared_buffer_of(const Scalar& factor) const {
    if (factor.kind() != Scalar::Kind::Apply || factor.function() != loops::Function::Cast ||
        factor.dtype() != DType::F32 || factor.operands().front().kind() != Scalar::Kind::Load)
      return nullptr;
    const Buffer* buffer = find_buffer_(factor.operands().front().name());
    const bool is_narrow = buffer != nullptr && (buffer->dtype == DType::BF16 || buffer->dtype == DType::F16);
    return is_narrow && buffer->space == Space::Shared ? buffer : nullptr;
  }

  bool match_operand(const Scalar& factor, TileOperand& operand, std::vector<Fragment>& fragments,
                     bool is_first) const {
    const Buffer* buffer = shared_buffer_of(factor);
    if (buffer == nullptr)
      return false;
    const std::optional<Dim> offset = offset_of(*buffer, factor.operands().front().operands());
    const std::optional<Parts> parts = offset ? parts_of(*offset) : std::nullopt;
    if (!parts)
      return false;
    const std::optional<int64_t> stride = stride_over_lanes(parts->of_thread, is_first);
    if (!stride)
      return false;
    fragments = fragments_of(parts->of_loops, (is_first ? kRowOfMatrix : 1) * *stride);
    const std::optional<Steps> steps = steps_of(fragments);
    if (!steps)
      return false;
    const Dim first = parts->rest + parts->of_thread.substitute({{threads_.variable, 0}}) +
                      fragments.front().offset + parts->of_k * tile_.begin;
    operand = {.buffer = buffer->name,
               .first = parts->rest + parts->of_thread + fragments.front().offset +
                        parts->of_k * Dim::symbol(tile_.variable),
               .stride = *stride,
               .stride_of_k = parts->of_k,
               .fragments = static_cast<int64_t>(fragments.size()),
               .step = steps->step,
               .per_panel = steps->per_panel,
               .panel_step = steps->panel_step};
    const int64_t across = operand.is_along_k() ? operand.stride : operand.stride_of_k;
    return (operand.is_along_k() || operand.stride == 1) && across > 0 && across % kRowOfMatrix == 0 &&
           steps->step % kRowOfMatrix == 0 && steps->panel_step % kRowOfMatrix == 0 &&
           mod(first, kRowOfMatrix) == Dim(0) && begins_rows(parts->of_thread);
  }

  // Rows are those of the lane over 4, columns twice the lane of 4.
  std::optional<int64_t> stride_over_lanes(const Dim& of_thread, bool is_first) const {
    const auto at = [&](int64_t thread) { return of_thread.evaluate({{threads_.variable, thread}}); };
    const std::optional<int64_t> first = at(0), next = at(is_first ? 4 : 1);
    if (!first || !next || *next <= *first || (!is_first && (*next - *first) % 2 != 0))
      return std::nullopt;
    const int64_t stride = is_first ? *next - *first : (*next - *first) / 2;
    for (int64_t thread = 0; thread < *threads_.end.constant(); ++thread) {
      const int64_t lane = thread % kWarpThreads, across = is_first ? lane / 4 : 2 * (lane % 4);
      if (at(thread) != *at(thread - lane) + across * stride)
        return std::nullopt;
    }
    return stride;
  }

  bool begins_rows(const Dim& of_thread) const {
    for (int64_t thread = 0; thread < *threads_.end.constant(); thread += kWarpThreads)
      if (*of_thread.evaluate({{threads_.variable, thread}}) % kRowOfMatrix != 0)
        return false;
    return true;
  }

  // Two iterations of the loops each, so far apart; none where that is not so.
  std::vector<Fragment> fragments_of(const Dim& of_loops, int64_t apart) const {
    std::vector<const Loop*> mentioned;
    for (const Loop* loop : loops_)
      if (of_loops.mentions(loop->variable))
        mentioned.push_back(loop);
    std::map<int64_t, Bindings> by_offset;
    for (const Bindings& each : all_values(mentioned)) {
      const std::optional<int64_t> offset = of_loops.evaluate(each);
      if (!offset || !by_offset.emplace(*offset, each).second)
        return {};
    }
    std::vector<Fragment> fragments;
    while (!by_offset.empty()) {
      const auto first = by_offset.extract(by_offset.begin());
      const auto second = by_offset.extract(first.key() + apart);
      if (second.empty())
        return {};
      fragments.push_back({.at = {first.mapped(), second.mapped()}, .offset = first.key()});
    }
    return fragments;
  }

  static std::optional<Steps> steps_of(const std::vector<Fragment>& fragments) {
    const auto count = static_cast<int64_t>(fragments.size());
    if (count == 0 || count > kMostFragments)
      return std::nullopt;
    const auto at = [&](int64_t i) { return fragments[static_cast<size_t>(i)].offset - fragments[0].offset; };
    Steps steps{.step = count == 1 ? 0 : at(1), .per_panel = 1, .panel_step = 0};
    while (steps.per_panel < count && at(steps.per_panel) == steps.per_panel * steps.step)
      ++steps.per_panel;
    if (steps.per_panel < count)
      steps.panel_step = at(steps.per_panel);
    for (int64_t i = 0; i < count; ++i)
      if (at(i) != i / steps.per_panel * steps.panel_step + i % steps.per_panel * steps.step)
        return std::nullopt;
    return steps;
  }

  // Every sum is one of a row and a column: the loops of both have nothing in common, and are all there are.
  std::optional<TileSums> match_sums(const loops::Place& place, const std::vector<Fragment>& rows,
                                     const std::vector<Fragment>& columns) const {
    const Buffer* buffer = find_buffer_(place.buffer);
    if (buffer == nullptr || buffer->space != Space::Private || buffer->dtype != DType::F32 ||
        place.at.size() < 2 || place.at.front() != Scalar::index(Dim::symbol(threads_.variable)))
      return std::nullopt;
    const Bindings first = joined(rows.front().at[0], columns.front().at[0]);
    if (first.size() != loops_.size() ||
        first.size() != rows.front().at[0].size() + columns.front().at[0].size())
      return std::nullopt;
    Buffer of_thread = *buffer;
    of_thread.sizes.erase(of_thread.sizes.begin());
    const std::optional<Dim> symbolic = offset_of(of_thread, {place.at.begin() + 1, place.at.end()});
    if (!symbolic)
      return std::nullopt;
    const Dim offset = symbolic->substitute(named_);
    const auto at = [&](size_t i, size_t j, size_t h, size_t l) {
      return offset.evaluate(joined(rows[i].at[h], columns[j].at[l]));
    };
    if (!at(0, 0, 0, 0))
      return std::nullopt;
    const int64_t begin = *at(0, 0, 0, 0);
    TileSums sums{.buffer = place.buffer,
                  .first = begin,
                  .of_i = rows.size() == 1 ? 0 : *at(1, 0, 0, 0) - begin,
                  .of_j = columns.size() == 1 ? 0 : *at(0, 1, 0, 0) - begin,
                  .of_h = *at(0, 0, 1, 0) - begin,
                  .of_l = *at(0, 0, 0, 1) - begin};
    std::set<int64_t> all;
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < columns.size(); ++j)
        for (size_t h = 0; h < 2; ++h)
          for (size_t l = 0; l < 2; ++l) {
            const auto affine = static_cast<int64_t>(i) * sums.of_i + static_cast<int64_t>(j) * sums.of_j +
                                static_cast<int64_t>(h) * sums.of_h + static_cast<int64_t>(l) * sums.of_l;
            if (at(i, j, h, l) != begin + affine || !all.insert(affine).second)
              return std::nullopt;
          }
    return sums;
  }

  const Loop& threads_;
  const Loop& tile_;
  const FindBuffer& find_buffer_;
  const std::map<std::string, QuadBuffer>& quads_;
  std::vector<const Loop*> loops_;    // within that of k
  std::map<std::string, Dim> named_;  // variables of one value
};

bool is_tile_of_warps(const Loop& threads, const Loop& tile) {
  const std::optional<int64_t> count = loops::iterations_of(tile).constant();
  const std::optional<int64_t> thread_count = threads.end.constant();
  return tile.mark == Mark::Tile && tile.step == 1 && count && *count > 0 && *count % kTileK == 0 &&
         threads.begin == Dim(0) && threads.step == 1 && thread_count && *thread_count % kWarpThreads == 0;
}

void find_tiles(const std::vector<Statement>& body, const Loop& threads, const FindBuffer& find_buffer,
                const std::map<std::string, QuadBuffer>& quads, std::map<const Loop*, TileProduct>& found) {
  const auto varies = [&](const Dim& dim) { return dim.mentions(threads.variable); };
  for (const Statement& statement : body) {
    const auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr && is_tile_of_warps(threads, *loop)) {
      if (std::optional<TileProduct> product = TileMatcher(threads, *loop, find_buffer, quads).match())
        found.emplace(loop, std::move(*product));
    } else if (loop != nullptr ? !varies(loop->begin) && !varies(loop->end) : true) {
      const auto* guard = std::get_if<loops::Guard>(&statement);
      if (const auto* inner = body_of(statement);
          inner != nullptr && (guard == nullptr || std::ranges::none_of(guard->conditions, varies)))
        find_tiles(*inner, threads, find_buffer, quads, found);
    }
  }
}

}  // namespace

std::map<const Loop*, TileProduct> find_tile_products(const Loop& threads, const FindBuffer& find_buffer,
                                                      const std::map<std::string, QuadBuffer>& quads) {
  std::map<const Loop*, TileProduct> found;
  find_tiles(threads.body, threads, find_buffer, quads, found);
  return found;
}

}  // namespace tenon::codegen::cuda
