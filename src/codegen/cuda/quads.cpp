#include "codegen/cuda/quads.h"

#include <algorithm>
#include <set>

#include "loops/contraction.h"
#include "loops/definition.h"
#include "loops/uses.h"
#include "target/gpu.h"

namespace tenon::codegen::cuda {

using loops::Access;
using loops::Buffer;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

constexpr int64_t kRowsOfFragment = 16, kRowsApart = 8, kColumnsOfFragment = 8;

// A use within a thread loop.
struct QuadUse {
  Place place;
  Access access;
  bool is_certain;  // whatever the thread, and whatever it chooses
  const Loop* threads;
  std::vector<const Loop*> loops;  // within that, the innermost last
  const Loop* tile;                // of products, if it is their first factor
};

class UseFinder {
 public:
  void visit(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<loops::Local>(&statement);
          local != nullptr && local->buffer.space == Space::Shared)
        buffers.emplace(local->buffer.name, local->buffer);
      const auto* loop = std::get_if<Loop>(&statement);
      const std::vector<Statement>* inner = body_of(statement);
      if (loop != nullptr && loop->mark == Mark::Thread) {
        threads_ = loop;
        visit_within(loop->body, {}, true, nullptr);
      } else if (inner != nullptr) {
        visit(*inner);
      } else {
        loops::for_each_use(statement, [&](const loops::Use& use) { by_all.insert(use.place.buffer); });
      }
    }
  }

  std::map<std::string, Buffer> buffers;
  std::map<std::string, std::vector<QuadUse>> uses;
  std::set<std::string> by_all;  // that statements use which all threads run alike

 private:
  void visit_within(const std::vector<Statement>& body, const std::vector<const Loop*>& around,
                    bool is_certain, const Loop* tile) {
    const auto varies = [&](const Dim& dim) { return dim.mentions(threads_->variable); };
    for (const Statement& statement : body) {
      if (const auto* loop = std::get_if<Loop>(&statement)) {
        std::vector<const Loop*> loops = around;
        loops.push_back(loop);
        const bool runs_alike =
            loops::iterations_of(*loop) == Dim(1) || (!varies(loop->begin) && !varies(loop->end));
        visit_within(loop->body, loops, is_certain && runs_alike, loop->mark == Mark::Tile ? loop : tile);
      } else if (const auto* guard = std::get_if<loops::Guard>(&statement)) {
        visit_within(guard->body, around, is_certain && std::ranges::none_of(guard->conditions, varies),
                     tile);
      } else {
        const auto* assign = std::get_if<loops::Assign>(&statement);
        const std::string first = tile == nullptr || assign == nullptr ? "" : first_factor(*assign);
        loops::for_each_use(statement, [&](const loops::Use& use) {
          const bool is_factor = !first.empty() && use.place.buffer == first && use.access == Access::Read;
          uses[use.place.buffer].push_back({.place = use.place,
                                            .access = use.access,
                                            .is_certain = is_certain && !use.chosen,
                                            .threads = threads_,
                                            .loops = around,
                                            .tile = is_factor ? tile : nullptr});
        });
      }
    }
  }

  // The buffer whose elements are multiplied by others; empty where it is no such product.
  static std::string first_factor(const loops::Assign& assign) {
    const std::optional<loops::Product> product = loops::match_product(assign.values.front());
    if (!product || !product->multiplies() || product->lhs.kind() != Scalar::Kind::Apply ||
        product->lhs.function() != loops::Function::Cast)
      return "";
    const Scalar& factor = product->lhs.operands().front();
    bool is_read_again = false;
    loops::for_each_load(product->rhs, [&](const Scalar& load) {
      is_read_again = is_read_again || (factor.kind() == Scalar::Kind::Load && load.name() == factor.name());
    });
    return factor.kind() == Scalar::Kind::Load && !is_read_again ? factor.name() : "";
  }

  const Loop* threads_ = nullptr;
};

class QuadMatcher {
 public:
  QuadMatcher(const Buffer& buffer, const std::vector<QuadUse>& uses, int64_t threads)
      : buffer_(buffer), uses_(uses), threads_(threads) {}

  std::optional<QuadBuffer> match() {
    if (buffer_.sizes.size() != 2 || !are_uses_of_threads())
      return std::nullopt;
    const auto write = std::ranges::find(uses_, Access::Write, &QuadUse::access);
    if (write == uses_.end() || !find_rows(*write) || !have_own_rows())
      return std::nullopt;
    const bool is_factor = std::ranges::any_of(uses_, [](const QuadUse& use) { return use.tile != nullptr; });
    if (is_factor ? !are_fragments(*write) : !are_exchanged())
      return std::nullopt;
    return found_;
  }

 private:
  Dim thread() const { return Dim::symbol(uses_.front().threads->variable); }

  bool are_uses_of_threads() const {
    return std::ranges::all_of(uses_, [&](const QuadUse& use) {
      return use.access != Access::Combine && use.is_certain && use.threads->begin == Dim(0) &&
             use.threads->step == 1 && use.threads->end == Dim(threads_) &&
             use.threads->variable == uses_.front().threads->variable &&
             std::ranges::all_of(use.place.at,
                                 [](const Scalar& index) { return index.kind() == Scalar::Kind::Index; }) &&
             use.place.at.front() == uses_.front().place.at.front();
    });
  }

