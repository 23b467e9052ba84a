#include "frontends/onnx/heads.h"

#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "ops/binary.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::onnx {

Value split_heads(const NodeView& n, Value x, int64_t heads) {
  if (n.rank_of(x) != 3)
    throw user_error("{}: {} has rank {}, but must have 3", n.op_type(), x.type(), x.rank());
  const auto width = x.dim(2).constant();
  if (heads <= 0 || (width && *width % heads != 0))
    throw user_error("{}: {} does not divide into {} heads", n.op_type(), x.type(), heads);
  return transpose(reshape_copying(x, {0, 0, heads, width ? *width / heads : -1}), {0, 2, 1, 3});
}

Value merge_heads(Value x) {
  const auto width = x.shape().ranked() ? (x.dim(1) * x.dim(3)).constant() : std::nullopt;
  return reshape_copying(transpose(x, {0, 2, 1, 3}), {0, 0, width.value_or(-1)});
}

double default_scale(Value& q) {
  if (const auto size = q.dim(3).constant())
    return 1 / std::sqrt(static_cast<double>(*size));
  q = q / tenon::sqrt(cast(size_along(q, 3), q.dtype()));
  return 1;
}

}  // namespace tenon::onnx
