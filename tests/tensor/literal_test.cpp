#include "tensor/literal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t too_many = int64_t{1} << 60;  // no machine could hold the elements

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Equal, hashed the same, and equal in dense form.
void expect_same(const Literal& a, const Literal& b) {
  EXPECT_TRUE(a == b);
  EXPECT_EQ(a.content_hash(), b.content_hash());
  EXPECT_TRUE(a == b);  // now that the hashes are known
  EXPECT_TRUE(identical(a.tensor(), b.tensor()));
}

void expect_different(const Literal& a, const Literal& b) {
  EXPECT_FALSE(a == b);
  EXPECT_NE(a.content_hash(), b.content_hash());
  EXPECT_FALSE(a == b);
}

TEST(Literal, EveryFormOfTheSameElementsIsTheSame) {
  const TemporaryFolder folder;
  const auto ones = MappedFile::open(folder.write("ones", raw<int32_t>({1, 1, 1})));
  const Literal splat = Literal::splat(Tensor::scalar<int32_t>(1), {3});
  expect_same(splat, Tensor::of<int32_t>({1, 1, 1}));
  expect_same(splat, Literal::iota(DType::I32, 1, 0, 3));
  expect_same(splat, Literal::file_slice(DType::I32, {3}, ones, 0, 12));

  const auto numbers = MappedFile::open(folder.write("numbers", raw<int32_t>({5, 3, 1, -1})));
  const Literal iota = Literal::iota(DType::I32, 5, -2, 4);
  expect_same(iota, Tensor::of<int32_t>({5, 3, 1, -1}));
  expect_same(iota, Literal::file_slice(DType::I32, {4}, numbers, 0, 16));

  const auto others = MappedFile::open(folder.write("others", raw<float>({1, 5, 2})));
  expect_same(Tensor::of<float>({1, 5, 2}), Literal::file_slice(DType::F32, {3}, others, 0, 12));
}

TEST(Literal, DTypeExtentsAndEveryElementCount) {
  const Literal literal = Tensor::of<int32_t>({1, 2, 4});
  expect_different(literal, Tensor::of<uint32_t>({1, 2, 4}));
  expect_different(literal, Tensor::of<int32_t>({1, 2, 4}).reshaped({3, 1}));
  expect_different(literal, Tensor::of<int32_t>({1, 2, 5}));
  expect_different(literal, Literal::iota(DType::I32, 1, 1, 3));
  expect_different(Literal::iota(DType::I32, 1, 1, 3), Literal::iota(DType::I32, 1, 2, 3));
  expect_different(Literal::splat(Tensor::scalar(0.0), {2}), Literal::splat(Tensor::scalar(-0.0), {2}));
  expect_different(Literal::splat(Tensor::scalar(1.0f), {2}), Tensor::of<float>({1, 2}));
}

TEST(Literal, HugeSplatsAndIotasAreComparedAndHashedWithoutTheirElements) {
  const Literal splat = Literal::splat(Tensor::scalar(1.5f), {too_many});
  EXPECT_TRUE(splat == Literal::splat(Tensor::scalar(1.5f), {too_many}));
  expect_different(splat, Literal::splat(Tensor::scalar(2.5f), {too_many}));
  const Literal iota = Literal::iota(DType::I64, 7, 3, too_many);
  EXPECT_TRUE(iota == Literal::iota(DType::I64, 7, 3, too_many));
  EXPECT_EQ(iota.content_hash(), Literal::iota(DType::I64, 7, 3, too_many).content_hash());
  expect_different(iota, Literal::splat(Tensor::scalar<int64_t>(7), {too_many}));
  const auto refusal = [](std::string_view dtype, int64_t size) {
    return fmt::format(
        "{}[1152921504606846976] needs {} bytes for each of 1152921504606846976 elements, but "
        "this machine has {} bytes of memory",
        dtype, size, memory_limit());
  };
  expect_error<UserError>([&] { splat.tensor(); }, refusal("f32", 4));
  expect_error<UserError>([&] { iota.tensor(); }, refusal("i64", 8));
}

TEST(Literal, AnIotaWrapsInItsDType) {
  EXPECT_EQ(as_ints(Literal::iota(DType::I8, 126, 1, 4).tensor()),
            (std::vector<int64_t>{126, 127, -128, -127}));
  EXPECT_EQ(as_ints(Literal::iota(DType::U4, 14, 1, 4).tensor()), (std::vector<int64_t>{14, 15, 0, 1}));
  expect_same(Literal::iota(DType::I4, 6, 1, 4),
              narrow<int64_t>(DType::I4, {4}, std::vector<int64_t>{6, 7, 8, 9}));
  expect_same(Literal::iota(DType::U8, 0, 1, 300), Literal::iota(DType::U8, 256, 257, 300));
  expect_same(Literal::iota(DType::I64, INT64_MAX, 1, 2), Tensor::of<int64_t>({INT64_MAX, INT64_MIN}));
  expect_same(Literal::iota(DType::I32, 5, 1, 1),
              Literal::iota(DType::I32, 5, 9, 1));  // whose step is never taken
}

