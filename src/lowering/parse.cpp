#include "lowering/parse.h"

#include <array>

#include "ir/scanner.h"
#include "lowering/definition_text.h"
#include "passes/target/decompose_ops.h"

namespace tenon::lowering {

using loops::Axis;
using loops::Buffer;
using loops::Definition;

namespace {

class Parser : Scanner {
 public:
  Parser(std::string_view text, const ParseOptions& options) : Scanner(text), options_(options) {}

  KernelGraph parse() {
    is_fused_ = accept_word("fused");
    expect_word("kernel");
    expect_word("graph");
    graph_.name = peek() == '"' ? quoted() : word();
    expect('{');
    while (is_home(peek_word()))
      buffer();
    make_constants();
    while (!accept_word("return"))
      step();
    if (peek() != '}')
      graph_.outputs = names();
    expect('}');
    if (peek() != '\0')
      fail("the kernel graph ends here, but not the text");
    return std::move(graph_);
  }

 private:
  // --- buffers ---

  static constexpr std::array<std::string_view, 4> kHomes = {"input", "constant", "output", "buffer"};

  static bool is_home(std::string_view word) { return std::ranges::find(kHomes, word) != kHomes.end(); }

  BufferId name() {
    skip_space();
    const size_t begin = at_;
    const std::string called = word();
    if (const std::optional<BufferId> id = graph_.buffers.find(called))
      return *id;
    at_ = begin;
    fail(fmt::format("'{}' is no buffer", called));
  }
  std::vector<BufferId> names() {
    std::vector<BufferId> ids;
    do
      ids.push_back(name());
    while (accept(','));
    return ids;
  }

