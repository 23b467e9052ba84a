// together.h — formulas of ours that are one op of ONNX.
#pragma once

#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

// PRelu, Softsign, ThresholdedRelu, ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum, DepthToSpace,
// SpaceToDepth, for the last node of their formula; nothing for any other, or where something else uses what
// the formula makes on the way. Of f32 alone: engines have kernels of these ops for nothing else.
std::optional<OnnxCall> spell_together(const Node& node);

}  // namespace tenon::onnx
