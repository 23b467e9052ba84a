#include "schedule/cpu/bf16x3_matmul.h"

#include <algorithm>
#include <array>

#include "schedule/cpu/gemm_tile.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Scalar;
using lowering::Item;
using lowering::LoweredGraph;
using lowering::Opaque;
using lowering::PackedB;
using lowering::PackedWeights;
using lowering::Stage;

namespace {

// The parts that are multiplied, ordered such that consecutive products share one.
constexpr std::array<std::pair<size_t, size_t>, 6> kProducts = {
    {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}, {2, 0}}};

// A product with packed B: y[rows…,lane] += x[rows…,k] * w[k,lane].
struct Product {
  Scalar x, w;             // loads
  std::vector<Axis> rows;  // that x is read along
  Axis summed;
  int64_t row_count, depth;
};

// A factor as it is read, along which axes, and the buffers of its parts.
struct SplitFactor {
  Scalar load;
  std::vector<Axis> axes;
  std::array<std::string, 3> parts;
};

class FactorSplitter {
 public:
  explicit FactorSplitter(LoweredGraph& lowered) : lowered_(lowered) {}

  void run() {
    for (size_t i = 0; i < lowered_.items.size(); ++i) {
      Item item = std::move(lowered_.items[i]);
      if (!item.stage)
        opaque_.emplace(items_.size(), std::move(lowered_.opaque.at(i)));
      else if (const std::optional<Product> product = product_of(*item.stage); product) {
        item.stage->contraction->may_split = true;
        if (choice_of(*item.stage).split.value_or(false))
          split(item, *product);
      }
      items_.push_back(std::move(item));
    }
    lowered_.items = std::move(items_);
    lowered_.opaque = std::move(opaque_);
    drop_unread_panels();
  }

 private:
  // Nothing where the stage is no product for matrix tiles.
  std::optional<Product> product_of(const Stage& stage) const {
    const Definition& sum = stage.definition;
    if (!stage.contraction || !stage.packed_b || stage.packed_b->lanes != 2 * kMatrixTileSide ||
        sum.reduced.size() != 1 || sum.values.size() != 1 || sum.combine != "+" ||
        sum.results.front().dtype != DType::F32)
      return std::nullopt;
    const Scalar& value = sum.values.front();
    if (value.kind() != Scalar::Kind::Apply || value.function() != Function::Multiply)
      return std::nullopt;
    const bool w_first = is_panel_load(value.operands()[0], *stage.packed_b);
    const Scalar &x = value.operands()[w_first ? 1 : 0], &w = value.operands()[w_first ? 0 : 1];
    if (x.kind() != Scalar::Kind::Load || !is_panel_load(w, *stage.packed_b) || x.operands().empty())
      return std::nullopt;
    Product product{.x = x, .w = w, .rows = {}, .summed = sum.reduced.front(), .row_count = 1, .depth = 0};
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

  // How many consecutive rows of x share the weights.
  static int64_t rows_side_by_side(const Product& product, const Definition& sum) {
    const auto is_row = [&](const Axis& axis) {
      return loops::mentions(product.x, axis.variable) && !loops::mentions(product.w, axis.variable);
    };
    const auto last = std::find_if(sum.axes.rbegin() + 1, sum.axes.rend(), is_row);
    int64_t rows = last == sum.axes.rend() ? 0 : 1;
    for (auto axis = last; axis != sum.axes.rend() && is_row(*axis); ++axis)
      rows *= *axis->size.constant();
    return rows;
  }

  static bool is_panel_load(const Scalar& factor, const PackedB& packed_b) {
    return factor.kind() == Scalar::Kind::Load && factor.name() == packed_b.buffer;
  }

  void split(Item& item, const Product& product) {
    Stage& stage = *item.stage;
    Definition& sum = stage.definition;
    const std::array<std::string, 3> x = parts_of(product, stage);
    const std::string w = add_split_panels(product);
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
    stage.packed_b->buffer = w;
    item.reads = buffers_read(stage);
  }

  // Among those of all axes of x.
  static Scalar row_of(const Product& product) {
    Dim row = 0;
    for (const Axis& axis : product.rows)
      row = row * axis.size + Dim::symbol(axis.variable);
    return Scalar::index(row);
  }

  // The buffers of the parts of x, row by row; shared by products with the same operand.
  std::array<std::string, 3> parts_of(const Product& product, const Stage& stage) {
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

  void add_part(const std::string& name, Definition part, const Scalar& value, const Product& product,
                const Stage& stage) {
    Buffer buffer{.name = name, .dtype = DType::BF16, .sizes = {product.row_count, product.depth}};
    lowered_.buffers.emplace(name, buffer);
    part.results = {std::move(buffer)};
    part.values = {value};
    items_.push_back({.stage = Stage{.definition = loops::without_unit_axes(std::move(part)),
                                     .sources = stage.sources,
                                     .contraction = stage.contraction},
                      .reads = {product.x.name()},
                      .writes = {name}});
  }

  // Packed B in three parts, as words of two bf16.
  std::string add_split_panels(const Product& product) {
    const std::string &panels = product.w.name(), name = panels + "_split";
    const Buffer& whole = lowered_.buffers.at(panels);
    Buffer buffer{.name = name, .dtype = DType::I32, .sizes = {3}};
    buffer.sizes.insert(buffer.sizes.end(), whole.sizes.begin(), whole.sizes.end() - 2);
    for (const Dim& size :
         {ceil_div(Dim(product.depth), 2 * kMatrixTileSide), Dim(kMatrixTileSide), whole.sizes.back()})
      buffer.sizes.push_back(size);
    PackedWeights packed = lowered_.packed.at(panels);
    packed.split = true;
    lowered_.packed.emplace(name, std::move(packed));
    lowered_.buffers.emplace(name, std::move(buffer));
    return name;
  }

  void drop_unread_panels() {
    std::set<std::string> read;
    for (const Item& item : lowered_.items)
      read.insert(item.reads.begin(), item.reads.end());
    std::erase_if(lowered_.packed, [&](const auto& packed) {
      return !read.contains(packed.first) && lowered_.buffers.erase(packed.first) == 1;
    });
  }

  LoweredGraph& lowered_;
  std::vector<Item> items_;
  std::map<size_t, Opaque> opaque_;  // by item
  std::vector<SplitFactor> parts_;
};

}  // namespace

void bf16x3_matmul(LoweredGraph& lowered, const Target& target) {
  if (target.matrix_tiles)
    FactorSplitter(lowered).run();
}

}  // namespace tenon::schedule
