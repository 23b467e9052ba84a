#include "lowering/check.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::lowering {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Scalar;

namespace {

std::string describe(const Buffer& buffer) {
  return fmt::format("{}[{}]", buffer.dtype, fmt::join(buffer.sizes, ","));
}

class Checker {
 public:
  explicit Checker(const KernelGraph& graph) : graph_(graph), buffers_(graph.buffers) {
    for (const KernelBuffer& buffer : buffers_)
      sizes_.merge(symbols_of(buffer.type()));
  }

  std::vector<std::string> run() {
    for (const KernelBuffer& buffer : buffers_)
      check_buffer(buffer);
    for (const KernelNode& node : graph_.nodes)
      check_node(node);
    check_writers();
    check_order();
    check_groups();
    return std::move(found_);
  }

 private:
  template <class... T>
  void report(fmt::format_string<T...> format, T&&... arguments) {
    found_.push_back(fmt::format(format, std::forward<T>(arguments)...));
  }
  const std::string& name(BufferId id) const { return buffers_[id].name(); }
  // How messages speak of a node: by what it writes.
  std::string name(const KernelNode& node) const {
    return node.writes.empty() ? "a node without results" : name(*node.writes.begin());
  }

  // --- buffers ---

  void check_buffer(const KernelBuffer& buffer) {
    if (const std::optional<BufferId> source = buffer.made_of()) {
      if (buffer.home != Home::Constant)
        report("{} is made of a constant, but is none", buffer.name());
      else if (buffers_[*source].home != Home::Constant || buffers_[*source].made_of())
        report("{} is made of {}, which is no constant of the graph", buffer.name(), name(*source));
    } else if (buffer.home == Home::Constant && !buffer.value) {
      report("constant {} has no elements", buffer.name());
    }
    if (const auto* image = std::get_if<ImageLayout>(&buffer.layout)) {
      check_order(buffer, image->order, buffer.elements.sizes.size());
      if (image->before.size() != image->order.size() || image->after.size() != image->order.size())
        report("{} has padding for another number of dimensions", buffer.name());
    }
    if (buffer.vnni_dim)
      check_words(buffer);
    if (const auto* permuted = std::get_if<PermutedLayout>(&buffer.layout))
      check_order(buffer, permuted->order, buffer.elements.sizes.size());
    if (const auto* packed = std::get_if<PackedWeights>(&buffer.layout))
      check_order(buffer, packed->order.order, buffer.elements.sizes.size() - (packed->split ? 3 : 1));
  }

  void check_words(const KernelBuffer& buffer) {
    const std::optional<Extents> extents = buffer.value ? buffer.value.shape().extents() : std::nullopt;
    if (!extents || buffer.made_of() || buffer.elements.dtype != DType::I32 ||
        *buffer.vnni_dim >= extents->size())
      report("{} is {}, which is no constant in words", buffer.name(), describe(buffer.elements));
  }

  void check_order(const KernelBuffer& buffer, std::vector<size_t> order, size_t rank) {
    std::ranges::sort(order);
    bool is_permutation = order.size() == rank;
    for (size_t i = 0; i < order.size(); ++i)
      is_permutation = is_permutation && order[i] == i;
    if (!is_permutation)
      report("{} is {}, but its layout is no order of {} dimensions", buffer.name(),
             describe(buffer.elements), rank);
  }

  // --- nodes ---

  void check_node(const KernelNode& node) {
    if ((node.kind == KernelNode::Kind::Definition) != node.stage.has_value() ||
        (node.kind == KernelNode::Kind::Nest) != node.nest.has_value() ||
        (node.kind == KernelNode::Kind::Host && node.node == nullptr))
      return report("{}: what the node is, is not what it holds", name(node));
    if (node.stage) {
      check_definition(node.stage->definition);
      if (node.stage->as_written)
        check_definition(*node.stage->as_written);
      return check_reads(node);
    }
    if (node.kind == KernelNode::Kind::Alias)
      check_alias(node);
    else if (node.kind == KernelNode::Kind::Nest)
      check_nest(node);
    else if (static_cast<int64_t>(node.operands.size()) != node.node->operand_count() ||
             static_cast<int64_t>(node.results.size()) != node.node->result_count())
      report("{}: {} has {} operands and {} results, not {} and {}", name(node), node.node->op().name,
             node.node->operand_count(), node.node->result_count(), node.operands.size(),
             node.results.size());
  }

