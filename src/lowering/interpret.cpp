#include "lowering/interpret.h"

#include <algorithm>

#include "base/error.h"
#include "ir/fit.h"
#include "loops/interpret.h"
#include "lowering/print.h"
#include "lowering/unpack.h"

namespace tenon::lowering {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Scalar;
using loops::Statement;

namespace {

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
      if (is_readable_constant(graph_, BufferId{i}))
        data_[i] = constant_in_memory(graph_, BufferId{i});
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
    const Kernel kernel = kernel_of(readable_definition(graph_, stage), stage.border, buffers);
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
    const Buffer& to = graph_.buffers[node.results.front()].elements;
    data_[node.results.front().number] =
        Tensor(to.dtype, extents_of(to.sizes), std::make_shared<Tensor>(from), from.bytes());
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
