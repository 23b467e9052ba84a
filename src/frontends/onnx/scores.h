// scores.h — what classical ONNX models share: the labels of classes, and the way from scores to labels and
// probabilities.
#pragma once

#include "frontends/onnx/node_view.h"

namespace tenon::onnx {

// The labels of the classes, from whichever of two attributes is there.
Tensor class_labels(const NodeView& n, std::string_view integers, std::string_view strings);

// The scores, one column for each class, after the transform of that name, which most models have as
// attribute post_transform.
Value transform_scores(const NodeView& n, Value scores, std::string_view transform);
inline Value transform_scores(const NodeView& n, Value scores) {
  return transform_scores(n, scores, n.text("post_transform", "NONE"));
}

}  // namespace tenon::onnx
