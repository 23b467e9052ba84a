// cache.cpp — a part of a buffer copied to where it is read.
#include <algorithm>

#include "loops/attempt.h"
#include "loops/isl.h"
#include "loops/runs.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

// An element that each iteration of a loop reads.
struct Read {
  Run run;
  size_t outer;  // how many of the loops around it are the loop itself, and those around that
  Place place;
  bool chosen;  // by a select

  std::vector<Loop> inner_loops() const {
    std::vector<Loop> loops;
    for (size_t i = outer; i < run.around.size(); ++i)
      loops.push_back(with_body(*run.around[i].loop, {}));
    return loops;
  }
};

// All reads of a buffer within a loop; declined where it does more than read.
std::vector<Read> reads_within(const Kernel& kernel, const std::string& buffer, const std::string& loop) {
  std::vector<Read> reads;
  for (const Run& run : find_runs(kernel)) {
    const auto around =
        std::ranges::find_if(run.around, [&](const Around& each) { return each.loop->variable == loop; });
    if (around == run.around.end())
      continue;
    const auto outer = static_cast<size_t>(around - run.around.begin()) + 1;
    for_each_use(*run.statement, [&](const Use& use) {
      if (use.place.buffer != buffer)
        return;
      if (const auto* call = std::get_if<Call>(run.statement))
        throw declined("{} is handed to {}", buffer, call->routine);
      if (std::holds_alternative<Copy>(*run.statement))
        throw declined("{} is copied", buffer);
      if (use.access != Access::Read)
        throw declined("{} is written in loop {}", buffer, loop);
      if (const auto it = run.in_sight.find(buffer); it != run.in_sight.end() && it->second >= outer)
        throw declined("{} is declared in loop {}", buffer, loop);
      reads.push_back({run, outer, use.place, use.chosen});
    });
  }
  return reads;
}

const Dim& index_of(const Scalar& scalar, const std::string& buffer) {
  if (scalar.kind() != Scalar::Kind::Index)
    throw declined("an index of {} depends on data", buffer);
  return scalar.index();
}

// The part of a buffer that some reads touch: from where, and how many elements along each dimension.
struct Part {
  std::vector<Dim> from, sizes;
};

Part part_of(const Buffer& buffer, const std::vector<Read>& reads) {
  Part part;
  for (size_t axis = 0; axis < buffer.sizes.size(); ++axis) {
    std::optional<Dim> from, to;
    for (const Read& read : reads) {
      const Dim& index = index_of(read.place.at[axis], buffer.name);
      const Dim low = least(index, read.inner_loops()), high = largest(index, read.inner_loops());
      if (from && (!(low - *from).is_constant() || !(high - *to).is_constant()))
        throw declined("{} is read from {} and from {}, which may lie far apart", buffer.name, *from, low);
      from = !from || *(low - *from).constant() < 0 ? low : *from;
      to = !to || *(high - *to).constant() > 0 ? high : *to;
    }
    part.from.push_back(*from);
    part.sizes.push_back(max(*to - *from + 1, 0));
  }
  return part;
}

// Loops that copy a part of a buffer into a smaller one.
std::vector<Statement> copying(const Kernel& kernel, const Buffer& from, const Buffer& to, const Part& part) {
  std::vector<Scalar> read, written;
  std::vector<Loop> loops;
  for (size_t axis = 0; axis < part.from.size(); ++axis) {
    Loop loop{.variable = fresh_name(kernel, fmt::format("{}_{}", to.name, axis)),
              .end = part.sizes[axis],
              .body = {}};
    const Dim i = Dim::symbol(loop.variable);
    written.push_back(Scalar::index(i));
    read.push_back(Scalar::index(part.from[axis] + i));
    loops.push_back(std::move(loop));
  }
  std::vector<Statement> body;
  body.emplace_back(Assign{
      .places = {{to.name, written}}, .combine = {}, .values = {Scalar::load(from.name, from.dtype, read)}});
  return nested(loops, std::move(body));
}

