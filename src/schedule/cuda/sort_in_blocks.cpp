#include "schedule/cuda/sort_in_blocks.h"

#include <algorithm>
#include <bit>

#include "loops/arithmetic.h"
#include "ops/lower.h"
#include "ops/shapes.h"
#include "passes/target/decompose_ops.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Function;
using loops::Kernel;
using loops::Local;
using loops::Place;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::BufferId;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

constexpr int64_t kMostElements = 16384;  // of a row
constexpr DType kPlace = DType::I32;      // of what says where an element stood

// What is sorted: the axis of x, of so many elements.
struct Sorting {
  size_t axis;
  int64_t elements;
  int64_t count;  // that are wanted
  bool largest;

  int64_t padded() const { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(elements))); }
};

std::optional<Sorting> find_sorting(const KernelNode& node, const lowering::BufferTable& buffers,
                                    const Gpu& gpu) {
  if (node.kind != KernelNode::Kind::Host || node.node == nullptr || node.node->op().name != "top_k" ||
      !has_code(*node.node))
    return std::nullopt;
  const Buffer& x = buffers[node.operands.front()].elements;
  const auto axis = static_cast<size_t>(
      checked_axis("top_k", node.node->attr("axis"), static_cast<int64_t>(x.sizes.size())));
  const std::optional<int64_t> elements = x.sizes[axis].constant(),
                               count = buffers[node.results.front()].elements.sizes[axis].constant();
  if (!elements || !count || *elements < 1 || *count < 1 || *elements > kMostElements)
    return std::nullopt;
  const Sorting sorting{
      .axis = axis, .elements = *elements, .count = *count, .largest = node.node->attr("largest")};
  const int64_t bytes = sorting.padded() * (info(x.dtype).bytes + info(kPlace).bytes);
  return bytes <= gpu.shared_bytes_per_block ? std::optional(sorting) : std::nullopt;
}

class Network {
 public:
  Network(const Buffer& x, const Buffer& values, const Buffer& places, const Sorting& sorting)
      : x_(x), values_(values), places_(places), sorting_(sorting) {
    for (size_t i = 0; i < x.sizes.size(); ++i)
      if (i != sorting.axis)
        others_.push_back({fmt::format("r{}", i), x.sizes[i]});
  }

  Statement build() {
    const int64_t padded = sorting_.padded();
    body_.emplace_back(Local{{"row0", x_.dtype, {padded}, Space::Shared}});
    body_.emplace_back(Local{{"index0", kPlace, {padded}, Space::Shared}});
    load();
    exchange();
    store();
    const int64_t threads = std::clamp<int64_t>(padded / 2, kWarpThreads, kMostThreads);
    return over_blocks(others_, threads, std::move(body_));
  }

 private:
  // Of an element of x or of the results, by its position along the axis.
  std::vector<Scalar> at(const Dim& position) const {
    std::vector<Scalar> index;
    for (size_t i = 0; i < x_.sizes.size(); ++i)
      index.push_back(Scalar::index(i == sorting_.axis ? position : Dim::symbol(fmt::format("r{}", i))));
    return index;
  }
  static Statement set(const std::string& buffer, const std::vector<Scalar>& at, Scalar value) {
    return Assign{.places = {{buffer, at}}, .combine = "", .values = {std::move(value)}};
  }
  static Scalar get(const std::string& buffer, DType dtype, const std::vector<Scalar>& at = {}) {
    return Scalar::load(buffer, dtype, at);
  }

  void load() {
    const Dim position = Dim::symbol("i0");
    Scalar element = Scalar::load(x_.name, x_.dtype, at(position));
    if (sorting_.padded() != sorting_.elements)
      element = select(less(Scalar::index(position), Scalar::index(sorting_.elements)), element,
                       Scalar::zero(x_.dtype));
    body_.push_back(over_threads(
        "i0", sorting_.padded(),
        {set("row0", {Scalar::index(position)}, element),
         set("index0", {Scalar::index(position)}, Scalar::cast(kPlace, Scalar::index(position)))}));
  }

  // Whether a stands before b by what they are; NaN is the greatest.
  Scalar precedes(const Scalar& a, const Scalar& b) const {
    const Scalar& greater = sorting_.largest ? a : b;
    const Scalar& lesser = sorting_.largest ? b : a;
    const Scalar is_less = less(lesser, greater);
    return is_float(x_.dtype) ? is_less || (is_nan(greater) && !is_nan(lesser)) : is_less;
  }

