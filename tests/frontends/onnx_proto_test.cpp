// Files are built byte by byte here, by an encoder of their own, so that reader and writer cannot be wrong
// together.
#include <gtest/gtest.h>

#include <cstring>

#include "base/temporary_folder.h"
#include "frontends/onnx/tensor_proto.h"
#include "tensor/packing.h"

namespace tenon::onnx {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(0x80 + value % 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) * 8) + varint(static_cast<uint64_t>(value));
}
std::string bytes(int field, const std::string& content) {
  return varint(static_cast<uint64_t>(field) * 8 + 2) + varint(content.size()) + content;
}
template <class T>
std::string fixed(T value) {
  std::string content(sizeof value, '\0');
  std::memcpy(content.data(), &value, sizeof value);
  return content;
}
std::string real(int field, float value) {
  return varint(static_cast<uint64_t>(field) * 8 + 5) + fixed(value);
}

std::string dims(const std::vector<int64_t>& extents) {
  std::string message;
  for (const int64_t extent : extents)
    message += number(1, extent);
  return message;
}
std::string tensor(int data_type, const std::vector<int64_t>& extents, const std::string& data) {
  return dims(extents) + number(2, data_type) + bytes(8, "W") + data;
}
std::string model(const std::string& graph) { return number(1, 8) + bytes(7, graph); }
std::string model_with_weight(const std::string& tensor) { return model(bytes(5, tensor)); }
std::string model_with_attribute(const std::string& attribute) {
  return model(bytes(1, bytes(5, attribute)));
}
std::string external(const std::string& key, const std::string& value) {
  return bytes(13, bytes(1, key) + bytes(2, value));
}

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

class OnnxFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(folder_ / "models"); }

  // Of a file in the folder where the model is, or, with "../", beside it.
  fs::path path_of(const std::string& name) const { return folder_ / ("models/" + name); }
  fs::path write(const std::string& name, const std::string& content) const {
    return folder_.write("models/" + name, content);
  }
  // What reading a file with these bytes complains about, less the file's name and what it is not.
  std::string complaint(const std::string& content,
                        const std::string& verdict = "not an ONNX model: ") const {
    const fs::path path = write("m.onnx", content);
    const std::string message = error_of([&] { read_model(path); });
    const std::string start = path.string() + ": " + verdict;
    EXPECT_TRUE(message.starts_with(start)) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  Literal weight(const std::string& tensor) const {
    const Model m = read_model(write("m.onnx", model_with_weight(tensor)));
    WeightFiles files(m.file);
    return to_literal(m.proto.graph.initializer.at(0), files);
  }
  std::string weight_error(const std::string& tensor) const {
    return error_of([&] { weight(tensor); });
  }

  TemporaryFolder folder_;
};

std::vector<uint8_t> elements(const Literal& literal) {
  const Tensor t = literal.tensor();
  std::vector<uint8_t> values;
  for (const std::byte byte : t.bytes())
    values.push_back(std::to_integer<uint8_t>(byte));
  return values;
}

