#include "ops/registry.h"

#include "ops/binary.h"
#include "ops/convolve.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/linear.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/unary.h"

namespace tenon {

void register_ops() {
  static const bool once = [] {
    for (const Family* family : {
             &binary_ops(),
             &convolve_ops(),
             &data_ops(),
             &gather_ops(),
             &linear_ops(),
             &pool_ops(),
             &reduce_ops(),
             &reshape_ops(),
             &scatter_ops(),
             &unary_ops(),
         })
      for (const OpDef& op : *family)
        register_op(op);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace tenon
