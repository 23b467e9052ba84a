#include "ops/registry.h"

#include "ops/activation.h"
#include "ops/arg_reduce.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/convolve.h"
#include "ops/cumulative.h"
#include "ops/data.h"
#include "ops/determinant.h"
#include "ops/einsum.h"
#include "ops/external.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/image.h"
#include "ops/layer.h"
#include "ops/linear.h"
#include "ops/linear_attention.h"
#include "ops/memory.h"
#include "ops/ml.h"
#include "ops/normalise.h"
#include "ops/onnx_node.h"
#include "ops/overlay.h"
#include "ops/pad.h"
#include "ops/pool.h"
#include "ops/quantise.h"
#include "ops/random.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/region.h"
#include "ops/reshape.h"
#include "ops/resize.h"
#include "ops/rotary.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/sequence.h"
#include "ops/signal.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/special.h"
#include "ops/string.h"
#include "ops/unary.h"
#include "ops/widening_conv.h"
#include "ops/widening_matmul.h"

namespace tenon {

void register_ops() {
  static const bool once = [] {
    const auto add = [](const Family& family) {
      for (const OpDef& op : family)
        register_op(op);
    };
    add(activation_ops());
    add(arg_reduce_ops());
    add(attention_ops());
    add(binary_ops());
    add(control_ops());
    add(convolve_ops());
    add(cumulative_ops());
    add(data_ops());
    add(determinant_ops());
    add(einsum_ops());
    add(external_ops());
    add(gather_ops());
    add(generate_ops());
    add(image_ops());
    add(layer_ops());
    add(linear_ops());
    add(linear_attention_ops());
    add(memory_ops());
    add(ml_ops());
    add(normalise_ops());
    add(onnx_node_ops());
    add(pad_ops());
    add(pool_ops());
    add(quantise_ops());
    add(random_ops());
    add(recurrent_ops());
    add(reduce_ops());
    add(region_ops());
    add(reshape_ops());
    add(resize_ops());
    add(rotary_ops());
    add(scatter_ops());
    add(select_ops());
    add(sequence_ops());
    add(signal_ops());
    add(slice_ops());
    add(softmax_ops());
    add(sort_ops());
    add(special_ops());
    add(string_ops());
    add(unary_ops());
    add(widening_conv_ops());
    add(widening_matmul_ops());
    add(overlay_ops());
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace tenon
