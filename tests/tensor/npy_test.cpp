#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "tensor/npy_text.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

std::string with_header(const std::string& dictionary, const std::string& items) {
  const std::string length{static_cast<char>(dictionary.size() & 0xff),
                           static_cast<char>(dictionary.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + length + dictionary + items;
}

std::string file(const std::string& descr, const std::string& shape, const std::string& items,
                 bool fortran = false) {
  return with_header("{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                         ", 'shape': " + shape + ", }\n",
                     items);
}

void expect_refused(const std::string& text, const std::string& message) {
  expect_error<UserError>([&] { parse_npy(text); }, message);
}

void expect_unsupported(const std::string& text, const std::string& message) {
  expect_error<UnsupportedError>([&] { parse_npy(text); }, message);
}

TEST(Npy, WritesWhatNumPyWrites) {
  const std::string text = format_npy(Tensor::of<int16_t>({1, 2}).reshaped({2, 1}));
  const std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }";
  EXPECT_EQ(text, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary +
                      std::string(117 - dictionary.size(), ' ') + "\n" + std::string("\x01\x00\x02\x00", 4));
  EXPECT_NE(format_npy(Tensor::scalar(1.0)).find("'shape': (), }"), std::string::npos);
  EXPECT_NE(
      format_npy(Tensor::of<uint8_t>({1})).find("'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"),
      std::string::npos);
}

TEST(Npy, EveryDTypeNumPyHasRoundTrips) {
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::I64, DType::I32, DType::I16, DType::I8,
                            DType::U64, DType::U32, DType::U16, DType::U8, DType::C64, DType::C128}) {
    Tensor t(dtype, {2, 3});
    for (size_t i = 0; i < t.bytes().size(); ++i)
      t.mutable_bytes()[i] = static_cast<std::byte>(i * 37);
    EXPECT_TRUE(identical(parse_npy(format_npy(t)), t)) << name(dtype);
  }
  const Tensor truths = narrow<int64_t>(DType::Bool, {2}, std::vector<int64_t>{0, 1});
  EXPECT_TRUE(identical(parse_npy(format_npy(truths)), truths));
  for (const Extents& extents : {Extents{}, Extents{0}, Extents{2, 0, 3}, Extents{1, 1, 1, 1, 1}})
    EXPECT_TRUE(identical(parse_npy(format_npy(Tensor(DType::F32, extents))), Tensor(DType::F32, extents)));
}

TEST(Npy, OtherDTypesAreWrittenAsTheNextWider) {
  const auto written = [](DType dtype, double value) {
    return parse_npy(format_npy(filled(dtype, {2}, value)));
  };
  for (const DType dtype : {DType::BF16, DType::F8E4M3FN, DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1})
    EXPECT_TRUE(identical(written(dtype, 2), filled(DType::F32, {2}, 2))) << name(dtype);
  EXPECT_TRUE(identical(written(DType::I4, -3), filled(DType::I8, {2}, -3)));
  EXPECT_TRUE(identical(written(DType::U2, 3), filled(DType::U8, {2}, 3)));
}

