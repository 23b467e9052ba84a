#include "codegen/cuda/thread_loops.h"

#include <algorithm>
#include <bit>

#include "codegen/cuda/accesses.h"
#include "ir/dim_expression.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen::cuda {

using loops::Loop;
using loops::Statement;

namespace {

constexpr int64_t kMostTripsUnrolled = 16;
constexpr int64_t kTripsInFlight = 4;  // of a loop that is longer, or of dynamic length

const std::string kThread = " thread", kTrip = " trip";

bool has_loops(const std::vector<Statement>& body) {
  return std::ranges::any_of(body, [](const Statement& statement) {
    const std::vector<Statement>* inner = body_of(statement);
    return std::holds_alternative<Loop>(statement) || (inner != nullptr && has_loops(*inner));
  });
}

// What the loop counts unless it meets the end of something: 1024 where it ends at min(1024*b+1024, n), which
// is where n is not below 1024*b+1024.
struct UsualCount {
  int64_t iterations;
  Dim not_below, least;
};

std::optional<UsualCount> find_usual_count(const Dim& end, const Dim& begin) {
  const DimAtom* atom = get_atom(end);
  if (atom == nullptr || atom->function != DimFunction::Min)
    return std::nullopt;
  std::optional<UsualCount> usual;
  std::optional<Dim> others;
  for (const Dim& operand : atom->operands)
    if (const std::optional<int64_t> count = (operand - begin).constant(); count && !usual)
      usual = UsualCount{*count, {}, operand};
    else
      others = others ? min(*others, operand) : operand;
  if (!usual || !others)
    return std::nullopt;
  usual->not_below = *others;
  return usual;
}

std::optional<UsualCount> find_usual_count(const Loop& loop) {
  const std::optional<UsualCount> by_end = find_usual_count(loop.end, loop.begin);
  return by_end ? by_end : find_usual_count(loop.end - loop.begin, 0);
}

}  // namespace

void ThreadLoopText::run_with(const Loop& loop, const Dim& value) {
  const Range range = range_within(loop, value);
  const std::string& name = names_.of(loop.variable);
  const std::string declaration =
      fmt::format("const {} {} = {};", IndexText::type_of(range), name, indices_.text(value).text);
  indices_.set(loop.variable, {name}, range);
  Writer before = std::move(writer_);
  writer_ = before.same();
  run(loop.body);
  // Private buffers are indexed by trips and lanes.
  if (mentions_name(writer_.text(), name))
    before.write(declaration);
  before.append(writer_);
  writer_ = std::move(before);
}

Dim ThreadLoopText::first_of(const Loop& loop, int64_t vector, const Dim& trip) const {
  const Dim thread = team_.threads == 1 ? Dim(0) : Dim::symbol(kThread);
  return loop.begin + (trip * team_.threads + thread) * (vector * loop.step);
}

// No iteration comes after the last of the loop.
Range ThreadLoopText::range_within(const Loop& loop, const Dim& value) const {
  const Range own = indices_.range_of(value), end = indices_.range_of(loop.end);
  return {own.low, std::max(own.low, std::min(own.high, end.high - 1))};
}

void ThreadLoopText::run_threads(const Loop& loop, int64_t vector) {
  indices_.set(kThread, {"thread"}, {0, team_.threads - 1});
  const bool folds = !find_folds(loop).empty();
  if (folds) {
    // The partial results live as long as the loop.
    writer_.open();
    begin_folds(loop);
  }
  const int64_t per_trip = team_.threads * vector;
  if (const std::optional<int64_t> iterations = loops::iterations_of(loop).constant()) {
    run_constant(loop, *iterations, vector);
  } else if (const std::optional<UsualCount> usual = find_usual_count(loop);
             usual && usual->iterations % per_trip == 0 &&
             usual->iterations / per_trip <= kMostTripsUnrolled && loop.step == 1 && !has_loops(loop.body)) {
    writer_.open("if ({} >= {})", indices_.text(usual->not_below).at(Binding::Sum),
                 indices_.text(usual->least).at(Binding::Sum));
    run_constant(loop, usual->iterations, vector);
    writer_.otherwise();
    run_dynamic(loop, vector, 1);
    writer_.close();
  } else {
    run_dynamic(loop, vector, has_loops(loop.body) ? 1 : kTripsInFlight);
  }
  at_.reset();
  if (folds) {
    finish_folds(loop);
    writer_.close();
  }
}

