#include "frontends/onnx/sparse.h"

#include "base/error.h"
#include "ops/elements.h"

namespace tenon::onnx {
namespace {

// A file of a few bytes must not become gigabytes.
constexpr int64_t kLargestDense = int64_t{1} << 26;

// Where each value goes, as an offset into the dense elements.
std::vector<int64_t> offsets(std::string_view name, const Tensor& indices, int64_t count,
                             const Extents& extents) {
  const auto rank = static_cast<int64_t>(extents.size());
  const bool linear = indices.rank() == 1;
  if (indices.dtype() != DType::I64 || !(linear || (indices.rank() == 2 && indices.extent(1) == rank)) ||
      indices.extent(0) != count)
    throw user_error(
        "\"{}\": the indices of {} values of a sparse tensor of rank {} must be i64[{}] or i64[{},{}], but "
        "are {}",
        name, count, rank, count, count, rank, describe(indices.dtype(), indices.extents()));
  const Extents strides = row_major_strides(extents);
  const std::span<const int64_t> given = indices.data<int64_t>();
  std::vector<int64_t> result;
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    bool inside = true;
    if (linear) {
      offset = given[static_cast<size_t>(i)];
      inside = offset >= 0 && offset < element_count(extents);
    } else {
      for (int64_t axis = 0; axis < rank && inside; ++axis) {
        const int64_t index = given[static_cast<size_t>(i * rank + axis)];
        inside = index >= 0 && index < extents[static_cast<size_t>(axis)];
        offset += inside ? index * strides[static_cast<size_t>(axis)] : 0;
      }
    }
    if (!inside)
      throw user_error("\"{}\": index {} of a sparse tensor lies outside [{}]", name, i,
                       fmt::join(extents, ","));
    if (!result.empty() && offset <= result.back())
      throw user_error("\"{}\": the indices of a sparse tensor do not ascend at {}", name, i);
    result.push_back(offset);
  }
  return result;
}

}  // namespace

Literal to_dense(const SparseTensorProto& sparse, WeightFiles& files) {
  const std::string_view name = sparse.values.name;
  const Tensor values = to_literal(sparse.values, files).tensor();
  const int64_t count = element_count(sparse.dims);
  if (values.rank() != 1)
    throw user_error("\"{}\": the values of a sparse tensor must be a vector, but are {}", name,
                     describe(values.dtype(), values.extents()));
  if (values.count() == 0)
    return Literal::splat(Tensor(values.dtype(), {}), sparse.dims);
  if (count > kLargestDense)
    throw unsupported("\"{}\": a sparse tensor of {} elements is too large to be made dense", name, count);
  const std::vector<int64_t> at =
      offsets(name, to_literal(sparse.indices, files).tensor(), values.count(), sparse.dims);
  Tensor dense(values.dtype(), sparse.dims);
  with_storage(dense.dtype(), [&]<class T>(T) {
    const auto from = stored<T>(values);
    const auto to = mutable_stored<T>(dense);
    for (size_t i = 0; i < at.size(); ++i)
      to[static_cast<size_t>(at[i])] = from[i];
  });
  return dense;
}

}  // namespace tenon::onnx
