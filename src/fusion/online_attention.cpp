#include "fusion/online_attention.h"

#include <algorithm>
#include <cmath>

#include "fusion/fused_attention.h"

namespace tenon::fusion {

using loops::Axis;
using loops::Definition;
using loops::Function;
using loops::mentions;
using loops::Scalar;

namespace {

constexpr int64_t kLargestSize = 256;  // of a row of q, k and v, whose sums a thread block has in registers

bool is(const Scalar& scalar, Function function) {
  return scalar.kind() == Scalar::Kind::Apply && scalar.function() == function;
}

bool is_number(const Scalar& scalar, double value) {
  return scalar.kind() == Scalar::Kind::Number && is_float(scalar.dtype()) &&
         std::get<double>(scalar.value()) == value;
}

// What a float is before it was rounded or widened.
const Scalar& without_casts(const Scalar& scalar) {
  return is(scalar, Function::Cast) && is_float(scalar.dtype()) && is_float(scalar.operands().front().dtype())
             ? without_casts(scalar.operands().front())
             : scalar;
}

// Not rounded to fewer bits and widened again.
Scalar without_rounding(const Scalar& scalar) {
  if (scalar.kind() != Scalar::Kind::Apply)
    return scalar;
  std::vector<Scalar> operands;
  for (const Scalar& operand : scalar.operands())
    operands.push_back(without_rounding(operand));
  if (scalar.function() != Function::Cast)
    return Scalar::apply(scalar.function(), std::move(operands));
  const Scalar& inner = operands.front();
  if (is_float(scalar.dtype()) && is(inner, Function::Cast) && is_float(inner.dtype()) &&
      inner.operands().front().dtype() == scalar.dtype() &&
      info(inner.dtype()).bytes < info(scalar.dtype()).bytes)
    return inner.operands().front();
  return Scalar::cast(scalar.dtype(), inner);
}

std::optional<double> as_number(const Scalar& scalar) {
  const Scalar& inner = without_casts(scalar);
  return inner.kind() == Scalar::Kind::Number && is_float(inner.dtype())
             ? std::optional(std::get<double>(inner.value()))
             : std::nullopt;
}

// In the dtype that it is stored in, which is that of the product or narrower.
Scalar as_stored(const Scalar& factor) {
  return is(factor, Function::Cast) && factor.dtype() == DType::F32 &&
                 (factor.operands().front().dtype() == DType::F16 ||
                  factor.operands().front().dtype() == DType::BF16)
             ? factor.operands().front()
             : factor;
}

// A factor, and what it is multiplied by.
struct Scaled {
  Scalar factor;
  double scale;
};
Scaled without_scale(const Scalar& factor) {
  const Scalar& inner = without_casts(factor);
  if (is(inner, Function::Multiply))
    for (size_t i = 0; i < 2; ++i)
      if (const std::optional<double> scale = as_number(inner.operands()[i]))
        return {as_stored(inner.operands()[1 - i]), *scale};
  return {as_stored(factor), 1};
}

std::optional<Dim> as_index(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Index)
    return scalar.index();
  if (scalar.kind() == Scalar::Kind::Number && scalar.dtype() == DType::I64)
    return std::get<int64_t>(scalar.value());
  if (scalar.kind() != Scalar::Kind::Apply || scalar.dtype() != DType::I64 || scalar.operands().size() != 2)
    return std::nullopt;
  const std::optional<Dim> a = as_index(scalar.operands()[0]), b = as_index(scalar.operands()[1]);
  if (!a || !b)
    return std::nullopt;
  switch (scalar.function()) {
    case Function::Add:
      return *a + *b;
    case Function::Subtract:
      return *a - *b;
    case Function::Multiply:
      return *a * *b;
    default:
      return std::nullopt;
  }
}

// Adds what must be at least 0 for the condition to hold, or not to hold, as far as that is known of indices.
void add_conditions(const Scalar& condition, bool holds, std::vector<Dim>& conditions) {
  if (condition.kind() != Scalar::Kind::Apply)
    return;
  const std::vector<Scalar>& operands = condition.operands();
  const bool is_less = condition.function() == Function::Less;
  if (condition.function() == Function::Not)
    return add_conditions(operands.front(), !holds, conditions);
  if (condition.function() == (holds ? Function::And : Function::Or))
    for (const Scalar& operand : operands)
      add_conditions(operand, holds, conditions);
  if (!is_less && condition.function() != Function::LessEqual)
    return;
  const std::optional<Dim> left = as_index(operands[0]), right = as_index(operands[1]);
  if (left && right)
    conditions.push_back(holds ? *right - *left - (is_less ? 1 : 0) : *left - *right - (is_less ? 0 : 1));
}

// What must be at least 0 for a score to be more than -inf.
void add_seen(const Scalar& score, std::vector<Dim>& conditions) {
  const Scalar& inner = without_casts(score);
  if (is(inner, Function::Add))
    for (const Scalar& operand : inner.operands())
      add_seen(operand, conditions);
  if (!is(inner, Function::Select))
    return;
  const std::vector<Scalar>& operands = inner.operands();
  for (const bool holds : {true, false}) {
    if (as_number(operands[holds ? 2 : 1]) != -HUGE_VAL)
      continue;
    add_conditions(operands.front(), holds, conditions);
    add_seen(operands[holds ? 1 : 2], conditions);
  }
}

// Comparisons of indices, in which sums of them are indices again.
Scalar with_indices(const Scalar& scalar) {
  if (scalar.kind() != Scalar::Kind::Apply)
    return scalar;
  if (const std::optional<Dim> index = as_index(scalar); index && !index->is_unknown())
    return Scalar::index(*index);
  std::vector<Scalar> operands;
  for (const Scalar& operand : scalar.operands())
    operands.push_back(with_indices(operand));
  return scalar.function() == Function::Cast ? Scalar::cast(scalar.dtype(), operands.front())
                                             : Scalar::apply(scalar.function(), std::move(operands));
}

bool loads(const Scalar& scalar, const std::string& name) {
  bool found = false;
  loops::for_each_load(scalar, [&](const Scalar& load) { found = found || load.name() == name; });
  return found;
}

class Matcher {
 public:
  Matcher(const std::vector<Definition>& definitions, size_t rows)
      : definitions_(definitions), rows_(rows), first_(definitions.front()), second_(definitions.back()) {}

