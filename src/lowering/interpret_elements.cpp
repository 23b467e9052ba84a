#include "lowering/interpret_elements.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ir/dim_expression.h"
#include "loops/apply_function.h"
#include "lowering/unpack.h"
#include "tensor/wide.h"

namespace tenon::lowering {

using loops::Axis;
using loops::Definition;
using loops::Function;
using loops::Number;
using loops::Scalar;

namespace {

// --- expressions, compiled to be evaluated many times ---

using Slots = std::map<std::string, size_t>;  // of loop variables
using Point = std::vector<int64_t>;           // their values

// A Dim as a polynomial over slots.
class IndexCode {
 public:
  IndexCode(const Dim& dim, const Slots& slots) {
    CHECK(!dim.is_unknown(), "an index is unknown");
    for (const DimTerm& term : terms_of(dim)) {
      Term code{.coefficient = term.coefficient, .factors = {}};
      for (const DimFactor& factor : term.factors)
        code.factors.push_back(compile(*factor, slots));
      terms_.push_back(std::move(code));
    }
  }

  int64_t at(const Point& point) const {
    int64_t sum = 0;
    for (const Term& term : terms_) {
      int64_t product = term.coefficient;
      for (const Factor& factor : term.factors)
        product *= factor.at(point);
      sum += product;
    }
    return sum;
  }

 private:
  struct Factor {
    DimFunction function;
    size_t slot = 0;
    std::vector<IndexCode> operands = {};

    int64_t at(const Point& point) const {
      if (function == DimFunction::Symbol)
        return point[slot];
      const int64_t a = operands[0].at(point), b = operands[1].at(point);
      switch (function) {
        case DimFunction::Max:
          return std::max(a, b);
        case DimFunction::Min:
          return std::min(a, b);
        default:
          break;
      }
      if (b == 0)
        throw user_error("an index is divided by 0");
      const int64_t quotient = floor_div_integers(a, b);
      return function == DimFunction::FloorDiv ? quotient : a - b * quotient;
    }
  };
  struct Term {
    int64_t coefficient;
    std::vector<Factor> factors;
  };

  static Factor compile(const DimAtom& atom, const Slots& slots) {
    Factor factor{.function = atom.function};
    if (atom.function == DimFunction::Symbol) {
      const auto slot = slots.find(atom.name);
      if (slot == slots.end())
        throw user_error("size {} is unbound", atom.name);
      factor.slot = slot->second;
    }
    for (const Dim& operand : atom.operands)
      factor.operands.emplace_back(operand, slots);
    return factor;
  }

  std::vector<Term> terms_;
};

struct Source;

struct Code {
  Scalar::Kind kind;
  DType dtype;
  Number number = {};                   // of a Number
  std::optional<IndexCode> index = {};  // of an Index
  size_t variable = 0;                  // of a Variable: which of the locals
  Function function = {};               // of an Apply
  Source* source = nullptr;             // of a Load
  std::vector<Code> operands = {};
};

// --- what buffers hold ---

// The elements of a tensor, widened when first asked for.
class Elements {
 public:
  explicit Elements(const Tensor* tensor) : tensor_(tensor) {}

  Number at(int64_t place) {
    if (tensor_->dtype() == DType::F32)
      return double{tensor_->data<float>()[static_cast<size_t>(place)]};
    if (wide_.index() == 0)
      with_wide(tensor_->dtype(), [&]<class T>(T) { wide_ = widen<T>(*tensor_); });
    return std::visit(
        [&]<class T>(const std::vector<T>& all) -> Number {
          if constexpr (std::is_same_v<T, bool>)
            CHECK(false, "elements are not widened");
          else
            return all[static_cast<size_t>(place)];
        },
        wide_);
  }