// Trips of all threads, and one of some. Where there are not many, they are unrolled, so that their loads are
// in flight together, and elements of private buffers are in registers by number.
void ThreadLoopText::run_constant(const Loop& loop, int64_t iterations, int64_t vector) {
  const int64_t per_trip = team_.threads * vector, trips = iterations / per_trip,
                rest = iterations % per_trip;
  if (trips == 1) {
    writer_.open();
    run_vector(loop, vector, "0", first_of(loop, vector, 0));
    writer_.close();
  } else if (trips > 1) {
    const bool is_short = trips <= kMostTripsUnrolled || layouts_->spreads(loop);
    writer_.line("#pragma unroll{}", is_short               ? ""
                                     : has_loops(loop.body) ? " 1"
                                                            : fmt::format(" {}", kTripsInFlight));
    const std::string trip = writer_.open_loop("trip", "for (int {0} = 0; {0} < {1}; ++{0})", trips);
    indices_.set(kTrip, {trip}, {0, trips - 1});
    run_vector(loop, vector, trip, first_of(loop, vector, Dim::symbol(kTrip)));
    writer_.close();
  }
  if (rest == 0)
    return;
  const std::string trip = std::to_string(trips);
  const Dim first = first_of(loop, vector, trips),
            thread = team_.threads == 1 ? Dim(0) : Dim::symbol(kThread);
  if (const int64_t whole = rest / vector; whole > 0) {
    writer_.open("if ({} < {})", indices_.text(thread).text, whole);
    run_vector(loop, vector, trip, first);
    writer_.close();
  }
  if (rest % vector != 0) {
    writer_.open("if ({} == {})", indices_.text(thread).text, rest / vector);
    run_tail(loop, vector, trip, first);
    writer_.close();
  }
}

void ThreadLoopText::run_dynamic(const Loop& loop, int64_t vector, int64_t trips_in_flight) {
  const int64_t stride = team_.threads * vector * loop.step;
  // Where the next trip would begin must fit, too.
  const Range end = indices_.range_of(loop.end);
  const std::string_view type =
      IndexText::type_of(Range{0, end.high > INT64_MAX - stride ? INT64_MAX : end.high + stride});
  std::string end_text = indices_.text(loop.end).text;
  if (!loop.end.is_symbol() && !loop.end.is_constant()) {
    const std::string name = names_.fresh(names_.of(loop.variable) + "_end");
    writer_.line("const {} {} = {};", type, name, end_text);
    end_text = name;
  }
  writer_.line("#pragma unroll {}", trips_in_flight);
  const std::string first =
      writer_.open_loop(names_.of(loop.variable) + "_first", "for ({1} {0} = {2}; {0} < {3}; {0} += {4})",
                        type, indices_.text(first_of(loop, vector, 0)).text, end_text, stride);
  indices_.set(kTrip, {first}, {indices_.range_of(loop.begin).low, std::max<int64_t>(end.high - 1, 0)});
  const Dim value = Dim::symbol(kTrip);
  if (vector == 1) {
    run_vector(loop, vector, "", value);
  } else {
    writer_.open("if ({} + {} <= {})", first, vector, end_text);
    run_vector(loop, vector, "", value);
    writer_.otherwise();
    run_tail(loop, vector, "", value);
    writer_.close();
  }
  writer_.close();
}

void ThreadLoopText::run_vector(const Loop& loop, int64_t vector, const std::string& trip, const Dim& first) {
  at_ = Iterations{.loop = &loop, .vector = vector, .trip = trip, .lane = "0", .is_whole = vector > 1};
  run_with(loop, first);
}

bool ThreadLoopText::run_lanes(const Loop& loop) {
  const std::optional<int64_t> lanes = loops::iterations_of(loop).constant();
  const auto is_assign = [](const Statement& statement) {
    return std::holds_alternative<loops::Assign>(statement);
  };
  if (loop.mark != loops::Mark::Vector || !at_ || at_->is_whole || !lanes || loop.step != 1 ||
      !std::has_single_bit(static_cast<uint64_t>(*lanes)) || !std::ranges::all_of(loop.body, is_assign))
    return false;
  bool fits = true;
  for_each_use(loop.body, [&](const loops::Use& use) {
    fits = fits && *lanes * info(storage_.at(use.place.buffer).buffer.dtype).bytes <= kVectorBytes;
  });
  if (!fits)
    return false;
  const Iterations around = *at_;
  at_ = Iterations{.loop = &loop, .vector = *lanes, .trip = around.trip, .lane = "0", .is_whole = true};
  indices_.set(loop.variable, indices_.text(loop.begin),
               {indices_.range_of(loop.begin).low, indices_.range_of(loop.end).high - 1});
  run(loop.body);
  at_ = around;
  return true;
}

// One by one.
void ThreadLoopText::run_tail(const Loop& loop, int64_t vector, const std::string& trip, const Dim& first) {
  writer_.write("#pragma unroll");
  const std::string lane = writer_.open_loop("lane", "for (int {0} = 0; {0} < {1}; ++{0})", vector);
  at_ = Iterations{.loop = &loop, .vector = vector, .trip = trip, .lane = lane, .is_whole = false};
  indices_.set(" lane", {lane}, {0, vector - 1});
  const Dim value = first + Dim::symbol(" lane");
  writer_.open("if ({} < {})", indices_.text(value).at(Binding::Sum),
               indices_.text(loop.end).at(Binding::Sum));
  run_with(loop, value);
  writer_.close();
  writer_.close();
}

}  // namespace tenon::codegen::cuda
