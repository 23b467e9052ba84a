// fuzz_onnx.cpp — feeds damaged ONNX files to the reader: byte flips, truncations, swapped and repeated
// fields, absurd numbers. Whatever the file, the reader must end quickly, with a graph that lints or with a
// UserError.
//
//   fuzz_onnx COUNT SEED FOLDER...      takes the .onnx files below the folders; input i of a seed is always
//   the same
#include <algorithm>
#include <random>

#include "frontends/onnx/import.h"
#include "fuzz/reader.h"

namespace tenon {
namespace {

using fuzz::Bytes;

// A field of a message: where its key, its payload and the next field begin.
struct Field {
  size_t key, payload, end;
  int wire_type;
};

size_t read_varint(const Bytes& bytes, size_t at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128)
      return at;
  }
  return bytes.size() + 1;
}

// The fields of every message in [begin, end), as far as the bytes read as messages at all.
void find_fields(const Bytes& bytes, size_t begin, size_t end, int depth, std::vector<Field>& fields) {
  std::vector<Field> here;
  for (size_t at = begin; at < end;) {
    uint64_t key = 0, size = 0;
    Field field{at, read_varint(bytes, at, key), 0, static_cast<int>(key & 7)};
    if (field.payload > end || key >> 3 == 0 || key >> 3 > 40)
      return;
    field.end = field.payload;
    switch (field.wire_type) {
      case 0:
        field.end = read_varint(bytes, field.payload, size);
        break;
      case 1:
        field.end += 8;
        break;
      case 2:
        field.payload = read_varint(bytes, field.payload, size);
        if (field.payload > end || size > end - field.payload)
          return;
        field.end = field.payload + size;
        break;
      case 5:
        field.end += 4;
        break;
      default:
        return;
    }
    if (field.end > end)
      return;
    here.push_back(field);
    at = field.end;
  }
  for (const Field& field : here) {
    fields.push_back(field);
    if (field.wire_type == 2 && depth < 12)
      find_fields(bytes, field.payload, field.end, depth + 1, fields);
  }
}

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& files, uint64_t seed) : files_(files), random_(seed) {}

  Bytes next() {
    Bytes bytes = files_[below(files_.size())];
    for (size_t rounds = 1 + below(4); rounds > 0 && !bytes.empty(); --rounds)
      mutate(bytes);
    return bytes;
  }

 private:
  size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }

  void mutate(Bytes& bytes) {
    std::vector<Field> fields;
    find_fields(bytes, 0, bytes.size(), 0, fields);
    const size_t kind = below(8);
    if (kind < 2 || fields.size() < 2) {
      bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
    } else if (kind == 2) {
      bytes.resize(below(bytes.size()));
    } else if (kind == 3) {  // a number made absurd
      const Field field = fields[below(fields.size())];
      constexpr uint64_t absurd[] = {0, 1, 127, 1ull << 31, 1ull << 40, 1ull << 62, ~0ull, ~0ull - 1, 4096};
      if (field.wire_type == 0)
        replace(bytes, field.payload, field.end, varint(absurd[below(std::size(absurd))]));
    } else if (kind == 4) {  // two fields change places
      Field a = fields[below(fields.size())], b = fields[below(fields.size())];
      if (a.key > b.key)
        std::swap(a, b);
      if (a.end <= b.key)
        std::rotate(bytes.begin() + static_cast<long>(a.key), bytes.begin() + static_cast<long>(b.key),
                    bytes.begin() + static_cast<long>(b.end));
    } else if (kind == 5) {  // a field once more
      const Field field = fields[below(fields.size())];
      const Bytes copy(bytes.begin() + static_cast<long>(field.key),
                       bytes.begin() + static_cast<long>(field.end));
      bytes.insert(bytes.begin() + static_cast<long>(fields[below(fields.size())].key), copy.begin(),
                   copy.end());
    } else if (kind == 6) {  // a field left out; the messages around it keep their old length
      const Field field = fields[below(fields.size())];
      bytes.erase(bytes.begin() + static_cast<long>(field.key), bytes.begin() + static_cast<long>(field.end));
    } else {  // the payload of one field for another's, of the same length
      const Field a = fields[below(fields.size())], b = fields[below(fields.size())];
      const size_t size = std::min(a.end - a.payload, b.end - b.payload);
      const Bytes copy(bytes.begin() + static_cast<long>(a.payload),
                       bytes.begin() + static_cast<long>(a.payload + size));
      std::copy(copy.begin(), copy.end(), bytes.begin() + static_cast<long>(b.payload));
    }
  }

  static Bytes varint(uint64_t value) {
    Bytes bytes;
    for (; value >= 128; value >>= 7)
      bytes.push_back(static_cast<char>(value | 128));
    bytes.push_back(static_cast<char>(value));
    return bytes;
  }

  static void replace(Bytes& bytes, size_t begin, size_t end, const Bytes& by) {
    bytes.erase(bytes.begin() + static_cast<long>(begin), bytes.begin() + static_cast<long>(end));
    bytes.insert(bytes.begin() + static_cast<long>(begin), by.begin(), by.end());
  }

  const std::vector<Bytes>& files_;
  std::mt19937_64 random_;
};

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  return tenon::fuzz::run_reader(
      argc, argv,
      {.name = "fuzz_onnx",
       .extension = ".onnx",
       .read = [](const auto& path) { return tenon::onnx::read_onnx(path); },
       .mutate = [](const std::vector<tenon::fuzz::Bytes>& files,
                    uint64_t seed) { return tenon::Mutator(files, seed).next(); }});
}