 private:
  const Tensor* tensor_;
  // The first stands for none.
  std::variant<std::vector<bool>, std::vector<double>, std::vector<int64_t>, std::vector<uint64_t>> wide_;
};

// A definition whose elements are computed one by one.
struct Formula {
  std::vector<int64_t> axes, reduced;  // sizes; their slots follow each other in this order
  // The slot of each dimension of the results, and what is added to it; none where the index is a number.
  std::vector<std::pair<std::optional<size_t>, int64_t>> at;
  std::vector<Code> initial, values;
  std::optional<Function> combine;  // that is built in
  std::vector<Code> own_combine;    // of locals: what is there, then what comes
  std::vector<DType> dtypes;
  std::map<int64_t, std::vector<Number>> known;  // by place in the results
};

// How the elements of a buffer are found.
struct Source {
  std::string name;
  std::vector<int64_t> extents;  // in memory
  // Of a value: its elements, and for each dimension in memory which of the value's it is, and how much
  // padding stands before.
  std::optional<Elements> elements = {};
  std::vector<std::pair<size_t, int64_t>> dims = {};
  Extents value_extents = {};
  Number border = {};  // what stands where no element does
  std::shared_ptr<Formula> formula = nullptr;
  size_t result = 0;           // which of the formula's
  Source* alias_of = nullptr;  // with the same elements row by row
  bool in_words = false;       // of an alias: its elements are words of several, bytes or bf16
};

int64_t place_in(const std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
  int64_t place = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    place = place * extents[dim] + index[dim];
  return place;
}

std::vector<int64_t> index_of(int64_t place, const std::vector<int64_t>& extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t dim = extents.size(); dim-- > 0; place /= extents[dim])
    index[dim] = place % extents[dim];
  return index;
}

}  // namespace

class ElementInterpreter::Inside {
 public:
  Inside(const KernelGraph& graph, Known known)
      : graph_(graph),
        known_(std::move(known)),
        sources_(graph.buffers.size()),
        writers_(graph.buffers.size()) {
    for (const KernelNode& node : graph.nodes)
      for (BufferId id : node.writes)
        writers_[id.number] = &node;
    for (const KernelBuffer& buffer : graph.buffers)
      if (const Tensor* tensor = buffer.value ? known_(buffer.value) : nullptr)
        fits(*tensor, buffer.value.type(), sizes_);
    for (const auto& [symbol, size] : sizes_)
      replacements_.emplace(symbol, size);
  }

  const Bindings& sizes() const { return sizes_; }

  bool can_compute(BufferId id) const {
    const KernelBuffer& buffer = graph_.buffers[id];
    if (buffer.home == Home::Constant)
      return is_readable_constant(graph_, id);
    return (buffer.value && known_(buffer.value) != nullptr) || can_compute_again(id);
  }

  bool can_compare(BufferId id) const {
    const Value value = graph_.buffers[id].value;
    return value && known_(value) != nullptr && has_formula(id) && can_compute_again(id);
  }

  Tensor in_memory(BufferId id) {
    Source& source = source_of(graph_.buffers[id].name());
    const DType dtype = graph_.buffers[id].elements.dtype;
    return with_wide(dtype, [&]<class T>(T) {
      std::vector<T> elements(static_cast<size_t>(element_count(source.extents)));
      for (size_t i = 0; i < elements.size(); ++i)
        elements[i] = std::get<T>(read(source, index_of(static_cast<int64_t>(i), source.extents)));
      return narrow<T>(dtype, source.extents, elements);
    });
  }

  Tensor compute(BufferId id, const std::vector<int64_t>& places) {
    const KernelBuffer& buffer = graph_.buffers[id];
    const Tensor& value = *known_(buffer.value);
    Source computed = layout_of(id);  // as in memory, but for its elements
    add_formula(id, computed);
    return with_wide(value.dtype(), [&]<class T>(T) {
      std::vector<T> elements;
      for (int64_t place : places) {
        const std::vector<int64_t> of_value = index_of(place, value.extents());
        std::vector<int64_t> index;
        for (const auto& [dim, before] : computed.dims)
          index.push_back(of_value[dim] + before);
        elements.push_back(std::get<T>(read_computed(computed, index)));
      }
      return narrow<T>(value.dtype(), {std::ssize(elements)}, elements);
    });
  }

 private:
  bool has_formula(BufferId id) const {
    const KernelNode* writer = writers_[id.number];
    return writer != nullptr && writer->kind == KernelNode::Kind::Definition;
  }

  // By what it is written by, from what that reads.
  bool can_compute_again(BufferId id) const {
    const KernelNode* writer = writers_[id.number];
    if (writer == nullptr)
      return false;
    if (writer->kind == KernelNode::Kind::Alias)
      return can_compute(writer->operands.front());
    if (!has_formula(id))
      return false;
    std::set<std::string> read;
    for (const Scalar& value : readable_definition(graph_, *writer->stage).values)
      loops::for_each_load(value, [&](const Scalar& load) { read.insert(load.name()); });
    return std::ranges::all_of(
        read, [&](const std::string& name) { return can_compute(graph_.buffers.id_of(name)); });
  }