  std::optional<OnlineAttention> run() {
    const std::optional<size_t> query = find_block_axis(first_, second_);
    if (!query || !has_two_matrices())
      return std::nullopt;
    product_ = first_.results.front().name;
    sum_ = second_.results.front().name;
    const Factors of_first = *factors_of(first_, first_.axes.back()),
                  of_second = *factors_of(second_, second_.axes.back());
    const Scaled q = without_scale(with_own_variables(first_, of_first.across)),
                 k = without_scale(with_own_variables(first_, of_first.along));
    scale_ = q.scale * k.scale;
    for (size_t i = 1; i + 1 < definitions_.size(); ++i)
      if (!add(definitions_[i]))
        return std::nullopt;
    if (total_.empty())
      return std::nullopt;
    const std::optional<Split> split = split_weight(resolved(second_, of_second.across));
    if (!split || !is_known_at_end(split->result))
      return std::nullopt;
    OnlineAttention attention{.rows = {},
                              .query = *query,
                              .keys = first_.axes.back().size,
                              .size = *first_.reduced.front().size.constant(),
                              .columns = *second_.axes.back().size.constant(),
                              .q = q.factor,
                              .k = k.factor,
                              .v = as_stored(with_own_variables(second_, of_second.along)),
                              .product = product_,
                              .greatest = greatest_,
                              .power = power_,
                              .total = total_,
                              .sum = sum_,
                              .score = *score_,
                              .weight = split->weight,
                              .result = split->result,
                              .seen = {}};
    for (size_t i = 0; i < rows_; ++i)
      attention.rows.push_back({row_variable(i), first_.axes[i].size});
    add_seen(attention.score, attention.seen);
    return attention;
  }

 private:
  // Of sizes that are known, and f32 where they are added up.
  bool has_two_matrices() const {
    const auto fits = [](const Axis& axis) {
      const std::optional<int64_t> size = axis.size.constant();
      return size && *size >= 1 && *size <= kLargestSize;
    };
    return first_.axes.size() == rows_ + 1 && first_.reduced.size() == 1 && fits(first_.reduced.front()) &&
           first_.results.front().dtype == DType::F32 && second_.axes.size() == rows_ + 1 &&
           second_.reduced.size() == 1 && fits(second_.axes.back()) &&
           second_.results.front().dtype == DType::F32;
  }

  Scalar with_own_variables(const Definition& definition, const Scalar& value) const {
    std::map<std::string, Scalar> names;
    const auto name = [&](const Axis& axis, const std::string& variable) {
      names.emplace(axis.variable, Scalar::index(Dim::symbol(variable)));
    };
    for (size_t i = 0; i < rows_; ++i)
      name(definition.axes[i], row_variable(i));
    const bool is_first = &definition == &first_;
    if (definition.axes.size() > rows_)
      name(definition.axes.back(), &definition == &second_ ? kColumnVariable : kKeyVariable);
    if (definition.reduces())
      name(definition.reduced.front(), is_first ? kSizeVariable : kKeyVariable);
    return *loops::substitute(value, names);
  }