TEST(Npy, BigEndianIsTurned) {
  const std::string swapped("\x00\x01\xff\xfe", 4);
  EXPECT_EQ(as_ints(parse_npy(file(">i2", "(2,)", swapped))), (std::vector<int64_t>{1, -2}));
  // Each half of a complex number by itself: 1 - 2i.
  const Tensor complex = parse_npy(file(">c8", "()", std::string("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8)));
  const auto* parts = reinterpret_cast<const float*>(complex.bytes().data());
  EXPECT_EQ(parts[0], 1);
  EXPECT_EQ(parts[1], -2);
}

TEST(Npy, FortranOrderIsTransposed) {
  const Tensor t = parse_npy(file("|i1", "(2, 3)", "\x01\x04\x02\x05\x03\x06", true));
  EXPECT_EQ(t.extents(), (Extents{2, 3}));
  EXPECT_EQ(as_ints(t), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  // Three dimensions, big-endian: element (i, j, k) stands at i + 2j + 4k.
  std::string items;
  for (char value = 0; value < 8; ++value)
    items += {'\0', value};
  EXPECT_EQ(as_ints(parse_npy(file(">u2", "(2, 2, 2)", items, true))),
            (std::vector<int64_t>{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(parse_npy(file("<f4", "(0, 3)", "", true)).extents(), (Extents{0, 3}));
}

TEST(Npy, AnyByteButZeroIsTrue) {
  EXPECT_EQ(parse_npy(file("|b1", "(2,)", std::string("\x00\x05", 2))).data<uint8_t>()[1], 1);
}

TEST(Npy, StringsRoundTrip) {
  const Tensor words =
      Tensor::strings({"", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac\xf0\x9f\x98\x80", "a"}, {2, 2});
  const std::string text = format_npy(words);
  EXPECT_NE(text.find("'<U4'"), std::string::npos);
  EXPECT_TRUE(identical(parse_npy(text), words));

  const Tensor no_text = Tensor::strings({"\xff\xfe", "ok"}, {2});  // not UTF-8
  EXPECT_NE(format_npy(no_text).find("'|S2'"), std::string::npos);
  EXPECT_TRUE(identical(parse_npy(format_npy(no_text)), no_text));

  EXPECT_TRUE(identical(parse_npy(format_npy(Tensor::strings({""}, {}))), Tensor::strings({""}, {})));
  EXPECT_TRUE(identical(parse_npy(format_npy(Tensor(DType::String, {0}))), Tensor(DType::String, {0})));
}

TEST(Npy, SpellingsThatAreNotUtf8AreKeptAsBytes) {
  // An overlong slash, a surrogate, a number beyond Unicode, a lone tail, a missing tail.
  for (const char* text : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"}) {
    const Tensor t = Tensor::strings({text}, {});
    EXPECT_NE(format_npy(t).find("'|S"), std::string::npos) << text;
    EXPECT_TRUE(identical(parse_npy(format_npy(t)), t)) << text;
  }
}

TEST(Npy, TextIsReadInEitherByteOrder) {
  EXPECT_EQ(parse_npy(file(">U2", "(1,)", std::string("\0\0\0a\0\0\0b", 8))).strings()[0], "ab");
  EXPECT_EQ(parse_npy(file("<U2", "(1,)", std::string("a\0\0\0\0\0\0\0", 8))).strings()[0], "a");
  EXPECT_EQ(parse_npy(file("|S3", "(1,)", std::string("a\0b", 3))).strings()[0], std::string("a\0b", 3));
  expect_refused(file("<U1", "(1,)", std::string("\x00\xd8\x00\x00", 4)),
                 "npy: a string holds 0xd800, which is no Unicode character");
  expect_refused(file("<U1", "(1,)", "\xff\xff\xff\xff"),
                 "npy: a string holds 0xffffffff, which is no Unicode character");
}

TEST(Npy, HeadersMayBeSpelledOtherwise) {
  EXPECT_EQ(
      parse_npy(with_header("{\"shape\":(2),\"fortran_order\":False,\"descr\":\"|u1\"}", "ab")).extents(),
      Extents{2});
  EXPECT_EQ(
      parse_npy(with_header("  { 'shape' : ( 2L , 1 ) , 'fortran_order' : True , 'descr' : '=i1' } ", "ab"))
          .extents(),
      (Extents{2, 1}));
  const std::string dictionary = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}";
  for (const char version : {'\x02', '\x03'}) {
    const std::string text = std::string("\x93NUMPY") + version + '\0' +
                             static_cast<char>(dictionary.size()) + std::string(3, '\0') + dictionary + "a";
    EXPECT_EQ(parse_npy(text).data<uint8_t>()[0], 'a');
  }
}

TEST(Npy, RefusesWhatIsTruncated) {
  const std::string whole = format_npy(Tensor::of<float>({1, 2}));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse_npy(whole.substr(0, size)), UserError) << size;
  expect_refused(whole.substr(0, 5), "npy: this is no .npy file: it does not start with \\x93NUMPY");
  expect_refused(whole.substr(0, 7), "npy: the file ends after 7 bytes, inside its header");
  expect_refused(whole.substr(0, 9), "npy: the file ends after 9 bytes, inside its header");
  expect_refused(whole.substr(0, 50), "npy: the file ends after 50 bytes, inside its header");
  expect_refused(whole.substr(0, whole.size() - 1),
                 "npy: an array f32[2] takes 8 bytes, but 7 follow the header");
  expect_refused(whole + "x", "npy: an array f32[2] takes 8 bytes, but 9 follow the header");
}

TEST(Npy, RefusesAbsurdShapes) {
  expect_refused(file("<f4", "(1000000000000,)", "abcd"),
                 "npy: an array f32[1000000000000] takes 4000000000000 bytes, but 4 follow the header");
  expect_refused(file("<f8", "(4611686018427387904,)", ""),
                 "npy: an array of shape [4611686018427387904] takes more bytes than can be counted");
  expect_refused(file("<f8", "(4294967296, 4294967296)", ""),
                 "a tensor of shape [4294967296,4294967296] has more elements than can be counted");
  expect_refused(file("<f4", "(-1,)", ""), "a tensor of shape [-1] has a negative extent");
}

TEST(Npy, RefusesBadHeaders) {
  const std::string message = "npy: the header is not a dictionary of 'descr', 'fortran_order' and 'shape'";
  for (const char* dictionary :
       {"", "{", "[]", "{'descr'}", "{'descr: '<f4'}", "{'descr': <f4}", "{'fortran_order': 1}",
        "{'shape': 3}", "{'shape': (}", "{'shape': (1 2)}", "{'shape': (9223372036854775808,)}",
        "{'shape': (,)}", "{'shape': ()", "{,}", "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x"})
    expect_refused(with_header(dictionary, ""), message);
  expect_refused(with_header("{}", ""), "npy: the header lacks 'descr'");
  expect_refused(with_header("{'descr': '<f4', 'shape': ()}", ""), "npy: the header lacks 'fortran_order'");
  expect_refused(with_header("{'descr': '<f4', 'fortran_order': False}", ""),
                 "npy: the header lacks 'shape'");
  expect_refused(with_header("{'size': 3}", ""), "npy: the header has the unknown key 'size'");
  expect_refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13),
                 "npy: the header is 4294967307 bytes long, and at most 65536 are supported");
}

TEST(Npy, SaysWhatIsNotSupported) {
  expect_unsupported(file("|O", "(1,)", ""), "npy: elements of type '|O' are not supported");
  expect_unsupported(file("<f16", "(1,)", ""), "npy: elements of type '<f16' are not supported");
  expect_unsupported(file("<M8[ns]", "(1,)", ""), "npy: elements of type '<M8[ns]' are not supported");
  // Items of no bytes: a file of a hundred bytes could ask for any number of them.
  expect_unsupported(file("|S0", "(1000000,)", ""), "npy: elements of type '|S0' are not supported");
  expect_unsupported(file("", "(1,)", ""), "npy: elements of type '' are not supported");
  expect_unsupported(file("?f4", "(1,)", ""), "npy: elements of type '?f4' are not supported");
  expect_unsupported(file("<U99999999999", "(1,)", ""),
                     "npy: elements of type '<U99999999999' are not supported");
  expect_unsupported(with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", ""),
                     "npy: arrays of records are not supported");
  expect_unsupported(std::string("\x93NUMPY\x09\x01\x00\x00", 10),
                     "npy: version 9.1 of the format is not supported");
}

TEST(Npy, ARankThatNoHeaderCanTellIsRefused) {
  expect_error<UserError>([] { format_npy(Tensor(DType::F32, Extents(30000, 1))); },
                          "npy: 30000 dimensions are more than a header can tell");
}

}  // namespace
}  // namespace tenon
