// tensor_proto.h — ONNX tensors to literals and data, and back. Weights stay in the file they are in.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "frontends/onnx/proto.h"
#include "tensor/datum.h"
#include "tensor/literal.h"

namespace tenon::onnx {

// TensorProto.DataType by number. A number that ONNX does not define is the user's fault.
DType to_dtype(int32_t data_type);
int32_t to_data_type(DType dtype);

// The files a model's weights are in: its own, and those that its tensors name, each mapped once. They are in
// `folder`; where none is given, beside the model.
class WeightFiles {
 public:
  explicit WeightFiles(std::shared_ptr<const MappedFile> model,
                       std::optional<std::filesystem::path> folder = std::nullopt)
      : model_(std::move(model)), folder_(std::move(folder)) {}

  const std::shared_ptr<const MappedFile>& model() const { return model_; }
  // The file at `location`, relative to that folder. Whatever is missing, irregular or outside that
  // folder, also through a symbolic link, is the user's fault; `tensor` is named in the message.
  std::shared_ptr<const MappedFile> open(std::string_view location, std::string_view tensor);

 private:
  std::shared_ptr<const MappedFile> model_;
  std::optional<std::filesystem::path> folder_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> others_;  // by resolved path
};

// `tensor` was decoded from the bytes of files.model(). Errors name the tensor, not the model's file.
Literal to_literal(const TensorProto& tensor, WeightFiles& files);

// A file that holds one TensorProto, SequenceProto or OptionalProto; which of them cannot be told from its
// bytes.
enum class DatumKind : uint8_t { Tensor, Sequence, Optional };
Datum read_datum(const std::filesystem::path& path, DatumKind kind);

// The bytes of a TensorProto.
std::string write_tensor(std::string_view name, const Tensor& tensor);

}  // namespace tenon::onnx