  void check_reads(const KernelNode& node) {
    std::set<BufferId> reads, writes;
    for (const std::string& loaded : buffers_read(*node.stage))
      if (const std::optional<BufferId> id = buffers_.find(loaded))
        reads.insert(*id);
    for (const Buffer& result : node.stage->definition.results)
      if (const std::optional<BufferId> id = buffers_.find(result.name))
        writes.insert(*id);
    if (reads != node.reads || writes != node.writes)
      report("{}: its reads and writes are not those of its definition", name(node));
  }

  void check_alias(const KernelNode& node) {
    if (node.operands.size() != 1 || node.results.size() != 1)
      return report("{}: an alias has one operand and one result", name(node));
    const Buffer &from = buffers_[node.operands.front()].elements,
                 &to = buffers_[node.results.front()].elements;
    Dim a = 1, b = 1;
    for (const Dim& size : from.sizes)
      a = a * size;
    for (const Dim& size : to.sizes)
      b = b * size;
    a = a * info(from.dtype).bytes;
    b = b * info(to.dtype).bytes;
    if (a.is_constant() && b.is_constant() && a != b)
      report("{} is {}, which cannot be an alias of {}", to.name, describe(to), describe(from));
  }

  void check_nest(const KernelNode& node) {
    for (const std::string& problem : loops::check(*node.nest))
      report("{}: {}", name(node), problem);
    const auto compare = [&](const std::vector<Buffer>& own, const std::vector<BufferId>& ids) {
      bool fits = own.size() == ids.size();
      for (size_t i = 0; fits && i < own.size(); ++i)
        fits = own[i].dtype == buffers_[ids[i]].elements.dtype &&
               own[i].sizes == buffers_[ids[i]].elements.sizes;
      if (!fits)
        report("{}: the buffers of the nest are not those of the node", name(node));
    };
    compare(node.nest->inputs, node.operands);
    compare(node.nest->outputs, node.results);
  }

  // --- definitions ---

  void check_definition(const Definition& definition) {
    if (definition.results.empty() || definition.values.size() != definition.results.size())
      return report("a definition has {} results and {} values", definition.results.size(),
                    definition.values.size());
    const std::string& own = definition.results.front().name;
    for (size_t i = 0; i < definition.results.size(); ++i)
      check_result(definition.results[i], definition.values[i], definition.at.size());
    if (definition.reduces() != !definition.reduced.empty() && !definition.reduces())
      report("{} is reduced, but nothing says how values combine", own);
    if (definition.reduces() && definition.initial.size() != definition.results.size())
      report("{} is reduced, but has no initial value", own);
    check_symbols(definition);
    for (const std::vector<Scalar>* scalars : {&definition.at, &definition.initial, &definition.values})
      for (const Scalar& scalar : *scalars)
        loops::for_each_load(scalar, [&](const Scalar& load) { check_load(own, load); });
  }

  void check_result(const Buffer& result, const Scalar& value, size_t rank) {
    const std::optional<BufferId> id = buffers_.find(result.name);
    if (!id)
      return report("{} is defined, but is no buffer", result.name);
    const Buffer& buffer = buffers_[*id].elements;
    if (result != buffer)
      report("{} is {}, but is defined as {}", result.name, describe(buffer), describe(result));
    if (rank != result.sizes.size())
      report("{} is {}, but is defined at {} indices", result.name, describe(result), rank);
    if (value.dtype() != result.dtype)
      report("{} is {}, but its value is {}", result.name, describe(result), value.dtype());
  }

  void check_symbols(const Definition& definition) {
    const std::string& own = definition.results.front().name;
    std::set<std::string> axes;
    for (const std::vector<Axis>* all : {&definition.axes, &definition.reduced})
      for (const Axis& axis : *all)
        if (!axes.insert(axis.variable).second)
          report("{}: two axes are called {}", own, axis.variable);
    std::set<std::string> unknown;
    const auto add = [&](const Dim& index) {
      for (const std::string& symbol : index.symbols())
        if (!axes.contains(symbol) && !sizes_.contains(symbol))
          unknown.insert(symbol);
    };
    for (const std::vector<Scalar>* scalars : {&definition.at, &definition.values})
      for (const Scalar& scalar : *scalars)
        loops::for_each_index(scalar, add);
    for (const std::string& symbol : unknown)
      report("{}: {} is neither an axis nor a size", own, symbol);
  }

