#include "schedule/cpu/bf16x3_matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "loops/contraction.h"
#include "lowering/contraction_plan.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Scalar;
using lowering::Home;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::PackedB;
using lowering::PackedWeights;
using lowering::Stage;

namespace {

// The parts that are multiplied, ordered such that consecutive products share one.
constexpr std::array<std::pair<size_t, size_t>, 6> kProducts = {
    {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}, {2, 0}}};

// A factor as it is read, along which axes, and the buffers of its parts.
struct SplitFactor {
  Scalar load;
  std::vector<Axis> axes;
  std::array<std::string, 3> parts;
};

// How many consecutive rows of x share the weights.
int64_t rows_side_by_side(const Bf16x3Product& product, const Definition& sum) {
  const auto is_row = [&](const Axis& axis) {
    return loops::mentions(product.x, axis.variable) && !loops::mentions(product.w, axis.variable);
  };
  const auto last = std::find_if(sum.axes.rbegin() + 1, sum.axes.rend(), is_row);
  int64_t rows = last == sum.axes.rend() ? 0 : 1;
  for (auto axis = last; axis != sum.axes.rend() && is_row(*axis); ++axis)
    rows *= *axis->size.constant();
  return rows;
}

// Among those of all axes of x.
Scalar row_of(const Bf16x3Product& product) {
  Dim row = 0;
  for (const Axis& axis : product.rows)
    row = row * axis.size + Dim::symbol(axis.variable);
  return Scalar::index(row);
}

class FactorSplitter {
 public:
  explicit FactorSplitter(KernelGraph& graph) : graph_(graph) {}

  void run() {
    for (KernelNode& each : graph_.nodes) {
      KernelNode node = std::move(each);
      if (node.stage && node.stage->plan && node.stage->plan->bf16x3)
        split(node);
      nodes_.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes_);
  }

 private:
  void split(KernelNode& node) {
    Stage& stage = *node.stage;
    const PackedB& packed_b = *stage.packed_b;
    const std::optional<Bf16x3Product> product =
        match_bf16x3(stage.definition, [&](const Scalar& load) { return load.name() == packed_b.buffer; });
    CHECK(product, "{} is no product that can be split", stage.definition.results.front().name);
    const std::array<std::string, 3> x = parts_of(*product, stage);
    const std::string w = add_split_panels(*product);
    stage.definition = split_definition(std::move(stage.definition), *product, x, w);
    stage.packed_b->buffer = w;
    update_reads(node, graph_.buffers);
  }

  // The buffers of the parts of x, row by row; shared by products with the same operand.
  std::array<std::string, 3> parts_of(const Bf16x3Product& product, const Stage& stage) {
    Definition part;
    std::map<std::string, Dim> names;
    for (const Axis& axis : product.rows)
      part.axes.push_back(axis);
    part.axes.push_back(product.summed);
    for (size_t i = 0; i < part.axes.size(); ++i) {
      const std::string name = fmt::format("i{}", i);
      names.emplace(std::exchange(part.axes[i].variable, name), Dim::symbol(name));
    }
    part.at = {row_of(product).substitute(names), Scalar::index(names.at(product.summed.variable))};
    const Scalar x = product.x.substitute(names);
    for (const SplitFactor& known : parts_)
      if (known.load == x && std::ranges::equal(known.axes, part.axes, {}, &Axis::size, &Axis::size))
        return known.parts;
    std::array<std::string, 3> parts;
    Scalar left = x;
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i] = fmt::format("{}_split{}_{}", x.name(), parts_.size(), i);
      add_part(parts[i], part, Scalar::apply(Function::RoundDownToBf16, {left}), product, stage);
      left = Scalar::apply(Function::Bf16Remainder, {left});
    }
    parts_.push_back({x, part.axes, parts});
    return parts;
  }

  void add_part(const std::string& name, Definition part, const Scalar& value, const Bf16x3Product& product,
                const Stage& stage) {
    Buffer buffer{.name = name, .dtype = DType::BF16, .sizes = {product.row_count, product.depth}};
    graph_.buffers.add({.elements = buffer});
    part.results = {std::move(buffer)};
    part.values = {value};
    nodes_.push_back(make_node({.definition = loops::without_unit_axes(std::move(part)),
                                .sources = stage.sources,
                                .contraction = stage.contraction},
                               graph_.buffers));
  }

  // Packed B in three parts, as words of two bf16.
  std::string add_split_panels(const Bf16x3Product& product) {
    const std::string &panels = product.w.name(), name = panels + "_split";
    if (graph_.buffers.contains(name))
      return name;
    const KernelBuffer& unsplit = graph_.buffers[graph_.buffers.id_of(panels)];
    const Buffer& whole = unsplit.elements;
    Buffer buffer{.name = name, .dtype = DType::I32, .sizes = {3}};
    buffer.sizes.insert(buffer.sizes.end(), whole.sizes.begin(), whole.sizes.end() - 2);
    for (const Dim& size :
         {ceil_div(Dim(product.depth), 2 * kMatrixTileSide), Dim(kMatrixTileSide), whole.sizes.back()})
      buffer.sizes.push_back(size);
    auto packed = std::get<PackedWeights>(unsplit.layout);
    packed.split = true;
    graph_.buffers.add({.elements = std::move(buffer), .home = Home::Constant, .layout = std::move(packed)});
    return name;
  }

  KernelGraph& graph_;
  std::vector<KernelNode> nodes_;
  std::vector<SplitFactor> parts_;
};

}  // namespace