  // The loops that the row is one of, which are the same for all uses.
  bool find_rows(const QuadUse& write) {
    row_ = write.place.at.front().index();
    for (const Loop* loop : write.loops)
      if (row_.mentions(loop->variable)) {
        const std::optional<int64_t> count = loops::iterations_of(*loop).constant();
        if (!count || loop->begin != Dim(0) || loop->step != 1)
          return false;
        found_.rows.emplace_back(loop->variable, *count);
      }
    return std::ranges::all_of(uses_, [&](const QuadUse& use) {
      return std::ranges::all_of(found_.rows, [&](const auto& row) {
        return std::ranges::any_of(use.loops, [&](const Loop* loop) {
          return loop->variable == row.first && loop->begin == Dim(0) && loop->step == 1 &&
                 loop->end == Dim(row.second);
        });
      });
    });
  }

  // Each row is one of one quad, whose threads agree which it is.
  bool have_own_rows() const {
    std::vector<std::map<std::string, int64_t>> all = {{}};
    for (const auto& [variable, count] : found_.rows) {
      std::vector<std::map<std::string, int64_t>> longer;
      for (const auto& each : all)
        for (int64_t value = 0; value < count; ++value) {
          longer.push_back(each);
          longer.back().emplace(variable, value);
        }
      all = std::move(longer);
    }
    std::set<int64_t> rows;
    for (auto& at : all)
      for (int64_t quad = 0; quad < threads_ / kThreadsOfQuad; ++quad) {
        std::optional<int64_t> row;
        for (int64_t i = 0; i < kThreadsOfQuad; ++i) {
          at[uses_.front().threads->variable] = quad * kThreadsOfQuad + i;
          const std::optional<int64_t> own = row_.evaluate(at);
          if (!own || (row && own != row))
            return false;
          row = own;
        }
        if (!rows.insert(*row).second)
          return false;
      }
    return true;
  }

  // Each thread writes the element of its number, and all read any.
  bool are_exchanged() const {
    return buffer_.dtype == DType::F32 && buffer_.sizes[1] == Dim(kThreadsOfQuad) &&
           std::ranges::all_of(uses_, [&](const QuadUse& use) {
             const Dim& column = use.place.at[1].index();
             return use.access == Access::Write ? column == mod(thread(), kThreadsOfQuad)
                                                : !column.mentions(use.threads->variable);
           });
  }

  // Two columns of every fragment, of rows that are 8 apart.
  bool are_fragments(const QuadUse& write) {
    if ((buffer_.dtype != DType::F16 && buffer_.dtype != DType::BF16) || found_.rows.size() != 2 ||
        found_.rows[1].second != 2)
      return false;
    const Dim first = row_.substitute({{found_.rows[0].first, 0}, {found_.rows[1].first, 0}});
    if (row_ != first + Dim::symbol(found_.rows[0].first) * kRowsOfFragment +
                    Dim::symbol(found_.rows[1].first) * kRowsApart)
      return false;
    const auto lane_row = [&](int64_t lane) {
      return first.evaluate({{uses_.front().threads->variable, lane}});
    };
    for (int64_t lane = 0; lane < kWarpThreads; ++lane)
      if (lane_row(lane) != *lane_row(0) + lane / kThreadsOfQuad)
        return false;
    for (const Loop* fragment : write.loops)
      for (const Loop* of_two : write.loops)
        if (is_column(write, *fragment, *of_two)) {
          found_.fragment = fragment->variable;
          found_.of_two = of_two->variable;
          found_.fragments = *fragment->end.constant();
        }
    for (const QuadUse& use : uses_)
      if (use.tile != nullptr)
        found_.products.insert(use.tile);
    return found_.is_factor() && std::ranges::all_of(uses_, [&](const QuadUse& use) {
             return use.access == Access::Write
                        ? use.place.at[1] == write.place.at[1]
                        : use.tile != nullptr && use.place.at[1].index() == Dim::symbol(use.tile->variable) &&
                              use.tile->begin == Dim(0) &&
                              use.tile->end == Dim(found_.fragments * kColumnsOfFragment);
           });
  }
  bool is_column(const QuadUse& write, const Loop& fragment, const Loop& of_two) const {
    return &fragment != &of_two && fragment.begin == Dim(0) && fragment.end.is_constant() &&
           of_two.begin == Dim(0) && of_two.end == Dim(2) &&
           write.place.at[1].index() == Dim::symbol(fragment.variable) * kColumnsOfFragment +
                                            mod(thread(), kThreadsOfQuad) * 2 + Dim::symbol(of_two.variable);
  }

  const Buffer& buffer_;
  const std::vector<QuadUse>& uses_;
  const int64_t threads_;
  Dim row_ = 0;
  QuadBuffer found_;
};

}  // namespace

std::map<std::string, QuadBuffer> find_quad_buffers(const loops::ParallelRegion& region, int64_t threads) {
  if (threads % kWarpThreads != 0)
    return {};
  UseFinder finder;
  finder.visit(region.body);
  std::map<std::string, QuadBuffer> found;
  for (const auto& [name, buffer] : finder.buffers)
    if (const auto uses = finder.uses.find(name); uses != finder.uses.end() && !finder.by_all.contains(name))
      if (std::optional<QuadBuffer> quad = QuadMatcher(buffer, uses->second, threads).match())
        found.emplace(name, std::move(*quad));
  return found;
}

}  // namespace tenon::codegen::cuda