TEST_F(OnnxFile, EveryMessageIsDecoded) {
  const std::string shape = bytes(1, number(1, 3)) + bytes(1, bytes(2, "batch")) + bytes(1, "");
  const std::string tensor_type = bytes(1, number(1, 1) + bytes(2, shape));
  const std::string entry = bytes(1, "key") + bytes(2, "value");
  const std::string node = bytes(1, "x") + bytes(1, "") + bytes(2, "y") + bytes(3, "n") + bytes(4, "Op") +
                           bytes(5, bytes(1, "axis") + number(3, -1) + number(20, 2)) + bytes(7, "my") +
                           bytes(8, "v2") + bytes(9, entry) + bytes(10, "device");
  const std::string value = bytes(1, "x") + bytes(2, tensor_type) + bytes(4, entry);
  const std::string sparse =
      bytes(1, tensor(1, {1}, real(4, 2.5))) + bytes(2, tensor(7, {1}, number(7, 4))) + number(3, 9);
  const std::string graph = bytes(1, node) + bytes(2, "g") + bytes(11, value) + bytes(12, bytes(1, "y")) +
                            bytes(13, value) + bytes(15, sparse);
  const std::string function = bytes(1, "f") + bytes(4, "a") + bytes(5, "b") + bytes(6, "alpha") +
                               bytes(7, node) + bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, "my") +
                               bytes(11, bytes(1, "beta") + real(2, 0.5)) + bytes(13, "v2");
  const Model m = read_model(write("m.onnx", number(1, 10) + bytes(2, "maker") + bytes(3, "1.0") +
                                                 number(5, -3) + bytes(7, graph) +
                                                 bytes(8, bytes(1, "my") + number(2, 2)) + bytes(14, entry) +
                                                 bytes(25, function) + bytes(999, "unknown") + real(998, 1)));

  EXPECT_EQ(m.proto.ir_version, 10);
  EXPECT_EQ(m.proto.opset_import.at(0).domain, "my");
  EXPECT_EQ(m.proto.opset_import.at(0).version, 2);
  const NodeProto& decoded = m.proto.graph.node.at(0);
  EXPECT_EQ(decoded.input, (std::vector<std::string_view>{"x", ""}));
  EXPECT_EQ(decoded.output, (std::vector<std::string_view>{"y"}));
  EXPECT_EQ(decoded.op_type, "Op");
  EXPECT_EQ(decoded.domain, "my");
  EXPECT_EQ(decoded.overload, "v2");
  EXPECT_EQ(decoded.attribute.at(0).i, -1);
  const TypeProto& type = m.proto.graph.input.at(0).type;
  EXPECT_EQ(type.kind, TypeProto::Kind::Tensor);
  EXPECT_EQ(type.elem_type, 1);
  ASSERT_EQ(type.shape.value().dim.size(), 3u);
  EXPECT_EQ(type.shape->dim[0].value, 3);
  EXPECT_EQ(type.shape->dim[1].value, std::nullopt);
  EXPECT_EQ(type.shape->dim[1].param, "batch");
  EXPECT_EQ(m.proto.graph.output.at(0).type.kind, TypeProto::Kind::Unset);
  EXPECT_EQ(m.proto.graph.sparse_initializer.at(0).dims, std::vector<int64_t>{9});
  EXPECT_EQ(m.proto.graph.sparse_initializer.at(0).indices.data_type, 7);
  const FunctionProto& f = m.proto.functions.at(0);
  EXPECT_EQ(f.attribute_proto.at(0).f, 0.5f);
  EXPECT_EQ(f.node.size(), 1u);
  EXPECT_EQ(f.overload, "v2");
}

TEST_F(OnnxFile, CommentsMayHoldAnything) {
  const std::string bad = "\xff", entry = bytes(1, bad);
  const std::string node = bytes(4, "Op") + bytes(6, bad) + bytes(9, entry);
  const std::string graph =
      bytes(1, node) + bytes(10, bad) + bytes(11, bytes(1, "x") + bytes(3, bad)) + bytes(16, entry);
  const Model m = read_model(
      write("m.onnx", bytes(2, bad) + bytes(3, bad) + bytes(6, bad) + bytes(7, graph) + bytes(14, entry)));
  EXPECT_EQ(m.proto.graph.node.at(0).op_type, "Op");
  EXPECT_EQ(m.proto.graph.input.at(0).name, "x");
}

TEST_F(OnnxFile, NamesStayInTheMappedFile) {
  Model m = read_model(write("m.onnx", model(bytes(2, "some graph"))));
  const Model moved = std::move(m);
  EXPECT_EQ(moved.proto.graph.name, "some graph");
  const char* const start = reinterpret_cast<const char*>(moved.file->bytes().data());
  EXPECT_EQ(moved.proto.graph.name.data(), start + 6);
}

TEST_F(OnnxFile, NestedTypes) {
  const std::string f32 = bytes(1, number(1, 1));
  const auto type_of = [&](const std::string& type) {
    const std::string content = model(bytes(11, bytes(2, type)));
    return read_model(write("m.onnx", content)).proto.graph.input.at(0).type;
  };
  const TypeProto optional = type_of(bytes(9, bytes(1, bytes(4, bytes(1, f32)))));
  EXPECT_EQ(optional.kind, TypeProto::Kind::Optional);
  EXPECT_EQ(optional.element->kind, TypeProto::Kind::Sequence);
  EXPECT_EQ(optional.element->element->kind, TypeProto::Kind::Tensor);
  EXPECT_EQ(optional.element->element->shape.has_value(), false);
  const TypeProto map = type_of(bytes(5, number(1, 8) + bytes(2, f32)));
  EXPECT_EQ(map.kind, TypeProto::Kind::Map);
  EXPECT_EQ(map.elem_type, 8);
  EXPECT_EQ(map.element->elem_type, 1);
  EXPECT_EQ(type_of(bytes(8, number(1, 1))).kind, TypeProto::Kind::SparseTensor);
  EXPECT_EQ(complaint(model(bytes(11, bytes(2, bytes(4, ""))))),
            "byte 8: a sequence, optional or map type without the type of its elements");
}

