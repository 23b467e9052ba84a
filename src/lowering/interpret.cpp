#include "lowering/interpret.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/fit.h"
#include "loops/interpret.h"
#include "lowering/print.h"
#include "passes/target/constant_pieces.h"

namespace tenon::lowering {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Scalar;
using loops::Statement;

namespace {

// --- constants in the layout of their buffer ---

// The tensor of these extents whose elements are those of another: at(index) says which.
template <class At>
Tensor gathered(const Tensor& from, const Extents& extents, const At& at) {
  Tensor to(from.dtype(), extents);
  const Extents strides = row_major_strides(from.extents());
  const auto bytes = static_cast<size_t>(from.element_size());
  Extents index(extents.size());
  for (int64_t i = 0; i < to.count(); ++i) {
    int64_t left = i;
    for (size_t dim = extents.size(); dim-- > 0; left /= extents[dim])
      index[dim] = left % extents[dim];
    const Extents source = at(index);
    int64_t offset = 0;
    for (size_t dim = 0; dim < source.size(); ++dim)
      offset += source[dim] * strides[dim];
    std::memcpy(to.mutable_bytes().data() + static_cast<size_t>(i) * bytes,
                from.bytes().data() + static_cast<size_t>(offset) * bytes, bytes);
  }
  return to;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  Extents extents;
  for (size_t dim : order)
    extents.push_back(tensor.extents()[dim]);
  return gathered(tensor, extents, [&](const Extents& index) {
    Extents source(index.size());
    for (size_t i = 0; i < order.size(); ++i)
      source[order[i]] = index[i];
    return source;
  });
}

// The last panel of each group begins so early that it is whole.
Tensor packed(const Tensor& tensor, const PackedBLayout& layout) {
  const size_t lane_at = layout.order.size() - 1 - layout.reduced;
  const int64_t lanes = tensor.extents()[layout.lane_dim()], group_lanes = lanes / layout.groups,
                panels = layout.panels_of_group(lanes);
  Extents extents;
  for (size_t dim : layout.order)
    extents.push_back(tensor.extents()[dim]);
  extents[lane_at] = layout.groups * panels;
  extents.push_back(layout.lanes);
  return gathered(tensor, extents, [&](const Extents& index) {
    Extents source(layout.order.size());
    for (size_t i = 0; i < layout.order.size(); ++i)
      source[layout.order[i]] = index[i];
    const int64_t panel = index[lane_at];
    source[layout.lane_dim()] = panel / panels * group_lanes +
                                std::min(panel % panels * layout.lanes, group_lanes - layout.lanes) +
                                index.back();
    return source;
  });
}

// --- definitions that read packed operands where their elements are ---

// The block of a row or lane, and its place there, where the last block begins so early that it is whole.
std::pair<Dim, Dim> split_in_blocks(const Dim& index, const Dim& all, int64_t block) {
  const Dim number = floor_div(index, block);
  return {number, index - min(number * block, all - block)};
}

// Stages read the panels as if all lanes were in the first, and row blocks as if all rows were.
class Unpacking {
 public:
  Unpacking(const KernelGraph& graph, const Stage& stage) : graph_(graph), stage_(stage) {}

  Definition run() const {
    Definition definition = stage_.definition;
    for (Scalar& value : definition.values)
      value = loops::replace_loads(value, [&](const Scalar& load) {
        if (stage_.packed_b && load.name() == stage_.packed_b->buffer)
          return read_panels(load);
        if (stage_.packed_a && load.name() == stage_.packed_a->buffer)
          return read_row_blocks(load);
        return load;
      });
    return definition;
  }

 private:
  Scalar read_panels(const Scalar& load) const {
    const BufferTable& buffers = graph_.buffers;
    const auto& layout = std::get<PackedWeights>(buffers[buffers.id_of(load.name())].layout);
    const int64_t
        lanes =
            *buffers[layout.weights].value.shape()[static_cast<int64_t>(layout.order.lane_dim())].constant(),
        group_lanes = lanes / layout.order.groups;
    std::vector<Scalar> at = load.operands();
    const Dim lane = at.back().index(), group = floor_div(lane, group_lanes);
    const auto [panel, place] = split_in_blocks(lane - group * group_lanes, group_lanes, layout.order.lanes);
    at[at.size() - 2 - layout.order.reduced] =
        Scalar::index(group * layout.order.panels_of_group(lanes) + panel);
    at.back() = Scalar::index(place);
    return Scalar::load(load.name(), load.dtype(), std::move(at));
  }

