#include "codegen/cuda/assigns.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "codegen/cuda/accesses.h"
#include "loops/definition.h"

namespace tenon::codegen::cuda {

using loops::Assign;
using loops::Function;
using loops::Place;
using loops::Scalar;

namespace {

constexpr int64_t kLeastAsyncBytes = 4;

}  // namespace

void AssignText::run_assign(const Assign& assign) {
  begin_statement(assign.values);
  if (copies_async_ && copy_async(assign))
    return;
  load_vectors(assign);
  if (!at_ || !at_->is_whole)
    return run_one(assign, {});
  if (is_pair(assign))
    return store_pair(assign);
  std::vector<std::string> stored_vectors;  // empty for places that are written one by one
  for (const Place& place : assign.places) {
    stored_vectors.emplace_back();
    if (folds(assign) || !is_vector(place))
      continue;
    const std::string& name = storage_.at(place.buffer).name;
    stored_vectors.back() = names_.fresh(name + "_vector");
    writer_.line("{} {};", vector_type(dtype_of(place)), stored_vectors.back());
  }
  for_each_lane([&] { run_one(assign, stored_vectors); });
  for (size_t i = 0; i < assign.places.size(); ++i)
    if (const Place& place = assign.places[i]; !stored_vectors[i].empty())
      writer_.line("{}({}, {});", preamble_.use("store_vector"),
                   vector_at(storage_.at(place.buffer), place.at), stored_vectors[i]);
}

// Those of less than 4 bytes have no such instruction by themselves.
bool AssignText::copy_async(const Assign& assign) {
  const Scalar& value = assign.values.front();
  const Scalar* const load = copied_by(assign);
  const Place &to = assign.places.front(), from{load->name(), load->operands()};
  const Scalar* const condition = load == &value ? nullptr : &value.operands()[0];
  const Storage &there = storage_.at(to.buffer), &here = storage_.at(from.buffer);
  const int64_t bytes = info(dtype_of(to)).bytes;
  const bool copies_vectors = at_->is_whole && is_vector(to) && is_vector(from) &&
                              bytes * at_->vector >= kLeastAsyncBytes &&
                              (condition == nullptr || !loops::mentions(*condition, at_->loop->variable));
  if (!copies_vectors && bytes < kLeastAsyncBytes)
    return false;
  const auto copy = [&](int64_t size, const std::string& place, const std::string& source) {
    if (condition == nullptr)
      writer_.line("{}<{}>({}, {});", preamble_.use("copy_async"), size, place, source);
    else
      writer_.line("{}<{}>({}, {}, {});", preamble_.use("copy_async_where"), size, value_of(*condition).text,
                   place, source);
    has_async_copies_ = true;
  };
  const auto copy_one = [&] {
    copy(bytes, "&" + element(there, to.at).text, "&" + element(here, from.at).text);
  };
  if (copies_vectors)
    copy(bytes * at_->vector, vector_at(there, to.at), vector_at(here, from.at));
  else if (at_->is_whole)
    for_each_lane(copy_one);
  else
    copy_one();
  return true;
}

// Both elements of a word of fragments, converted from f32.
bool AssignText::is_pair(const Assign& assign) const {
  const Place& place = assign.places.front();
  const Scalar& value = assign.values.front();
  return storage_.at(place.buffer).kind == Storage::Kind::Fragments && assign.combine.empty() &&
         at_->loop->variable == quads_.at(place.buffer).of_two && at_->vector == 2 &&
         value.kind() == Scalar::Kind::Apply && value.function() == Function::Cast &&
         value.operands().front().dtype() == DType::F32;
}

void AssignText::store_pair(const Assign& assign) {
  const Place& place = assign.places.front();
  const std::string pair = names_.fresh("pair");
  writer_.line("float {}[2];", pair);
  for_each_lane([&] {
    writer_.line("{}[{}] = {};", pair, at_->lane, value_of(assign.values.front().operands().front()).text);
  });
  writer_.line("{} = {}({}[0], {}[1]);", word_of_fragments(place.buffer),
               preamble_.use(dtype_of(place) == DType::F16 ? "pack_f16" : "pack_bf16"), pair, pair);
}

void AssignText::run_one(const Assign& assign, const std::vector<std::string>& stored_vectors) {
  if (fold(assign))
    return;
  const auto is_pointer = [&](const Place& place) { return storage_.at(place.buffer).is_in_memory(); };
  refuse_scattered_combine(assign);
  std::vector<Expression> values;
  if (adds_product(assign)) {
    const Place& place = assign.places.front();
    values.push_back(product_added(assign, load(place.buffer, place.at)));
  } else if (assign.combine.empty()) {
    for (size_t i = 0; i < assign.values.size(); ++i)
      values.push_back(is_pointer(assign.places[i]) ? stored_value_of(assign.values[i])
                                                    : value_of(assign.values[i]));
  } else {
    std::vector<Expression> there, coming;
    for (const Scalar& value : assign.values)
      coming.push_back(value_of(value));
    for (const Place& place : assign.places)
      there.push_back(load(place.buffer, place.at));
    values = combine(assign, there, coming);
    for (size_t i = 0; i < values.size(); ++i)
      if (is_pointer(assign.places[i]))
        values[i] = elements_.to_stored(dtype_of(assign.places[i]), values[i]);
  }
  // All values are known before any place is written.
  if (values.size() > 1)
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string name = names_.fresh("value");
      const DType dtype = dtype_of(assign.places[i]);
      writer_.line("const {} {} = {};",
                   is_pointer(assign.places[i]) ? stored_type(dtype) : register_type(dtype), name,
                   values[i].text);
      values[i] = {name};
    }
  for (size_t i = 0; i < values.size(); ++i) {
    if (i < stored_vectors.size() && !stored_vectors[i].empty())
      writer_.line("{}.at[{}] = {};", stored_vectors[i], at_->lane, values[i].text);
    else
      store(assign.places[i], values[i]);
  }
}

