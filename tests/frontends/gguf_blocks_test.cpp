// Blocks of GGUF's types. Each is packed here element by element, from where the format puts the bits of one.
#include "frontends/gguf/model_source.h"
#include "frontends/gguf_file.h"

namespace tenon::gguf {
namespace {

using namespace write;

constexpr double kScale = 0.25, kMinimum = -1.5;  // exact in f16

void put_f16(Bytes& block, size_t at, double number_) {
  const Tensor f16 = tensor(DType::F16, {}, {number_});
  std::memcpy(block.data() + at, f16.bytes().data(), 2);
}
void put_bits(Bytes& block, size_t byte, int shift, int bits) {
  block[byte] = static_cast<char>(static_cast<uint8_t>(block[byte]) | bits << shift);
}

// Numbers of which neighbours, and those that share a byte, differ.
int number_of(int row, int element, int bits) { return (row * 5 + element * 7 + element / 16) % (1 << bits); }

struct Packed {
  uint32_t type;
  int elements;
  size_t bytes;
  // The value of an element, which it puts into the block.
  double (*put)(Bytes& block, int row, int element);
};

// The halves of bytes: 16 of them in blocks of 32.
void put_half(Bytes& block, size_t at, int element, int number_) {
  put_bits(block, at + static_cast<size_t>(element % 16), element / 16 * 4, number_ & 15);
}
// In blocks of 256, 32 for each 64 elements.
void put_long_half(Bytes& block, size_t at, int element, int number_) {
  put_bits(block, at + static_cast<size_t>(element / 64 * 32 + element % 32), element / 32 % 2 * 4,
           number_ & 15);
}
// Number i of the eight scales (`first` 4) or minima (`first` 8) of a long block.
void put_six(Bytes& block, int i, bool is_minimum, int number_) {
  const size_t first = is_minimum ? 8 : 4;
  const auto at = static_cast<size_t>(i % 4);
  if (i < 4) {
    put_bits(block, first + at, 0, number_);
  } else {
    put_bits(block, 12 + at, is_minimum ? 4 : 0, number_ & 15);
    put_bits(block, first + at, 6, number_ >> 4);
  }
}

double put_long(Bytes& block, int row, int element, int bits, size_t quants) {
  put_f16(block, 0, kScale);
  put_f16(block, 2, kMinimum);
  const int i = element / 32, q = number_of(row, element, bits), scale = (i * 23 + row * 3 + 5) % 64,
            minimum = (i * 41 + row + 60) % 64;
  if (element % 32 == 0) {
    put_six(block, i, false, scale);
    put_six(block, i, true, minimum);
  }
  put_long_half(block, quants, element, q);
  if (bits == 5)
    put_bits(block, 16 + static_cast<size_t>(element % 32), element / 32, q >> 4);
  return kScale * scale * q - kMinimum * minimum;
}

const Packed kTypes[] = {
    {2, 32, 18,
     [](Bytes& block, int row, int element) {
       put_f16(block, 0, kScale);
       const int q = number_of(row, element, 4);
       put_half(block, 2, element, q);
       return kScale * (q - 8);
     }},
    {3, 32, 20,
     [](Bytes& block, int row, int element) {
       put_f16(block, 0, kScale);
       put_f16(block, 2, kMinimum);
       const int q = number_of(row, element, 4);
       put_half(block, 4, element, q);
       return kScale * q + kMinimum;
     }},
    {6, 32, 22,
     [](Bytes& block, int row, int element) {
       put_f16(block, 0, kScale);
       const int q = number_of(row, element, 5);
       put_half(block, 6, element, q);
       put_bits(block, 2 + static_cast<size_t>(element / 8), element % 8, q >> 4);
       return kScale * (q - 16);
     }},
    {7, 32, 24,
     [](Bytes& block, int row, int element) {
       put_f16(block, 0, kScale);
       put_f16(block, 2, kMinimum);
       const int q = number_of(row, element, 5);
       put_half(block, 8, element, q);
       put_bits(block, 4 + static_cast<size_t>(element / 8), element % 8, q >> 4);
       return kScale * q + kMinimum;
     }},
    {8, 32, 34,
     [](Bytes& block, int row, int element) {
       put_f16(block, 0, kScale);
       const int q = number_of(row, element, 8) - 128;
       put_bits(block, 2 + static_cast<size_t>(element), 0, q & 255);
       return kScale * q;
     }},
    {12, 256, 144, [](Bytes& block, int row, int element) { return put_long(block, row, element, 4, 16); }},
    {13, 256, 176, [](Bytes& block, int row, int element) { return put_long(block, row, element, 5, 48); }},
    {14, 256, 210,
     [](Bytes& block, int row, int element) {
       put_f16(block, 208, kScale);
       const int q = number_of(row, element, 6), scale = (element / 16 * 37 + row) % 256 - 128;
       if (element % 16 == 0)
         put_bits(block, 192 + static_cast<size_t>(element / 16), 0, scale & 255);
       const int half = element / 128, inside = element % 128;
       put_bits(block, static_cast<size_t>(64 * half + inside % 64), inside / 64 * 4, q & 15);
       put_bits(block, static_cast<size_t>(128 + 32 * half + inside % 32), inside / 32 * 2, q >> 4);
       return kScale * scale * (q - 32);
     }},
};

constexpr int kRows = 3, kBlocks = 2;

// A matrix of one of the types, and its values.
std::pair<TensorText, std::vector<double>> matrix(const Packed& type) {
  TensorText written{"t", {static_cast<uint64_t>(type.elements * kBlocks), kRows}, type.type};
  std::vector<double> values;
  for (int i = 0; i < kRows * kBlocks; ++i) {
    Bytes block(type.bytes, '\0');
    for (int element = 0; element < type.elements; ++element)
      values.push_back(type.put(block, i, element));
    written.data += block;
  }
  return {written, values};
}

Data values_of(const TensorText& written, const std::vector<int64_t>& rows, bool in_memory = false) {
  register_ops();
  const TemporaryFolder folder;
  const Bytes bytes = FileText{.keys = {}, .tensors = {written}}.bytes();
  const auto file = in_memory ? MappedFile::copy("m.gguf", std::as_bytes(std::span(bytes)))
                              : MappedFile::open(folder.write("m.gguf", bytes));
  const Container container(file);
  Graph graph;
  const TensorInfo& info = container.tensors().at("t");
  const Weight weight(graph, container, "t", info);
  const Value indices = graph.add_input(parse_type("i64[n]"), "indices");
  graph.set_outputs({weight.whole(), weight.rows(indices)});
  EXPECT_EQ(lint(graph), std::vector<std::string>());
  const Data first = evaluate(graph, {Tensor::of(rows)});
  // What is unpacked whenever it is asked for is the same again.
  expect_tensor(evaluate(graph, {Tensor::of(rows)})[0], first[0].tensor());
  return first;
}

TEST(GgufBlocks, AreTheNumbersThatWerePacked) {
  for (const Packed& type : kTypes) {
    SCOPED_TRACE(type.type);
    const auto [written, values] = matrix(type);
    const int64_t width = type.elements * kBlocks;
    for (const bool in_memory : {false, true}) {
      const Data found = values_of(written, {2, 0}, in_memory);
      expect_tensor(found[0], f32({kRows, width}, values));
      std::vector<double> rows(values.begin() + 2 * width, values.end());
      rows.insert(rows.end(), values.begin(), values.begin() + width);
      expect_tensor(found[1], f32({2, width}, rows));
    }
  }
}

TEST(GgufBlocks, OfFloatsAreThem) {
  const std::vector<double> values = {0.5, -2, 1.0 / 3, -0.0, 1e-3, 100};
  for (const auto& [type, dtype] : {std::pair{0U, DType::F32}, {1U, DType::F16}, {30U, DType::BF16}}) {
    const Tensor stored = tensor(dtype, {2, 3}, values);
    const auto bytes = stored.bytes();
    const Data found =
        values_of({"t", {3, 2}, type, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}}, {1});
    const std::vector<double> wide = widen<double>(stored);
    expect_tensor(found[0], f32({2, 3}, wide));
    expect_tensor(found[1], f32({1, 3}, {wide.begin() + 3, wide.end()}));
  }
}

// The sum is rounded once, as a fused or a separate step in f32 is: q · d is exact.
TEST(GgufBlocks, RoundMinimaOnce) {
  Bytes block(20, '\0');
  put_f16(block, 0, 1.0009765625);  // 1 + 2^-10
  put_f16(block, 2, 2048.0);
  block[4] = 15;
  const Data found = values_of({"t", {32, 1}, 3, block}, {0});
  const float sum = 1.0009765625F * 15 + 2048.0F;
  EXPECT_EQ(found[0].tensor().data<float>()[0], sum);
}

TEST(GgufBlocks, StayInTheFileUntilTheyAreRead) {
  register_ops();
  const TemporaryFolder folder;
  const auto [written, values] = matrix(kTypes[0]);
  const Container container(MappedFile::open(
      folder.write("m.gguf", FileText{.keys = {}, .tensors = {written, floats("u", {4})}}.bytes())));
  Graph graph;
  const auto literal = [&](const std::string& name) {
    const Weight weight(graph, container, name, container.tensors().at(name));
    return graph.nodes().back()->attr("value").as<Literal>();
  };
  EXPECT_TRUE(literal("t").is_deferred());
  EXPECT_TRUE(std::holds_alternative<Literal::FileSlice>(literal("u").form()));
}

}  // namespace
}  // namespace tenon::gguf
