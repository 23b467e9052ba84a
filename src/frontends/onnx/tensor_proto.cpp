#include "frontends/onnx/tensor_proto.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>

#include "frontends/onnx/fields.h"
#include "frontends/onnx/wire.h"
#include "tensor/packing.h"

namespace tenon::onnx {
namespace {

// A repeated field of TensorProto that holds elements when raw_data does not.
struct DataField {
  uint32_t number;
  WireType type;
  std::string_view name;
};
constexpr DataField float_data{tensor_field::float_data, WireType::Fixed32, "float_data"};
constexpr DataField int32_data{tensor_field::int32_data, WireType::Varint, "int32_data"};
constexpr DataField string_data{tensor_field::string_data, WireType::Bytes, "string_data"};
constexpr DataField int64_data{tensor_field::int64_data, WireType::Varint, "int64_data"};
constexpr DataField double_data{tensor_field::double_data, WireType::Fixed64, "double_data"};
constexpr DataField uint64_data{tensor_field::uint64_data, WireType::Varint, "uint64_data"};

struct DataTypeRow {
  int32_t data_type;
  DType dtype;
  const DataField& field;
};

constexpr DataTypeRow data_types[] = {
    {1, DType::F32, float_data},     {2, DType::U8, int32_data},          {3, DType::I8, int32_data},
    {4, DType::U16, int32_data},     {5, DType::I16, int32_data},         {6, DType::I32, int32_data},
    {7, DType::I64, int64_data},     {8, DType::String, string_data},     {9, DType::Bool, int32_data},
    {10, DType::F16, int32_data},    {11, DType::F64, double_data},       {12, DType::U32, uint64_data},
    {13, DType::U64, uint64_data},   {14, DType::C64, float_data},        {15, DType::C128, double_data},
    {16, DType::BF16, int32_data},   {17, DType::F8E4M3FN, int32_data},   {18, DType::F8E4M3FNUZ, int32_data},
    {19, DType::F8E5M2, int32_data}, {20, DType::F8E5M2FNUZ, int32_data}, {21, DType::U4, int32_data},
    {22, DType::I4, int32_data},     {23, DType::F4E2M1, int32_data},     {24, DType::F8E8M0, int32_data},
    {25, DType::U2, int32_data},     {26, DType::I2, int32_data},
};

const DataTypeRow& row_of(int32_t data_type) {
  const auto row = std::ranges::find(data_types, data_type, &DataTypeRow::data_type);
  if (row == std::end(data_types))
    throw user_error("data type {} is not one of ONNX, wanted 1 to {}", data_type, std::size(data_types));
  return *row;
}

uint64_t offset_in(const MappedFile& file, std::span<const std::byte> bytes) {
  const std::byte* const start = file.bytes().data();
  CHECK(!std::less<>()(bytes.data(), start) && !std::less<>()(start + file.bytes().size(), bytes.data()),
        "a tensor that is not from {}", file.path().string());
  return static_cast<uint64_t>(bytes.data() - start);
}

// A tensor whose elements are in a typed field.
struct TypedTensor {
  const TensorProto& proto;
  const DataTypeRow& row;
  const std::shared_ptr<const MappedFile>& file;