TEST_F(OnnxFile, AttributesOfEachType) {
  const auto attribute = [&](const std::string& fields) {
    const Model m = read_model(write("m.onnx", model_with_attribute(bytes(1, "a") + fields)));
    return m.proto.graph.node.at(0).attribute.at(0).type;
  };
  const std::string type = bytes(1, number(1, 1));
  // With the type told by the value alone.
  EXPECT_EQ(attribute(real(2, 1)), AttributeType::Float);
  EXPECT_EQ(attribute(number(3, 0)), AttributeType::Int);
  EXPECT_EQ(attribute(bytes(4, "\xff")), AttributeType::String);  // bytes: need not be UTF-8
  EXPECT_EQ(attribute(bytes(5, "")), AttributeType::Tensor);
  EXPECT_EQ(attribute(bytes(6, "")), AttributeType::Graph);
  EXPECT_EQ(attribute(bytes(7, fixed(1.0f))), AttributeType::Floats);
  EXPECT_EQ(attribute(number(8, 1)), AttributeType::Ints);
  EXPECT_EQ(attribute(bytes(9, "")), AttributeType::Strings);
  EXPECT_EQ(attribute(bytes(10, "") + bytes(10, "")), AttributeType::Tensors);
  EXPECT_EQ(attribute(bytes(11, "")), AttributeType::Graphs);
  EXPECT_EQ(attribute(bytes(14, type)), AttributeType::Type);
  EXPECT_EQ(attribute(bytes(15, type)), AttributeType::Types);
  EXPECT_EQ(attribute(bytes(22, "")), AttributeType::SparseTensor);
  EXPECT_EQ(attribute(bytes(23, "")), AttributeType::SparseTensors);
  // Zero and the empty list may be left out; a reference has no value at all.
  EXPECT_EQ(attribute(number(20, 2)), AttributeType::Int);
  EXPECT_EQ(attribute(number(20, 7)), AttributeType::Ints);
  EXPECT_EQ(attribute(number(20, 4) + bytes(21, "outer")), AttributeType::Tensor);
  EXPECT_EQ(attribute(""), AttributeType::Undefined);
}

TEST_F(OnnxFile, AttributesThatContradictThemselves) {
  EXPECT_EQ(complaint(model_with_attribute(bytes(1, "a") + number(3, 1) + number(20, 1))),
            "byte 8: attribute \"a\" has type 1 and a value of type 2");
  EXPECT_EQ(complaint(model_with_attribute(bytes(1, "a") + number(3, 1) + number(8, 1))),
            "byte 8: attribute \"a\" has type 2 and a value of type 7");
  EXPECT_EQ(complaint(model_with_attribute(bytes(1, "a") + number(20, 5))),
            "byte 8: attribute \"a\" has type 5 and no value");
  EXPECT_EQ(complaint(model_with_attribute(bytes(1, "a") + number(20, 15))),
            "byte 11: attribute type 15 is unknown, wanted 0 to 14");
  EXPECT_EQ(complaint(model_with_attribute(number(20, -1))),
            "byte 8: attribute type -1 is unknown, wanted 0 to 14");
}

TEST_F(OnnxFile, RepeatedNumbersPackedAndNot) {
  const auto attribute = [&](const std::string& fields) {
    return read_model(write("m.onnx", model_with_attribute(fields))).proto.graph.node.at(0).attribute.at(0);
  };
  const std::vector<int64_t> ints{-1, 300, INT64_MIN};
  const std::string packed = varint(UINT64_MAX) + varint(300) + varint(uint64_t{1} << 63);
  EXPECT_EQ(attribute(bytes(8, packed)).ints, ints);
  EXPECT_EQ(attribute(number(8, -1) + number(8, 300) + number(8, INT64_MIN)).ints, ints);
  EXPECT_EQ(attribute(number(8, -1) + bytes(8, varint(300)) + number(8, INT64_MIN)).ints, ints);
  const std::vector<float> floats{1, -0.5f};
  EXPECT_EQ(attribute(bytes(7, fixed(1.0f) + fixed(-0.5f))).floats, floats);
  EXPECT_EQ(attribute(real(7, 1) + real(7, -0.5f)).floats, floats);
  EXPECT_EQ(complaint(model_with_attribute(bytes(7, "12345"))),
            "byte 8: field 7 packs 4-byte values into 5 bytes");
  EXPECT_EQ(complaint(model_with_attribute(bytes(8, "\x80"))),
            "byte 10: the message ends in the middle of an integer");
}