  Scalar read_row_blocks(const Scalar& load) const {
    const std::vector<Axis>& axes = stage_.definition.axes;
    const Axis& axis = axes[*loops::axis_of(axes, load.operands().back())];
    const auto [block, row] =
        split_in_blocks(load.operands().back().index(), axis.size, stage_.packed_a->rows);
    return Scalar::load(load.name(), load.dtype(),
                        {Scalar::index(block), load.operands()[1], Scalar::index(row)});
  }

  const KernelGraph& graph_;
  const Stage& stage_;
};

// --- the plainest kernel of a definition ---

std::vector<Statement> in_loops(const std::vector<Axis>& axes, std::vector<Statement> body) {
  for (size_t i = axes.size(); i-- > 0;) {
    loops::Loop loop{.variable = axes[i].variable, .begin = 0, .end = axes[i].size, .body = std::move(body)};
    body = {std::move(loop)};
  }
  return body;
}

void add_symbols(const Definition& definition, std::set<std::string>& symbols) {
  const auto add = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols())
      symbols.insert(symbol);
  };
  for (const std::vector<Axis>* axes : {&definition.axes, &definition.reduced})
    for (const Axis& axis : *axes)
      add(axis.size);
  for (const std::vector<Scalar>* scalars : {&definition.at, &definition.initial, &definition.values})
    for (const Scalar& scalar : *scalars)
      loops::for_each_index(scalar, add);
  for (const std::vector<Axis>* axes : {&definition.axes, &definition.reduced})
    for (const Axis& axis : *axes)
      symbols.erase(axis.variable);
}

// The padding first, then the elements.
Kernel kernel_of(const Definition& definition, const std::optional<Scalar>& border,
                 const BufferTable& buffers) {
  Kernel kernel{
      .name = "definition", .inputs = {}, .outputs = definition.results, .combines = {}, .body = {}};
  if (definition.own_combine)
    kernel.combines.push_back(*definition.own_combine);
  std::set<std::string> loaded;
  for (const Scalar& value : definition.values)
    loops::for_each_load(value, [&](const Scalar& load) { loaded.insert(load.name()); });
  for (const std::string& name : loaded)
    kernel.inputs.push_back(buffers.at(name));
  loops::Assign assign{.places = {}, .combine = definition.combine, .values = definition.values};
  for (const Buffer& result : definition.results) {
    std::vector<Axis> all;
    for (size_t dim = 0; dim < result.sizes.size(); ++dim)
      all.push_back({fmt::format("fill{}", dim), result.sizes[dim]});
    const loops::Assign fill{.places = {{result.name, loops::variables_of(all)}},
                             .combine = "",
                             .values = {border.value_or(Scalar::zero(result.dtype))}};
    for (Statement& statement : in_loops(all, {fill}))
      kernel.body.push_back(std::move(statement));
    assign.places.push_back({result.name, definition.at});
  }
  std::vector<Statement> body;
  if (definition.reduces())
    body.emplace_back(loops::Assign{.places = assign.places, .combine = "", .values = definition.initial});
  for (Statement& statement : in_loops(definition.reduced, {assign}))
    body.push_back(std::move(statement));
  for (Statement& statement : in_loops(definition.axes, std::move(body)))
    kernel.body.push_back(std::move(statement));
  std::set<std::string> symbols;
  add_symbols(definition, symbols);
  for (const std::string& known : kernel.size_symbols())
    symbols.erase(known);
  kernel.more_sizes = {symbols.begin(), symbols.end()};
  return kernel;
}

// --- graphs ---

