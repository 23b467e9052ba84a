#include "codegen/cuda/scalars.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/cuda/accesses.h"

namespace tenon::codegen::cuda {

using loops::Buffer;
using loops::Function;
using loops::Place;
using loops::Scalar;

namespace {

constexpr size_t kLongText = 72;  // longer expressions get a name and a line

// Whether a float is at least and at most numbers of 32 bits, or NaN.
bool is_limited(const Scalar& scalar) {
  constexpr double least = INT32_MIN, greatest = INT32_MAX - 64;  // which f32 has
  const auto limits = [](const Scalar& each, Function function) {
    if (each.kind() != Scalar::Kind::Apply || each.function() != function || !is_float(each.dtype()) ||
        each.dtype() == DType::F64)
      return false;
    const Scalar& limit = each.operands()[1];
    return limit.kind() == Scalar::Kind::Number && std::get<double>(limit.value()) >= least &&
           std::get<double>(limit.value()) <= greatest;
  };
  return (limits(scalar, Function::Maximum) && limits(scalar.operands()[0], Function::Minimum)) ||
         (limits(scalar, Function::Minimum) && limits(scalar.operands()[0], Function::Maximum));
}

}  // namespace

void ScalarText::begin_statement(const std::vector<Scalar>& values) {
  uses_.clear();
  known_.clear();
  for (const Scalar& value : values)
    count_uses(value);
}

void ScalarText::count_uses(const Scalar& scalar) {
  if (++uses_[scalar.identity()] == 1)
    for (const Scalar& operand : scalar.operands())
      count_uses(operand);
}

Expression ScalarText::named(DType dtype, const Expression& value, std::string_view base) {
  const bool is_name =
      std::ranges::all_of(value.text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (is_name)
    return value;
  const std::string name = names_.fresh(base);
  writer_.line("const {} {} = {};", register_type(dtype), name, value.text);
  return {name};
}

void ScalarText::require(const Expression& condition) {
  writer_.open("if (!{})", condition.at(Binding::Primary));
  writer_.line("if (*failure == 0) *failure = step;");  // the first that fails
  writer_.line("return;");
  writer_.close();
}

Expression ScalarText::value_of(const Scalar& scalar) {
  if (const auto it = known_.find(scalar.identity()); it != known_.end())
    return it->second;
  Expression value = compute(scalar);
  const bool is_computed = scalar.kind() == Scalar::Kind::Apply || scalar.kind() == Scalar::Kind::Load;
  if (is_computed && (uses_[scalar.identity()] > 1 || value.text.size() > kLongText))
    value = named(scalar.dtype(), value);
  known_.emplace(scalar.identity(), value);
  return value;
}

Expression ScalarText::compute(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::Number:
      return elements_.number(scalar.dtype(), scalar.value());
    case Scalar::Kind::Index:
      return {fmt::format("(long long){}", indices_.text(scalar.index()).at(Binding::Unary)), Binding::Unary};
    case Scalar::Kind::Variable:
      return variables_.at(scalar.name());
    case Scalar::Kind::Load:
      return load(scalar.name(), scalar.operands());
    case Scalar::Kind::Apply:
      break;
  }
  if (scalar.function() == Function::Select)
    return choose(scalar);
  if (scalar.function() == Function::Require) {
    require(value_of(scalar.operands()[0]));
    return value_of(scalar.operands()[1]);
  }
  const Expression value = apply(scalar);
  return needs_fit(scalar) ? elements_.fit(scalar.dtype(), value) : value;
}

bool ScalarText::needs_fit(const Scalar& scalar) {
  if (loops::gives_bool(scalar.function()))
    return false;
  switch (scalar.function()) {
    case Function::Cast:
      return ElementText::is_narrow(scalar.dtype());
    case Function::RoundDownToBf16:
    case Function::Minimum:
    case Function::Maximum:
      return false;
    case Function::Negate:
    case Function::Absolute:
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
      return !is_float(scalar.dtype());
    default:
      return true;
  }
}

Expression ScalarText::apply(const Scalar& scalar) {
  const Function function = scalar.function();
  const Scalar& first = scalar.operands().front();
  if (function == Function::Cast)
    return is_integer(scalar.dtype()) && is_limited(first)
               ? elements_.cast_limited(scalar.dtype(), value_of(first))
               : elements_.cast(first.dtype(), scalar.dtype(), value_of(first));
  std::vector<Expression> operands;
  for (const Scalar& operand : scalar.operands())
    operands.push_back(value_of(operand));
  if ((function == Function::Divide || function == Function::Remainder) && !is_float(scalar.dtype())) {
    operands[1] = named(scalar.dtype(), operands[1]);
    require({fmt::format("{} != 0", operands[1].text), Binding::Equality});
  }
  if (function == Function::Power && scalar.dtype() == DType::F32 && first.kind() == Scalar::Kind::Number &&
      std::get<double>(first.value()) == 2)
    return elements_.power_of_two(operands[1]);
  return elements_.apply(function, scalar.dtype(), operands);
}

bool ScalarText::needs_care(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Load)
    return true;
  if (scalar.kind() == Scalar::Kind::Apply &&
      (scalar.function() == Function::Require ||
       (!is_float(scalar.dtype()) &&
        (scalar.function() == Function::Divide || scalar.function() == Function::Remainder))))
    return true;
  return std::ranges::any_of(scalar.operands(), needs_care);
}