// Two threads may be told the same place, and without atomics one of them would be lost.
void AssignText::refuse_scattered_combine(const Assign& assign) const {
  if (!at_ || team_.threads == 1 || assign.combine.empty())
    return;
  for (const Place& place : assign.places)
    if (const Storage& storage = storage_.at(place.buffer);
        storage.kind == Storage::Kind::Pointer && !offset_of(storage.buffer, place.at))
      throw unsupported("kernel {}: threads combine into places of '{}' that depend on data", kernel_.name,
                        place.buffer);
}

// y += a * b, rounded once, as the sum of packed products is.
bool AssignText::adds_product(const Assign& assign) {
  const Scalar& value = assign.values.front();
  if (assign.combine != "+" || assign.places.size() != 1 || value.kind() != Scalar::Kind::Apply)
    return false;
  return value.function() == Function::DotI8x4 || value.function() == Function::DotBf16x2 ||
         ((value.dtype() == DType::F32 || value.dtype() == DType::F64) &&
          value.function() == Function::Multiply);
}

Expression AssignText::product_added(const Assign& assign, const Expression& sum) {
  const Scalar& product = assign.values.front();
  const Expression a = value_of(product.operands()[0]), b = value_of(product.operands()[1]);
  return elements_.multiply_add(product.function(), product.dtype(), a, b, sum);
}

std::vector<Expression> AssignText::combine(const Assign& assign, const std::vector<Expression>& there,
                                            const std::vector<Expression>& coming) {
  if (const std::optional<Function> function = loops::built_in_combine(assign.combine)) {
    std::vector<Expression> results;
    for (size_t i = 0; i < there.size(); ++i) {
      const DType dtype = dtype_of(assign.places[i]);
      const Expression result = elements_.apply(*function, dtype, std::array{there[i], coming[i]});
      const bool is_exact = *function == Function::Minimum || *function == Function::Maximum;
      results.push_back(is_exact ? result : elements_.fit(dtype, result));
    }
    return results;
  }
  const loops::Combine& own = *kernel_.find_combine(assign.combine);
  const std::map<std::string, Expression> around = variables_;
  for (size_t i = 0; i < there.size(); ++i) {
    variables_[own.there[i].first] = named(own.there[i].second, there[i]);
    variables_[own.coming[i].first] = named(own.coming[i].second, coming[i]);
  }
  begin_statement(own.results);
  std::vector<Expression> results;
  for (const Scalar& result : own.results)
    results.push_back(value_of(result));
  variables_ = around;
  return results;
}

}  // namespace tenon::codegen::cuda