class Interpreter {
 public:
  Interpreter(const KernelGraph& graph, const Data& inputs, RandomGenerator& random)
      : graph_(graph), random_(random), data_(graph.buffers.size()) {
    std::set<BufferId> used = graph.kept();
    for (const KernelNode& node : graph.nodes)
      used.insert(node.reads.begin(), node.reads.end());
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const KernelBuffer& buffer = graph.buffers[graph.inputs[i]];
      // What nothing reads may be anything.
      if (used.contains(graph.inputs[i]) && !fits(inputs[i], buffer.type(), sizes_))
        throw user_error("input {} should be {}{}", i, buffer.type(), bindings_text(buffer.type(), sizes_));
      data_[graph.inputs[i].number] = inputs[i];
    }
  }

  Data run() {
    for (size_t i = 0; i < graph_.buffers.size(); ++i)
      make_constant(BufferId{i});
    if (graph_.groups.empty())
      for (const KernelNode& node : graph_.nodes)
        run(node);
    for (const Group& group : graph_.groups)
      for (size_t node : group.nodes)
        run(graph_.nodes[node]);
    Data outputs;
    for (BufferId id : graph_.outputs)
      outputs.push_back(data_[id.number]);
    return outputs;
  }

  // Sizes that are not known yet count as 1.
  int64_t work() const {
    int64_t sum = 0;
    for (const KernelNode& node : graph_.nodes)
      if (node.stage) {
        int64_t points = 1;
        const Definition& definition = node.stage->definition;
        for (const std::vector<Axis>* axes : {&definition.axes, &definition.reduced})
          for (const Axis& axis : *axes)
            points *= axis.size.evaluate(sizes_).value_or(1);
        sum += points;
      }
    return sum;
  }

 private:
  void make_constant(BufferId id) {
    const KernelBuffer& buffer = graph_.buffers[id];
    if (buffer.home != Home::Constant)
      return;
    const auto* panels = std::get_if<PackedWeights>(&buffer.layout);
    if (panels != nullptr && !panels->split)
      data_[id.number] = packed(elements(panels->weights), panels->order);
    else if (const auto* order = std::get_if<PermutedLayout>(&buffer.layout))
      data_[id.number] = permuted(elements(id), order->order);
    else if (!buffer.made_of())
      data_[id.number] = elements(id);
  }
  // As the graph has them.
  Tensor elements(BufferId constant) const { return join(*pieces_of(graph_.buffers[constant].value)); }

  const Tensor& tensor(BufferId id) const { return data_[id.number].tensor(); }

  Extents extents_of(const std::vector<Dim>& sizes) const {
    Extents extents;
    for (const Dim& size : sizes)
      extents.push_back(*size.evaluate(sizes_));
    return extents;
  }

  void run(const KernelNode& node) {
    with_context([&] { return print(node, graph_); },
                 [&] {
                   switch (node.kind) {
                     case KernelNode::Kind::Definition:
                       return run(*node.stage);
                     case KernelNode::Kind::Nest:
                       return run(*node.nest, node.operands, node.results);
                     case KernelNode::Kind::Host:
                       return call(node);
                     case KernelNode::Kind::Alias:
                       return view(node);
                   }
                 });
  }

  void run(const Stage& stage) {
    const BufferTable& buffers = graph_.buffers;
    const auto* panels =
        stage.packed_b ? std::get_if<PackedWeights>(&buffers[buffers.id_of(stage.packed_b->buffer)].layout)
                       : nullptr;
    const bool as_written = stage.winograd_tile || (panels != nullptr && panels->split);
    const Kernel kernel =
        kernel_of(as_written ? *stage.as_written : Unpacking(graph_, stage).run(), stage.border, buffers);
    std::vector<BufferId> reads, writes;
    for (const Buffer& input : kernel.inputs)
      reads.push_back(buffers.id_of(input.name));
    for (const Buffer& output : kernel.outputs)
      writes.push_back(buffers.id_of(output.name));
    run(kernel, reads, writes);
  }

  void run(const Kernel& kernel, const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) {
    Bindings sizes;
    for (const std::string& symbol : kernel.size_symbols())
      sizes.emplace(symbol, sizes_.at(symbol));
    std::vector<Tensor> inputs;
    for (BufferId id : reads)
      inputs.push_back(tensor(id));
    const std::vector<Tensor> outputs = loops::interpret(kernel, inputs, sizes);
    for (size_t i = 0; i < outputs.size(); ++i)
      data_[writes[i].number] = outputs[i];
  }

  void view(const KernelNode& node) {
    const Tensor& from = tensor(node.operands.front());
    data_[node.results.front().number] =
        Tensor(from.dtype(), extents_of(graph_.buffers[node.results.front()].elements.sizes),
               std::make_shared<Tensor>(from), from.bytes());
  }

  void call(const KernelNode& node) {
    Data operands;
    for (BufferId id : node.operands)
      operands.push_back(data_[id.number]);
    Data results = node.node->op().eval(Call(*node.node, operands, random_));
    for (size_t i = 0; i < results.size(); ++i) {
      const Type type = graph_.buffers[node.results[i]].type();
      if (!fits(results[i], type, sizes_) && !resize_empty(results[i], type, sizes_))
        throw user_error("result {} should be {}{}", i, type, bindings_text(type, sizes_));
      data_[node.results[i].number] = std::move(results[i]);
    }
  }

  const KernelGraph& graph_;
  RandomGenerator& random_;
  Data data_;  // of the buffers
  Bindings sizes_;
};

}  // namespace

Data interpret(const KernelGraph& graph, const Data& inputs, RandomGenerator& random) {
  return Interpreter(graph, inputs, random).run();
}

int64_t count_work(const KernelGraph& graph, const Data& inputs) {
  RandomGenerator random(0);
  return Interpreter(graph, inputs, random).work();
}

}  // namespace tenon::lowering