  // A formula of the product and of what rows are reduced to.
  Scalar resolved(const Definition& definition, const Scalar& value) const {
    return with_indices(
        without_rounding(loops::replace_loads(with_own_variables(definition, value), [&](const Scalar& load) {
          const auto formula = formulas_.find(load.name());
          if (formula != formulas_.end())
            return formula->second;
          if (load.name() == product_ && scale_ != 1)
            return Scalar::apply(Function::Multiply, {load, Scalar::number(DType::F32, scale_)});
          return load;
        })));
  }

  bool add(const Definition& definition) {
    const std::string& name = definition.results.front().name;
    const Scalar value = resolved(definition, definition.values.front());
    if (!definition.reduces()) {
      formulas_.emplace(name, value);
      return true;
    }
    if (definition.combine == "max" && !score_ && is_number(definition.initial.front(), -HUGE_VAL)) {
      score_ = without_casts(value);
      greatest_ = name;
      return score_->dtype() == DType::F32;
    }
    if (definition.combine == "+" && score_ && total_.empty() && is_number(definition.initial.front(), 0) &&
        is_power(value)) {
      total_ = name;
      power_ = name + "_power";
      return true;
    }
    return false;
  }

  // exp(score - greatest)
  bool is_power(const Scalar& scalar) const {
    const Scalar& power = without_casts(scalar);
    if (!score_ || !is(power, Function::Exp))
      return false;
    const Scalar& below = without_casts(power.operands().front());
    if (!is(below, Function::Subtract))
      return false;
    const Scalar& greatest = without_casts(below.operands()[1]);
    return without_casts(below.operands()[0]) == *score_ && greatest.kind() == Scalar::Kind::Load &&
           greatest.name() == greatest_;
  }

  bool has_power(const Scalar& scalar) const {
    return is_power(scalar) ||
           (scalar.kind() == Scalar::Kind::Apply &&
            std::ranges::any_of(scalar.operands(), [&](const Scalar& each) { return has_power(each); }));
  }
  bool has_reductions(const Scalar& scalar) const {
    return loads(scalar, greatest_) || loads(scalar, total_);
  }

  // Of what the second product multiplies by: what depends on the key, and what is the same for all of a row.
  struct Split {
    Scalar weight, result;
  };
  std::optional<Split> split_weight(const Scalar& scalar) const {
    if (is_power(scalar))
      return Split{Scalar::load(power_, DType::F32, {}), Scalar::load(sum_, DType::F32, {})};
    if (scalar.kind() != Scalar::Kind::Apply)
      return std::nullopt;
    if (const Scalar& inner = without_casts(scalar); !(inner == scalar))
      return split_weight(inner);
    const std::vector<Scalar>& operands = scalar.operands();
    size_t with = 0;
    while (with < operands.size() && !has_power(operands[with]))
      ++with;
    if (with == operands.size())
      return std::nullopt;
    std::vector<Scalar> others = operands;
    others.erase(others.begin() + static_cast<int64_t>(with));
    const bool scales = is(scalar, Function::Multiply) || (is(scalar, Function::Divide) && with == 0);
    const bool chooses = is(scalar, Function::Select) && with > 0 && as_number(operands[3 - with]) == 0;
    if ((!scales && !chooses) ||
        std::ranges::any_of(others, [&](const Scalar& each) { return has_power(each); }))
      return std::nullopt;
    std::optional<Split> split = split_weight(operands[with]);
    if (!split)
      return std::nullopt;
    const bool varies =
        std::ranges::any_of(others, [&](const Scalar& each) { return mentions(each, kKeyVariable); });
    if (varies && std::ranges::any_of(others, [&](const Scalar& each) { return has_reductions(each); }))
      return std::nullopt;
    Scalar& part = varies ? split->weight : split->result;
    std::vector<Scalar> own = operands;
    own[with] = part;
    for (Scalar& operand : own)
      if (is_float(operand.dtype()))
        operand = Scalar::cast(DType::F32, operand);
    part = Scalar::apply(scalar.function(), std::move(own));
    return split;
  }

  bool is_known_at_end(const Scalar& result) const {
    return !loads(result, product_) && !mentions(result, kKeyVariable) && loads(result, total_);
  }

  const std::vector<Definition>& definitions_;
  const size_t rows_;
  const Definition &first_, &second_;
  std::string product_, greatest_, power_, total_, sum_;
  double scale_ = 1;
  std::optional<Scalar> score_;
  std::map<std::string, Scalar> formulas_;
};

}  // namespace

std::string row_variable(size_t row) { return fmt::format("r{}", row); }

bool OnlineAttention::has_halves() const {
  return q.dtype() != DType::F32 && q.dtype() == k.dtype() && q.dtype() == v.dtype();
}

std::optional<OnlineAttention> match_online_attention(const std::vector<Definition>& definitions,
                                                      size_t rows) {
  return Matcher(definitions, rows).run();
}

}  // namespace tenon::fusion