Expression ScalarText::choose(const Scalar& scalar) {
  const std::vector<Scalar>& operands = scalar.operands();
  const Expression condition = value_of(operands[0]);
  if (!needs_care(operands[1]) && !needs_care(operands[2]))
    return elements_.apply(Function::Select, scalar.dtype(),
                           std::array{condition, value_of(operands[1]), value_of(operands[2])});
  // What is computed in one branch is not known after it.
  Writer before = std::move(writer_);
  std::vector<Writer> branches;
  std::vector<Expression> values;
  const std::string chosen = names_.fresh("chosen");  // which no name in a branch may hide
  for (size_t i = 1; i <= 2; ++i) {
    const auto known = known_;
    writer_ = before.inner();
    names_.begin_scope();
    values.push_back(value_of(operands[i]));
    names_.end_scope();
    branches.push_back(std::move(writer_));
    known_ = known;
  }
  writer_ = std::move(before);
  if (branches[0].text().empty() && branches[1].text().empty())
    return elements_.apply(Function::Select, scalar.dtype(), std::array{condition, values[0], values[1]});
  for (size_t i = 0; i < 2; ++i)
    branches[i].line("{} = {};", chosen, values[i].text);
  writer_.line("{} {};", register_type(scalar.dtype()), chosen);
  writer_.open("if ({})", condition.text);
  writer_.append(branches[0]);
  writer_.otherwise();
  writer_.append(branches[1]);
  writer_.close();
  return {chosen};
}

std::string ScalarText::offset_text(const Buffer& buffer, const std::vector<Scalar>& at) {
  if (const std::optional<Dim> whole = offset_of(buffer, at))
    return indices_.text(*whole).text;
  std::vector<std::string> terms;
  Dim stride = 1;
  for (size_t i = at.size(); i-- > 0;) {
    const Expression index =
        at[i].kind() == Scalar::Kind::Index ? indices_.text(at[i].index()) : value_of(at[i]);
    terms.push_back(stride == Dim(1) ? index.at(Binding::Sum)
                                     : fmt::format("(long long){} * {}", index.at(Binding::Unary),
                                                   indices_.text(stride).at(Binding::Unary)));
    stride = stride * buffer.sizes[i];
  }
  std::ranges::reverse(terms);
  return fmt::format("{}", fmt::join(terms, " + "));
}

std::string ScalarText::place_text(const Storage& storage, const std::string& offset) {
  return storage.is_swizzled ? fmt::format("{}({})", preamble_.use("swizzled"), offset) : offset;
}