  // Sequences of 2, 4, 8, … elements become sorted, in turn upwards and downwards: elements at half of that
  // distance are compared, then at a quarter, down to neighbours.
  void exchange() {
    const Dim pair = Dim::symbol("i1"), stage = Dim::symbol("stage0"), shift = stage - Dim::symbol("step0");
    const auto number = [](const Dim& value) { return Scalar::cast(kPlace, Scalar::index(value)); };
    const auto shifted = [](Function way, const Scalar& value, const Scalar& by) {
      return Scalar::apply(way, {value, by});
    };
    const Scalar distance = shifted(Function::ShiftLeft, number(1), number(shift));
    // The pair counts both, but for the bit that tells them apart.
    const Scalar before = shifted(Function::ShiftRight, number(pair), number(shift));
    const Scalar low_place = number(pair) + shifted(Function::ShiftLeft, before, number(shift));
    const std::vector<Scalar> low{Scalar::cast(DType::I64, low_place)},
        high{Scalar::cast(DType::I64, low_place + distance)};
    const Scalar a = get("a0", x_.dtype), b = get("b0", x_.dtype), of_a = get("of_a0", kPlace),
                 of_b = get("of_b0", kPlace), stays = get("stays0", DType::Bool);
    Scalar is_first = precedes(a, b) || (!precedes(b, a) && less(of_a, of_b));
    if (sorting_.padded() != sorting_.elements) {
      const Scalar elements = Scalar::number(kPlace, sorting_.elements);
      is_first = less(of_a, elements) && (less_equal(elements, of_b) || is_first);
    }
    const Scalar sequence = shifted(Function::ShiftRight, low_place, number(stage + 1));
    const Scalar upwards = equal(Scalar::apply(Function::And, {sequence, number(1)}), number(0));
    std::vector<Statement> body;
    for (const auto& [name, dtype] : {std::pair{"a0", x_.dtype},
                                      {"b0", x_.dtype},
                                      {"of_a0", kPlace},
                                      {"of_b0", kPlace},
                                      {"stays0", DType::Bool}})
      body.emplace_back(Local{{name, dtype, {}, Space::Private}});
    append(body, {set("a0", {}, get("row0", x_.dtype, low)), set("b0", {}, get("row0", x_.dtype, high)),
                  set("of_a0", {}, get("index0", kPlace, low)), set("of_b0", {}, get("index0", kPlace, high)),
                  set("stays0", {}, equal(is_first, upwards)), set("row0", low, select(stays, a, b)),
                  set("row0", high, select(stays, b, a)), set("index0", low, select(stays, of_a, of_b)),
                  set("index0", high, select(stays, of_b, of_a))});
    const auto stages = std::countr_zero(static_cast<uint64_t>(sorting_.padded()));
    Statement steps = make_loop("step0", stage + 1, loops::Mark::Serial,
                                {over_threads("i1", sorting_.padded() / 2, std::move(body))});
    body_.push_back(make_loop("stage0", stages, loops::Mark::Serial, {std::move(steps)}));
  }

  void store() {
    const Dim position = Dim::symbol("i2");
    const Assign value{.places = {{values_.name, at(position)}},
                       .combine = "",
                       .values = {get("row0", x_.dtype, {Scalar::index(position)})}};
    const Assign place{
        .places = {{places_.name, at(position)}},
        .combine = "",
        .values = {Scalar::cast(places_.dtype, get("index0", kPlace, {Scalar::index(position)}))}};
    body_.push_back(over_threads("i2", sorting_.count, {value, place}));
  }

  const Buffer &x_, &values_, &places_;
  const Sorting& sorting_;
  std::vector<Axis> others_;
  std::vector<Statement> body_;
};

Buffer named(const KernelGraph& graph, BufferId id, std::string name) {
  Buffer buffer = graph.buffers[id].elements;
  buffer.name = std::move(name);
  return buffer;
}

}  // namespace

void sort_in_blocks(KernelGraph& graph, const Gpu& gpu) {
  for (KernelNode& node : graph.nodes) {
    const std::optional<Sorting> sorting = find_sorting(node, graph.buffers, gpu);
    if (!sorting)
      continue;
    node.operands.resize(1);  // the other says how many, which is known
    node.reads = {node.operands.front()};
    node.kind = KernelNode::Kind::Nest;
    node.sources = labels_of(*node.node);
    Kernel kernel{.name = "kernel",
                  .inputs = {named(graph, node.operands[0], LowerContext::operand_name(0))},
                  .outputs = {named(graph, node.results[0], LowerContext::result_name(0)),
                              named(graph, node.results[1], LowerContext::result_name(1))},
                  .combines = {},
                  .body = {}};
    kernel.body = as_list(Network(kernel.inputs[0], kernel.outputs[0], kernel.outputs[1], *sorting).build());
    node.nest = std::move(kernel);
  }
}

}  // namespace tenon::schedule::cuda