std::optional<Bf16x3Product> match_bf16x3(const Definition& sum,
                                          const std::function<bool(const Scalar&)>& is_weights) {
  const std::optional<loops::Contraction> contraction = match_contraction(sum);
  if (!contraction || !contraction->product().multiplies() || contraction->accumulator != DType::F32 ||
      sum.reduced.size() != 1 || sum.axes.empty())
    return std::nullopt;
  const auto is_load_of_weights = [&](const Scalar& factor) {
    return factor.kind() == Scalar::Kind::Load && is_weights(factor);
  };
  const bool w_first = is_load_of_weights(contraction->product().lhs);
  const Scalar &x = contraction->product().operand(w_first ? 1 : 0),
               &w = contraction->product().operand(w_first ? 0 : 1);
  if (x.kind() != Scalar::Kind::Load || !is_load_of_weights(w) || x.operands().empty())
    return std::nullopt;
  Bf16x3Product product{.x = x, .w = w, .rows = {}, .summed = sum.reduced.front()};
  product.depth = product.summed.size.constant().value_or(0);
  // Each iteration of the sum reads two contiguous numbers; a partial last tile overlaps the one before.
  if (!loops::axis_of({product.summed}, x.operands().back()) || product.depth % 2 != 0 ||
      product.depth < kMatrixTileSide * 2 || loops::mentions(x, sum.axes.back().variable) ||
      std::any_of(x.operands().begin(), x.operands().end() - 1,
                  [&](const Scalar& index) { return loops::mentions(index, product.summed.variable); }))
    return std::nullopt;
  for (const Axis& axis : sum.axes)
    if (loops::mentions(x, axis.variable)) {
      product.rows.push_back(axis);
      product.row_count *= axis.size.constant().value_or(0);
    }
  return product.row_count > 0 && rows_side_by_side(product, sum) >= kMatrixTileSide
             ? std::optional(std::move(product))
             : std::nullopt;
}

Definition split_definition(Definition sum, const Bf16x3Product& product, const std::array<std::string, 3>& x,
                            const std::string& w) {
  // An iteration of the first is a tile, one of the second a word.
  const Axis tile{product.summed.variable + "_0", ceil_div(Dim(product.depth), 2 * kMatrixTileSide)},
      word{product.summed.variable + "_1", kMatrixTileSide};
  const Dim in_tile = Dim::symbol(word.variable),
            first = min(Dim::symbol(tile.variable) * kMatrixTileSide, product.depth / 2 - kMatrixTileSide);
  const auto x_word = [&](size_t part) {
    std::vector<Scalar> place = {row_of(product), Scalar::index((first + in_tile) * 2)};
    const Scalar low = Scalar::load(x[part], DType::BF16, place);
    place.back() = Scalar::index((first + in_tile) * 2 + 1);
    return Scalar::apply(Function::PackBf16x2, {low, Scalar::load(x[part], DType::BF16, std::move(place))});
  };
  const auto w_word = [&](size_t part) {
    std::vector<Scalar> place = {Scalar::index(static_cast<int64_t>(part))};
    for (const Scalar& index : product.w.operands())
      if (loops::mentions(index, product.summed.variable)) {
        place.push_back(Scalar::index(Dim::symbol(tile.variable)));
        place.push_back(Scalar::index(in_tile));
      } else {
        place.push_back(index);
      }
    return Scalar::load(w, DType::I32, std::move(place));
  };
  std::optional<Scalar> value;
  for (const auto& [of_x, of_w] : kProducts) {
    const Scalar each = Scalar::apply(Function::DotBf16x2, {x_word(of_x), w_word(of_w)});
    value = value ? Scalar::apply(Function::Add, {*value, each}) : each;
  }
  sum.values = {*value};
  sum.reduced = {tile, word};
  return sum;
}

void bf16x3_matmul(KernelGraph& graph) { FactorSplitter(graph).run(); }

}  // namespace tenon::schedule