  // What stands before the next of these words, on its own.
  std::string_view until(std::string_view end) {
    skip_space();
    const size_t begin = at_;
    at_ = std::min(text_.find(end, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  void buffer() {
    KernelBuffer buffer;
    buffer.home = static_cast<Home>(std::ranges::find(kHomes, word()) - kHomes.begin());
    buffer.elements.name = word();
    if (graph_.buffers.contains(buffer.name()))
      fail(fmt::format("two buffers are called {}", buffer.name()));
    expect(':');
    const size_t begin = at_;
    const Type type = at_place(begin, [&] { return parse_type(until(" on ")); });
    if (has_code(type)) {
      buffer.elements.dtype = type.as_tensor().dtype;
      buffer.elements.sizes = type.as_tensor().shape.dims();
    } else {
      buffer.host_type = type;
    }
    expect_word("on");
    expect_word("cpu");
    if (accept_word("vnni")) {
      expect_word("along");
      buffer.vnni_dim = integer<size_t>();
    }
    buffer.layout = layout();
    const bool has_elements = buffer.home == Home::Constant && !buffer.made_of();
    if (has_elements)
      constant(buffer.name());
    const BufferId id = graph_.buffers.add(std::move(buffer));
    if (graph_.buffers[id].home == Home::Input)
      graph_.inputs.push_back(id);
  }

  Layout layout() {
    if (accept_word("image")) {
      ImageLayout image{.order = numbers<size_t>(), .before = {}, .after = {}};
      expect_word("before");
      image.before = numbers<int64_t>();
      expect_word("after");
      image.after = numbers<int64_t>();
      return image;
    }
    if (accept_word("permuted"))
      return PermutedLayout{numbers<size_t>()};
    if (accept_word("packed")) {
      PackedWeights packed;
      expect_word("of");
      packed.weights = name();
      expect_word("order");
      packed.order.order = numbers<size_t>();
      expect_word("reduced");
      packed.order.reduced = integer<size_t>();
      expect_word("lanes");
      packed.order.lanes = integer<int64_t>();
      expect_word("groups");
      packed.order.groups = integer<int64_t>();
      packed.split = accept_word("split");
      return packed;
    }
    if (accept_word("winograd")) {
      TransformedWeights transformed{};
      expect_word("of");
      transformed.weights = name();
      expect_word("tile");
      transformed.tile = integer<int64_t>();
      return transformed;
    }
    return PlainLayout();
  }

  template <class T>
  std::vector<T> numbers() {
    std::vector<T> all;
    list('[', ']', [&] { all.push_back(integer<T>()); });
    return all;
  }

  // Collected as statements of one graph, which holds all constants.
  void constant(const std::string& name) {
    const auto state = [&](const std::string& value) {
      constants_ += fmt::format("  %{} = constant(value={})\n", value, until("\n"));
    };
    expect('=');
    if (!accept_word("joined"))
      return state(name);
    expect_word("along");
    const auto dim = integer<int64_t>();
    std::string pieces;
    expect('{');
    for (int64_t i = 0; !accept('}'); ++i) {
      state(fmt::format("{}.{}", name, i));
      pieces += fmt::format("{}%{}.{}", i == 0 ? "" : ", ", name, i);
    }
    constants_ += fmt::format("  %{} = concat([{}], axis={})\n", name, pieces, dim);
  }

  void make_constants() {
    const std::shared_ptr<const Graph> all =
        tenon::parse(fmt::format("graph constants() {{\n{}  return\n}}", constants_), options_);
    for (const Node* node : all->nodes())
      if (const std::optional<BufferId> id = graph_.buffers.find(node->result().name())) {
        graph_.buffers[*id].value = node->result();
        graph_.values.emplace(node->result().data(), *id);
      }
    graph_.host.push_back(all);
  }

  // --- groups ---

  void step() {
    if (!is_fused_)
      return node();
    if (accept_word("kernel")) {
      graph_.groups.push_back(group());
      return;
    }
    node();
    graph_.groups.push_back({.nodes = {graph_.nodes.size() - 1}});
  }

  Group group() {
    constexpr std::array<std::string_view, 4> kPatterns = {"map", "rows", "contract", "attention"};
    Group group;
    if (accept_word("tiles")) {
      tiles(group);
      return group;
    }
    const auto* pattern = std::ranges::find(kPatterns, peek_word());
    if (pattern == kPatterns.end())
      fail("a pattern of a kernel was expected: map, rows, contract, attention or tiles");
    accept_word(*pattern);
    group.pattern = static_cast<Pattern>(pattern - kPatterns.begin());
    if (accept_word("of")) {
      group.rows = integer<int64_t>();
      expect_word("shared");
      expect_word("axes");
    }
    expect('{');
    while (!accept('}')) {
      node();
      group.nodes.push_back(graph_.nodes.size() - 1);
    }
    return group;
  }

  void tiles(Group& group) {
    expect_word("of");
    do {
      const auto rows = integer<int64_t>();
      expect_word("of");
      expect_word("dimension");
      group.tile.push_back({integer<size_t>(), rows});
    } while (accept(','));
    expect('{');
    while (!accept('}')) {
      expect_word("kernel");
      group.parts.push_back(this->group());
      group.nodes.insert(group.nodes.end(), group.parts.back().nodes.begin(), group.parts.back().nodes.end());
    }
  }

  // --- nodes ---

  void node() {
    if (accept_word("define"))
      return definition();
    if (accept_word("host"))
      return call();
    if (accept_word("nest"))
      return nest();
    if (accept_word("alias")) {
      KernelNode node = other(KernelNode::Kind::Alias);
      graph_.nodes.push_back(std::move(node));
      return;
    }
    fail("'define', 'host', 'nest', 'alias', 'kernel' or 'return' was expected");
  }

  KernelNode other(KernelNode::Kind kind) {
    KernelNode node{.kind = kind};
    node.results = names();
    expect_word("of");
    node.operands = names();
    node.reads = {node.operands.begin(), node.operands.end()};
    node.writes = {node.results.begin(), node.results.end()};
    modifiers(node);
    if (accept_word("from"))
      node.sources = texts();
    return node;
  }

  void modifiers(KernelNode& node) {
    node.stays = accept_word("stays");
    if (accept_word("after"))
      for (BufferId id : names())
        node.after.insert(id);
  }

  std::vector<std::string> texts() {
    std::vector<std::string> all;
    do
      all.push_back(quoted());
    while (accept(','));
    return all;
  }

  // The text within braces.
  std::string_view block() {
    expect('{');
    const size_t begin = at_;
    int depth = 1;
    for (; at_ < text_.size() && depth > 0; ++at_)
      if (text_[at_] == '"') {
        quoted();
        --at_;
      } else {
        depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
      }
    if (depth > 0)
      fail("a block does not end");
    return text_.substr(begin, at_ - begin - 1);
  }

  void nest() {
    KernelNode node = other(KernelNode::Kind::Nest);
    const size_t begin = at_;
    const std::string_view text = block();
    node.nest = at_place(begin, [&] { return loops::parse_kernel(text); });
    graph_.nodes.push_back(std::move(node));
  }

  // A graph of one node, whose inputs are the buffers that it names.
  void call() {
    KernelNode node{.kind = KernelNode::Kind::Host};
    modifiers(node);
    const size_t begin = at_;
    const std::string_view text = block();
    std::string inputs;
    for (const KernelBuffer& buffer : graph_.buffers)
      if (is_operand(text, "%" + buffer.name()))
        inputs += fmt::format("{}%{}: {}", inputs.empty() ? "" : ", ", buffer.name(), buffer.type());
    const std::shared_ptr<const Graph> called = at_place(begin, [&] {
      return std::shared_ptr<const Graph>(
          tenon::parse(fmt::format("graph call({}) {{\n{}\n  return\n}}", inputs, text), options_));
    });
    if (called->node_count() != 1)
      fail("a host node calls one op");
    for (Value input : called->inputs())
      graph_.values.emplace(input.data(), graph_.buffers.id_of(input.name()));
    node.node = called->first();
    for (Value operand : node.node->operands())
      node.operands.push_back(graph_.buffer_of(operand));
    for (Value result : node.node->results()) {
      const std::optional<BufferId> id = graph_.buffers.find(result.name());
      if (!id)
        fail(fmt::format("%{} is no buffer", result.name()));
      graph_.values.emplace(result.data(), *id);
      node.results.push_back(*id);
    }
    node.reads = {node.operands.begin(), node.operands.end()};
    node.writes = {node.results.begin(), node.results.end()};
    node.loop = std::ranges::find(node.node->op().regions, "body") != node.node->op().regions.end();
    graph_.host.push_back(called);
    graph_.nodes.push_back(std::move(node));
  }

  // Whether a statement names the value, and not as a result, nor only in a nested graph.
  static bool is_operand(std::string_view statement, const std::string& value) {
    const size_t call = statement.find(" = ");
    for (size_t at = statement.find(value, call == std::string_view::npos ? 0 : call);
         at != std::string_view::npos; at = statement.find(value, at + 1))
      if (at + value.size() == statement.size() || !is_word(statement[at + value.size()]))
        return true;
    return false;
  }

  void definition() {
    Stage stage;
    std::vector<Buffer> results;
    for (BufferId id : names())
      results.push_back(graph_.buffers[id].elements);
    std::vector<Axis> axes, reduced;
    read_axes(axes, reduced);
    plan(stage);
    KernelNode waiting;
    modifiers(waiting);
    if (accept_word("from"))
      stage.sources = texts();
    if (accept_word("refusing"))
      stage.refusing = texts();
    stage.definition = body(results, std::move(axes), std::move(reduced));
    if (accept_word("as")) {
      expect_word("written");
      read_axes(axes, reduced);
      stage.as_written = body(results, std::move(axes), std::move(reduced));
    }
    KernelNode node = make_node(std::move(stage), graph_.buffers);
    node.stays = waiting.stays;
    node.after = std::move(waiting.after);
    graph_.nodes.push_back(std::move(node));
  }

  Definition body(const std::vector<Buffer>& results, std::vector<Axis> axes, std::vector<Axis> reduced) {
    const size_t begin = at_;
    const std::string_view text = block();
    Definition definition = at_place(begin, [&] { return parse_body(text, results, graph_.buffers); });
    definition.axes = std::move(axes);
    definition.reduced = std::move(reduced);
    return definition;
  }

  void read_axes(std::vector<Axis>& axes, std::vector<Axis>& reduced) {
    axes.clear();
    reduced.clear();
    for (const auto& [word, to] : {std::pair("for", &axes), std::pair("over", &reduced)})
      if (accept_word(word))
        do {
          std::string variable = this->word();
          expect_word("in");
          expect_zero();
          to->push_back({std::move(variable), size()});
        } while (accept(','));
  }

  void expect_zero() {
    skip_space();
    if (!text_.substr(at_).starts_with("0.."))
      fail("'0..' was expected");
    at_ += 3;
  }

  // Up to a comma, a brace, or the word that comes next.
  Dim size() {
    constexpr std::string_view kNext[] = {"over",   "contraction", "winograd", "packed_b", "packed_a",
                                          "border", "stays",       "after",    "from",     "refusing"};
    const size_t begin = at_;
    int depth = 0;
    bool in_name = false;
    const auto ends = [&] {
      const char c = text_[at_];
      if (c != ' ')
        return c == ',' || c == '{';
      const std::string_view rest = text_.substr(at_ + 1);
      return std::ranges::any_of(kNext, [&](std::string_view next) {
        return rest.starts_with(next) && (rest.size() == next.size() || !is_word(rest[next.size()]));
      });
    };
    for (; at_ < text_.size() && (depth > 0 || in_name || !ends()); ++at_) {
      in_name = in_name != (text_[at_] == '`');
      if (!in_name)
        depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
    }
    size_t end = at_;
    while (end > begin && text_[end - 1] == ' ')
      --end;
    return at_place(begin, [&] { return Dim::parse(text_.substr(begin, end - begin)); });
  }

  // --- what was decided about a definition ---

  void plan(Stage& stage) {
    if (accept_word("contraction")) {
      expect('(');
      stage.contraction = parse_contraction(until(")"));
      if (!stage.contraction)
        fail("a contraction such as (key 0x1, rows 6) was expected");
      expect(')');
    }
    if (accept_word("winograd")) {
      expect('(');
      stage.winograd_tile = integer<int64_t>();
      expect(')');
    }
    if (accept_word("packed_b")) {
      PackedB packed{};
      expect('(');
      packed.buffer = graph_.buffers[name()].name();
      expect(',');
      packed.lanes = integer<int64_t>();
      expect(',');
      packed.groups = integer<int64_t>();
      expect(',');
      packed.row_axes = integer<size_t>();
      expect(',');
      packed.rows_adjoin = accept_word("true");
      if (!packed.rows_adjoin)
        expect_word("false");
      expect(')');
      stage.packed_b = packed;
    }
    if (accept_word("packed_a")) {
      PackedA packed{};
      expect('(');
      packed.buffer = graph_.buffers[name()].name();
      expect(',');
      packed.rows = integer<int64_t>();
      expect(')');
      stage.packed_a = packed;
    }
    if (accept_word("border")) {
      expect('(');
      const size_t begin = at_;
      const std::string number(until(")"));
      stage.border = at_place(begin, [&] { return parse_number(number + ")"); });
      expect(')');
      expect(')');
    }
  }

  const ParseOptions& options_;
  KernelGraph graph_;
  bool is_fused_ = false;
  std::string constants_;  // statements
};

}  // namespace

KernelGraph parse_kernel_graph(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).parse();
}

}  // namespace tenon::lowering
