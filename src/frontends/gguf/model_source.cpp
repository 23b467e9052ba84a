#include "frontends/gguf/model_source.h"

#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "ir/print.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/quantise.h"
#include "ops/reshape.h"
#include "ops/select.h"

namespace tenon::gguf {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;

std::string describe(const KeyValue& value) {
  struct Describe {
    std::string operator()(uint64_t number) const { return fmt::format("{}", number); }
    std::string operator()(int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(bool truth) const { return fmt::format("{}", truth); }
    std::string operator()(std::string_view text) const { return quote(text); }
    std::string operator()(const KeyArray& array) const {
      return fmt::format("an array of {} elements, {}", array.count, array.element_type);
    }
  };
  return std::visit(Describe{}, value);
}

double as_number(const KeyValue& value, std::string_view key) {
  const double* number = std::get_if<double>(&value);
  if (number == nullptr || !std::isfinite(*number) || *number <= 0)
    throw user_error("key {}: it is {}, but must be a float above 0", quote(key), describe(value));
  return *number;
}

int64_t as_size(const KeyValue& value, std::string_view key) {
  int64_t size = 0;
  if (const auto* number = std::get_if<uint64_t>(&value); number != nullptr && *number <= kLargestSize)
    size = static_cast<int64_t>(*number);
  else if (const auto* number = std::get_if<int64_t>(&value); number != nullptr && *number <= kLargestSize)
    size = *number;
  if (size < 1)
    throw user_error("key {}: it is {}, but must be an integer from 1 to {}", quote(key), describe(value),
                     kLargestSize);
  return size;
}

Value as_f32(Value x) { return x.dtype() == DType::F32 ? x : cast(x, DType::F32); }

// x in its small integers times the scale of each block along its last axis.
Value scaled(Value x, Value scales, int64_t block_size) {
  return dequantize(x, scales, {}, DType::F32, {.axis = x.rank() - 1, .block_size = block_size});
}

}  // namespace

Weight::Weight(Graph& graph, const Container& container, const std::string& name, const TensorInfo& info)
    : type_(*info.type) {
  const auto& file = container.file();
  if (type_.plain) {
    const auto offset = static_cast<uint64_t>(info.bytes.data() - file->bytes().data());
    quants_ = parameter(graph, name,
                        Literal::file_slice(*type_.plain, info.extents, file, offset, info.bytes.size()));
    return;
  }
  const auto field = [&](const Field& of, std::string_view suffix) {
    if (of.per_block == 0)
      return Value();
    Extents extents = info.extents;
    extents.back() = extents.back() / type_.elements * of.per_block;
    return parameter(graph, fmt::format("{}{}", name, suffix),
                     field_of_blocks(type_, of, extents, file, info.bytes));
  };
  quants_ = field(type_.quants, "");
  scales_ = field(type_.scales, ".scales");
  minima_ = field(type_.minima, ".minima");
  scales_of_scales_ = field(type_.scales_of_scales, ".scales_of_scales");
  scales_of_minima_ = field(type_.scales_of_minima, ".scales_of_minima");
}

template <class Pick>
Value Weight::values(Pick pick) const {
  if (!scales_)
    return as_f32(pick(quants_));
  const bool two_levels = bool(scales_of_scales_);
  const auto level = [&](Value small, Value scales, const Field& field) {
    return scales ? scaled(pick(small), pick(scales), field.per_block) : pick(small);
  };
  const int64_t block_size = type_.elements / type_.scales.per_block;
  const Value y = scaled(pick(quants_), level(scales_, scales_of_scales_, type_.scales), block_size);
  if (!minima_)
    return y;
  const int64_t rank = y.rank();
  const Value minima = unsqueeze(as_f32(level(minima_, scales_of_minima_, type_.minima)), {rank});
  std::vector<int64_t> in_blocks(static_cast<size_t>(rank), 0), in_rows = in_blocks;
  in_blocks.back() = -1;
  in_rows.back() = *y.dim(rank - 1).constant();
  in_blocks.push_back(block_size);
  const Value blocks = reshape_copying(y, in_blocks);
  return reshape_copying(two_levels ? blocks - minima : blocks + minima, in_rows);
}

Value Weight::whole() const {
  return values([](Value part) { return part; });
}

Value Weight::rows(Value indices) const {
  return values([&](Value part) { return gather(part, indices, 0); });
}

ModelSource::ModelSource(const Container& container, std::string architecture)
    : container_(container), architecture_(std::move(architecture)) {}

bool ModelSource::has(const std::string& key) const {
  return container_.keys().contains(architecture_ + "." + key);
}

const KeyValue* ModelSource::find(const std::string& key) {
  const auto it = container_.keys().find(architecture_ + "." + key);
  if (it == container_.keys().end())
    return nullptr;
  used_keys_.emplace(it->first);
  return &it->second;
}

const KeyValue& ModelSource::get(const std::string& key) {
  const KeyValue* value = find(key);
  if (value == nullptr)
    throw user_error("key \"{}.{}\" is missing", architecture_, key);
  return *value;
}

int64_t ModelSource::size(const std::string& key) { return as_size(get(key), architecture_ + "." + key); }
int64_t ModelSource::size(const std::string& key, int64_t otherwise) {
  return has(key) ? size(key) : otherwise;
}

double ModelSource::number(const std::string& key) { return as_number(get(key), architecture_ + "." + key); }
double ModelSource::number(const std::string& key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

std::string ModelSource::text(const std::string& key, const std::string& otherwise) {
  const KeyValue* value = find(key);
  if (value == nullptr)
    return otherwise;
  const auto* text = std::get_if<std::string_view>(value);
  if (text == nullptr)
    throw user_error("key \"{}.{}\": it is {}, but must be a string", architecture_, key, describe(*value));
  return std::string(*text);
}

void ModelSource::ignore(std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    find(std::string(key));
}

bool ModelSource::has_tensor(const std::string& name) const { return container_.tensors().contains(name); }

const TensorInfo& ModelSource::tensor(const std::string& name,
                                      const std::vector<std::optional<int64_t>>& extents) {
  const auto it = container_.tensors().find(name);
  if (it == container_.tensors().end())
    throw user_error("tensor {} is missing", quote(name));
  const TensorInfo& info = it->second;
  bool fits = info.extents.size() == extents.size();
  std::vector<std::string> wanted;
  for (size_t i = 0; i < extents.size(); ++i) {
    fits = fits && (!extents[i] || *extents[i] == info.extents[i]);
    wanted.push_back(extents[i] ? std::to_string(*extents[i]) : "?");
  }
  if (!fits)
    throw user_error("tensor {}: it is [{}], but must be [{}]", quote(name), fmt::join(info.extents, ","),
                     fmt::join(wanted, ","));
  used_tensors_.insert(name);
  return info;
}

Weight ModelSource::weight(Graph& graph, const std::string& name, const Extents& extents) {
  return {graph, container_, name, tensor(name, {extents.begin(), extents.end()})};
}

void ModelSource::refuse_unused() const {
  for (const auto& [key, value] : container_.keys())
    if (key.starts_with(architecture_ + ".") && !used_keys_.contains(key))
      throw unsupported("key {}, which is {}", quote(key), describe(value));
  for (const auto& [name, info] : container_.tensors())
    if (!used_tensors_.contains(name))
      throw unsupported("tensor {} is none of those of the architecture {}", quote(name), architecture_);
}

}  // namespace tenon::gguf