TEST(Literal, OnlyIntegerVectorsHaveASteppedForm) {
  // Bits that step by one, in floats and in a matrix: hashed as what they are, and equal to themselves.
  const Tensor bits = Tensor::of<uint32_t>({1, 2, 3, 4});
  const Tensor floats(DType::F32, {4}, std::make_shared<Tensor>(bits), bits.bytes());
  expect_same(floats, Tensor(DType::F32, {4}, std::make_shared<Tensor>(bits), bits.bytes()));
  expect_same(bits.reshaped({2, 2}), Tensor::of<uint32_t>({1, 2, 3, 4}).reshaped({2, 2}));
}

TEST(Literal, EmptyOnesAreAllTheSame) {
  expect_same(Literal::splat(Tensor::scalar(1.0f), {0, 2}), Literal::splat(Tensor::scalar(2.0f), {0, 2}));
  expect_same(Tensor(DType::I32, {0}), Literal::iota(DType::I32, 5, 1, 0));
  expect_same(Tensor(DType::String, {0}), Literal::splat(Tensor::strings({"x"}, {}), {0}));
}

TEST(Literal, StringsAndComplexNumbersTakePart) {
  expect_same(Literal::splat(Tensor::strings({"x"}, {}), {2}), Tensor::strings({"x", "x"}, {2}));
  expect_different(Tensor::strings({"x", "y"}, {2}), Tensor::strings({"y", "x"}, {2}));
  expect_same(Tensor::strings({"x", "y"}, {2}), Tensor::strings({"x", "y"}, {2}));
  EXPECT_TRUE(Literal::splat(Tensor::strings({"x"}, {}), {too_many}) ==
              Literal::splat(Tensor::strings({"x"}, {}), {too_many}));
  const std::vector<double> equal{1, 2, 1, 2}, unequal{1, 2, 1, 3};
  const auto complex = [](const std::vector<double>& parts) {
    return Tensor(DType::C128, {2}, std::make_shared<std::vector<double>>(parts),
                  std::as_bytes(std::span(parts)));
  };
  expect_same(
      complex(equal),
      Literal::splat(Tensor(DType::C128, {}, nullptr, std::as_bytes(std::span(equal).first(2))), {2}));
  expect_different(complex(equal), complex(unequal));
}

TEST(Literal, CopiesAndEqualSlicesAreNotRead) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("data", "abcd"));
  const Literal a = Literal::file_slice(DType::U8, {4}, file, 0, 4);
  const Literal b = Literal::file_slice(DType::U8, {4}, file, 0, 4);
  const std::vector<Literal> copies{a, b};
  std::filesystem::resize_file(folder / "data", 0);  // reading the mapping would now be fatal
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(copies[0] == a);
}

TEST(FileSlice, IsAViewWhereTheFileAlignsIt) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("data", "abcd" + raw<float>({1, 2, 4})));
  const Tensor aligned = Literal::file_slice(DType::F32, {3}, file, 4, 12).tensor();
  EXPECT_EQ(aligned.bytes().data(), file->bytes().data() + 4);
  EXPECT_EQ(aligned.data<float>()[2], 4);

  const auto shifted = MappedFile::open(folder.write("shifted", "a" + raw<float>({1, 2, 4})));
  const Literal misaligned = Literal::file_slice(DType::F32, {3}, shifted, 1, 12);
  EXPECT_NE(misaligned.tensor().bytes().data(), shifted->bytes().data() + 1);
  expect_same(misaligned, aligned);
}

TEST(FileSlice, AViewKeepsTheFileMapped) {
  const TemporaryFolder folder;
  const Tensor t =
      Literal::file_slice(DType::U8, {2}, MappedFile::open(folder.write("data", "xy")), 0, 2).tensor();
  EXPECT_EQ(t.data<uint8_t>()[1], 'y');
}

// No text could name where it is.
TEST(FileSlice, OfWhatIsNotOnDiskIsDense) {
  const std::string bytes = raw<float>({1, 2, 3});
  const auto file = MappedFile::copy("model.onnx", std::as_bytes(std::span(bytes)));
  const Literal slice = Literal::file_slice(DType::F32, {2}, file, 4, 8);
  EXPECT_TRUE(std::holds_alternative<Tensor>(slice.form()));
  expect_same(slice, Tensor::of<float>({2, 3}));
  expect_error<UserError>([&] { Literal::file_slice(DType::F32, {2}, file, 8, 8); },
                          "model.onnx: a slice of 8 bytes at offset 8 reaches outside the file of 12 bytes");
}

TEST(FileSlice, NarrowTypesArePacked) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("data", "\x21\xf3"));
  const Literal three = Literal::file_slice(DType::I4, {3}, file, 0, 2);
  EXPECT_EQ(as_ints(three.tensor()), (std::vector<int64_t>{1, 2, 3}));
  expect_same(three, Literal::iota(DType::I4, 1, 1, 3));  // the padding in the last byte is no element
  EXPECT_EQ(as_ints(Literal::file_slice(DType::I4, {4}, file, 0, 2).tensor()),
            (std::vector<int64_t>{1, 2, 3, -1}));
  EXPECT_EQ(as_ints(Literal::file_slice(DType::U2, {4}, file, 0, 1).tensor()),
            (std::vector<int64_t>{1, 0, 2, 0}));
}

