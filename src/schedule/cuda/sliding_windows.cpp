#include "schedule/cuda/sliding_windows.h"

#include <algorithm>

#include "loops/contraction.h"
#include "loops/edit.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/statements.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::Stage;

namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kMostReduced = 64;      // elements of a window, which are unrolled
constexpr int64_t kMostHeld = 80;         // of the windows of a thread, in registers
constexpr int64_t kMostResults = 8;       // of a thread
constexpr int64_t kMostStride = 4;        // from one window to the next
constexpr int64_t kWantedThreads = 1024;  // of a multiprocessor

const std::string kElement = "e0", kResult = "result0", kStrip = "strip0";

// Windows that overlap: the next result along an axis has what this one has so many iterations of a reduced
// axis further.
struct Overlap {
  size_t axis, reduced;
  int64_t stride;
};

// What is the same for all results but for its window: a factor, or all that is reduced.
struct Window {
  Scalar held;
  std::optional<Overlap> overlap;
};

bool mentions(const Scalar& scalar, const Axis& axis) { return loops::mentions(scalar, axis.variable); }

Scalar moved(const Scalar& scalar, const Axis& axis, int64_t by) {
  return scalar.substitute({{axis.variable, symbol(axis.variable) + by}});
}

// Along the last axis the threads beside each other have the results beside each other.
std::optional<Overlap> find_overlap(const Scalar& held, const Definition& definition) {
  for (size_t axis = definition.axes.size() - 1; axis-- > 0;)
    for (size_t reduced = 0; reduced < definition.reduced.size(); ++reduced)
      for (int64_t stride = 1; stride <= kMostStride; ++stride)
        if (mentions(held, definition.axes[axis]) && mentions(held, definition.reduced[reduced]) &&
            moved(held, definition.axes[axis], 1) == moved(held, definition.reduced[reduced], stride))
          return Overlap{axis, reduced, stride};
  return std::nullopt;
}

Window find_window(const Definition& definition) {
  const Scalar& value = definition.values.front();
  if (const std::optional<Overlap> overlap = find_overlap(value, definition))
    return {value, overlap};
  if (const std::optional<loops::Product> product = loops::match_product(value);
      product && product->multiplies())
    for (size_t i = 0; i < 2; ++i)
      if (const std::optional<Overlap> overlap = find_overlap(product->operand(i), definition);
          overlap && !mentions(product->operand(1 - i), definition.axes[overlap->axis]))
        return {product->operand(i), overlap};
  return {value, std::nullopt};
}

class SlidingWindows {
 public:
  SlidingWindows(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
                 const Gpu& gpu, const Kernel& kernel)
      : definitions_(definitions), outputs_(outputs), window_(find_window(definitions.front())) {
    const DType dtype = first().results.front().dtype;
    if (window_.overlap)
      results_ = choose_results(gpu);
    std::set<std::string> names = loops::names_in(kernel);
    sums_ = {loops::fresh_among(names, "sums"), dtype, {results_}, Space::Private};
    held_ = {loops::fresh_among(names, "window"), window_.held.dtype(), sizes_held(results_), Space::Private};
  }

  Statement run() {
    std::vector<Statement> body;
    body.emplace_back(Local{sums_});
    append(body, for_each_result(as_list(store(sums_, {symbol(kResult)}, first().initial.front()))));
    body.emplace_back(Local{held_});
    append(body, hold_windows());
    append(body, for_each_result(reduce_window()));
    append(body, for_each_result(store_result()));
    std::vector<Axis> axes = first().axes;
    if (results_ > 1)
      axes[window_.overlap->axis] = {kStrip, ceil_div(axes[window_.overlap->axis].size, results_)};
    const FlatAxes flat = flatten(axes, kElement);
    return in_chunks(kElement, flat.size, kThreads, kThreads, substitute(body, flat.variables));
  }

 private:
  const Definition& first() const { return definitions_.front(); }
  const Axis& axis() const { return first().axes[window_.overlap->axis]; }

  // More results share more, but need threads for all multiprocessors.
  int64_t choose_results(const Gpu& gpu) const {
    Dim all = 1;
    for (const Axis& each : first().axes)
      all = all * each.size;
    const int64_t most =
        std::min(all.constant().value_or(INT32_MAX) / (gpu.multiprocessors * kWantedThreads), kMostResults);
    int64_t best = 1;
    for (int64_t results = 2; results <= most; ++results)
      if (count_held(results) <= kMostHeld && divide_exactly(axis().size, results))
        best = results;
    return best;
  }

