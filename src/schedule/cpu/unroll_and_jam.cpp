#include "schedule/cpu/unroll_and_jam.h"

#include <algorithm>

#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr const char* kBlockVariable = "block0";
constexpr int64_t kMostBlocks = 4;  // enough to hide the latency

class Interleaving {
 public:
  Interleaving(const Loop& blocks, const Context& context) : blocks_(blocks), context_(context) {}

  std::optional<Loop> run() {
    if (blocks_.mark != Mark::Parallel || !(blocks_.begin == Dim(0)) || blocks_.step != 1 ||
        !is_row(blocks_.body) || !choose_count())
      return std::nullopt;
    return make_loop(blocks_.variable, floor_div(blocks_.end, count_), Mark::Parallel,
                     interleaved(blocks_.body));
  }

 private:
  // Whether all that a block keeps is one row of lanes, in loops that are the same in every block.
  bool is_row(const std::vector<Statement>& body) {
    return std::ranges::all_of(body, [&](const Statement& statement) {
      if (const auto* local = std::get_if<Local>(&statement)) {
        locals_.emplace(local->buffer.name, local->buffer);
        return local->buffer.space == loops::Space::Private && local->buffer.sizes.size() == 1 &&
               local->buffer.sizes.front().is_constant();
      }
      const auto* loop = std::get_if<Loop>(&statement);
      if (loop == nullptr || mentions_block(loop->begin) || mentions_block(loop->end))
        return false;
      if (loop->mark == Mark::Vector)
        return std::ranges::all_of(
            loop->body, [](const Statement& each) { return std::holds_alternative<Assign>(each); });
      return loop->mark == Mark::Serial && is_row(loop->body);
    });
  }
  bool mentions_block(const Dim& dim) const {
    const std::vector<std::string> symbols = dim.symbols();
    return std::ranges::find(symbols, blocks_.variable) != symbols.end();
  }

  // As many as leave half of the registers, and keep the threads balanced.
  bool choose_count() {
    int64_t bytes = 0;
    for (const auto& [name, buffer] : locals_)
      bytes += *buffer.sizes.front().constant() * info(buffer.dtype).bytes;
    const int64_t blocks = blocks_.end.constant().value_or(0),
                  registers = std::max<int64_t>(bytes / context_.target.vector_bytes, 1);
    for (count_ = kMostBlocks; count_ > 1; --count_)
      if (!locals_.empty() && blocks > 0 && blocks % (count_ * context_.threads) == 0 &&
          count_ * registers <= context_.target.vector_registers / 2)
        return true;
    return false;
  }

  std::vector<Statement> interleaved(const std::vector<Statement>& body) const {
    std::vector<Statement> all;
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<Local>(&statement)) {
        Local several = *local;
        several.buffer.sizes.insert(several.buffer.sizes.begin(), Dim(count_));
        all.emplace_back(std::move(several));
        continue;
      }
      Loop loop = std::get<Loop>(statement);
      if (loop.mark == Mark::Serial)
        loop.body = interleaved(loop.body);
      else
        loop = make_loop(kBlockVariable, count_, Mark::Unrolled, as_list(of_block(loop)));
      all.emplace_back(std::move(loop));
    }
    return all;
  }

  // The statement of one of the jammed blocks.
  Statement of_block(Loop lanes) const {
    const Dim number = Dim::symbol(blocks_.variable) * count_ + Dim::symbol(kBlockVariable);
    for (Statement& statement : lanes.body) {
      auto& assign = std::get<Assign>(statement);
      for (Place& place : assign.places)
        if (locals_.contains(place.buffer))
          place.at.insert(place.at.begin(), block());
      for (Scalar& value : assign.values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          if (!locals_.contains(load.name()))
            return load;
          std::vector<Scalar> at = load.operands();
          at.insert(at.begin(), block());
          return Scalar::load(load.name(), load.dtype(), std::move(at));
        });
    }
    return loops::substitute(std::move(lanes), {{blocks_.variable, number}});
  }
  static Scalar block() { return Scalar::index(Dim::symbol(kBlockVariable)); }

  const Loop& blocks_;
  const Context& context_;
  std::map<std::string, loops::Buffer> locals_;
  int64_t count_ = 1;
};

}  // namespace

void unroll_and_jam(std::vector<Statement>& nest, const Context& context) {
  const auto* blocks = nest.size() == 1 ? std::get_if<Loop>(&nest.front()) : nullptr;
  if (blocks == nullptr)
    return;
  if (std::optional<Loop> interleaved = Interleaving(*blocks, context).run())
    nest = as_list(std::move(*interleaved));
}

}  // namespace tenon::schedule
