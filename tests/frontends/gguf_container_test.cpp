// GGUF files that are damaged, hostile, from the future, or say what we do not know: each is refused with its
// reason.
#include "frontends/gguf/container.h"
#include "frontends/gguf_file.h"

namespace tenon::gguf {
namespace {

using namespace write;

const Bytes kStart = "GGUF" + number(3U);

Bytes counts(uint64_t tensors, uint64_t keys) { return kStart + number(tensors) + number(keys); }
Bytes with_key(const Bytes& type_and_value) { return counts(0, 1) + text("k") + type_and_value; }
Bytes with_info(const Bytes& after_name) { return counts(1, 0) + text("t") + after_name; }
Bytes info_of(const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset = 0) {
  Bytes info = number(static_cast<uint32_t>(sizes.size()));
  for (const uint64_t size : sizes)
    info += number(size);
  return info + number(type) + number(offset);
}

TEST(GgufContainer, HoldsKeysOfAllTypesAndTensors) {
  const auto value_of = [](uint32_t type, const Bytes& bytes) { return number(type) + bytes; };
  FileText file{.keys = {{"a", value_of(0, number<uint8_t>(200))},
                         {"b", value_of(1, number<int8_t>(-3))},
                         {"c", value_of(2, number<uint16_t>(60000))},
                         {"d", value_of(3, number<int16_t>(-300))},
                         {"e", value_of(4, number<uint32_t>(4000000000))},
                         {"f", value_of(5, number<int32_t>(-70000))},
                         {"g", value_of(6, number(0.5F))},
                         {"h", value_of(7, number<uint8_t>(1))},
                         {"i", value_of(8, text("word"))},
                         {"j", value_of(9, number<uint32_t>(8) + number<uint64_t>(2) + text("x") + text(""))},
                         {"k", value_of(9, number<uint32_t>(3) + number<uint64_t>(3) + Bytes(6, 'x'))},
                         {"l", value_of(10, number(uint64_t{1} << 40))},
                         {"m", value_of(11, number<int64_t>(-1))},
                         {"n", value_of(12, number(0.25))}},
                .tensors = {{"t", {2, 3}, 1, Bytes(12, 'a')}, {"u", {32}, 8, Bytes(34, 'b')}}};
  for (const uint32_t version : {2U, 3U}) {
    file.version = version;
    const TemporaryFolder folder;
    const Container container(MappedFile::open(folder.write("m.gguf", file.bytes())));
    const auto& keys = container.keys();
    EXPECT_EQ(std::get<uint64_t>(keys.at("a")), 200U);
    EXPECT_EQ(std::get<int64_t>(keys.at("b")), -3);
    EXPECT_EQ(std::get<uint64_t>(keys.at("c")), 60000U);
    EXPECT_EQ(std::get<int64_t>(keys.at("d")), -300);
    EXPECT_EQ(std::get<uint64_t>(keys.at("e")), 4000000000U);
    EXPECT_EQ(std::get<int64_t>(keys.at("f")), -70000);
    EXPECT_EQ(std::get<double>(keys.at("g")), 0.5);
    EXPECT_TRUE(std::get<bool>(keys.at("h")));
    EXPECT_EQ(std::get<std::string_view>(keys.at("i")), "word");
    EXPECT_EQ(std::get<KeyArray>(keys.at("j")).element_type, "string");
    EXPECT_EQ(std::get<KeyArray>(keys.at("k")).count, 3U);
    EXPECT_EQ(std::get<uint64_t>(keys.at("l")), uint64_t{1} << 40);
    EXPECT_EQ(std::get<int64_t>(keys.at("m")), -1);
    EXPECT_EQ(std::get<double>(keys.at("n")), 0.25);
    EXPECT_EQ(container.tensors().at("t").extents, (Extents{3, 2}));
    EXPECT_EQ(container.tensors().at("t").bytes.front(), std::byte{'a'});
    EXPECT_EQ(container.tensors().at("u").bytes.size(), 34U);
    EXPECT_EQ(container.tensors().at("u").bytes.front(), std::byte{'b'});
  }
}

TEST(GgufContainer, AlignsDataAsTheFileSays) {
  FileText file = llama();
  file.alignment = 256;
  file.keys["general.alignment"] = value(256U);
  import(file.bytes());
  file.keys["general.alignment"] = value(48U);
  refuse(file, "key \"general.alignment\": it must be a power of two up to 1048576");
  file.keys["general.alignment"] = value("32");
  refuse(file, "key \"general.alignment\": it must be a power of two up to 1048576");
}

TEST(GgufContainer, CutOffIsRefusedAnywhere) {
  register_ops();
  const Bytes whole = llama().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto file = MappedFile::copy("m.gguf", std::as_bytes(std::span(whole)).first(size));
    EXPECT_THROW(read_gguf(file), UserError) << size;
  }
  read_gguf(MappedFile::copy("m.gguf", std::as_bytes(std::span(whole))));
}

TEST(GgufContainer, ThatIsSomethingElseIsRefused) {
  refuse(Bytes(), "this is no GGUF file: it does not begin with \"GGUF\"\n  hint: the file is empty");
  refuse("version https://git-lfs.github.com/spec/v1\n",
         "this is no GGUF file: it does not begin with \"GGUF\"\n  hint: this is a Git LFS pointer, not the "
         "file "
         "itself; run `git lfs pull`");
  refuse("GGUF", "the version takes 4 bytes from byte 4 on, but the file has 0 more");
  refuse<UnsupportedError>("GGUF" + number(1U),
                           "this is version 1 of GGUF, but those that are read are 2 and 3");
  refuse<UnsupportedError>("GGUF" + number(4U),
                           "this is version 4 of GGUF, but those that are read are 2 and 3");
  refuse<UnsupportedError>("GGUF" + number(3U << 24), "big-endian GGUF");
}

TEST(GgufContainer, HostileCountsAreRefused) {
  const uint64_t huge = ~uint64_t{0};
  refuse(counts(0, huge) + text("k") + value(1U),
         "key 2 of 18446744073709551615: its name takes 8 bytes from byte 41 on, but the file has 0 more");
  refuse(counts(huge, 0) + text("t") + info_of({4}, 0),
         "tensor 2 of 18446744073709551615: its name takes 8 bytes from byte 57 on, but the file has 0 more");
  refuse(counts(0, 1) + number(huge),
         "key 1 of 1: its name takes 18446744073709551615 bytes from byte 32 on, but the file has 0 more");
  refuse(counts(0, 1) + number<uint64_t>(70000) + Bytes(80000, 'k'),
         "key 1 of 1: its name has 70000 bytes, but must have 1 to 65535");
  refuse(counts(1, 0) + number<uint64_t>(65) + Bytes(100, 't'),
         "tensor 1 of 1: its name has 65 bytes, but must have 1 to 64");
  refuse(counts(1, 0) + text(""), "tensor 1 of 1: its name has 0 bytes, but must have 1 to 64");
  const auto array = [&](uint32_t type, uint64_t count) {
    return with_key(number(9U) + number(type) + number(count));
  };
  refuse(array(0, huge),
         "key \"k\": its array takes 18446744073709551615 bytes from byte 49 on, but the file has 0 more");
  refuse(array(10, huge), "key \"k\": its value is an array of 18446744073709551615 elements");
  refuse(array(8, huge),
         "key \"k\": a string of its array takes 8 bytes from byte 49 on, but the file has 0 more");
}

TEST(GgufContainer, HostileKeysAreRefused) {
  refuse(with_key(number(13U)), "key \"k\": unknown value type 13: the highest is 12");
  refuse(with_key(number(7U) + number<uint8_t>(2)), "key \"k\": its value is a bool of 2");
  refuse(with_key(number(9U) + number(9U) + number<uint64_t>(1)),
         "key \"k\": its value is an array of arrays");
  refuse(with_key(number(9U) + number(99U) + number<uint64_t>(1)),
         "key \"k\": unknown value type 99: the highest is 12");
  refuse(counts(0, 2) + text("k") + value(1U) + text("k") + value(1U), "key \"k\": duplicate");
}

TEST(GgufContainer, HostileTensorsAreRefused) {
  refuse(with_info(info_of({}, 0)), "tensor \"t\": it has 0 dimensions, but must have 1 to 4");
  refuse(with_info(number(5U)), "tensor \"t\": it has 5 dimensions, but must have 1 to 4");
  refuse(with_info(info_of({4, 0}, 0)), "tensor \"t\": its dimension 1 is 0");
  refuse(with_info(info_of({uint64_t{1} << 63}, 0)), "tensor \"t\": its dimension 0 is 9223372036854775808");
  refuse(with_info(info_of({uint64_t{1} << 62}, 0)), "tensor \"t\": it has 4611686018427387904 elements");
  refuse(with_info(info_of({4}, 77)), "tensor \"t\": unknown tensor type 77");
  refuse<UnsupportedError>(with_info(info_of({256}, 10)),
                           "tensor \"t\": type Q2_K\n  hint: those that are read are F32 F16 BF16 Q4_0 Q4_1 "
                           "Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K");
  refuse(with_info(info_of({33}, 8)),
         "tensor \"t\": rows of 33 elements are not a multiple of 32, the block size of Q8_0");
  refuse(with_info(info_of({32, 2}, 8)),
         "tensor \"t\": Q8_0 in [2,32] takes 68 bytes at 0 of the data, which have 0");
  refuse(with_info(info_of({4}, 0, 32)),
         "tensor \"t\": its data is at offset 32, but should follow the previous tensor at 0");
  refuse(counts(2, 0) + text("t") + info_of({4}, 0) + text("u") + info_of({4}, 0, 16) + Bytes(64, 'x'),
         "tensor \"u\": its data is at offset 16, but should follow the previous tensor at 32");
  refuse(counts(2, 0) + text("t") + info_of({4}, 0) + text("t") + info_of({4}, 0, 32) + Bytes(100, 'x'),
         "tensor \"t\": duplicate");
  const uint64_t much = uint64_t{1} << 40;
  EXPECT_THROW(import(with_info(info_of({much, much}, 0))), UserError);
}

}  // namespace
}  // namespace tenon::gguf
