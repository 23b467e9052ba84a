#include "lowering/print.h"

#include <fmt/ranges.h>

#include "ir/print.h"
#include "lowering/definition_text.h"
#include "passes/target/constant_pieces.h"

namespace tenon::lowering {

using loops::Scalar;

namespace {

std::string quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts)
    all.push_back(quote(text));
  return fmt::format("{}", fmt::join(all, ", "));
}

class Printer {
 public:
  explicit Printer(const KernelGraph& graph) : graph_(graph) {}

  std::string whole() {
    line(fmt::format("{}kernel graph {} {{", graph_.groups.empty() ? "" : "fused ", quote(graph_.name)));
    ++depth_;
    for (const KernelBuffer& buffer : graph_.buffers)
      print(buffer);
    if (graph_.groups.empty())
      for (const KernelNode& node : graph_.nodes)
        print(node);
    for (const Group& group : graph_.groups)
      print(group);
    line(fmt::format("return{}{}", graph_.outputs.empty() ? "" : " ", names(graph_.outputs)));
    --depth_;
    line("}");
    return std::move(text_);
  }

  // A buffer without the elements of a constant.
  std::string head_of(const KernelBuffer& buffer) const {
    constexpr std::string_view kHomes[] = {"input", "constant", "output", "buffer"};
    constexpr std::string_view kDevices[] = {"cpu"};
    return fmt::format("{} {}: {} on {}{}{}", kHomes[static_cast<size_t>(buffer.home)], buffer.name(),
                       buffer.type(), kDevices[static_cast<size_t>(buffer.device)],
                       buffer.vnni_dim ? fmt::format(" vnni along {}", *buffer.vnni_dim) : "",
                       layout(buffer.layout));
  }

  std::string alone(const KernelNode& node) {
    print(node);
    return std::move(text_);
  }