  int64_t size_of(const Dim& dim) const {
    const std::optional<int64_t> size = dim.evaluate(sizes_);
    if (!size)
      throw user_error("size {} is unbound", dim);
    return *size;
  }

  // --- sources ---

  Source& source_of(const std::string& name) {
    const BufferId id = graph_.buffers.id_of(name);
    std::unique_ptr<Source>& source = sources_[id.number];
    if (!source)
      source = std::make_unique<Source>(make_source(id));
    return *source;
  }

  Source make_source(BufferId id) {
    const KernelBuffer& buffer = graph_.buffers[id];
    Source source = layout_of(id);
    const Tensor* tensor = buffer.value && !buffer.made_of() ? known_(buffer.value) : nullptr;
    if (is_readable_constant(graph_, id)) {
      constants_.push_back(std::make_unique<Tensor>(constant_in_memory(graph_, id)));
      source.value_extents = constants_.back()->extents();
      for (size_t dim = 0; dim < source.dims.size(); ++dim)
        source.dims[dim] = {dim, 0};
      source.elements.emplace(constants_.back().get());
    } else if (tensor != nullptr) {
      source.elements.emplace(tensor);
    } else if (has_formula(id)) {
      add_formula(id, source);
    } else if (writers_[id.number] != nullptr && writers_[id.number]->kind == KernelNode::Kind::Alias) {
      const loops::Buffer& from = graph_.buffers[writers_[id.number]->operands.front()].elements;
      source.alias_of = &source_of(from.name);
      source.in_words = from.dtype != buffer.elements.dtype;
    } else {
      CHECK(false, "what {} holds is not known", buffer.name());
    }
    return source;
  }

  // A source without elements.
  Source layout_of(BufferId id) const {
    const KernelBuffer& buffer = graph_.buffers[id];
    Source source{.name = buffer.name(), .extents = {}};
    for (const Dim& size : buffer.elements.sizes)
      source.extents.push_back(size_of(size));
    const auto* image = std::get_if<ImageLayout>(&buffer.layout);
    for (size_t dim = 0; dim < source.extents.size(); ++dim)
      source.dims.emplace_back(image != nullptr ? image->order[dim] : dim,
                               image != nullptr ? image->before[image->order[dim]] : 0);
    if (buffer.value && buffer.value.shape().ranked())
      for (const Dim& size : buffer.value.shape().dims())
        source.value_extents.push_back(size_of(size));
    const KernelNode* writer = writers_[id.number];
    source.border =
        (writer != nullptr && writer->stage && writer->stage->border ? *writer->stage->border
                                                                     : Scalar::zero(buffer.elements.dtype))
            .value();
    return source;
  }

  void add_formula(BufferId id, Source& source) {
    const KernelNode& node = *writers_[id.number];
    std::shared_ptr<Formula>& formula = formulas_[&node];
    if (!formula)
      formula = std::make_shared<Formula>(compile(readable_definition(graph_, *node.stage)));
    source.formula = formula;
    const std::vector<loops::Buffer>& results = node.stage->definition.results;
    source.result =
        static_cast<size_t>(std::ranges::find(results, source.name, &loops::Buffer::name) - results.begin());
  }

  // --- compiling definitions ---

  Formula compile(const Definition& definition) {
    Formula formula;
    Slots slots;
    for (const auto& [axes, sizes] :
         {std::pair(&definition.axes, &formula.axes), std::pair(&definition.reduced, &formula.reduced)})
      for (const Axis& axis : *axes) {
        slots.emplace(axis.variable, slots.size());
        sizes->push_back(size_of(axis.size));
      }
    for (const Scalar& index : definition.at)
      formula.at.push_back(place_of(index.index(), definition.axes, slots));
    for (const loops::Buffer& result : definition.results)
      formula.dtypes.push_back(result.dtype);
    for (const Scalar& initial : definition.initial)
      formula.initial.push_back(compile(initial, slots));
    for (const Scalar& value : definition.values)
      formula.values.push_back(compile(value, slots));
    if (definition.own_combine) {
      Slots locals;
      for (const auto* variables : {&definition.own_combine->there, &definition.own_combine->coming})
        for (const auto& [name, dtype] : *variables)
          locals.emplace(name, locals.size());
      for (const Scalar& result : definition.own_combine->results)
        formula.own_combine.push_back(compile(result, slots, locals));
    } else if (definition.reduces()) {
      formula.combine = loops::built_in_combine(definition.combine);
    }
    return formula;
  }

