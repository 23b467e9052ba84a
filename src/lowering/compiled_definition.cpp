#include "lowering/compiled_definition.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ir/dim_expression.h"
#include "loops/apply_function.h"

namespace tenon::lowering {

using loops::Axis;
using loops::Definition;
using loops::Function;
using loops::Number;
using loops::Scalar;

namespace {

using Slots = std::map<std::string, size_t>;  // of loop variables
using Point = std::vector<int64_t>;           // their values

// A Dim as a polynomial over slots.
class CompiledIndex {
 public:
  CompiledIndex(const Dim& dim, const Slots& slots) {
    if (dim.is_unknown())
      throw user_error("an index is unknown");
    for (const DimTerm& term : terms_of(dim)) {
      Term compiled{.coefficient = term.coefficient, .factors = {}};
      for (const DimFactor& factor : term.factors)
        compiled.factors.push_back(compile(*factor, slots));
      terms_.push_back(std::move(compiled));
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
    std::vector<CompiledIndex> operands = {};

    int64_t at(const Point& point) const {
      if (function == DimFunction::Symbol)
        return point[slot];
      const int64_t a = operands[0].at(point), b = operands[1].at(point);
      if (function == DimFunction::Max || function == DimFunction::Min)
        return function == DimFunction::Max ? std::max(a, b) : std::min(a, b);
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

struct CompiledScalar {
  Scalar::Kind kind;
  DType dtype;
  Number number = {};                       // of a Number
  std::optional<CompiledIndex> index = {};  // of an Index
  size_t variable = 0;                      // of a Variable: which of the locals
  Function function = {};                   // of an Apply
  ElementSource* source = nullptr;          // of a Load
  std::vector<CompiledScalar> operands = {};
};

Number evaluate(const CompiledScalar& scalar, const Point& point, std::span<const Number> locals = {}) {
  switch (scalar.kind) {
    case Scalar::Kind::Number:
      return scalar.number;
    case Scalar::Kind::Index:
      return scalar.index->at(point);
    case Scalar::Kind::Variable:
      return locals[scalar.variable];
    case Scalar::Kind::Load: {
      std::vector<int64_t> index;
      index.reserve(scalar.operands.size());
      for (const CompiledScalar& operand : scalar.operands)
        index.push_back(operand.kind == Scalar::Kind::Index
                            ? operand.index->at(point)
                            : std::get<int64_t>(evaluate(operand, point, locals)));
      return scalar.source->at(index);
    }
    case Scalar::Kind::Apply: {
      // Only what is chosen: the other may be an element outside its buffer.
      if (scalar.function == Function::Select)
        return evaluate(scalar.operands[loops::holds(evaluate(scalar.operands[0], point, locals)) ? 1 : 2],
                        point, locals);
      std::array<Number, 4> operands;
      CHECK(scalar.operands.size() <= operands.size(), "a function of {} operands", scalar.operands.size());
      for (size_t i = 0; i < scalar.operands.size(); ++i)
        operands[i] = evaluate(scalar.operands[i], point, locals);
      return loops::apply_function(scalar.function, scalar.dtype,
                                   std::span<const Number>(operands).first(scalar.operands.size()));
    }
  }
  CHECK(false, "a scalar of no kind");
}

// As wide as sums are accumulated.
DType accumulated_in(DType dtype) { return is_float(dtype) ? DType::F64 : dtype; }

}  // namespace

class CompiledDefinition::Impl {
 public:
  Impl(const Definition& definition, const Bindings& sizes, const FindSource& find_source)
      : find_source_(find_source), sizes_(sizes) {
    for (const auto& [symbol, size] : sizes)
      replacements_.emplace(symbol, size);
    add_axes(definition.axes, axes_);
    add_axes(definition.reduced, reduced_);
    for (const Scalar& index : definition.at)
      places_.push_back(place_of(index.index(), definition.axes));
    for (const loops::Buffer& result : definition.results)
      dtypes_.push_back(result.dtype);
    initial_ = compile(definition.initial);
    values_ = compile(definition.values);
    reduces_ = definition.reduces();
    if (definition.own_combine)
      compile_combine(*definition.own_combine);
    else if (reduces_)
      combine_ = loops::built_in_combine(definition.combine);
  }

  const std::vector<Number>& at(std::span<const int64_t> index) {
    Point point(axes_.size() + reduced_.size());
    int64_t key = 0;  // among the points of the axes
    for (size_t dim = 0; dim < index.size(); ++dim) {
      const int64_t along = index[dim] - places_[dim].added;
      if (along < 0 || along >= (places_[dim].slot ? axes_[*places_[dim].slot] : 1))
        return nothing_;
      if (places_[dim].slot)
        point[*places_[dim].slot] = along;
    }
    for (size_t axis = 0; axis < axes_.size(); ++axis)
      key = key * axes_[axis] + point[axis];
    const auto [known, fresh] = known_.try_emplace(key);
    if (fresh)
      known->second = reduces_ ? reduced_at(point) : values_at(point);
    return known->second;
  }

 private:
  // The slot that an index of the results is, and what is added to it; no slot where it is a number.
  struct Place {
    std::optional<size_t> slot;
    int64_t added;
  };

  // --- compiling ---

  int64_t size_of(const Dim& dim) const {
    const std::optional<int64_t> size = dim.evaluate(sizes_);
    if (!size)
      throw user_error("size {} is unbound", dim);
    return *size;
  }

  void add_axes(const std::vector<Axis>& axes, std::vector<int64_t>& sizes) {
    for (const Axis& axis : axes) {
      slots_.emplace(axis.variable, slots_.size());
      sizes.push_back(size_of(axis.size));
    }
  }

  Place place_of(const Dim& index, const std::vector<Axis>& axes) const {
    for (const Axis& axis : axes)
      if (index.mentions(axis.variable)) {
        const Dim added = (index - Dim::symbol(axis.variable)).substitute(replacements_);
        CHECK(added.is_constant(), "a result is placed at {}", index);
        return {slots_.at(axis.variable), *added.constant()};
      }
    return {std::nullopt, size_of(index)};
  }

  std::vector<CompiledScalar> compile(const std::vector<Scalar>& scalars, const Slots& locals = {}) const {
    std::vector<CompiledScalar> compiled;
    for (const Scalar& scalar : scalars)
      compiled.push_back(compile(scalar, locals));
    return compiled;
  }

  CompiledScalar compile(const Scalar& scalar, const Slots& locals) const {
    CompiledScalar compiled{.kind = scalar.kind(), .dtype = scalar.dtype()};
    switch (scalar.kind()) {
      case Scalar::Kind::Number:
        compiled.number = loops::fitted(scalar.dtype(), scalar.value());
        return compiled;
      case Scalar::Kind::Index:
        compiled.index.emplace(scalar.index().substitute(replacements_), slots_);
        return compiled;
      case Scalar::Kind::Variable:
        compiled.variable = locals.at(scalar.name());
        return compiled;
      case Scalar::Kind::Load:
        compiled.source = &find_source_(scalar.name());
        break;
      case Scalar::Kind::Apply:
        compiled.function = scalar.function();
        break;
    }
    compiled.operands = compile(scalar.operands(), locals);
    return compiled;
  }

  // Its locals are the accumulators, then the new elements.
  void compile_combine(const loops::Combine& combine) {
    Slots locals;
    for (const auto* variables : {&combine.there, &combine.coming})
      for (const auto& [name, dtype] : *variables)
        locals.emplace(name, locals.size());
    own_combine_ = compile(combine.results, locals);
  }

  // --- evaluating ---

  std::vector<Number> values_at(const Point& point) const {
    std::vector<Number> results;
    for (const CompiledScalar& value : values_)
      results.push_back(evaluate(value, point));
    return results;
  }

  std::vector<Number> reduced_at(Point& point) const {
    std::vector<Number> results;
    for (const CompiledScalar& initial : initial_)
      results.push_back(evaluate(initial, point));
    int64_t points = 1;
    for (int64_t size : reduced_)
      points *= size;
    for (int64_t i = 0; i < points; ++i) {
      combine(point, results);
      for (size_t axis = reduced_.size(); axis-- > 0;) {  // the next point
        int64_t& along = point[axes_.size() + axis];
        if (++along < reduced_[axis])
          break;
        along = 0;
      }
    }
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = loops::fitted(dtypes_[i], results[i]);
    return results;
  }

  void combine(const Point& point, std::vector<Number>& results) const {
    if (combine_) {
      for (size_t i = 0; i < results.size(); ++i)
        results[i] = loops::apply_function(*combine_, accumulated_in(dtypes_[i]),
                                           std::array{results[i], evaluate(values_[i], point)});
      return;
    }
    std::vector<Number> locals = results;
    std::ranges::move(values_at(point), std::back_inserter(locals));
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = evaluate(own_combine_[i], point, locals);
  }

  const FindSource& find_source_;
  const Bindings& sizes_;
  std::map<std::string, Dim> replacements_;  // the sizes
  Slots slots_;                              // of the axes, then the reduced ones
  std::vector<int64_t> axes_, reduced_;      // their sizes
  std::vector<Place> places_;                // of the results' dimensions
  std::vector<DType> dtypes_;
  std::vector<CompiledScalar> initial_, values_, own_combine_;
  std::optional<Function> combine_;  // that is built in
  bool reduces_ = false;
  std::unordered_map<int64_t, std::vector<Number>> known_;
  const std::vector<Number> nothing_;
};

CompiledDefinition::CompiledDefinition(const Definition& definition, const Bindings& sizes,
                                       const FindSource& find_source)
    : impl_(std::make_unique<Impl>(definition, sizes, find_source)) {}
CompiledDefinition::~CompiledDefinition() = default;

const std::vector<Number>& CompiledDefinition::at(std::span<const int64_t> index) { return impl_->at(index); }

}  // namespace tenon::lowering
