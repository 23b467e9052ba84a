#include "tensor/npy_format.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <optional>

namespace tenon {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct ItemType {
  char kind;
  uint64_t size;
  DType dtype;
};
constexpr ItemType item_types[] = {
    {'f', 8, DType::F64}, {'f', 4, DType::F32},   {'f', 2, DType::F16}, {'i', 8, DType::I64},
    {'i', 4, DType::I32}, {'i', 2, DType::I16},   {'i', 1, DType::I8},  {'u', 8, DType::U64},
    {'u', 4, DType::U32}, {'u', 2, DType::U16},   {'u', 1, DType::U8},  {'b', 1, DType::Bool},
    {'c', 8, DType::C64}, {'c', 16, DType::C128},
};

// Reads the Python dictionary that a header is.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = read_string();
      expect(':');
      if (key == "descr") {
        read_descr(header);
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = read_truth();
        has_order = true;
      } else if (key == "shape") {
        header.extents = read_shape();
        has_shape = true;
      } else {
        throw user_error("npy: the header has the unknown key '{}'", key);
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (peek() != '\0')
      fail();
    if (!has_descr || !has_order || !has_shape)
      throw user_error("npy: the header lacks '{}'", !has_descr   ? "descr"
                                                     : !has_order ? "fortran_order"
                                                                  : "shape");
    return header;
  }

 private:
  // The next character that is no space; 0 at the end.
  char peek() {
    const size_t next = text_.find_first_not_of(" \t\n");
    text_.remove_prefix(std::min(next, text_.size()));
    return text_.empty() ? '\0' : text_.front();
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail();
  }
  [[noreturn]] void fail() const {
    throw user_error("npy: the header is not a dictionary of 'descr', 'fortran_order' and 'shape'");
  }

  std::string_view read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      fail();
    const size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos)
      fail();
    const std::string_view content = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return content;
  }

  bool read_truth() {
    peek();
    for (const bool truth : {false, true}) {
      const std::string_view word = truth ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return truth;
      }
    }
    fail();
  }

  Extents read_shape() {
    Extents extents;
    expect('(');
    while (!accept(')')) {
      peek();
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc{})
        fail();
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      accept('L');  // Python 2 wrote long numbers so
      extents.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  void read_descr(NpyHeader& header) {
    if (peek() == '[')
      throw unsupported("npy: arrays of records are not supported");
    const std::string_view descr = read_string();
    uint64_t size = 0;
    const char* end = descr.data() + descr.size();
    const bool is_sized =
        descr.size() > 2 && std::string_view("<>|=").find(descr[0]) != std::string_view::npos &&
        std::from_chars(descr.data() + 2, end, size).ptr == end && size > 0 && size < (uint64_t{1} << 32);
    if (!is_sized)
      throw unsupported("npy: elements of type '{}' are not supported", descr);
    header.big_endian = descr[0] == '>';
    header.item_size = size;
    if (descr[1] == 'S' || descr[1] == 'U') {
      header.dtype = DType::String;
      header.text = descr[1] == 'S' ? NpyText::Bytes : NpyText::CodePoints;
      header.item_size = descr[1] == 'S' ? size : 4 * size;
      return;
    }
    for (const ItemType& type : item_types) {
      if (type.kind == descr[1] && type.size == size) {
        header.dtype = type.dtype;
        return;
      }
    }
    throw unsupported("npy: elements of type '{}' are not supported", descr);
  }

  std::string_view text_;
};

std::string format_descr(const NpyHeader& header) {
  if (header.text == NpyText::Bytes)
    return fmt::format("|S{}", header.item_size);
  if (header.text == NpyText::CodePoints)
    return fmt::format("<U{}", header.item_size / 4);
  for (const ItemType& type : item_types)
    if (type.dtype == header.dtype)
      return fmt::format("{}{}{}", type.size == 1 ? '|' : '<', type.kind, type.size);
  CHECK(false, "NumPy has no {}", header.dtype);
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(magic))
    throw user_error("npy: this is no .npy file: it does not start with \\x93NUMPY");
  const auto truncated = [&] {
    return user_error("npy: the file ends after {} bytes, inside its header", bytes.size());
  };
  if (bytes.size() < 8)
    throw truncated();
  const auto version = std::to_integer<unsigned>(bytes[6]);
  if (version < 1 || version > 3)
    throw unsupported("npy: version {}.{} of the format is not supported", version,
                      std::to_integer<unsigned>(bytes[7]));
  const size_t length_size = version == 1 ? 2 : 4;
  const size_t start = 8 + length_size;
  if (bytes.size() < start)
    throw truncated();
  uint64_t length = 0;
  for (size_t i = 0; i < length_size; ++i)
    length |= std::to_integer<uint64_t>(bytes[8 + i]) << (8 * i);
  if (start + length > largest_npy_header)
    throw user_error("npy: the header is {} bytes long, and at most {} are supported", start + length,
                     largest_npy_header);
  if (bytes.size() < start + length)
    throw truncated();

  NpyHeader header = HeaderReader(text.substr(start, length)).read();
  header.data_offset = start + length;
  const auto count = static_cast<uint64_t>(element_count(header.extents));
  if (__builtin_mul_overflow(count, header.item_size, &header.data_size))
    throw user_error("npy: an array of shape [{}] takes more bytes than can be counted",
                     fmt::join(header.extents, ","));
  return header;
}

void check_npy_size(const NpyHeader& header, uint64_t file_size) {
  const uint64_t got = file_size - header.data_offset;
  if (got != header.data_size)
    throw user_error("npy: an array {} takes {} bytes, but {} follow the header",
                     describe(header.dtype, header.extents), header.data_size, got);
}

std::string format_npy_header(const NpyHeader& header) {
  std::string shape;
  for (const int64_t extent : header.extents)
    shape += fmt::format("{}, ", extent);
  if (header.extents.size() > 1)
    shape.resize(shape.size() - 2);
  else if (header.extents.size() == 1)
    shape.pop_back();
  const std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", format_descr(header),
                  header.fortran_order ? "True" : "False", shape);
  constexpr size_t start = 10;
  const size_t total = (start + dictionary.size() + 1 + 63) / 64 * 64;  // so that the items are aligned
  const size_t length = total - start;
  if (length > 0xffff)
    throw user_error("npy: {} dimensions are more than a header can tell", header.extents.size());
  std::string text(magic);
  text += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  text += dictionary;
  text.append(total - 1 - text.size(), ' ');
  text += '\n';
  return text;
}

}  // namespace tenon