  // The variable that an index is, but for a number.
  std::pair<std::optional<size_t>, int64_t> place_of(const Dim& index, const std::vector<Axis>& axes,
                                                     const Slots& slots) const {
    for (const Axis& axis : axes)
      if (index.mentions(axis.variable)) {
        const Dim added = (index - Dim::symbol(axis.variable)).substitute(replacements_);
        CHECK(added.is_constant(), "a result is placed at {}", index);
        return {slots.at(axis.variable), *added.constant()};
      }
    return {std::nullopt, size_of(index)};
  }

  Code compile(const Scalar& scalar, const Slots& slots, const Slots& locals = {}) {
    Code code{.kind = scalar.kind(), .dtype = scalar.dtype()};
    switch (scalar.kind()) {
      case Scalar::Kind::Number:
        code.number = loops::fitted(scalar.dtype(), scalar.value());
        return code;
      case Scalar::Kind::Index:
        code.index.emplace(scalar.index().substitute(replacements_), slots);
        return code;
      case Scalar::Kind::Variable:
        code.variable = locals.at(scalar.name());
        return code;
      case Scalar::Kind::Load:
        code.source = &source_of(scalar.name());
        break;
      case Scalar::Kind::Apply:
        code.function = scalar.function();
        break;
    }
    for (const Scalar& operand : scalar.operands())
      code.operands.push_back(compile(operand, slots, locals));
    return code;
  }

  // --- evaluating ---

  Number evaluate(const Code& code, const Point& point, std::span<const Number> locals = {}) {
    switch (code.kind) {
      case Scalar::Kind::Number:
        return code.number;
      case Scalar::Kind::Index:
        return code.index->at(point);
      case Scalar::Kind::Variable:
        return locals[code.variable];
      case Scalar::Kind::Load: {
        std::vector<int64_t> index;
        index.reserve(code.operands.size());
        for (const Code& operand : code.operands)
          index.push_back(operand.kind == Scalar::Kind::Index
                              ? operand.index->at(point)
                              : std::get<int64_t>(evaluate(operand, point, locals)));
        return read(*code.source, index);
      }
      case Scalar::Kind::Apply: {
        // Only what is chosen: the other may be an element outside its buffer.
        if (code.function == Function::Select)
          return evaluate(code.operands[loops::holds(evaluate(code.operands[0], point, locals)) ? 1 : 2],
                          point, locals);
        std::array<Number, 4> operands;
        for (size_t i = 0; i < code.operands.size(); ++i)
          operands[i] = evaluate(code.operands[i], point, locals);
        return loops::apply_function(code.function, code.dtype,
                                     std::span<const Number>(operands).first(code.operands.size()));
      }
    }
    CHECK(false, "a scalar of no kind");
  }

  Number read(Source& source, const std::vector<int64_t>& index) {
    for (size_t dim = 0; dim < index.size(); ++dim)
      if (index[dim] < 0 || index[dim] >= source.extents[dim])
        throw user_error("{}: index {} along dimension {} of {}", source.name, index[dim], dim,
                         source.extents[dim]);
    if (source.alias_of != nullptr)
      return read_alias(source, place_in(index, source.extents));
    return source.elements ? read_elements(source, index) : read_computed(source, index);
  }

  Number read_alias(Source& source, int64_t place) {
    Source& from = *source.alias_of;
    const auto element = [&](int64_t at) { return read(from, index_of(at, from.extents)); };
    if (!source.in_words)
      return element(place);
    const DType dtype = graph_.buffers.at(from.name).dtype;
    const auto count = static_cast<size_t>(info(DType::I32).bytes / info(dtype).bytes);
    std::array<Number, 4> elements;
    for (size_t i = 0; i < count; ++i) {
      elements[i] = element(place * static_cast<int64_t>(count) + static_cast<int64_t>(i));
      if (is_integer(dtype))
        elements[i] = loops::fitted(DType::I32, elements[i]);
    }
    return loops::apply_function(is_integer(dtype) ? Function::PackI8x4 : Function::PackBf16x2, DType::I32,
                                 std::span<const Number>(elements).first(count));
  }

