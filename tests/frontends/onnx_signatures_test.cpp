// What we say of nodes with inputs or attributes that their op does not have.
#include "frontends/onnx_run.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const Bytes kType = tensor_type(kFloat, {2});

TEST(OnnxSignatures, RefuseInputsThatTheOpDoesNotTake) {
  refuse(model_of({"Relu", {kType, kType}}),
         R"(node "n": Relu: it has 2 inputs, but takes no more than 1 in opset 17)");
  refuse(model_of({"Relu", {kType, ""}}),
         R"(node "n": Relu: it has 2 inputs, but takes no more than 1 in opset 17)");
  refuse(model_of({"Clip", {kType, tensor_type(kFloat, {})}, {}, 10}),
         R"(node "n": Clip: it has 2 inputs, but takes no more than 1 in opset 10)");
  import(model_of({"Clip", {kType, tensor_type(kFloat, {})}, {}, 11}));
  import(model_of({"Sum", { kType, kType, kType }}));
}

TEST(OnnxSignatures, RefuseAttributesThatTheOpDoesNotHave) {
  refuse(model_of({"Relu", {kType}, {int_attribute("junk", 1)}}),
         R"(node "n": Relu: attribute junk is given, but in opset 17 it has no attributes)");
  refuse(model_of({"Selu", {kType}, {float_attribute("alhpa", 1)}}),
         R"(node "n": Selu: attribute alhpa is given, but in opset 17 it has only alpha, gamma)");
  refuse(model_of({"Scaler", {kType}, {floats_attribute("scales", {1})}, 1, "ai.onnx.ml"}),
         R"(node "n": Scaler: attribute scales is given, but in opset 1 it has only offset, scale)");
  refuse(model_of({"Elu", {kType}, {float_attribute("alpha", 1), float_attribute("alpha", 2)}}),
         R"(node "n": Elu: attribute alpha is given twice)");
}

TEST(OnnxSignatures, AreThoseOfTheModelsOpset) {
  import(model_of({"Relu", {kType}, {ints_attribute("consumed_inputs", {0})}, 5}));
  refuse(model_of({"Relu", {kType}, {ints_attribute("consumed_inputs", {0})}, 6}),
         R"(node "n": Relu: attribute consumed_inputs is given, but in opset 6 it has no attributes)");
  // Before opset 17 there was none, and programs had one of their own.
  import(model_of({"LayerNormalization", {kType, kType}, {int_attribute("junk", 1)}, 16}));
}

TEST(OnnxSignatures, LeaveNotesOfOtherProgramsAlone) {
  import(model_of({"Relu", {kType}, { int_attribute("__note", 1) }}));
}

}  // namespace
}  // namespace tenon::onnx