// Which elements each iteration of a loop reads, as relations from the iterations.
class Elements {
 public:
  explicit Elements(const Kernel& kernel) : words_(kernel) {}

  // Those that are read for certain.
  Relation read(const std::vector<Read>& reads) {
    std::vector<std::string> pieces;
    for (const Read& read : reads)
      if (!read.chosen)
        pieces.push_back(piece(read));
    return built(pieces);
  }
  // All that the buffer has.
  Relation whole(const Buffer& buffer, size_t outer) {
    std::vector<std::string> iteration, at, within = {"0 = 0"};
    for (size_t i = 0; i < outer; ++i)
      iteration.push_back(fmt::format("t{}", i));
    for (size_t axis = 0; axis < buffer.sizes.size(); ++axis) {
      at.push_back(fmt::format("e{}", axis));
      within.push_back(fmt::format("0 <= e{} < {}", axis, words_.expression(buffer.sizes[axis])));
    }
    return built({fmt::format("[L[{}] -> I[]] -> B[{}] : {}", fmt::join(iteration, ", "), fmt::join(at, ", "),
                              fmt::join(within, " and "))});
  }

 private:
  std::string piece(const Read& read) {
    std::vector<std::string> outer, inner, at;
    for (size_t i = 0; i < read.run.around.size(); ++i)
      (i < read.outer ? outer : inner).push_back(words_.name(read.run.around[i].loop->variable));
    for (const Scalar& index : read.place.at)
      at.push_back(words_.expression(index.index()));
    return fmt::format("[L[{}] -> I[{}]] -> B[{}] : {}", fmt::join(outer, ", "), fmt::join(inner, ", "),
                       fmt::join(at, ", "), words_.domain(read.run));
  }
  Relation built(const std::vector<std::string>& pieces) {
    return Relation(context_, words_.relation(pieces)).of_first();
  }

  Context context_;
  Words words_;
};

// What is copied must have been read before as well, or else be in an input: other elements may lie outside
// their buffer, hold nothing yet, or be written at the same time.
void check_copied(const Kernel& kernel, const Kernel& result, const Buffer& buffer, const std::string& loop) {
  const std::vector<Read> reads = reads_within(kernel, buffer.name, loop),
                          copied = reads_within(result, buffer.name, loop);
  try {
    Elements elements(kernel);
    Relation allowed = elements.read(reads);
    if (std::ranges::find(kernel.inputs, buffer.name, &Buffer::name) != kernel.inputs.end())
      allowed = allowed | elements.whole(buffer, reads.front().outer);
    if (!(elements.read(copied) - allowed).empty())
      throw declined("elements of {} would be copied that loop {} may not read", buffer.name, loop);
  } catch (const Undecided& undecided) {
    throw declined("whether all that would be copied is read cannot be decided: {}", undecided.reason);
  }
}

}  // namespace

Transformed cache(const Kernel& kernel, const std::string& buffer, const std::string& loop) {
  return attempt(kernel, [&](Kernel& result) {
    const Buffer whole = find_buffer(result, buffer);
    Loop& around = find_loop(result, loop).loop();
    const std::vector<Read> reads = reads_within(result, buffer, loop);
    if (reads.empty())
      throw declined("loop {} does not read {}", loop, buffer);
    const Part part = part_of(whole, reads);
    const Buffer copy{.name = fresh_name(result, buffer + "_c"),
                      .dtype = whole.dtype,
                      .sizes = part.sizes,
                      .space = Space::Private};
    change_places(around.body, [&](Place place) {
      if (place.buffer != buffer)
        return place;
      Place shifted{copy.name, {}};
      for (size_t axis = 0; axis < place.at.size(); ++axis)
        shifted.at.push_back(Scalar::index(place.at[axis].index() - part.from[axis]));
      return shifted;
    });
    std::vector<Statement> before = copying(result, whole, copy, part);
    before.insert(before.begin(), Local{copy});
    around.body.insert(around.body.begin(), before.begin(), before.end());
    check_copied(kernel, result, whole, loop);
  });
}

}  // namespace tenon::loops