std::string ScalarText::trip_offset(const Storage& storage) const {
  return at_->trip == "0" ? "0" : fmt::format("{} * {}", storage.trip_stride, at_->trip);
}

Expression ScalarText::element(const Storage& storage, const std::vector<Scalar>& at) {
  switch (storage.kind) {
    case Storage::Kind::Pointer:
      return {fmt::format("{}[{}]", storage.name,
                          at.empty() ? "0" : place_text(storage, offset_text(storage.buffer, at)))};
    case Storage::Kind::Registers:
      return {at.empty() ? storage.name
                         : fmt::format("{}[{}]", storage.name, offset_text(storage.buffer, at))};
    case Storage::Kind::Lanes:
      return {at.empty()
                  ? fmt::format("{}[{}]", storage.name, at_->lane)
                  : fmt::format("{}[{}][{}]", storage.name, at_->lane, offset_text(storage.buffer, at))};
    case Storage::Kind::SpreadShared: {
      const std::string trip = trip_offset(storage), lane = storage.spread->vector == 1 ? "0" : at_->lane;
      return {fmt::format("{}[{}]", storage.name,
                          lane == "0"   ? trip
                          : trip == "0" ? lane
                                        : fmt::format("{} + {}", trip, lane))};
    }
    case Storage::Kind::Exchanged:
      return {fmt::format("{}[{}]", storage.name, row_of_quad(quads_.at(storage.buffer.name)))};
    case Storage::Kind::Fragments:
      CHECK(false, "fragments are those of products");
    case Storage::Kind::Spread:
      break;
  }
  const std::string held = storage.spread->vector == 1
                               ? at_->trip
                               : fmt::format("{} * {} + {}", storage.spread->vector, at_->trip, at_->lane);
  if (at.size() == 1)
    return {fmt::format("{}[{}]", storage.name, held)};
  Buffer row = storage.buffer;
  row.sizes.erase(row.sizes.begin());
  return {fmt::format("{}[{}][{}]", storage.name, held, offset_text(row, {at.begin() + 1, at.end()}))};
}

std::string ScalarText::row_of_quad(const QuadBuffer& quad) {
  Dim row = 0;
  for (const auto& [variable, count] : quad.rows)
    row = row * count + Dim::symbol(variable);
  return indices_.text(row).text;
}

Expression ScalarText::load(const std::string& name, const std::vector<Scalar>& at) {
  const Storage& storage = storage_.at(name);
  if (storage.kind == Storage::Kind::Exchanged)
    return {fmt::format("__shfl_sync(0xffffffff, {}, {}, {})", element(storage, at).text,
                        indices_.text(at[1].index()).text, kThreadsOfQuad)};
  return storage.is_in_memory() ? elements_.from_stored(storage.buffer.dtype, load_stored(storage, at))
                                : element(storage, at);
}

Expression ScalarText::load_stored(const Storage& storage, const std::vector<Scalar>& at) {
  const Scalar load = Scalar::load(storage.buffer.name, storage.buffer.dtype, at);
  const auto vector = std::ranges::find(vectors_, load, &std::pair<Scalar, std::string>::first);
  return vector != vectors_.end() ? Expression{fmt::format("{}.at[{}]", vector->second, at_->lane)}
                                  : element(storage, at);
}

Expression ScalarText::stored_value_of(const Scalar& scalar) {
  const DType dtype = scalar.dtype();
  if (!ElementText::is_narrow(dtype))
    return value_of(scalar);
  const bool is_known = known_.contains(scalar.identity()) || uses_[scalar.identity()] > 1;
  if (scalar.kind() == Scalar::Kind::Load)
    if (const Storage& storage = storage_.at(scalar.name()); storage.is_in_memory())
      return load_stored(storage, scalar.operands());
  if (!is_known && scalar.kind() == Scalar::Kind::Apply && scalar.function() != Function::Select &&
      scalar.function() != Function::Require)
    return elements_.to_stored(dtype, apply(scalar));  // which rounds
  return elements_.to_stored(dtype, value_of(scalar));
}

