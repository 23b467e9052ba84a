#include "ir/parse.h"

#include "base/error.h"
#include "base/sampled_hash.h"
#include "ir/scanner.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int kMaximumDepth = 100;  // of nested graphs and types

class AbsentElements : public DeferredElements {
 public:
  Tensor tensor() const override {
    throw user_error("the elements of large constants are not at hand\n  hint: the model itself has them");
  }
};

class Parser : Scanner {
 public:
  Parser(std::string_view text, const ParseOptions& options) : Scanner(text), options_(options) {}

  std::unique_ptr<Graph> top() {
    expect_word("graph");
    std::string name = "main";
    if (peek() == '"')
      name = quoted();
    else if (peek() != '(')
      name = word();
    auto graph = std::make_unique<Graph>(name);
    reserve_symbols(*graph);
    body(*graph);
    expect_end("graph");
    return graph;
  }

  Type whole_type() {
    Type result = type();
    expect_end("type");
    return result;
  }

  Attribute whole_attribute(AttributeKind kind) {
    Attribute result = attribute(kind);
    expect_end("attribute");
    return result;
  }

 private:
  using Scope = std::map<std::string, Value>;

  void expect_end(std::string_view what) {
    skip_space();
    if (at_ != text_.size())
      fail(fmt::format("text after the end of the {}", what));
  }

  // A symbol that inference makes up must not be one that is written further down.
  void reserve_symbols(Graph& graph) const {
    for (size_t begin = 0; begin < text_.size(); ++begin) {
      size_t end = begin;
      while (end < text_.size() && is_word(text_[end]))
        ++end;
      if (end - begin > 1 && text_[begin] == 'd')
        graph.symbols().reserve(text_.substr(begin, end - begin));
      begin = end;
    }
  }

  // --- types and attribute values

  DType dtype() {
    skip_space();
    const size_t begin = at_;
    const std::string w = word();
    const std::optional<DType> dtype = parse_dtype(w);
    if (!dtype) {
      at_ = begin;
      fail(fmt::format("'{}' is not a dtype", w));
    }
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
    return at_place(begin, [&] {
      const Dim dim = Dim::parse(text_.substr(begin, at_ - begin));
      if (dim.is_constant() && *dim.constant() < 0)
        throw user_error("a size cannot be negative");
      return dim;
    });
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
      if (!options_.folder)
        fail(
            fmt::format("the constant is in a file, {}, but the model is in memory\n"
                        "  hint: say in which folder that file is",
                        path.string()));
      const auto file = open_file(*options_.folder / path);
      Literal slice = Literal::file_slice(element, *extents, file, offset, size);
      if (accept_word("check") && integer<uint64_t>() != sampled_hash(file->bytes().subspan(offset, size)))
        fail(fmt::format("{} has changed since this was written", file->path().string()));
      return slice;
    }
    if (accept_word("hash")) {
      const auto hash = integer<uint64_t>();
      const auto it =
          options_.literals == nullptr ? LiteralTable::const_iterator() : options_.literals->find(hash);
      if (options_.literals == nullptr || it == options_.literals->end()) {
        if (options_.takes_absent)
          return Literal::deferred(element, *extents, std::make_shared<AbsentElements>());
        fail(
            fmt::format("the constant with hash {:#018x} is not at hand\n"
                        "  hint: tenon print MODEL -o FILE.tenon writes constants that read back",
                        hash));
      }
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
      Tensor tensor = narrow<T>(element, extents, values);
      if constexpr (!std::is_same_v<T, double>)
        if (widen<T>(tensor) != values)
          fail(fmt::format("these elements do not all fit {}", element));
      return tensor;
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
        if (accept_word("false"))
          return false;
        fail("true or false was expected");
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
        return at_place(at_, [&] { return literal(); });
    }
    fail("an attribute of no kind");
  }

  // --- graphs

  // What stands after a %. A bare number is no name: a value that has none is printed with one.
  struct ValueName {
    std::string text;
    bool is_number;
    size_t begin;  // of the %

    std::string key() const { return (is_number ? "#" : "n") + text; }
  };

  ValueName value_name() {
    skip_space();
    const size_t begin = at_;
    expect('%');
    const bool is_number = '0' <= peek() && peek() <= '9';
    return {peek() == '"' ? quoted() : word(), is_number, begin};
  }

  void define(Scope& scope, const ValueName& name, Value value) {
    if (!scope.emplace(name.key(), value).second) {
      at_ = name.begin;
      fail(fmt::format("%{} is defined twice", name.text));
    }
    if (!name.is_number)
      value.set_name(name.text);
  }

  Value use(const Scope& scope) {
    const ValueName name = value_name();
    const auto it = scope.find(name.key());
    if (it == scope.end()) {
      at_ = name.begin;
      fail(fmt::format("%{} is not defined here", name.text));
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
      const ValueName name = value_name();
      expect(':');
      define(scope, name, graph.add_input(type(), ""));
    });
    expect('{');
    while (!accept_word("return")) {
      if (peek() == '}' || at_ == text_.size())
        fail("'return' was expected");
      statement(graph, scope, depth);
    }
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
      ValueName name;
      std::optional<Type> type;
    };
    std::vector<Result> results;
    if (peek() == '%') {
      do {
        Result result = {value_name(), std::nullopt};
        if (accept(':'))
          result.type = type();
        results.push_back(std::move(result));
      } while (accept(','));
      expect('=');
    }
    skip_space();
    const size_t begin = at_;
    const std::string op_name = word();
    if (peek() == '=') {
      at_ = begin;
      fail(fmt::format("a value such as %{} was expected", op_name));
    }
    const OpDef* op = at_place(begin, [&] { return &wanted_op(op_name); });
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
    Node* node = at_place(begin, [&] {
      Node* made = graph.create(*op, std::move(operands), std::move(attributes), std::move(regions),
                                types.empty() ? nullptr : &types);
      for (size_t i = 0; i < types.size(); ++i)
        if (const Type& type = made->result(static_cast<int64_t>(i)).type(); !refines(type, types[i]))
          throw user_error("{}: result {} is {}, but {} was written", op_name, i, type, types[i]);
      return made;
    });
    node->set_sources(std::move(sources));
    if (node->result_count() != static_cast<int64_t>(results.size())) {
      at_ = begin;
      fail(fmt::format("{} has {} results, but {} names were given", op_name, node->result_count(),
                       results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i)
      define(scope, results[i].name, node->result(static_cast<int64_t>(i)));
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
        at_place(begin, [&] { throw op.unknown_name(name); });
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

  const ParseOptions& options_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).top();
}

Type parse_type(std::string_view text) { return Parser(text, {}).whole_type(); }

Attribute parse_attribute(std::string_view text, AttributeKind kind) {
  return Parser(text, {}).whole_attribute(kind);
}

}  // namespace tenon
