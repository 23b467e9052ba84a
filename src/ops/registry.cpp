#include "ops/registry.h"

#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/convolve.h"
#include "ops/cumulative.h"
#include "ops/data.h"
#include "ops/determinant.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/linear.h"
#include "ops/memory.h"
#include "ops/normalise.h"
#include "ops/pad.h"
#include "ops/pool.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/sequence.h"
#include "ops/signal.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/string.h"
#include "ops/unary.h"

namespace tenon {

void register_ops() {
  static const bool once = [] {
    for (const Family* family : {
             &arg_reduce_ops(),
             &binary_ops(),
             &control_ops(),
             &convolve_ops(),
             &cumulative_ops(),
             &data_ops(),
             &determinant_ops(),
             &gather_ops(),
             &generate_ops(),
             &linear_ops(),
             &memory_ops(),
             &normalise_ops(),
             &pad_ops(),
             &pool_ops(),
             &recurrent_ops(),
             &reduce_ops(),
             &reshape_ops(),
             &scatter_ops(),
             &select_ops(),
             &sequence_ops(),
             &signal_ops(),
             &slice_ops(),
             &softmax_ops(),
             &sort_ops(),
             &string_ops(),
             &unary_ops(),
         })
      for (const OpDef& op : *family)
        register_op(op);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace tenon