std::string ScalarText::word_of_fragments(const std::string& buffer) {
  const QuadBuffer& quad = quads_.at(buffer);
  const auto at = [&](const std::string& variable) { return indices_.text(Dim::symbol(variable)).text; };
  return fmt::format("{}[{}][{}][{}]", storage_.at(buffer).name, at(quad.rows[0].first), at(quad.fragment),
                     at(quad.rows[1].first));
}

void ScalarText::store(const Place& place, const Expression& value) {
  if (storage_.at(place.buffer).kind == Storage::Kind::Fragments)
    writer_.line("{}({}, {}, {});", preamble_.use("set_half"), word_of_fragments(place.buffer),
                 indices_.text(Dim::symbol(quads_.at(place.buffer).of_two)).text, value.text);
  else
    writer_.line("{} = {};", element(storage_.at(place.buffer), place.at).text, value.text);
}

// --- vectors ---

bool ScalarText::is_vector(const Place& place) const {
  const Storage& storage = storage_.at(place.buffer);
  if (!at_ || !at_->is_whole)
    return false;
  if (storage.kind == Storage::Kind::SpreadShared)
    return true;
  return storage.kind == Storage::Kind::Pointer &&
         movement_of(storage.buffer, place.at, *at_->loop, at_->vector) == Movement::Aligned;
}

std::string ScalarText::vector_type(DType dtype) const {
  return fmt::format("Vector<{}, {}>", stored_type(dtype), at_->vector);
}

std::string ScalarText::vector_at(const Storage& storage, const std::vector<Scalar>& at) {
  if (storage.kind == Storage::Kind::SpreadShared) {
    const std::string offset = trip_offset(storage);
    return offset == "0" ? storage.name : fmt::format("{} + {}", storage.name, offset);
  }
  const std::string& lane = at_->loop->variable;
  Dim first = *offset_of(storage.buffer, at);
  if (indices_.symbol(lane).text.text == "0")
    first = first.substitute({{lane, 0}});
  const std::string offset = indices_.text(first).at(Binding::Sum);
  return offset == "0" ? storage.name : fmt::format("{} + {}", storage.name, place_text(storage, offset));
}

void ScalarText::load_vectors(const loops::Assign& assign) {
  vectors_.clear();
  std::unordered_set<const void*> seen;
  for (const Scalar& value : assign.values)
    load_vectors(value, seen);
  for (const Place& place : assign.places) {
    for (const Scalar& index : place.at)
      load_vectors(index, seen);
    if (!assign.combine.empty() && is_vector(place))
      load_vector(Scalar::load(place.buffer, storage_.at(place.buffer).buffer.dtype, place.at));
  }
}

void ScalarText::load_vectors(const Scalar& scalar, std::unordered_set<const void*>& seen) {
  if (!seen.insert(scalar.identity()).second)
    return;
  if (scalar.kind() == Scalar::Kind::Load)
    load_vector(scalar);
  const bool may_not_run = scalar.kind() == Scalar::Kind::Apply && takes_condition(scalar.function());
  for (const Scalar& operand : scalar.operands()) {
    load_vectors(operand, seen);
    if (may_not_run)
      return;  // all but the condition
  }
}

void ScalarText::load_vector(const Scalar& load) {
  if (!is_vector({load.name(), load.operands()}) ||
      std::ranges::find(vectors_, load, &std::pair<Scalar, std::string>::first) != vectors_.end())
    return;
  const Storage& storage = storage_.at(load.name());
  const std::string type = vector_type(load.dtype()), name = names_.fresh(storage.name + "_vector");
  writer_.line("const {} {} = {}<{}>({});", type, name, preamble_.use("load_vector"), at_->vector,
               vector_at(storage, load.operands()));
  vectors_.emplace_back(load, name);
}

}  // namespace tenon::codegen::cuda