TEST(FileSlice, BoolsAreOneByteAndAnyButZeroIsTrue) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("data", std::string("\x00\x01\x02", 3)));
  const Literal clean = Literal::file_slice(DType::Bool, {2}, file, 0, 2);
  EXPECT_EQ(clean.tensor().bytes().data(), file->bytes().data());
  const Literal odd = Literal::file_slice(DType::Bool, {2}, file, 1, 2);
  expect_same(odd, Literal::splat(Tensor::scalar(true), {2}));
}

TEST(Literal, GivesUpWhatLiesInMemory) {
  Literal dense(Tensor::scalar(1.5F)), splat = Literal::splat(Tensor::scalar(1.5F), {2});
  const Literal copy = dense;
  for (Literal* literal : {&dense, &splat})
    literal->give_up_elements();
  EXPECT_FALSE(dense.is_stored());
  EXPECT_EQ(dense.count(), 1);
  EXPECT_THROW(dense.tensor(), InternalError);
  EXPECT_EQ(copy.tensor().count(), 1);
  EXPECT_EQ(splat.tensor().count(), 2);
}

TEST(FileSlice, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("data", "0123456789"));
  const std::string path = (folder / "data").string();
  const auto slice = [&](DType dtype, const Extents& extents, uint64_t offset, uint64_t size) {
    return [=] { Literal::file_slice(dtype, extents, file, offset, size); };
  };
  expect_error<UserError>(slice(DType::U8, {4}, 8, 4),
                          path + ": a slice of 4 bytes at offset 8 reaches outside the file of 10 bytes");
  expect_error<UserError>(
      slice(DType::U8, {4}, UINT64_MAX, 4),
      path + ": a slice of 4 bytes at offset 18446744073709551615 reaches outside the file of 10 bytes");
  expect_error<UserError>(slice(DType::F32, {2}, 2, 7),
                          path + ": f32[2] takes 8 bytes, but its slice at offset 2 has 7");
  expect_error<UserError>(slice(DType::U4, {3}, 0, 3),
                          path + ": u4[3] takes 2 bytes, but its slice at offset 0 has 3");
  expect_error<UserError>(slice(DType::String, {1}, 0, 1),
                          path + ": str elements cannot be read from a slice of a file");
  expect_error<UserError>(slice(DType::U8, {-1}, 0, 1), "a tensor of shape [-1] has a negative extent");
  EXPECT_EQ(Literal::file_slice(DType::F32, {0}, file, 10, 0).tensor().count(), 0);
}

}  // namespace
// Counts how often it is asked.
class Counted : public DeferredElements {
 public:
  explicit Counted(int& asked) : asked_(asked) {}
  Tensor tensor() const override {
    ++asked_;
    return narrow<double>(DType::F32, {2}, std::vector<double>{3, 4});
  }

 private:
  int& asked_;
};

TEST(Literal, ComputesDeferredElementsWhereTheyAreAskedFor) {
  int asked = 0;
  const Literal literal = Literal::deferred(DType::F32, {2}, std::make_shared<Counted>(asked)),
                copy = literal;
  EXPECT_TRUE(literal.is_deferred());
  EXPECT_TRUE(literal.is_stored());
  EXPECT_EQ(literal.count(), 2);
  EXPECT_EQ(literal, copy);
  EXPECT_EQ(asked, 0);
  const Literal dense(narrow<double>(DType::F32, {2}, std::vector<double>{3, 4}));
  EXPECT_EQ(literal, dense);
  EXPECT_EQ(literal.content_hash(), dense.content_hash());
  EXPECT_EQ(widen<double>(literal.tensor()), (std::vector<double>{3, 4}));
  EXPECT_GT(asked, 0);
}

TEST(Literal, ChecksTheTypeOfDeferredElements) {
  int asked = 0;
  const Literal literal = Literal::deferred(DType::F32, {3}, std::make_shared<Counted>(asked));
  EXPECT_THROW(literal.tensor(), InternalError);
}

class Varying : public DeferredElements {
 public:
  Tensor tensor() const override { throw InternalError("nobody may look"); }
  bool varies() const override { return true; }
};

TEST(Literal, ElementsThatVaryAreEqualToThemselvesAlone) {
  const auto elements = std::make_shared<Varying>();
  const Literal one = Literal::deferred(DType::F32, {2}, elements),
                same = Literal::deferred(DType::F32, {2}, elements),
                other = Literal::deferred(DType::F32, {2}, std::make_shared<Varying>());
  EXPECT_TRUE(one.varies());
  EXPECT_FALSE(Literal(Tensor(DType::F32, {2})).varies());
  EXPECT_EQ(one, same);
  EXPECT_EQ(one.content_hash(), same.content_hash());
  EXPECT_FALSE(one == other);
  EXPECT_FALSE(one == Literal(Tensor(DType::F32, {2})));
}

}  // namespace tenon