  std::vector<Dim> sizes_held(int64_t results) const {
    std::vector<Dim> sizes;
    for (const Axis& reduced : first().reduced)
      sizes.push_back(reduced.size);
    if (results > 1)
      sizes[window_.overlap->reduced] =
          sizes[window_.overlap->reduced] + window_.overlap->stride * (results - 1);
    return sizes;
  }
  int64_t count_held(int64_t results) const {
    Dim held = 1;
    for (const Dim& size : sizes_held(results))
      held = held * size;
    return *held.constant();
  }

  std::vector<Statement> for_each_result(std::vector<Statement> body) const {
    return loop(kResult, results_, Mark::Unrolled, std::move(body));
  }

  // In terms of the strip and the number within it.
  Scalar at_result(const Scalar& scalar, const Dim& number) const {
    return results_ == 1 ? scalar
                         : scalar.substitute({{axis().variable, symbol(kStrip) * results_ + number}});
  }

  std::vector<Statement> hold_windows() const {
    const std::vector<Axis>& reduced = first().reduced;
    std::vector<Dim> at;
    for (const Axis& each : reduced)
      at.push_back(symbol(each.variable));
    std::vector<Statement> body = as_list(store(held_, at, at_result(window_.held, 0)));
    for (size_t i = reduced.size(); i-- > 0;)
      body = loop(reduced[i].variable, held_.sizes[i], Mark::Unrolled, std::move(body));
    return body;
  }

  std::vector<Statement> reduce_window() const {
    const std::vector<Axis>& reduced = first().reduced;
    std::vector<Dim> at;
    for (size_t i = 0; i < reduced.size(); ++i)
      at.push_back(symbol(reduced[i].variable) + (results_ > 1 && i == window_.overlap->reduced
                                                      ? symbol(kResult) * window_.overlap->stride
                                                      : Dim(0)));
    const Scalar held = element(held_, at), &value = first().values.front();
    const Scalar reduced_value = value == window_.held ? held : with_window(value, held);
    std::vector<Statement> body =
        as_list(store(sums_, {symbol(kResult)}, at_result(reduced_value, symbol(kResult)), first().combine));
    for (size_t i = reduced.size(); i-- > 0;)
      body = loop(reduced[i].variable, reduced[i].size, Mark::Unrolled, std::move(body));
    return body;
  }

  Scalar with_window(const Scalar& product, const Scalar& held) const {
    std::vector<Scalar> operands = product.operands();
    *std::ranges::find(operands, window_.held) = held;
    return Scalar::apply(product.function(), std::move(operands));
  }

  std::vector<Statement> store_result() const {
    const auto placed = [&](const Scalar& scalar) { return at_result(scalar, symbol(kResult)); };
    std::vector<Statement> stores;
    for (Assign& each : build_epilogue(definitions_, outputs_, element(sums_, {symbol(kResult)}), placed))
      stores.emplace_back(std::move(each));
    return stores;
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const Window window_;
  int64_t results_ = 1;
  Buffer sums_, held_;
};

bool reduces_small_window(const Definition& definition) {
  Dim reduced = 1;
  for (const Axis& axis : definition.reduced)
    reduced = reduced * axis.size;
  return definition.reduces() && definition.results.size() == 1 && !definition.axes.empty() &&
         loops::built_in_combine(definition.combine) && reduced.constant() && *reduced.constant() >= 1 &&
         *reduced.constant() <= kMostReduced;
}

}  // namespace

bool has_overlapping_windows(const Definition& definition) {
  return reduces_small_window(definition) && find_window(definition).overlap.has_value();
}

bool slide_windows(Kernel& kernel, const std::vector<Stage>& stages, const std::set<std::string>& outputs,
                   const Gpu& gpu) {
  if (!reduces_small_window(stages.front().definition))
    return false;
  std::vector<Definition> definitions;
  for (size_t i = 0; i < stages.size(); ++i)
    definitions.push_back(
        renamed(stages[i].definition, stages[i].definition.axes.size(), fmt::format("s{}", i)));
  std::vector<Statement> body = as_list(SlidingWindows(definitions, outputs, gpu, kernel).run());
  if (has_unknown_index(body))
    return false;
  kernel.body = std::move(body);
  return true;
}

}  // namespace tenon::schedule::cuda