  WireReader reader_of(std::span<const std::byte> bytes) const { return {bytes, file->bytes().data(), 0}; }
  // Each occurrence of the field, as the run of elements that it holds.
  std::vector<std::span<const std::byte>> runs() const {
    std::vector<std::span<const std::byte>> runs;
    WireReader reader = reader_of(proto.message);
    while (const auto field = reader.next_field()) {
      if (field->number() == row.field.number)
        runs.push_back(field->elements(row.field.type));
    }
    return runs;
  }
  // Called before memory is taken for the elements, so that a file cannot ask for more than it fills.
  void expect_count(uint64_t got, uint64_t wanted) const {
    if (got != wanted)
      throw user_error("{} wants {} values in {}, got {}", describe(row.dtype, proto.dims), wanted,
                       row.field.name, got);
  }
};

Tensor read_strings(const TypedTensor& tensor) {
  const auto runs = tensor.runs();
  tensor.expect_count(runs.size(), static_cast<uint64_t>(element_count(tensor.proto.dims)));
  std::vector<std::string> strings;
  for (const auto run : runs)
    strings.emplace_back(as_text(run));
  return Tensor::strings(std::move(strings), tensor.proto.dims);
}

// Each integer holds one element, or a byte of packed ones, in its low bits.
Tensor read_integers(const TypedTensor& tensor) {
  const DType dtype = tensor.row.dtype;
  const auto runs = tensor.runs();
  const auto size = static_cast<uint64_t>(info(dtype).bytes);
  const uint64_t wanted = packed_size(dtype, element_count(tensor.proto.dims));
  uint64_t got = 0;
  for (const auto run : runs)  // the last byte of an integer is the one below 0x80
    got += static_cast<uint64_t>(
        std::ranges::count_if(run, [](std::byte byte) { return byte < std::byte{0x80}; }));
  tensor.expect_count(got, wanted / size);
  std::vector<std::byte> packed;
  packed.reserve(wanted);
  for (const auto run : runs) {
    for (WireReader reader = tensor.reader_of(run); !reader.at_end();) {
      const uint64_t value = reader.next_varint();
      const auto low = std::as_bytes(std::span(&value, 1)).first(size);
      packed.insert(packed.end(), low.begin(), low.end());
    }
  }
  return unpack(dtype, tensor.proto.dims, packed);
}

// float_data and double_data. Packed, they lie in the file just as raw_data would.
Literal read_floats(const TypedTensor& tensor) {
  const auto& [proto, row, file] = tensor;
  const auto runs = tensor.runs();
  const uint64_t size = row.field.type == WireType::Fixed32 ? 4 : 8;
  uint64_t got = 0;
  for (const auto run : runs)
    got += run.size();
  tensor.expect_count(got / size, packed_size(row.dtype, element_count(proto.dims)) / size);
  if (runs.size() == 1)
    return Literal::file_slice(row.dtype, proto.dims, file, offset_in(*file, runs[0]), got);
  std::vector<std::byte> packed;
  packed.reserve(got);
  for (const auto run : runs)
    packed.insert(packed.end(), run.begin(), run.end());
  return unpack(row.dtype, proto.dims, packed);
}

// The number under `key` in external_data, if there is one.
std::optional<uint64_t> find_number(const TensorProto& tensor, std::string_view key) {
  const auto entry = std::ranges::find(tensor.external_data, key, &StringStringEntry::key);
  if (entry == tensor.external_data.end())
    return std::nullopt;
  uint64_t number = 0;
  const char* const end = entry->value.data() + entry->value.size();
  const auto [stop, problem] = std::from_chars(entry->value.data(), end, number);
  if (problem != std::errc() || stop != end)
    throw user_error("external_data has {} \"{}\", wanted a number of bytes", key, entry->value);
  return number;
}

Literal read_external(const TensorProto& tensor, DType dtype, std::shared_ptr<const MappedFile> file) {
  const uint64_t offset = find_number(tensor, "offset").value_or(0);
  const auto length = find_number(tensor, "length");
  const uint64_t size = length ? *length : packed_size(dtype, element_count(tensor.dims));
  return Literal::file_slice(dtype, tensor.dims, std::move(file), offset, size);
}

Literal read_inline(const TensorProto& tensor, const DataTypeRow& row, const WeightFiles& files) {
  if (!tensor.raw_data.empty())
    return Literal::file_slice(row.dtype, tensor.dims, files.model(),
                               offset_in(*files.model(), tensor.raw_data), tensor.raw_data.size());
  const TypedTensor typed{tensor, row, files.model()};
  switch (row.field.type) {
    case WireType::Bytes:
      return read_strings(typed);
    case WireType::Varint:
      return read_integers(typed);
    default:
      return read_floats(typed);
  }
}

Datum to_datum(const CollectionProto& collection, DatumKind kind, WeightFiles& files) {
  using ElementKind = CollectionProto::ElementKind;
  if (collection.elem_type == ElementKind::SparseTensor || collection.elem_type == ElementKind::Map)
    throw unsupported("\"{}\" holds maps or sparse tensors, wanted tensors, sequences or optionals",
                      collection.name);
  Data elements;
  for (const auto& tensor : collection.tensors)
    elements.emplace_back(to_literal(tensor, files).tensor());
  for (const auto& sequence : collection.sequences)
    elements.push_back(to_datum(sequence, DatumKind::Sequence, files));
  for (const auto& optional : collection.optionals)
    elements.push_back(to_datum(optional, DatumKind::Optional, files));
  if (kind == DatumKind::Sequence)
    return Sequence{std::move(elements)};
  if (elements.size() > 1)
    throw user_error("optional \"{}\" holds {} elements, wanted none or one", collection.name,
                     elements.size());
  return elements.empty() ? Optional{} : Optional{std::make_shared<const Datum>(std::move(elements[0]))};
}

}  // namespace

DType to_dtype(int32_t data_type) { return row_of(data_type).dtype; }

int32_t to_data_type(DType dtype) {
  const auto row = std::ranges::find(data_types, dtype, &DataTypeRow::dtype);
  CHECK(row != std::end(data_types), "{} has no ONNX data type", dtype);
  return row->data_type;
}

std::shared_ptr<const MappedFile> WeightFiles::open(std::string_view location, std::string_view tensor) {
  namespace fs = std::filesystem;
  const fs::path relative(location);
  if (relative.is_absolute() || std::ranges::find(relative, "..") != relative.end())
    throw user_error(
        "tensor \"{}\": its weights file {} must be given relative to the model's folder, without ..", tensor,
        location);
  if (!folder_ && !model_->is_on_disk())
    throw user_error(
        "tensor \"{}\": its elements are in a file, {}, but the model is in memory\n"
        "  hint: say in which folder that file is",
        tensor, location);
  const fs::path parent = folder_ ? *folder_ : model_->path().parent_path();
  const fs::path named = parent / relative;
  std::error_code problem;
  const fs::path folder = fs::canonical(parent.empty() ? "." : parent, problem);
  const fs::path resolved = problem ? fs::path() : fs::canonical(named, problem);
  if (problem == std::errc::no_such_file_or_directory)
    throw user_error(
        "weights file {} named by tensor \"{}\" is missing\n"
        "  hint: the weights of this model are in a file of their own, which must be kept beside it",
        named.string(), tensor);
  if (problem)
    throw user_error("tensor \"{}\": cannot open its weights file {}: {}", tensor, named.string(),
                     problem.message());
  if (std::ranges::mismatch(folder, resolved).in1 != folder.end())
    throw user_error("tensor \"{}\": its weights file {} is a link to {}, outside the model's folder", tensor,
                     named.string(), resolved.string());
  auto& file = others_[resolved];
  if (file == nullptr)
    file = with_context([&] { return fmt::format("tensor \"{}\"", tensor); },
                        [&] { return MappedFile::open(resolved); });
  return file;
}

Literal to_literal(const TensorProto& tensor, WeightFiles& files) {
  const auto in_tensor = [&](auto&& work) {
    return with_context([&] { return fmt::format("tensor \"{}\"", tensor.name); }, work);
  };
  const DataTypeRow& row = in_tensor([&]() -> const DataTypeRow& {
    if (tensor.segment)
      throw unsupported("it is stored in segments, wanted it whole");
    return row_of(tensor.data_type);
  });
  if (tensor.data_location == DataLocation::Default)
    return in_tensor([&] { return read_inline(tensor, row, files); });
  const auto location = std::ranges::find(tensor.external_data, "location", &StringStringEntry::key);
  if (location == tensor.external_data.end())
    throw user_error("tensor \"{}\": external_data names no location", tensor.name);
  auto file = files.open(location->value, tensor.name);
  return in_tensor([&] { return read_external(tensor, row.dtype, std::move(file)); });
}

Datum read_datum(const std::filesystem::path& path, DatumKind kind) {
  WeightFiles files(MappedFile::open(path));
  const auto decoded = [&](const char* what, auto decode) {
    return with_context([&] { return fmt::format("{}: not an ONNX {}", path.string(), what); },
                        [&] { return decode(files.model()->bytes()); });
  };
  const auto in_file = [&](auto&& work) { return with_context([&] { return path.string(); }, work); };
  if (kind == DatumKind::Tensor) {
    const TensorProto tensor = decoded("tensor", decode_tensor);
    return in_file([&] { return to_literal(tensor, files).tensor(); });
  }
  const CollectionProto collection =
      decoded(kind == DatumKind::Sequence ? "sequence" : "optional", decode_collection);
  return in_file([&] { return to_datum(collection, kind, files); });
}

std::string write_tensor(std::string_view name, const Tensor& tensor) {
  WireWriter writer;
  for (const int64_t extent : tensor.extents())
    writer.put(tensor_field::dims, extent);
  writer.put(tensor_field::data_type, to_data_type(tensor.dtype()));
  writer.put(tensor_field::name, name);
  if (tensor.dtype() == DType::String) {
    for (const std::string& string : tensor.strings())
      writer.put(string_data.number, string);
  } else {
    writer.put(tensor_field::raw_data, as_text(pack(tensor)));
  }
  return writer.message();
}

}  // namespace tenon::onnx