  static Number read_elements(Source& source, const std::vector<int64_t>& index) {
    std::array<int64_t, 16> of_value{};
    CHECK(index.size() <= of_value.size(), "{} has {} dimensions", source.name, index.size());
    for (size_t i = 0; i < index.size(); ++i) {
      const auto& [dim, before] = source.dims[i];
      of_value[dim] = index[i] - before;
      if (of_value[dim] < 0 || of_value[dim] >= source.value_extents[dim])
        return source.border;
    }
    int64_t place = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      place = place * source.value_extents[dim] + of_value[dim];
    return source.elements->at(place);
  }

  Number read_computed(const Source& source, const std::vector<int64_t>& index) {
    Formula& formula = *source.formula;
    Point point(formula.axes.size() + formula.reduced.size());
    for (size_t dim = 0; dim < index.size(); ++dim) {
      const auto& [slot, added] = formula.at[dim];
      const int64_t along = index[dim] - added;
      if (along < 0 || along >= (slot ? formula.axes[*slot] : 1))
        return source.border;
      if (slot)
        point[*slot] = along;
    }
    const int64_t place = place_in(index, source.extents);
    if (const auto known = formula.known.find(place); known != formula.known.end())
      return known->second[source.result];
    const std::vector<Number> all = results_at(formula, point);
    formula.known.emplace(place, all);
    return all[source.result];
  }

  std::vector<Number> results_at(const Formula& formula, Point& point) {
    std::vector<Number> results;
    if (!formula.combine && formula.own_combine.empty()) {
      for (const Code& value : formula.values)
        results.push_back(evaluate(value, point));
      return results;
    }
    for (const Code& initial : formula.initial)
      results.push_back(evaluate(initial, point));
    int64_t points = 1;
    for (int64_t size : formula.reduced)
      points *= size;
    const size_t first = formula.axes.size();
    for (int64_t i = 0; i < points; ++i) {
      combine(formula, point, results);
      for (size_t axis = formula.reduced.size(); axis-- > 0;) {  // the next point
        if (++point[first + axis] < formula.reduced[axis])
          break;
        point[first + axis] = 0;
      }
    }
    return results;
  }

  void combine(const Formula& formula, const Point& point, std::vector<Number>& results) {
    if (formula.combine) {
      for (size_t i = 0; i < results.size(); ++i)
        results[i] = loops::apply_function(*formula.combine, formula.dtypes[i],
                                           std::array{results[i], evaluate(formula.values[i], point)});
      return;
    }
    std::vector<Number> locals = results;
    for (const Code& value : formula.values)
      locals.push_back(evaluate(value, point));
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = evaluate(formula.own_combine[i], point, locals);
  }

  const KernelGraph& graph_;
  const Known known_;
  Bindings sizes_;
  std::map<std::string, Dim> replacements_;       // the sizes
  std::vector<std::unique_ptr<Source>> sources_;  // by buffer, as far as they are read
  std::vector<const KernelNode*> writers_;        // by buffer
  std::map<const KernelNode*, std::shared_ptr<Formula>> formulas_;
  std::vector<std::unique_ptr<Tensor>> constants_;
};

ElementInterpreter::ElementInterpreter(const KernelGraph& graph, Known known)
    : inside_(std::make_unique<Inside>(graph, std::move(known))) {}
ElementInterpreter::~ElementInterpreter() = default;

const Bindings& ElementInterpreter::sizes() const { return inside_->sizes(); }
bool ElementInterpreter::can_compute(BufferId buffer) const { return inside_->can_compute(buffer); }
bool ElementInterpreter::can_compare(BufferId buffer) const { return inside_->can_compare(buffer); }

Tensor ElementInterpreter::compute(BufferId buffer, const std::vector<int64_t>& places) {
  return inside_->compute(buffer, places);
}

Tensor ElementInterpreter::in_memory(BufferId buffer) { return inside_->in_memory(buffer); }

}  // namespace tenon::lowering
