// npy.cpp — the items of .npy files; npy_format.cpp has their header.
#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "tensor/npy_format.h"
#include "tensor/packing.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// Calls f(position, bytes of the item) for the elements in row-major order.
template <class F>
void for_each_item(const NpyHeader& header, std::span<const std::byte> items, F f) {
  const auto count = static_cast<size_t>(element_count(header.extents));
  const size_t rank = header.extents.size();
  Extents strides = row_major_strides(header.extents);
  if (header.fortran_order) {
    strides = row_major_strides({header.extents.rbegin(), header.extents.rend()});
    std::reverse(strides.begin(), strides.end());
  }
  Extents index(rank);
  int64_t source = 0;
  for (size_t i = 0; i < count; ++i) {
    f(i, items.subspan(static_cast<size_t>(source) * header.item_size, header.item_size));
    for (size_t axis = rank; axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < header.extents[axis])
        break;
      source -= strides[axis] * header.extents[axis];
      index[axis] = 0;
    }
  }
}

// Nothing when the text is not valid UTF-8.
std::optional<std::vector<uint32_t>> decode_utf8(std::string_view text) {
  std::vector<uint32_t> points;
  while (!text.empty()) {
    const std::optional<uint32_t> point = take_utf8(text);
    if (!point)
      return std::nullopt;
    points.push_back(*point);
  }
  return points;
}

std::string read_text(const NpyHeader& header, std::span<const std::byte> item) {
  std::string text;
  if (header.text == NpyText::Bytes) {
    text.assign(reinterpret_cast<const char*>(item.data()), item.size());
    text.resize(text.find_last_not_of('\0') + 1);  // npos + 1 is 0
    return text;
  }
  std::vector<uint32_t> points(item.size() / 4);
  for (size_t i = 0; i < item.size(); ++i) {
    const size_t shift = header.big_endian ? 3 - i % 4 : i % 4;
    points[i / 4] |= std::to_integer<uint32_t>(item[i]) << (8 * shift);
  }
  while (!points.empty() && points.back() == 0)
    points.pop_back();
  for (const uint32_t point : points) {
    if (!is_code_point(point))
      throw user_error("npy: a string holds {:#x}, which is no Unicode character", point);
    append_utf8(text, point);
  }
  return text;
}

NpyImage make_text_image(const Tensor& t) {
  std::vector<std::vector<uint32_t>> decoded;
  for (const std::string& text : t.strings()) {
    auto points = decode_utf8(text);
    if (!points)
      break;
    decoded.push_back(std::move(*points));
  }
  const bool is_unicode = static_cast<int64_t>(decoded.size()) == t.count();
  size_t longest = 1;
  for (const auto& points : decoded)
    longest = std::max(longest, points.size());
  if (!is_unicode)
    for (const std::string& text : t.strings())
      longest = std::max(longest, text.size());

  NpyHeader header{.dtype = DType::String, .extents = t.extents()};
  header.text = is_unicode ? NpyText::CodePoints : NpyText::Bytes;
  header.item_size = is_unicode ? 4 * longest : longest;
  Tensor items(is_unicode ? DType::U32 : DType::U8, {t.count(), static_cast<int64_t>(longest)});
  std::byte* target = items.mutable_bytes().data();
  for (size_t i = 0; i < t.strings().size(); ++i, target += header.item_size) {
    const auto source =
        is_unicode ? std::as_bytes(std::span(decoded[i])) : std::as_bytes(std::span(t.strings()[i]));
    std::copy(source.begin(), source.end(), target);
  }
  return {format_npy_header(header), items};
}

// The nearest type NumPy has, which holds every value of t's.
Tensor to_numpy_dtype(const Tensor& t) {
  const bool is_narrow = info(t.dtype()).bits < 8;
  if (is_signed(t.dtype()) && is_narrow)
    return Tensor(DType::I8, t.extents(), std::make_shared<Tensor>(t), t.bytes());
  if (is_unsigned(t.dtype()) && is_narrow)
    return Tensor(DType::U8, t.extents(), std::make_shared<Tensor>(t), t.bytes());
  const bool is_native = t.dtype() == DType::F64 || t.dtype() == DType::F32 || t.dtype() == DType::F16;
  return is_float(t.dtype()) && !is_native ? narrow<double>(DType::F32, t.extents(), widen<double>(t)) : t;
}

}  // namespace

Tensor read_npy_items(const NpyHeader& header, std::span<const std::byte> items,
                      std::shared_ptr<const void> owner) {
  CHECK(items.size() == header.data_size, "{} bytes of items, not {}", items.size(), header.data_size);
  if (header.text != NpyText::None) {
    Tensor t(DType::String, header.extents);
    std::vector<std::string>& strings = t.mutable_strings();
    for_each_item(header, items, [&](size_t i, auto item) { strings[i] = read_text(header, item); });
    return t;
  }
  if (!header.big_endian && !header.fortran_order)
    return owner != nullptr && header.dtype != DType::Bool
               ? Tensor(header.dtype, header.extents, std::move(owner), items)
               : unpack(header.dtype, header.extents, items);

  std::vector<std::byte> ordered(items.size());
  const size_t part = kind(header.dtype) == DTypeKind::Complex ? header.item_size / 2 : header.item_size;
  for_each_item(header, items, [&](size_t i, std::span<const std::byte> item) {
    std::byte* target = ordered.data() + i * header.item_size;
    std::copy(item.begin(), item.end(), target);
    if (header.big_endian)
      for (size_t k = 0; k < item.size(); k += part)
        std::reverse(target + k, target + k + part);
  });
  return unpack(header.dtype, header.extents, ordered);
}

NpyImage make_npy_image(const Tensor& t) {
  if (t.dtype() == DType::String)
    return make_text_image(t);
  const Tensor items = to_numpy_dtype(t);
  NpyHeader header{.dtype = items.dtype(), .extents = items.extents()};
  header.item_size = static_cast<uint64_t>(items.element_size());
  return {format_npy_header(header), items};
}

}  // namespace tenon
