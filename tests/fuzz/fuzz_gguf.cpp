// fuzz_gguf.cpp — feeds damaged GGUF files to the reader: byte flips, truncations, absurd numbers, names and
// values that change places, keys and tensors left out or repeated. Whatever the file, the reader must end
// quickly, with a graph that lints or with a UserError.
//
//   fuzz_gguf COUNT SEED FOLDER...      takes the .gguf files below the folders; input i of a seed is always
//   the same
#include <algorithm>
#include <cstring>
#include <random>

#include "frontends/gguf/import.h"
#include "fuzz/reader.h"

namespace tenon {
namespace {

using fuzz::Bytes;

// What stands where in the header.
struct Span {
  size_t begin, end;
};
struct Header {
  std::vector<Span> numbers, texts, entries;  // an entry is a whole key or tensor
};

// Of a file that may be damaged already, as far as it makes sense.
class Walk {
 public:
  explicit Walk(const Bytes& bytes) : bytes_(bytes) {
    number(4);  // the first word
    number(4);
    const uint64_t tensors = number(8), keys = number(8);
    for (uint64_t i = 0; i < keys && is_inside(); ++i)
      entry([&] {
        text();
        value(number(4), 0);
      });
    for (uint64_t i = 0; i < tensors && is_inside(); ++i)
      entry([&] {
        text();
        for (uint64_t rank = number(4); rank > 0 && is_inside(); --rank)
          number(8);
        number(4);
        number(8);
      });
  }

  Header header;

 private:
  bool is_inside() const { return at_ < bytes_.size(); }

  template <class Work>
  void entry(Work&& work) {
    const size_t begin = at_;
    work();
    if (is_inside())
      header.entries.push_back({begin, at_});
  }

  uint64_t number(size_t size) {
    uint64_t value = 0;
    if (bytes_.size() - at_ < size) {
      at_ = bytes_.size();
      return 0;
    }
    std::memcpy(&value, bytes_.data() + at_, size);
    header.numbers.push_back({at_, at_ + size});
    at_ += size;
    return value;
  }

  void text() {
    const uint64_t size = number(8);
    const size_t begin = at_;
    at_ += std::min<uint64_t>(size, bytes_.size() - at_);
    header.texts.push_back({begin, at_});
  }

  void value(uint64_t type, int depth) {
    constexpr size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8)
      return text();
    if (type < std::size(sizes) && sizes[type] > 0)
      return void(number(sizes[type]));
    if (type != 9 || depth > 2)
      return void(at_ = bytes_.size());  // nothing is known of what follows
    const uint64_t element = number(4);
    for (uint64_t count = number(8); count > 0 && is_inside(); --count)
      value(element, depth + 1);
  }

  const Bytes& bytes_;
  size_t at_ = 0;
};

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& files, uint64_t seed) : files_(files), random_(seed) {}

  Bytes next() {
    Bytes bytes = files_[below(files_.size())];
    for (size_t rounds = 1 + below(3); rounds > 0 && !bytes.empty(); --rounds)
      mutate(bytes);
    return bytes;
  }

 private:
  size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  Span any(const std::vector<Span>& spans) { return spans[below(spans.size())]; }

  void mutate(Bytes& bytes) {
    const Header header = Walk(bytes).header;
    const size_t kind = below(10);
    if (kind == 0 || header.entries.empty() || header.texts.empty()) {
      bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
    } else if (kind == 1) {
      bytes.resize(below(bytes.size()));
    } else if (kind < 5) {  // a number made absurd
      constexpr uint64_t absurd[] = {0,          1,     2,          3,          7,
                                     31,         256,   1ull << 20, 1ull << 31, 1ull << 40,
                                     1ull << 62, ~0ull, ~0ull >> 1, ~0ull - 31};
      const Span number = any(header.numbers);
      std::memcpy(bytes.data() + number.begin, &absurd[below(std::size(absurd))], number.end - number.begin);
    } else if (kind == 5) {  // one more or less
      const Span number = any(header.numbers);
      bytes[number.begin] = static_cast<char>(bytes[number.begin] + (below(2) == 0 ? 1 : -1));
    } else if (kind == 6) {  // a number or a text for another, as far as it fits
      const std::vector<Span>& spans = below(2) == 0 ? header.numbers : header.texts;
      const Span from = any(spans), to = any(spans);
      const size_t size = std::min(from.end - from.begin, to.end - to.begin);
      std::memmove(bytes.data() + to.begin, bytes.data() + from.begin, size);
    } else if (kind == 7) {  // two neighbours change places
      const size_t i = below(header.entries.size());
      if (i + 1 < header.entries.size())
        std::rotate(at(bytes, header.entries[i].begin), at(bytes, header.entries[i].end),
                    at(bytes, header.entries[i + 1].end));
    } else if (kind == 8) {  // a key or tensor once more
      const Span entry = any(header.entries);
      const Bytes copy(at(bytes, entry.begin), at(bytes, entry.end));
      bytes.insert(at(bytes, any(header.entries).begin), copy.begin(), copy.end());
    } else {  // or left out
      const Span entry = any(header.entries);
      bytes.erase(at(bytes, entry.begin), at(bytes, entry.end));
    }
  }

  static Bytes::iterator at(Bytes& bytes, size_t position) {
    return bytes.begin() + static_cast<long>(position);
  }

  const std::vector<Bytes>& files_;
  std::mt19937_64 random_;
};

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  return tenon::fuzz::run_reader(
      argc, argv,
      {.name = "fuzz_gguf",
       .extension = ".gguf",
       .read = [](const auto& path) { return tenon::gguf::read_gguf(path); },
       .mutate = [](const std::vector<tenon::fuzz::Bytes>& files,
                    uint64_t seed) { return tenon::Mutator(files, seed).next(); }});
}