 private:
  void line(std::string_view words) { text_ += fmt::format("{}{}\n", std::string(2 * depth_, ' '), words); }
  // Lines of their own.
  void lines(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  const std::string& name(BufferId id) const { return graph_.buffers[id].name(); }
  template <class Ids>
  std::string names(const Ids& ids) const {
    std::vector<std::string> all;
    for (BufferId id : ids)
      all.push_back(name(id));
    return fmt::format("{}", fmt::join(all, ", "));
  }

  // --- buffers ---

  void print(const KernelBuffer& buffer) {
    const std::string head = head_of(buffer);
    if (buffer.home != Home::Constant || buffer.made_of())
      return line(head);
    const Pieces pieces = *pieces_of(buffer.value);
    if (pieces.literals.size() == 1)
      return line(fmt::format("{} = {}", head, tenon::print(Attribute(*pieces.literals.front()))));
    line(fmt::format("{} = joined along {} {{", head, pieces.dim));
    ++depth_;
    for (const Literal* literal : pieces.literals)
      line(tenon::print(Attribute(*literal)));
    --depth_;
    line("}");
  }

  std::string layout(const Layout& layout) const {
    if (const auto* image = std::get_if<ImageLayout>(&layout))
      return fmt::format(" image [{}] before [{}] after [{}]", fmt::join(image->order, ","),
                         fmt::join(image->before, ","), fmt::join(image->after, ","));
    if (const auto* permuted = std::get_if<PermutedLayout>(&layout))
      return fmt::format(" permuted [{}]", fmt::join(permuted->order, ","));
    if (const auto* packed = std::get_if<PackedWeights>(&layout))
      return fmt::format(" packed of {} order [{}] reduced {} lanes {} groups {}{}", name(packed->weights),
                         fmt::join(packed->order.order, ","), packed->order.reduced, packed->order.lanes,
                         packed->order.groups, packed->split ? " split" : "");
    if (const auto* transformed = std::get_if<TransformedWeights>(&layout))
      return fmt::format(" winograd of {} tile {}", name(transformed->weights), transformed->tile);
    return "";
  }

  // --- groups ---

  void print(const Group& group) {
    constexpr std::string_view kPatterns[] = {"map", "rows", "contract", "attention"};
    const KernelNode& first = graph_.nodes[group.nodes.front()];
    if (first.kind == KernelNode::Kind::Host || first.kind == KernelNode::Kind::Alias)
      return print(first);
    if (group.parts.empty()) {
      const bool shares = group.rows != 0;
      line(fmt::format("kernel {}{} {{", kPatterns[static_cast<size_t>(group.pattern)],
                       shares ? fmt::format(" of {} shared axes", group.rows) : ""));
    } else {
      std::vector<std::string> sizes;
      for (const TileSize& size : group.tile)
        sizes.push_back(fmt::format("{} of dimension {}", size.rows, size.dim));
      line(fmt::format("kernel tiles of {} {{", fmt::join(sizes, ", ")));
    }
    ++depth_;
    for (const Group& part : group.parts)
      print(part);
    if (group.parts.empty())
      for (size_t node : group.nodes)
        print(graph_.nodes[node]);
    --depth_;
    line("}");
  }

  // --- nodes ---

  void print(const KernelNode& node) {
    switch (node.kind) {
      case KernelNode::Kind::Definition:
        return print_definition(node);
      case KernelNode::Kind::Nest:
        return print_nest(node);
      case KernelNode::Kind::Host:
        return print_call(node);
      case KernelNode::Kind::Alias:
        return line(
            fmt::format("alias {} of {}{}", names(node.results), names(node.operands), modifiers(node)));
    }
  }

  std::string waits(const KernelNode& node) const {
    return fmt::format("{}{}", node.stays ? " stays" : "",
                       node.after.empty() ? "" : " after " + names(node.after));
  }

  std::string modifiers(const KernelNode& node) const {
    return waits(node) + (node.sources.empty() ? "" : " from " + quoted(node.sources));
  }

  void print_call(const KernelNode& node) {
    line(fmt::format("host{} {{", waits(node)));
    ++depth_;
    lines(tenon::print(*node.node, [&](Value value) { return name(graph_.buffer_of(value)); }));
    --depth_;
    line("}");
  }

  void print_nest(const KernelNode& node) {
    line(fmt::format("nest {} of {}{} {{", names(node.results), names(node.operands), modifiers(node)));
    ++depth_;
    lines(loops::print(*node.nest));
    --depth_;
    line("}");
  }

  void print_definition(const KernelNode& node) {
    const Stage& stage = *node.stage;
    std::vector<std::string> results;
    for (const loops::Buffer& result : stage.definition.results)
      results.push_back(result.name);
    print_loops(fmt::format("define {}", fmt::join(results, ", ")), stage.definition,
                fmt::format("{}{}{}{}", plan(stage), waits(node),
                            stage.sources.empty() ? "" : " from " + quoted(stage.sources),
                            stage.refusing.empty() ? "" : " refusing " + quoted(stage.refusing)));
    if (stage.as_written)
      print_loops("as written", *stage.as_written, "");
  }

  void print_loops(const std::string& head, const loops::Definition& definition, const std::string& tail) {
    line(fmt::format("{}{}{}{} {{", head, axes(" for ", definition.axes), axes(" over ", definition.reduced),
                     tail));
    ++depth_;
    lines(print_body(definition, graph_.buffers));
    --depth_;
    line("}");
  }

  static std::string axes(std::string_view word, const std::vector<loops::Axis>& axes) {
    std::vector<std::string> all;
    for (const loops::Axis& axis : axes)
      all.push_back(fmt::format("{} in 0..{}", axis.variable, axis.size));
    return all.empty() ? "" : fmt::format("{}{}", word, fmt::join(all, ", "));
  }

  // What was decided about a definition.
  static std::string plan(const Stage& stage) {
    std::string text;
    if (stage.contraction)
      text += fmt::format(" contraction({})", print_contraction(*stage.contraction));
    if (stage.winograd_tile)
      text += fmt::format(" winograd({})", *stage.winograd_tile);
    if (const auto& b = stage.packed_b)
      text += fmt::format(" packed_b({}, {}, {}, {}, {})", b->buffer, b->lanes, b->groups, b->row_axes,
                          b->rows_adjoin);
    if (stage.packed_a)
      text += fmt::format(" packed_a({}, {})", stage.packed_a->buffer, stage.packed_a->rows);
    if (stage.border)
      text += fmt::format(" border({})", print_number(*stage.border));
    return text;
  }

  const KernelGraph& graph_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

std::string print(const KernelGraph& graph) { return Printer(graph).whole(); }
std::string print(const KernelBuffer& buffer, const KernelGraph& graph) {
  return Printer(graph).head_of(buffer);
}
std::string print(const KernelNode& node, const KernelGraph& graph) { return Printer(graph).alone(node); }

}  // namespace tenon::lowering
