// Archives of torch.export where a model is expected.
#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class PyTorch : public CommandLine {
 protected:
  static std::string model(const std::string& name) {
    return "'" + (source_tree() / "tests/data/models" / (name + ".pt2")).string() + "'";
  }
};

// What torch.fx shows: placeholders, parameters and calls, and who uses what.
TEST_F(PyTorch, ModulesLookAsInTorchFx) {
  expect_done(
      "tenon print " + model("my_module") + " --as fx",
      R"(opcode         name           target                      args                               kwargs
-------------  -------------  --------------------------  ---------------------------------  ------
placeholder    x              x                           ()                                 {}
get_attr       param          param                       ()                                 {}
call_function  add            operator.add                (x, param)                         {}
get_attr       linear_weight  linear.weight               ()                                 {}
get_attr       linear_bias    linear.bias                 ()                                 {}
call_function  linear         torch.nn.functional.linear  (add, linear_weight, linear_bias)  {}
call_function  clamp          torch.clamp                 (linear, 0.0, 1.0)                 {}
output         output         output                      (clamp,)                           {}
)");
  expect_done("tenon print " + model("tiny") + " --as torchscript",
              R"(graph(%self : __torch__.Main,
      %x : Float(8, 4)):
  %linear : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="linear"](%self)
  %weight : Float(3, 4) = prim::GetAttr[name="weight"](%linear)
  %bias : Float(3) = prim::GetAttr[name="bias"](%linear)
  %linear.1 : Float(8, 3) = aten::linear(%x, %weight, %bias)
  %relu : Float(8, 3) = aten::relu(%linear.1)
  return (%relu)
)");
}

TEST_F(PyTorch, SkipConnectionsAreSeen) {
  expect_done("tenon print " + model("residual_linear") + " --as deps",
              R"(who depends on whom:
  linear depends on: x, linear1_weight, linear1_bias
  relu depends on: linear
  linear_1 depends on: relu, linear2_weight, linear2_bias
  add depends on: x, linear_1
nodes: 8 (4 compute, 4 data)
shape: branches at x (2 users)
shape: joins at add
skip connections: x → add
chains that could fuse:
  linear → relu
  linear_1 → add
)");
}

TEST_F(PyTorch, ArchivesAreRunVerifiedAndWrittenAsOnnx) {
  const Outcome verified = shell("tenon verify " + model("tiny"));
  EXPECT_EQ(verified.status, 0) << verified.out << verified.error;
  expect_done("tenon run " + model("tiny") + " >a && tenon optimize " + model("tiny") +
                  " -o b.onnx >/dev/null && tenon run b.onnx >b && cmp a b",
              "");
}

TEST_F(PyTorch, DamagedArchivesAreTheUsersFault) {
  expect_refused("head -c 3000 " + model("tiny") + " >cut.pt2; tenon run cut.pt2",
                 "cut.pt2: this is no zip archive, or it is cut off: the directory at its end is missing");
  expect_refused("tenon run none.pt2", "cannot open none.pt2: No such file or directory");
}

}  // namespace
}  // namespace tenon::cli