  void check_load(const std::string& own, const Scalar& load) {
    const std::optional<BufferId> id = buffers_.find(load.name());
    if (!id)
      return report("{} loads {}, which is no buffer", own, load.name());
    if (buffers_[*id].host_type)
      return report("{} loads {}, which only the host can read", own, load.name());
    const Buffer& buffer = buffers_[*id].elements;
    if (load.dtype() != buffer.dtype || load.operands().size() != buffer.sizes.size())
      report("{} loads {} as {} of {} dimensions, but it is {}", own, load.name(), load.dtype(),
             load.operands().size(), describe(buffer));
  }

  // --- order ---

  void check_writers() {
    std::set<BufferId> written;
    for (const KernelNode& node : graph_.nodes)
      for (BufferId id : node.writes) {
        if (buffers_[id].home == Home::Input || buffers_[id].home == Home::Constant)
          report("{} is {}, and written", name(id),
                 buffers_[id].home == Home::Input ? "an input" : "a constant");
        if (!written.insert(id).second)
          report("{} is written twice", name(id));
      }
    for (BufferId id : graph_.outputs)
      if (buffers_[id].home == Home::Intermediate)
        report("{} is an output, but not marked as one", name(id));
      else if (buffers_[id].home == Home::Output && !written.contains(id))
        report("output {} is never written", name(id));
  }

  bool is_given(BufferId id) const {
    return buffers_[id].home == Home::Input || buffers_[id].home == Home::Constant;
  }

  // Of what nodes read, in their order.
  void check_order() {
    std::set<BufferId> written;
    for (const KernelNode& node : graph_.nodes) {
      for (BufferId id : node.reads)
        if (!is_given(id) && !written.contains(id))
          report("{} reads {} before it is written", name(node), name(id));
      for (BufferId id : node.after)
        if (!is_given(id) && !written.contains(id))
          report("{} waits for {}, which no node before it writes", name(node), name(id));
      written.insert(node.writes.begin(), node.writes.end());
    }
  }

  void check_groups() {
    if (graph_.groups.empty())
      return;
    std::vector<int> times(graph_.nodes.size());
    std::set<BufferId> written;
    for (size_t i = 0; i < graph_.groups.size(); ++i) {
      const Group& group = graph_.groups[i];
      if (group.nodes.empty()) {
        report("group {} is empty", i);
        continue;
      }
      if (std::ranges::any_of(group.nodes, [&](size_t node) { return node >= times.size(); })) {
        report("group {} has nodes that there are not", i);
        continue;
      }
      check_group(i, group, written);
      for (size_t node : group.nodes)
        ++times[node];
    }
    for (size_t node = 0; node < times.size(); ++node)
      if (times[node] != 1)
        report("{} is in {} groups", name(graph_.nodes[node]), times[node]);
  }

  void check_group(size_t number, const Group& group, std::set<BufferId>& written) {
    if (group.nodes.size() > 1 &&
        std::ranges::any_of(group.nodes, [&](size_t node) { return !graph_.nodes[node].stage; }))
      report("group {} has several nodes, not all of which are definitions", number);
    for (size_t each : group.nodes) {
      const KernelNode& node = graph_.nodes[each];
      for (const std::set<BufferId>* needed : {&node.reads, &node.after})
        for (BufferId id : *needed)
          if (!is_given(id) && !written.contains(id))
            report("group {} needs {}, which no group before it writes", number, name(id));
      written.insert(node.writes.begin(), node.writes.end());
    }
    std::vector<size_t> in_parts;
    for (const Group& part : group.parts)
      in_parts.insert(in_parts.end(), part.nodes.begin(), part.nodes.end());
    if (!group.parts.empty() && in_parts != group.nodes)
      report("the parts of group {} do not make it up", number);
  }

  const KernelGraph& graph_;
  const BufferTable& buffers_;
  std::set<std::string> sizes_;  // symbols
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check(const KernelGraph& graph) { return Checker(graph).run(); }

}  // namespace tenon::lowering