TEST_F(OnnxFile, FilesThatAreNotOnnx) {
  EXPECT_EQ(complaint(""), "byte 0: the file ends without a graph\n  hint: the file is empty");
  EXPECT_EQ(complaint(number(1, 8)), "byte 2: the file ends without a graph");
  EXPECT_EQ(complaint("PK\3\4"),
            "byte 2: 0 is not a field number\n"
            "  hint: this is a zip archive; if torch.export made it, its name should end in .pt2");
  EXPECT_EQ(complaint("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
            "byte 0: field 14 has wire type 6, wanted 0, 1, 2 or 5\n"
            "  hint: this is a Git LFS pointer, not the file itself; run `git lfs pull`");
  for (const std::string page : {"<html>", "<!DOCTYPE html>"})
    EXPECT_EQ(complaint(page),
              "byte 0: field 7 has wire type 4, wanted 0, 1, 2 or 5\n"
              "  hint: this is a web page, perhaps one that says why there was nothing to download");
  EXPECT_EQ(complaint("graph main() { return }"),
            "byte 0: field 12 has wire type 7, wanted 0, 1, 2 or 5\n"
            "  hint: this looks like Tenon's text form, whose files end in .tenon");
  EXPECT_EQ(complaint("\n {\"ir_version\": 8}"),
            "byte 2: a run of 32 bytes, but the file has 17 left\n  hint: this is JSON");
  EXPECT_EQ(complaint("no protobuf"),
            "byte 0: field 13 has wire type 6, wanted 0, 1, 2 or 5\n"
            "  hint: this is text, and ONNX models are not");
  EXPECT_EQ(complaint(write_tensor("x", Tensor::of(std::vector<float>{1, 2}))),
            "byte 7: the message ends in the middle of an integer");
  const fs::path missing = path_of("missing.onnx");
  EXPECT_EQ(error_of([&] { read_model(missing); }),
            "cannot open " + missing.string() + ": No such file or directory");
}

TEST_F(OnnxFile, BrokenWireFormat) {
  EXPECT_EQ(complaint("\x08" + std::string(9, '\xff') + "\x02"), "byte 1: an integer of more than 64 bits");
  EXPECT_EQ(complaint("\x08" + std::string(11, '\x80')), "byte 1: an integer of more than 64 bits");
  EXPECT_EQ(complaint("\x79"s + "123456\1"), "byte 1: a 64-bit value of 8 bytes, but the file has 7 left");
  EXPECT_EQ(complaint("\x7d"s + "12\1"), "byte 1: a 32-bit value of 4 bytes, but the file has 3 left");
  EXPECT_EQ(complaint("\x0b\x0c"), "byte 0: field 1 has wire type 3, wanted 0, 1, 2 or 5");
  EXPECT_EQ(complaint(varint(uint64_t{1} << 35)), "byte 0: 4294967296 is not a field number");
  EXPECT_EQ(complaint(bytes(1, "8")), "byte 0: field 1 is a run of bytes, wanted an integer");
  // A field may not reach out of its message into the next.
  EXPECT_EQ(complaint(bytes(7, "\x12\x04g") + number(1, 8)),
            "byte 4: a run of 4 bytes, but the message has 1 left");
}

TEST_F(OnnxFile, FilesThatAreCutOff) {
  const auto cut = [&](const std::string& content) {
    return complaint(content, "truncated, the file ends in the middle of ");
  };
  EXPECT_EQ(cut("\x08"), "what describes the model: byte 1: the file ends in the middle of an integer");
  EXPECT_EQ(cut("\x08\xff\xff"),
            "what describes the model: byte 1: the file ends in the middle of an integer");
  EXPECT_EQ(cut("\x12\x06tenon"),
            "what describes the model: byte 2: a run of 6 bytes, but the file has 5 left");
  EXPECT_EQ(cut("\x3a\x05gra"), "the graph: byte 2: a run of 5 bytes, but the file has 3 left");
  EXPECT_EQ(cut("\x3a" + varint(UINT64_MAX)),
            "the graph: byte 11: a run of 18446744073709551615 bytes, but the file has 0 left");
  EXPECT_EQ(cut(model("") + "\x42\x02\x10"), "the opsets: byte 6: a run of 2 bytes, but the file has 1 left");
  EXPECT_EQ(cut(model("") + "\xca\x01\x02"),
            "the functions: byte 7: a run of 2 bytes, but the file has 0 left");

  // Wherever a model is cut before the end of its graph, that is noticed.
  const std::string whole =
      model(bytes(1, bytes(4, "Relu")) + bytes(5, tensor(1, {2}, bytes(9, "12345678"))));
  for (size_t size = 0; size < whole.size(); ++size) {
    const fs::path path = write("m.onnx", whole.substr(0, size));
    const std::string message = error_of([&] { read_model(path); });
    EXPECT_NE(message.find("the file ends"), std::string::npos) << message;
  }
}

TEST_F(OnnxFile, NamesThatAreNotUtf8) {
  for (const std::string bad : {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "a\xe2\x82z"})
    EXPECT_EQ(complaint(model(bytes(2, bad))), "byte 4: field 2 is a name or text that is not valid UTF-8");
  for (const std::string good : {"", "é", "€", "\xf4\x8f\xbf\xbf", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(read_model(write("m.onnx", model(bytes(2, good)))).proto.graph.name, good);
}

// A type inside a type inside a type …
std::string nested_type(int depth) {
  std::string type = bytes(1, number(1, 1));
  for (int level = 0; level < depth; ++level)
    type = bytes(4, bytes(1, type));
  return model(bytes(11, bytes(2, type)));
}

TEST_F(OnnxFile, DepthIsLimited) {
  EXPECT_NO_THROW(read_model(write("m.onnx", nested_type(48))));
  const std::string deep = nested_type(49);
  EXPECT_EQ(complaint(deep), fmt::format("byte {}: messages nest more than 100 deep", deep.size() - 6));
  EXPECT_TRUE(complaint(nested_type(2000)).ends_with("messages nest more than 100 deep"));
}

TEST_F(OnnxFile, RawDataIsASliceOfTheModel) {
  const std::string raw = fixed(1.5f) + fixed(-2.0f);
  const Literal literal = weight(tensor(1, {2, 1}, bytes(9, raw)));
  const auto& slice = std::get<Literal::FileSlice>(literal.form());
  EXPECT_EQ(slice.size, 8u);
  EXPECT_EQ(slice.offset, slice.file->bytes().size() - 8);
  EXPECT_TRUE(identical(literal.tensor(), Tensor::of(std::span<const float>({1.5f, -2.0f}), {2, 1})));
}

TEST_F(OnnxFile, PackedFloatsAreASliceOfTheModelToo) {
  const Literal literal = weight(tensor(1, {2}, bytes(4, fixed(1.5f) + fixed(-2.0f))));
  EXPECT_TRUE(std::holds_alternative<Literal::FileSlice>(literal.form()));
  EXPECT_TRUE(identical(literal.tensor(), Tensor::of(std::vector<float>{1.5f, -2.0f})));
  const Literal apart = weight(tensor(1, {2}, real(4, 1.5f) + real(4, -2.0f)));
  EXPECT_TRUE(identical(apart.tensor(), Tensor::of(std::vector<float>{1.5f, -2.0f})));
}

TEST_F(OnnxFile, TypedDataOfEachType) {
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(elements(weight(tensor(2, {2}, bytes(5, varint(255) + varint(1))))), (Bytes{255, 1}));
  EXPECT_EQ(elements(weight(tensor(3, {2}, number(5, -1) + number(5, 5)))), (Bytes{255, 5}));
  EXPECT_EQ(elements(weight(tensor(5, {1}, number(5, -2)))), (Bytes{0xfe, 0xff}));
  EXPECT_EQ(elements(weight(tensor(6, {1}, number(5, -2)))), (Bytes{0xfe, 0xff, 0xff, 0xff}));
  EXPECT_EQ(elements(weight(tensor(7, {1}, number(7, INT64_MIN)))), (Bytes{0, 0, 0, 0, 0, 0, 0, 0x80}));
  EXPECT_EQ(elements(weight(tensor(9, {3}, bytes(5, "\1\0\7"s)))), (Bytes{1, 0, 1}));
  EXPECT_EQ(elements(weight(tensor(10, {1}, number(5, 0x3c00)))), (Bytes{0, 0x3c}));
  EXPECT_EQ(elements(weight(tensor(12, {1}, number(11, 0xffffffff)))), (Bytes{255, 255, 255, 255}));
  EXPECT_EQ(elements(weight(tensor(13, {1}, number(11, -1)))), Bytes(8, 255));
  EXPECT_EQ(elements(weight(tensor(16, {1}, number(5, 0x3f80)))), (Bytes{0x80, 0x3f}));
  EXPECT_EQ(elements(weight(tensor(17, {1}, number(5, 0x7f)))), (Bytes{0x7f}));
  EXPECT_EQ(weight(tensor(24, {1}, number(5, 0x7f))).dtype(), DType::F8E8M0);
  EXPECT_EQ(weight(tensor(11, {}, bytes(10, fixed(0.5)))).tensor().data<double>()[0], 0.5);
  EXPECT_EQ(weight(tensor(14, {1}, real(4, 1) + real(4, 2))).dtype(), DType::C64);
  EXPECT_EQ(weight(tensor(15, {1}, bytes(10, fixed(1.0) + fixed(2.0)))).dtype(), DType::C128);
  EXPECT_EQ(weight(tensor(8, {2}, bytes(6, "a") + bytes(6, "\xff"))).tensor().strings(),
            (std::vector<std::string>{"a", "\xff"}));
  EXPECT_EQ(weight(tensor(1, {0, 3}, "")).count(), 0);
}

TEST_F(OnnxFile, TypesNarrowerThanAByteArePacked) {
  using Bytes = std::vector<uint8_t>;
  for (const std::string& field : {bytes(5, varint(0xf1) + varint(0x07)), bytes(9, "\xf1\x07")}) {
    EXPECT_EQ(elements(weight(tensor(21, {3}, field))), (Bytes{1, 15, 7}));
    EXPECT_EQ(elements(weight(tensor(22, {3}, field))), (Bytes{1, 255, 7}));
    EXPECT_EQ(elements(weight(tensor(23, {3}, field))), (Bytes{1, 15, 7}));
    EXPECT_EQ(elements(weight(tensor(25, {5}, field))), (Bytes{1, 0, 3, 3, 3}));
    EXPECT_EQ(elements(weight(tensor(26, {5}, field))), (Bytes{1, 0, 255, 255, 255}));
  }
}

TEST_F(OnnxFile, DataTypesGoBothWays) {
  for (int32_t data_type = 1; data_type <= 26; ++data_type)
    EXPECT_EQ(to_data_type(to_dtype(data_type)), data_type);
  for (const DTypeInfo& row : all_dtypes())
    EXPECT_EQ(to_dtype(to_data_type(row.dtype)), row.dtype);
  EXPECT_EQ(error_of([] { to_dtype(0); }), "data type 0 is not one of ONNX, wanted 1 to 26");
  EXPECT_EQ(error_of([] { to_dtype(27); }), "data type 27 is not one of ONNX, wanted 1 to 26");
}

TEST_F(OnnxFile, TensorsThatDoNotAddUp) {
  const std::string file = path_of("m.onnx").string();
  EXPECT_EQ(weight_error(tensor(99, {1}, "")),
            "tensor \"W\": data type 99 is not one of ONNX, wanted 1 to 26");
  EXPECT_EQ(weight_error(tensor(1, {2, 3}, bytes(9, "12345"))),
            "tensor \"W\": " + file + ": f32[2,3] takes 24 bytes, but its slice at offset 17 has 5");
  EXPECT_EQ(weight_error(tensor(1, {2, 3}, real(4, 1))),
            "tensor \"W\": f32[2,3] wants 6 values in float_data, got 1");
  EXPECT_EQ(weight_error(tensor(14, {2}, real(4, 1))),
            "tensor \"W\": c64[2] wants 4 values in float_data, got 1");
  EXPECT_EQ(weight_error(tensor(6, {2}, number(7, 1) + number(7, 2))),
            "tensor \"W\": i32[2] wants 2 values in int32_data, got 0");
  EXPECT_EQ(weight_error(tensor(22, {3}, bytes(5, "\1\2\3"))),
            "tensor \"W\": i4[3] wants 2 values in int32_data, got 3");
  EXPECT_EQ(weight_error(tensor(8, {1}, "")), "tensor \"W\": str[1] wants 1 values in string_data, got 0");
  EXPECT_EQ(weight_error(tensor(8, {1}, bytes(9, "abc"))),
            "tensor \"W\": " + file + ": str elements cannot be read from a slice of a file");
  EXPECT_EQ(weight_error(tensor(6, {1}, bytes(5, "\1\x80"))),
            "tensor \"W\": byte 16: the message ends in the middle of an integer");
  EXPECT_EQ(weight_error(tensor(6, {1}, real(5, 1))),
            "tensor \"W\": byte 13: field 5 is a 32-bit value, wanted an integer");
  EXPECT_EQ(weight_error(tensor(1, {1}, bytes(3, number(2, 5)))),
            "tensor \"W\": it is stored in segments, wanted it whole");
  EXPECT_EQ(complaint(model_with_weight(number(14, 2))), "byte 6: data location 2 is unknown, wanted 0 to 1");
}

TEST_F(OnnxFile, AbsurdDimensions) {
  EXPECT_EQ(weight_error(tensor(1, {2, -3}, bytes(9, "1234"))),
            "tensor \"W\": a tensor of shape [2,-3] has a negative extent");
  EXPECT_EQ(weight_error(tensor(1, {int64_t{1} << 62, 4}, real(4, 1))),
            "tensor \"W\": a tensor of shape [4611686018427387904,4] has more elements than can be counted");
  EXPECT_EQ(weight_error(tensor(1, {int64_t{1} << 62}, real(4, 1))),
            "tensor \"W\": 4611686018427387904 elements of f32 take more bytes than can be counted");
  EXPECT_EQ(weight_error(tensor(2, {int64_t{1} << 62}, number(5, 1))),
            "tensor \"W\": u8[4611686018427387904] wants 4611686018427387904 values in int32_data, got 1");
  EXPECT_EQ(weight_error(tensor(8, {int64_t{1} << 62}, bytes(6, "a"))),
            "tensor \"W\": str[4611686018427387904] wants 4611686018427387904 values in string_data, got 1");
}

TEST_F(OnnxFile, WeightsInAnotherFile) {
  write("w.bin", "....\1\2\3\4"s);
  const std::string where = external("location", "w.bin") + external("offset", "4") + number(14, 1);
  const Literal literal = weight(tensor(2, {4}, where + external("length", "4") + external("checksum", "?")));
  EXPECT_EQ(elements(literal), (std::vector<uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(std::get<Literal::FileSlice>(literal.form()).file->path(), path_of("w.bin"));
  EXPECT_EQ(elements(weight(tensor(2, {2}, where))),
            (std::vector<uint8_t>{1, 2}));  // no length: as many as wanted
}

TEST_F(OnnxFile, AWeightsFileIsMappedOnce) {
  write("w.bin", "abcd");
  const auto at = [](const char* location) {
    return bytes(5, tensor(2, {1}, external("location", location) + number(14, 1)));
  };
  const Model m = read_model(write("m.onnx", model(at("w.bin") + at("./w.bin") + at("m.onnx"))));
  WeightFiles files(m.file);
  const auto file_of = [&](size_t i) {
    return std::get<Literal::FileSlice>(to_literal(m.proto.graph.initializer.at(i), files).form()).file;
  };
  EXPECT_EQ(file_of(0), file_of(1));
  EXPECT_NE(file_of(0), file_of(2));
}

TEST_F(OnnxFile, WeightsFilesThatMustNotBeRead) {
  const std::string folder = path_of("").string();
  write("../secret.bin", "abcd");
  write("w.bin", "abcd");
  fs::create_symlink("../secret.bin", path_of("link.bin"));
  fs::create_symlink("w.bin", path_of("inside.bin"));
  fs::create_symlink("..", path_of("up"));
  fs::create_symlink("nowhere", path_of("dangling"));
  fs::create_symlink("loop", path_of("loop"));
  const auto error_at = [&](const std::string& location, const std::string& more = "") {
    return weight_error(tensor(2, {4}, external("location", location) + more + number(14, 1)));
  };
  const auto missing = [&](const std::string& name) {
    return "weights file " + folder + name +
           " named by tensor \"W\" is missing\n"
           "  hint: the weights of this model are in a file of their own, which must be kept beside it";
  };
  const auto not_relative = [&](const std::string& location) {
    return "tensor \"W\": its weights file " + location +
           " must be given relative to the model's folder, without ..";
  };
  EXPECT_EQ(error_at("w.bin"), "no error");
  EXPECT_EQ(error_at("inside.bin"), "no error");
  EXPECT_EQ(error_at("gone.bin"), missing("gone.bin"));
  EXPECT_EQ(error_at("dangling"), missing("dangling"));
  EXPECT_EQ(error_at("../secret.bin"), not_relative("../secret.bin"));
  EXPECT_EQ(error_at("sub/../w.bin"), not_relative("sub/../w.bin"));
  EXPECT_EQ(error_at("/etc/passwd"), not_relative("/etc/passwd"));
  const std::string secret = (folder_ / "secret.bin").string();
  EXPECT_EQ(error_at("link.bin"), "tensor \"W\": its weights file " + folder + "link.bin is a link to " +
                                      secret + ", outside the model's folder");
  EXPECT_EQ(error_at("up/secret.bin"), "tensor \"W\": its weights file " + folder +
                                           "up/secret.bin is a link to " + secret +
                                           ", outside the model's folder");
  EXPECT_EQ(error_at("loop"), "tensor \"W\": cannot open its weights file " + folder +
                                  "loop: Too many levels of symbolic links");
  EXPECT_EQ(error_at("."),
            "tensor \"W\": cannot open " + path_of("").parent_path().string() + ": it is a folder");
  EXPECT_EQ(weight_error(tensor(2, {4}, number(14, 1))), "tensor \"W\": external_data names no location");
  const std::string file = path_of("w.bin").string();
  EXPECT_EQ(error_at("w.bin", external("offset", "1")),
            "tensor \"W\": " + file + ": a slice of 4 bytes at offset 1 reaches outside the file of 4 bytes");
  EXPECT_EQ(error_at("w.bin", external("offset", "18446744073709551615")),
            "tensor \"W\": " + file +
                ": a slice of 4 bytes at offset 18446744073709551615 reaches outside the file of 4 bytes");
  EXPECT_EQ(error_at("w.bin", external("length", "3")),
            "tensor \"W\": " + file + ": u8[4] takes 4 bytes, but its slice at offset 0 has 3");
  EXPECT_EQ(error_at("w.bin", external("offset", "-1")),
            "tensor \"W\": external_data has offset \"-1\", wanted a number of bytes");
  EXPECT_EQ(error_at("w.bin", external("length", "4k")),
            "tensor \"W\": external_data has length \"4k\", wanted a number of bytes");
  EXPECT_EQ(error_at("w.bin", external("length", "99999999999999999999")),
            "tensor \"W\": external_data has length \"99999999999999999999\", wanted a number of bytes");
}

TEST_F(OnnxFile, WrittenTensorsReadBack) {
  for (const DTypeInfo& row : all_dtypes()) {
    const Tensor written =
        row.dtype == DType::String
            ? Tensor::strings({"a", "", "\xff"}, {3, 1})
            : unpack(row.dtype, {3, 1}, std::vector<std::byte>(packed_size(row.dtype, 3), std::byte{1}));
    const Datum read = read_datum(write("x.pb", write_tensor("x", written)), DatumKind::Tensor);
    EXPECT_TRUE(identical(read.tensor(), written)) << row.name;
  }
  const Tensor empty(DType::F32, {0, 2});
  EXPECT_TRUE(
      identical(read_datum(write("x.pb", write_tensor("", empty)), DatumKind::Tensor).tensor(), empty));
  const std::string message = write_tensor("é", empty);
  EXPECT_EQ(decode_tensor(std::as_bytes(std::span(message))).name, "é");
}

TEST_F(OnnxFile, SequencesAndOptionals) {
  const std::string element = write_tensor("x", Tensor::scalar<int64_t>(7));
  const std::string pair = number(2, 1) + bytes(3, element) + bytes(3, element);
  const Datum sequence = read_datum(write("s.pb", pair), DatumKind::Sequence);
  ASSERT_EQ(sequence.sequence().elements.size(), 2u);
  EXPECT_EQ(sequence.sequence().elements[1].tensor().data<int64_t>()[0], 7);
  EXPECT_TRUE(read_datum(write("s.pb", ""), DatumKind::Sequence).sequence().elements.empty());

  const Datum nested = read_datum(write("o.pb", number(2, 3) + bytes(5, pair)), DatumKind::Optional);
  EXPECT_EQ(nested.optional().element->sequence().elements.size(), 2u);
  EXPECT_EQ(read_datum(write("o.pb", bytes(1, "o")), DatumKind::Optional).optional().element, nullptr);

  const std::string path = path_of("o.pb").string();
  const auto error_in = [&](const std::string& content, DatumKind kind) {
    return error_of([&] { read_datum(write("o.pb", content), kind); });
  };
  EXPECT_EQ(error_in(bytes(1, "o") + pair, DatumKind::Optional),
            path + ": optional \"o\" holds 2 elements, wanted none or one");
  EXPECT_EQ(error_in(bytes(1, "o") + number(2, 4), DatumKind::Optional),
            path + ": \"o\" holds maps or sparse tensors, wanted tensors, sequences or optionals");
  EXPECT_EQ(error_in(number(2, 6), DatumKind::Sequence),
            path + ": not an ONNX sequence: byte 0: element type 6 is unknown, wanted 0 to 5");
  EXPECT_EQ(error_in(bytes(1, "x"), DatumKind::Tensor),
            path + ": tensor \"\": data type 0 is not one of ONNX, wanted 1 to 26");
  EXPECT_EQ(error_in("text", DatumKind::Tensor),
            path + ": not an ONNX tensor: byte 0: field 14 has wire type 4, wanted 0, 1, 2 or 5");
}

}  // namespace
}  // namespace tenon::onnx
