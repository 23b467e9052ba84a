#include "schedule/cpu/vnni_pack.h"

#include "loops/contraction.h"

namespace tenon::schedule {

using loops::Definition;
using loops::Function;
using loops::Scalar;
using lowering::BufferId;
using lowering::Home;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

constexpr int64_t kWordBytes = 4;

// The instruction for factors of these dtypes.
struct Dot {
  DType lhs, rhs, accumulator;
  Function dot, pack;

  int64_t factors() const { return kWordBytes / info(rhs).bytes; }
};
constexpr Dot kDotI8{DType::U8, DType::I8, DType::I32, Function::DotI8x4, Function::PackI8x4};
constexpr Dot kDotBf16{DType::BF16, DType::BF16, DType::F32, Function::DotBf16x2, Function::PackBf16x2};

// A sum of widened products: factors are as they are stored.
struct NarrowProduct {
  Dot dot;
  Scalar lhs, weights;  // the weights are loaded
  size_t dim;           // of the weights: that of the first reduced axis, along which words are packed
};

// What an expression converts; nothing where it converts nothing.
std::optional<Scalar> converted(const Scalar& scalar) {
  if (scalar.kind() != Scalar::Kind::Apply || scalar.function() != Function::Cast)
    return std::nullopt;
  return scalar.operands().front();
}

class Packer {
 public:
  Packer(KernelGraph& graph, bool in_bf16) : graph_(graph), in_bf16_(in_bf16) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].stage)
        if (const std::optional<NarrowProduct> product = match(graph_.nodes[i].stage->definition))
          products_.emplace(i, *product);
    keep_agreeing();
    for (const auto& [node, product] : products_)
      pack_weights(product);
    std::vector<KernelNode> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto found = products_.find(i); found != products_.end())
        pack(graph_.nodes[i], found->second, nodes);
      nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  // --- which ---

  std::optional<NarrowProduct> match(const Definition& sum) const {
    const std::optional<loops::Contraction> contraction = match_contraction(sum);
    if (!contraction || !contraction->product().multiplies() || sum.reduced.empty())
      return std::nullopt;
    const std::optional<Scalar> lhs = converted(contraction->product().lhs),
                                weights = converted(contraction->product().rhs);
    if (!lhs || !weights || weights->kind() != Scalar::Kind::Load || !graph_.is_constant(weights->name()))
      return std::nullopt;
    const std::optional<Dot> dot = dot_of(lhs->dtype(), weights->dtype(), contraction->accumulator);
    if (!dot || sum.reduced.front().size.constant().value_or(1) % dot->factors() != 0)
      return std::nullopt;
    const std::optional<size_t> dim = only_dim_along(sum.reduced.front(), *weights);
    return dim ? std::optional(NarrowProduct{*dot, *lhs, *weights, *dim}) : std::nullopt;
  }

  std::optional<Dot> dot_of(DType lhs, DType rhs, DType accumulator) const {
    for (const Dot& dot : {kDotI8, kDotBf16})
      if (dot.lhs == lhs && dot.rhs == rhs && dot.accumulator == accumulator &&
          (in_bf16_ || lhs != DType::BF16))
        return dot;
    return std::nullopt;
  }

  // The dimension whose index is the variable of an axis, where no other index mentions it.
  static std::optional<size_t> only_dim_along(const loops::Axis& axis, const Scalar& load) {
    std::optional<size_t> found;
    for (size_t dim = 0; dim < load.operands().size(); ++dim)
      if (mentions(load.operands()[dim], axis.variable)) {
        if (found || !loops::axis_of({axis}, load.operands()[dim]))
          return std::nullopt;
        found = dim;
      }
    return found;
  }

  // Weights have one layout, so all that reads them must agree on it.
  void keep_agreeing() {
    std::map<BufferId, std::set<size_t>> dims;  // by weights
    std::set<BufferId> others = graph_.kept();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto product = products_.find(i);
      for (BufferId id : graph_.nodes[i].reads)
        if (product != products_.end() && id == weights_of(product->second))
          dims[id].insert(product->second.dim);
        else
          others.insert(id);
    }
    std::erase_if(products_, [&](const auto& each) {
      const BufferId weights = weights_of(each.second);
      return others.contains(weights) || dims.at(weights).size() > 1;
    });
  }

  BufferId weights_of(const NarrowProduct& product) const {
    return graph_.buffers.id_of(product.weights.name());
  }

  // --- how ---

  void pack_weights(const NarrowProduct& product) {
    lowering::KernelBuffer& buffer = graph_.buffers[weights_of(product)];
    if (buffer.vnni_dim)
      return;
    buffer.vnni_dim = product.dim;
    buffer.elements.dtype = DType::I32;
    Dim& size = buffer.elements.sizes[product.dim];
    size = floor_div(size, product.dot.factors());
  }

  // An alias that the product needs goes before it.
  void pack(KernelNode& node, const NarrowProduct& product, std::vector<KernelNode>& before) {
    Definition& sum = node.stage->definition;
    const loops::Axis axis = sum.reduced.front();
    Scalar words = pack_factors(product, axis);
    if (const std::optional<std::string> alias = alias_for(product, axis, node.stage->sources, before))
      words = Scalar::load(*alias, DType::I32, product.lhs.operands());
    sum.reduced.front().size = floor_div(axis.size, product.dot.factors());
    sum.values.front() =
        Scalar::apply(product.dot.dot,
                      {words, Scalar::load(product.weights.name(), DType::I32, product.weights.operands())});
    sum = loops::without_unit_axes(std::move(sum));
    update_reads(node, graph_.buffers);
  }

  // Word by word.
  static Scalar pack_factors(const NarrowProduct& product, const loops::Axis& axis) {
    std::vector<Scalar> factors;
    for (int64_t i = 0; i < product.dot.factors(); ++i) {
      const Dim at = Dim::symbol(axis.variable) * product.dot.factors() + i;
      const Scalar factor = product.lhs.substitute({{axis.variable, at}});
      factors.push_back(product.dot.lhs == DType::BF16 ? factor : Scalar::cast(DType::I32, factor));
    }
    return Scalar::apply(product.dot.pack, std::move(factors));
  }

  // The name of a buffer of the words; nothing where they are not contiguous.
  std::optional<std::string> alias_for(const NarrowProduct& product, const loops::Axis& axis,
                                       const std::vector<std::string>& sources,
                                       std::vector<KernelNode>& before) {
    if (product.lhs.kind() != Scalar::Kind::Load ||
        only_dim_along(axis, product.lhs) != product.lhs.operands().size() - 1)
      return std::nullopt;
    const BufferId from = graph_.buffers.id_of(product.lhs.name());
    loops::Buffer words = graph_.buffers[from].elements;
    const std::optional<Dim> count = divide_exactly(words.sizes.back(), product.dot.factors());
    if (!count || graph_.buffers[from].home == Home::Constant)
      return std::nullopt;
    words.name += "_words";
    if (!graph_.buffers.contains(words.name)) {
      words.dtype = DType::I32;
      words.sizes.back() = *count;
      const BufferId to = graph_.buffers.add({.elements = words});
      before.push_back({.kind = KernelNode::Kind::Alias,
                        .sources = sources,
                        .operands = {from},
                        .results = {to},
                        .reads = {from},
                        .writes = {to}});
    }
    return words.name;
  }

  KernelGraph& graph_;
  const bool in_bf16_;
  std::map<size_t, NarrowProduct> products_;  // by nodes
};

}  // namespace

void vnni_pack(KernelGraph& graph, bool in_bf16) { Packer(graph, in_bf16).run(); }

}  // namespace tenon::schedule
