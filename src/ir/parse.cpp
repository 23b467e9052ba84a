#include "ir/parse.h"

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int kMaximumDepth = 100;  // of nested graphs and types

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}

  std::unique_ptr<Graph> top() {
    expect_word("graph");
    std::string name = "main";
    if (peek() == '"')
      name = quoted();
    else if (peek() != '(')
      name = word();
    auto graph = std::make_unique<Graph>(name);
    body(*graph);
    skip_space();
    if (at_ != text_.size())
      fail("text after the end of the graph");
    return graph;
  }

  Type whole_type() {
    Type result = type();
    skip_space();
    if (at_ != text_.size())
      fail("text after the end of the type");
    return result;
  }

 private:
  using Scope = std::map<std::string, Value>;

  [[noreturn]] void fail(const std::string& message) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i)
      text_[i] == '\n' ? (++line, column = 1) : ++column;
    throw user_error("line {}, column {}: {}", line, column, message);
  }

  // --- letters and words
  // ---------------------------------------------------------------------------------------------

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("//"))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
        ++at_;
      else
        return;
    }
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(fmt::format("'{}' was expected", c));
  }
  static bool is_word(char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' || c == '.';
  }
  std::string_view peek_word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end]))
      ++end;
    return text_.substr(at_, end - at_);
  }
  std::string word() {
    const std::string_view w = peek_word();
    if (w.empty())
      fail("a name was expected");
    at_ += w.size();
    return std::string(w);
  }
  bool accept_word(std::string_view wanted) {
    if (peek_word() != wanted)
      return false;
    at_ += wanted.size();
    return true;
  }
  void expect_word(std::string_view wanted) {
    if (!accept_word(wanted))
      fail(fmt::format("'{}' was expected", wanted));
  }
  std::string quoted() {
    expect('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
        else if (c == 'x') {
          unsigned code = 0;
          const auto [end, error] =
              std::from_chars(text_.data() + at_, text_.data() + std::min(at_ + 2, text_.size()), code, 16);
          if (error != std::errc() || end != text_.data() + at_ + 2)
            fail("\\x takes two hexadecimal digits");
          at_ += 2;
          c = static_cast<char>(code);
        } else if (c != '"' && c != '\\')
          fail("an unknown escape in a text");
      }
      result += c;
    }
    if (at_ == text_.size())
      fail("a text does not end");
    ++at_;
    return result;
  }
  template <class T>
  T integer() {
    skip_space();
    T value{};
    const bool hexadecimal = text_.substr(at_).starts_with("0x");
    const char* begin = text_.data() + at_ + (hexadecimal ? 2 : 0);
    const auto [end, error] =
        std::from_chars(begin, text_.data() + text_.size(), value, hexadecimal ? 16 : 10);
    if (error != std::errc())
      fail("an integer was expected");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  double real() {
    const bool negative = accept('-');
    double value = 0;
    if (accept_word("inf")) {
      value = std::numeric_limits<double>::infinity();
    } else if (accept_word("nan")) {
      value = std::nan("");
    } else {
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error == std::errc::invalid_argument)
        fail("a number was expected");
      at_ = static_cast<size_t>(end - text_.data());
    }
    return negative ? -value : value;
  }
  template <class F>
  void list(char open, char close, F&& item) {
    expect(open);
    if (accept(close))
      return;
    do
      item();
    while (accept(','));
    expect(close);
  }

  // --- types and attribute values
  // ------------------------------------------------------------------------------------

  DType dtype() {
    const std::string w = word();
    const std::optional<DType> dtype = parse_dtype(w);
    if (!dtype)
      fail(fmt::format("'{}' is not a dtype", w));
    return *dtype;
  }

  Type type(int depth = 0) {
    if (depth > kMaximumDepth)
      fail("types are nested too deeply");
    for (const bool sequence : {true, false})
      if (accept_word(sequence ? "seq" : "opt")) {
        expect('<');
        Type element = type(depth + 1);
        expect('>');
        return sequence ? Type::sequence(element) : Type::optional(element);
      }
    const DType element = dtype();
    expect('[');
    if (accept('*')) {
      expect(']');
      return Type::tensor(element, Shape::unranked());
    }
    std::vector<Dim> dims;
    if (!accept(']')) {
      do
        dims.push_back(dim());
      while (accept(','));
      expect(']');
    }
    return Type::tensor(element, dims);
  }

  // Up to the comma or bracket that ends it, outside any parentheses or backticks.
  Dim dim() {
    skip_space();
    const size_t begin = at_;
    int open = 0;
    bool name = false;
    while (at_ < text_.size() &&
           (open > 0 || name || std::string_view(",])").find(text_[at_]) == std::string_view::npos)) {
      if (text_[at_] == '`')
        name = !name;
      else if (!name && text_[at_] == '(')
        ++open;
      else if (!name && text_[at_] == ')')
        --open;
      ++at_;
    }
    try {
      return Dim::parse(text_.substr(begin, at_ - begin));
    } catch (const UserError& error) {
      at_ = begin;
      fail(error.what());
    }
  }

  Literal literal() {
    const Type t = type();
    const auto extents = t.is_tensor() ? t.as_tensor().shape.extents() : std::nullopt;
    if (!extents)
      fail("the type of a constant must be a tensor of known size");
    const DType element = t.as_tensor().dtype;
    if (accept_word("splat"))
      return Literal::splat(elements(element, {}, false), *extents);
    if (accept_word("iota")) {
      const auto start = integer<int64_t>();
      const auto step = integer<int64_t>();
      if (extents->size() != 1 || !is_integer(element))
        fail("an iota is a vector of integers");
      return Literal::iota(element, start, step, extents->front());
    }
    if (accept_word("file")) {
      const std::filesystem::path path = quoted();
      const auto offset = integer<uint64_t>();
      const auto size = integer<uint64_t>();
      return Literal::file_slice(element, *extents, open_file(options_.folder / path), offset, size);
    }
    if (accept_word("hash")) {
      const auto hash = integer<uint64_t>();
      const auto it =
          options_.literals == nullptr ? LiteralTable::const_iterator() : options_.literals->find(hash);
      if (options_.literals == nullptr || it == options_.literals->end())
        fail(fmt::format("the constant with hash {:#018x} is not at hand", hash));
      return it->second;
    }
    return elements(element, *extents, true);
  }

  Tensor elements(DType element, const Extents& extents, bool braces) {
    const int64_t count = element_count(extents);
    const auto each = [&](auto&& item) {
      if (braces)
        list('{', '}', item);
      else
        item();
    };
    const auto check_count = [&](size_t got) {
      if (static_cast<int64_t>(got) != count)
        fail(fmt::format("{} elements were given, but the type has {}", got, count));
    };
    if (element == DType::String) {
      std::vector<std::string> values;
      each([&] { values.push_back(quoted()); });
      check_count(values.size());
      return Tensor::strings(std::move(values), extents);
    }
    return with_wide(element, [&]<class T>(T) {
      std::vector<T> values;
      each([&] {
        if constexpr (std::is_same_v<T, double>)
          values.push_back(real());
        else
          values.push_back(integer<T>());
      });
      check_count(values.size());
      return narrow<T>(element, extents, values);
    });
  }

  std::shared_ptr<const MappedFile> open_file(const std::filesystem::path& path) {
    auto& file = files_[path];
    if (file == nullptr)
      file = MappedFile::open(path);
    return file;
  }

  Attribute attribute(AttributeKind wanted) {
    switch (wanted) {
      case AttributeKind::Bool:
        if (accept_word("true"))
          return true;
        expect_word("false");
        return false;
      case AttributeKind::Int:
        return integer<int64_t>();
      case AttributeKind::Float:
        return real();
      case AttributeKind::String:
        return quoted();
      case AttributeKind::Ints: {
        Attribute::Ints values;
        list('[', ']', [&] { values.push_back(integer<int64_t>()); });
        return values;
      }
      case AttributeKind::Floats: {
        Attribute::Floats values;
        list('[', ']', [&] { values.push_back(real()); });
        return values;
      }
      case AttributeKind::Strings: {
        Attribute::Strings values;
        list('[', ']', [&] { values.push_back(quoted()); });
        return values;
      }
      case AttributeKind::DType:
        return dtype();
      case AttributeKind::Type:
        return type();
      case AttributeKind::Literal:
        return literal();
    }
    fail("an attribute of no kind");
  }

  // --- graphs
  // --------------------------------------------------------------------------------------------------------

  // The name after a %; `named` is false for a bare number.
  std::string value_name(bool& named) {
    expect('%');
    named = peek() == '"' || !('0' <= peek() && peek() <= '9');
    return peek() == '"' ? quoted() : word();
  }

  void define(Scope& scope, const std::string& name, bool named, Value value) {
    if (!scope.emplace((named ? "n" : "#") + name, value).second)
      fail(fmt::format("%{} is defined twice", name));
    if (named)
      value.set_name(name);
  }

  Value use(const Scope& scope) {
    const size_t begin = at_;
    bool named = false;
    const std::string name = value_name(named);
    const auto it = scope.find((named ? "n" : "#") + name);
    if (it == scope.end()) {
      at_ = begin;
      skip_space();
      fail(fmt::format("%{} is not defined here", name));
    }
    return it->second;
  }

  void body(Graph& graph, int depth = 0) {
    if (depth > kMaximumDepth)
      fail("graphs are nested too deeply");
    Scope scope;
    list('(', ')', [&] {
      if (peek() != '%')
        fail("an input such as %x: f32[2] was expected");
      bool named = false;
      const std::string name = value_name(named);
      expect(':');
      define(scope, name, named, graph.add_input(type(), named ? name : ""));
    });
    expect('{');
    while (!accept_word("return"))
      statement(graph, scope, depth);
    std::vector<Value> outputs;
    std::vector<std::string> names;
    if (peek() == '%') {
      do {
        outputs.push_back(use(scope));
        names.push_back(accept_word("as") ? quoted() : outputs.back().name());
      } while (accept(','));
    }
    graph.set_outputs(outputs, names);
    expect('}');
  }

  void statement(Graph& graph, Scope& scope, int depth) {
    struct Result {
      std::string name;
      bool named;
      std::optional<Type> type;
    };
    std::vector<Result> results;
    if (peek() == '%') {
      do {
        Result result;
        result.name = value_name(result.named);
        if (accept(':'))
          result.type = type();
        results.push_back(std::move(result));
      } while (accept(','));
      expect('=');
    }
    skip_space();
    const size_t begin = at_;
    const std::string op_name = word();
    const OpDef* op = find_op(op_name);
    if (op == nullptr) {
      std::vector<std::string_view> names;
      for (const OpDef* known : registered_ops())
        names.push_back(known->name);
      const std::string_view near = closest_name(op_name, names);
      at_ = begin;
      fail(fmt::format("there is no op {}{}", op_name,
                       near.empty() ? "" : fmt::format("\n  hint: did you mean {}?", near)));
    }
    std::vector<Operand> operands;
    Attributes attributes;
    arguments(*op, scope, operands, attributes);
    std::vector<std::unique_ptr<Graph>> regions;
    for (std::string_view region : op->regions) {
      expect_word(region);
      regions.push_back(graph.make_region(std::string(region)));
      body(*regions.back(), depth + 1);
    }
    std::vector<std::string> sources;
    if (accept_word("from")) {
      do
        sources.push_back(quoted());
      while (accept(','));
    }
    Types types;
    for (const Result& result : results)
      if (result.type)
        types.push_back(*result.type);
    if (!types.empty() && types.size() != results.size())
      fail("either all results of a node have their types written, or none");
    Node* node = nullptr;
    try {
      node = graph.create(*op, std::move(operands), std::move(attributes), std::move(regions),
                          types.empty() ? nullptr : &types);
      for (size_t i = 0; i < types.size(); ++i)
        if (const Type& made = node->result(static_cast<int64_t>(i)).type(); !refines(made, types[i]))
          throw user_error("{}: result {} is {}, but {} was written", op_name, i, made, types[i]);
    } catch (const UserError& error) {
      at_ = begin;
      fail(error.what());
    }
    node->set_sources(std::move(sources));
    if (node->result_count() != static_cast<int64_t>(results.size())) {
      at_ = begin;
      fail(fmt::format("{} has {} results, but {} names were given", op_name, node->result_count(),
                       results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i)
      define(scope, results[i].name, results[i].named, node->result(static_cast<int64_t>(i)));
  }

  void arguments(const OpDef& op, const Scope& scope, std::vector<Operand>& operands,
                 Attributes& attributes) {
    size_t position = 0;
    list('(', ')', [&] {
      if (peek() == '%' || peek() == '[') {
        if (position == op.operands.size())
          fail(fmt::format("{} takes no more operands", op.name));
        operands.emplace_back(op.operands[position++].name, values(scope));
        return;
      }
      const size_t begin = at_;
      const std::string name = word();
      expect('=');
      const AttributeDecl* decl = op.find_attribute(name);
      if (op.find_operand(name) != nullptr || (decl != nullptr && peek() == '%')) {
        operands.emplace_back(decl != nullptr ? decl->name : op.find_operand(name)->name, values(scope));
      } else if (decl != nullptr) {
        attributes.insert_or_assign(name, attribute(decl->kind));
      } else {
        at_ = begin;
        fail(fmt::format("{} has no operand or attribute {}", op.name, name));
      }
    });
  }

  std::vector<Value> values(const Scope& scope) {
    if (peek() == '%')
      return {use(scope)};
    std::vector<Value> values;
    list('[', ']', [&] { values.push_back(use(scope)); });
    return values;
  }

  std::string_view text_;
  size_t at_ = 0;
  const ParseOptions& options_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).top();
}

Type parse_type(std::string_view text) { return Parser(text, {}).whole_type(); }

}  // namespace tenon
