// What single ops of PyTorch compute: where they differ from ours, or the arguments change their meaning.
#include <limits>

#include "frontends/torch/conversions.h"
#include "frontends/torch_program.h"

namespace tenon::torch {
namespace {

using namespace write;

const Tensor kMatrix = f32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(TorchOps, AddAndSubtractMultiples) {
  expect_tensor(
      run_op("add.Tensor", {{"self", f32({2}, {1, 2})}, {"other", f32({2}, {10, 20})}, {"alpha", 2}}),
      f32({2}, {21, 42}));
  expect_tensor(run_op("rsub.Scalar", {{"self", f32({2}, {1, 2})}, {"other", 10}, {"alpha", 2}}),
                f32({2}, {8, 6}));
  expect_tensor(
      run_op(
          "addcmul.default",
          {{"self", f32({1}, {1})}, {"tensor1", f32({1}, {2})}, {"tensor2", f32({1}, {3})}, {"value", 0.5}}),
      f32({1}, {4}));
}

TEST(TorchOps, TakeRemaindersOfEitherSign) {
  const Tensor a = f32({2}, {-7, 7}), b = f32({2}, {3, -3});
  expect_tensor(run_op("remainder.Tensor", {{"self", a}, {"other", b}}), f32({2}, {2, -2}));
  expect_tensor(run_op("fmod.Tensor", {{"self", a}, {"other", b}}), f32({2}, {-1, 1}));
}

TEST(TorchOps, ComputeNearZeroWithoutLosingDigits) {
  expect_near(run_op("log1p.default", {{"self", f32({3}, {1e-8, 1, 1e9})}}),
              f32({3}, {1e-8, 0.6931472, 20.723266}), 1e-5);
  EXPECT_NEAR(as_double(run_op("log1p.default", {{"self", f32({1}, {1e-8})}})), 1e-8, 1e-14);
  EXPECT_NEAR(as_double(run_op("expm1.default", {{"self", f32({1}, {1e-8})}})), 1e-8, 1e-14);
  expect_near(run_op("atan2.default", {{"self", f32({3}, {1, -1, 1})}, {"other", f32({3}, {-1, -1, 0})}}),
              f32({3}, {2.3561945, -2.3561945, 1.5707964}), 1e-6);
}

// Infinities, zeros and NaN, which formulas for other numbers miss.
TEST(TorchOps, ComputeWithWhatIsNotFinite) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  expect_tensor(run_op("logaddexp.default",
                       {{"self", f32({3}, {-inf, inf, -inf})}, {"other", f32({3}, {-inf, inf, 2})}}),
                f32({3}, {-inf, inf, 2}));
  expect_near(run_op("logaddexp.default", {{"self", f32({1}, {0})}, {"other", f32({1}, {0})}}),
              f32({1}, {0.6931472}), 1e-6);
  expect_tensor(run_op("floor_divide.default", {{"self", f32({6}, {1, -1, -2, 2, 0, -7})},
                                                {"other", f32({6}, {0, 0, inf, inf, inf, 2})}}),
                f32({6}, {inf, -inf, -1, 0, 0, -4}));
  expect_tensor(run_op("sign.default", {{"self", f32({3}, {nan, -2, 0})}}), f32({3}, {0, -1, 0}));
  expect_near(run_op("atan2.default", {{"self", f32({4}, {inf, inf, -inf, -inf})},
                                       {"other", f32({4}, {inf, -inf, inf, -inf})}}),
              f32({4}, {0.7853982, 2.3561945, -0.7853982, -2.3561945}), 1e-6);
  EXPECT_TRUE(
      std::isnan(as_double(run_op("atan2.default", {{"self", f32({1}, {nan})}, {"other", f32({1}, {0})}}))));
}

TEST(TorchOps, NormaliseByDefault) {
  // In f32, whatever the dtype is: 0.01 / sqrt(0.0001 + 1.2e-7)
  expect_near(run_op("rms_norm.default", {{"input", tensor(DType::F16, {1, 2}, {0.01, 0.01})},
                                          {"normalized_shape", std::vector<int64_t>{2}}}),
              tensor(DType::F16, {1, 2}, {0.9995, 0.9995}), 2e-3);
  // Over all elements: |v| is 5.
  expect_near(run_op("_weight_norm.default", {{"v", f32({1, 2}, {3, 4})}, {"g", f32({}, {10})}, {"dim", -1}}),
              f32({1, 2}, {6, 8}), 1e-6);
}

TEST(TorchOps, ResizeByScalesAsSizesSay) {
  // floor(3 · 1.5) = 4 pixels, corner to corner.
  expect_near(run_op("upsample_linear1d.vec", {{"input", f32({1, 1, 3}, {0, 3, 6})},
                                               {"align_corners", true},
                                               {"scale_factors", std::vector<double>{1.5}}}),
              f32({1, 1, 4}, {0, 2, 4, 6}), 1e-6);
}

TEST(TorchOps, ReduceSomeAxesOrAll) {
  expect_tensor(
      run_op("sum.dim_IntList", {{"self", kMatrix}, {"dim", std::vector<int64_t>{-1}}, {"keepdim", true}}),
      f32({2, 1}, {6, 15}));
  expect_tensor(run_op("mean.default", {{"self", kMatrix}}), f32({}, {3.5}));
  expect_tensor(run_op("amax.default", {{"self", kMatrix}, {"dim", std::vector<int64_t>{}}}), f32({}, {6}));
  const Data both = run_all("max.dim", {{"self", kMatrix}, {"dim", 1}}, 2);
  expect_tensor(both[0], f32({2}, {3, 6}));
  expect_tensor(both[1], i64({2}, {2, 2}));
  expect_tensor(run_op("argmax.default", {{"self", kMatrix}}), i64({}, {5}));
  expect_tensor(
      run_op("var.correction", {{"self", kMatrix}, {"dim", std::vector<int64_t>{1}}, {"correction", 0}}),
      f32({2}, {2.0 / 3, 2.0 / 3}));
  expect_tensor(run_op("var.dim", {{"self", kMatrix}, {"dim", std::vector<int64_t>{1}}, {"unbiased", true}}),
                f32({2}, {1, 1}));
  expect_tensor(run_op("any.dim", {{"self", f32({2, 2}, {0, 0, 0, 3})}, {"dim", 1}}),
                tensor(DType::Bool, {2}, {0, 1}));
  expect_tensor(run_op("cumsum.default", {{"self", i64({3}, {1, 2, 3})}, {"dim", 0}}), i64({3}, {1, 3, 6}));
  expect_tensor(run_op("sum.default", {{"self", f32({}, {4})}}), f32({}, {4}));
}

TEST(TorchOps, GiveOtherShapes) {
  expect_tensor(run_op("view.default", {{"self", kMatrix}, {"size", std::vector<int64_t>{3, -1}}}),
                f32({3, 2}, {1, 2, 3, 4, 5, 6}));
  expect_tensor(run_op("flatten.using_ints", {{"self", f32({1, 2, 2}, {1, 2, 3, 4})}, {"start_dim", 1}}),
                f32({1, 4}, {1, 2, 3, 4}));
  expect_tensor(
      run_op("squeeze.dims", {{"self", f32({1, 2, 1}, {1, 2})}, {"dim", std::vector<int64_t>{0, 1}}}),
      f32({2, 1}, {1, 2}));
  expect_tensor(run_op("permute.default", {{"self", kMatrix}, {"dims", std::vector<int64_t>{-1, 0}}}),
                f32({3, 2}, {1, 4, 2, 5, 3, 6}));
  expect_tensor(
      run_op("expand.default", {{"self", f32({1, 2}, {1, 2})}, {"size", std::vector<int64_t>{2, 2, -1}}}),
      f32({2, 2, 2}, {1, 2, 1, 2, 1, 2, 1, 2}));
  expect_tensor(run_op("movedim.intlist", {{"self", f32({1, 2, 2}, {1, 2, 3, 4})},
                                           {"source", std::vector<int64_t>{0, 1}},
                                           {"destination", std::vector<int64_t>{2, 0}}}),
                f32({2, 2, 1}, {1, 2, 3, 4}));
}

TEST(TorchOps, JoinAndCut) {
  expect_tensor(run_op("cat.default", {{"tensors", std::vector<Tensor>{i64({1}, {1}), f32({2}, {2, 3})}}}),
                f32({3}, {1, 2, 3}));
  expect_tensor(run_op("stack.default",
                       {{"tensors", std::vector<Tensor>{i64({2}, {1, 2}), i64({2}, {3, 4})}}, {"dim", -1}}),
                i64({2, 2}, {1, 3, 2, 4}));
  const Data chunks = run_all("unbind.int", {{"self", kMatrix}, {"dim", 1}}, 3);
  expect_tensor(chunks[1], f32({2}, {2, 5}));
  expect_tensor(
      run_op("roll.default",
             {{"self", kMatrix}, {"shifts", std::vector<int64_t>{1}}, {"dims", std::vector<int64_t>{1}}}),
      f32({2, 3}, {3, 1, 2, 6, 4, 5}));
  expect_tensor(run_op("flip.default", {{"self", kMatrix}, {"dims", std::vector<int64_t>{0}}}),
                f32({2, 3}, {4, 5, 6, 1, 2, 3}));
  expect_tensor(
      run_op("repeat.default", {{"self", i64({2}, {1, 2})}, {"repeats", std::vector<int64_t>{2, 2}}}),
      i64({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}));
  expect_tensor(run_op("repeat_interleave.self_int", {{"self", i64({2}, {1, 2})}, {"repeats", 2}}),
                i64({4}, {1, 1, 2, 2}));
  expect_tensor(
      run_op("pad.default", {{"self", kMatrix}, {"pad", std::vector<int64_t>{1, 0}}, {"value", 9.0}}),
      f32({2, 4}, {9, 1, 2, 3, 9, 4, 5, 6}));
  expect_tensor(run_op("unfold.default",
                       {{"self", i64({5}, {1, 2, 3, 4, 5})}, {"dimension", 0}, {"size", 3}, {"step", 2}}),
                i64({2, 3}, {1, 2, 3, 3, 4, 5}));
  expect_tensor(run_op("diff.default", {{"self", i64({3}, {1, 4, 9})}, {"prepend", i64({1}, {0})}}),
                i64({3}, {1, 3, 5}));
}

Json some_indices(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names)
    list.push_back(name.empty() ? none() : tensor_name(name));
  return {{"as_optional_tensors", list}};
}

// x[…] with x0 the tensor and the others its indices.
Tensor indexed(const Tensor& x, const std::vector<Tensor>& indices, const std::vector<std::string>& where) {
  ProgramText program;
  Data inputs = {x};
  program.inputs.emplace_back("x0", meta_of(x));
  for (const Tensor& index : indices) {
    program.inputs.emplace_back(fmt::format("x{}", inputs.size()), meta_of(index));
    inputs.emplace_back(index);
  }
  program.nodes = {{"aten.index.Tensor", {{"self", tensor_name("x0")}, {"indices", some_indices(where)}}}};
  return run(program, inputs).front().tensor();
}

TEST(TorchOps, IndexByTensors) {
  const Tensor cube = f32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_tensor(indexed(cube, {i64({2}, {1, -2})}, {"x1"}), f32({2, 2, 2}, {4, 5, 6, 7, 0, 1, 2, 3}));
  expect_tensor(indexed(cube, {i64({1}, {1})}, {"", "", "x1"}), f32({2, 2, 1}, {1, 3, 5, 7}));
  // Neighbours stay where they are; others go to the front.
  expect_tensor(indexed(cube, {i64({3}, {0, 1, 1}), i64({1}, {1})}, {"", "x1", "x2"}),
                f32({2, 3}, {1, 3, 3, 5, 7, 7}));
  expect_tensor(indexed(cube, {i64({3}, {0, 1, 1}), i64({1}, {1})}, {"x1", "", "x2"}),
                f32({3, 2}, {1, 3, 5, 7, 5, 7}));
  expect_tensor(indexed(kMatrix, {tensor(DType::Bool, {2, 3}, {1, 0, 0, 0, 1, 1})}, {"x1"}),
                f32({3}, {1, 5, 6}));
}

TEST(TorchOps, PutByIndex) {
  const auto put = [](const Tensor& index, const Tensor& values, bool adds) {
    ProgramText program;
    const Tensor x = f32({3}, {1, 2, 3});
    program.inputs = {{"x", meta_of(x)}, {"i", meta_of(index)}, {"v", meta_of(values)}};
    program.nodes = {{"aten.index_put.default",
                      {{"self", tensor_name("x")},
                       {"indices", some_indices({"i"})},
                       {"values", tensor_name("v")},
                       {"accumulate", {{"as_bool", adds}}}}}};
    return run(program, {x, index, values}).front().tensor();
  };
  expect_tensor(put(i64({2}, {0, 2}), f32({2}, {10, 30}), false), f32({3}, {10, 2, 30}));
  expect_tensor(put(i64({2}, {1, 1}), f32({2}, {10, 30}), true), f32({3}, {1, 42, 3}));
  expect_tensor(put(tensor(DType::Bool, {3}, {1, 0, 1}), f32({}, {9}), false), f32({3}, {9, 2, 9}));
  expect_tensor(put(tensor(DType::Bool, {3}, {1, 0, 1}), f32({2}, {8, 9}), false), f32({3}, {8, 2, 9}));
}

TEST(TorchOps, GatherAndScatter) {
  expect_tensor(run_op("gather.default", {{"self", kMatrix}, {"dim", 1}, {"index", i64({2, 1}, {2, 0})}}),
                f32({2, 1}, {3, 4}));
  expect_tensor(
      run_op("scatter.value", {{"self", kMatrix}, {"dim", 1}, {"index", i64({2, 1}, {2, 0})}, {"value", 9}}),
      f32({2, 3}, {1, 2, 9, 9, 5, 6}));
  expect_tensor(run_op("scatter_add.default", {{"self", f32({3}, {0, 0, 0})},
                                               {"dim", 0},
                                               {"index", i64({2}, {1, 1})},
                                               {"src", f32({3}, {1, 2, 3})}}),
                f32({3}, {0, 3, 0}));
  expect_tensor(run_op("select.int", {{"self", kMatrix}, {"dim", -1}, {"index", -1}}), f32({2}, {3, 6}));
  expect_tensor(run_op("slice.Tensor", {{"self", kMatrix}, {"dim", 1}, {"start", -2}, {"end", 100}}),
                f32({2, 2}, {2, 3, 5, 6}));
  expect_tensor(run_op("slice_scatter.default", {{"self", i64({4}, {1, 2, 3, 4})},
                                                 {"src", i64({2}, {8, 9})},
                                                 {"dim", 0},
                                                 {"start", 0},
                                                 {"step", 2}}),
                i64({4}, {8, 2, 9, 4}));
  expect_tensor(run_op("nonzero.default", {{"self", f32({2, 2}, {1, 0, 0, 1})}}), i64({2, 2}, {0, 0, 1, 1}));
  expect_tensor(
      run_op("embedding.default", {{"weight", kMatrix}, {"indices", i64({2}, {1, 0})}, {"padding_idx", 0}}),
      f32({2, 3}, {4, 5, 6, 1, 2, 3}));
  expect_tensor(run_op("diagonal.default", {{"self", kMatrix}, {"offset", 1}}), f32({2}, {2, 6}));
}

TEST(TorchOps, SpreadAndFind) {
  const Data grids = run_all(
      "meshgrid.indexing",
      {{"tensors", std::vector<Tensor>{i64({2}, {1, 2}), i64({3}, {3, 4, 5})}}, {"indexing", "xy"}}, 2);
  expect_tensor(grids[0], i64({3, 2}, {1, 2, 1, 2, 1, 2}));
  expect_tensor(grids[1], i64({3, 2}, {3, 3, 4, 4, 5, 5}));
  expect_tensor(
      run_op("isin.Tensor_Tensor", {{"elements", i64({3}, {1, 2, 3})}, {"test_elements", i64({2}, {3, 1})}}),
      tensor(DType::Bool, {3}, {1, 0, 1}));
  expect_tensor(run_op("take.default", {{"self", kMatrix}, {"index", i64({2}, {5, -6})}}), f32({2}, {6, 1}));
}

TEST(TorchOps, PutByMask) {
  expect_tensor(run_op("masked_scatter.default", {{"self", f32({4}, {1, 2, 3, 4})},
                                                  {"mask", tensor(DType::Bool, {4}, {0, 1, 0, 1})},
                                                  {"source", f32({3}, {10, 20, 30})}}),
                f32({4}, {1, 10, 3, 20}));
}

TEST(TorchOps, MeasureDistances) {
  expect_tensor(run_op("_cdist_forward.default", {{"x1", f32({1, 2}, {0, 0})},
                                                  {"x2", f32({2, 2}, {3, 4, 0, 1})},
                                                  {"p", 2.0},
                                                  {"compute_mode", none()}}),
                f32({1, 2}, {5, 1}));
  expect_tensor(run_op("col2im.default", {{"self", f32({1, 4, 1}, {1, 2, 3, 4})},
                                          {"output_size", std::vector<int64_t>{2, 2}},
                                          {"kernel_size", std::vector<int64_t>{2, 2}},
                                          {"dilation", std::vector<int64_t>{1, 1}},
                                          {"padding", std::vector<int64_t>{0, 0}},
                                          {"stride", std::vector<int64_t>{1, 1}}}),
                f32({1, 1, 2, 2}, {1, 2, 3, 4}));
}

TEST(TorchOps, Order) {
  const Tensor x = f32({4}, {3, 1, 3, 2});
  const Data sorted = run_all("sort.default", {{"self", x}}, 2);
  expect_tensor(sorted[0], f32({4}, {1, 2, 3, 3}));
  expect_tensor(sorted[1], i64({4}, {1, 3, 0, 2}));
  expect_tensor(run_all("topk.default", {{"self", x}, {"k", 2}}, 2)[1], i64({2}, {0, 2}));
  expect_tensor(run_op("bucketize.Tensor", {{"self", x}, {"boundaries", f32({2}, {1, 3})}}),
                i64({4}, {1, 0, 1, 1}));
}

TEST(TorchOps, Pool) {
  const Tensor image = f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Data pooled = run_all(
      "max_pool2d_with_indices.default",
      {{"self", image}, {"kernel_size", std::vector<int64_t>{2, 2}}, {"stride", std::vector<int64_t>{1}}}, 2);
  expect_tensor(pooled[0], f32({1, 1, 2, 2}, {5, 6, 8, 9}));
  expect_tensor(pooled[1], i64({1, 1, 2, 2}, {4, 5, 7, 8}));
  // Padding counts, unless it is told not to.
  expect_tensor(run_op("avg_pool1d.default", {{"self", f32({1, 2}, {2, 4})},
                                              {"kernel_size", std::vector<int64_t>{2}},
                                              {"padding", std::vector<int64_t>{1}}}),
                f32({1, 2}, {1, 2}));
  // The cells overlap where sizes do not divide.
  expect_near(
      run_op("adaptive_avg_pool2d.default", {{"self", image}, {"output_size", std::vector<int64_t>{2, 1}}}),
      f32({1, 1, 2, 1}, {3.5, 6.5}), 1e-6);
}

TEST(TorchOps, Convolve) {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4}), w = f32({1, 1, 2}, {1, 10});
  expect_tensor(run_op("conv1d.default", {{"input", x}, {"weight", w}, {"bias", f32({1}, {100})}}),
                f32({1, 1, 3}, {121, 132, 143}));
  // An odd cell of padding goes to the end.
  expect_tensor(run_op("conv1d.padding", {{"input", x}, {"weight", w}, {"padding", "same"}}),
                f32({1, 1, 4}, {21, 32, 43, 4}));
  expect_tensor(run_op("conv1d.default", {{"input", f32({1, 2}, {1, 2})}, {"weight", w}}), f32({1, 1}, {21}));
  expect_tensor(run_op("convolution.default", {{"input", f32({1, 1, 2}, {1, 2})},
                                               {"weight", w},
                                               {"bias", none()},
                                               {"stride", std::vector<int64_t>{2}},
                                               {"padding", std::vector<int64_t>{0}},
                                               {"dilation", std::vector<int64_t>{1}},
                                               {"transposed", true},
                                               {"output_padding", std::vector<int64_t>{1}},
                                               {"groups", 1}}),
                f32({1, 1, 5}, {1, 10, 2, 20, 0}));
}

TEST(TorchOps, Resize) {
  const Tensor x = f32({1, 1, 1, 2}, {1, 3});
  expect_tensor(
      run_op("upsample_nearest2d.vec",
             {{"input", x}, {"output_size", std::vector<int64_t>{1, 4}}, {"scale_factors", none()}}),
      f32({1, 1, 1, 4}, {1, 1, 3, 3}));
  expect_tensor(run_op("upsample_bilinear2d.vec", {{"input", x},
                                                   {"output_size", std::vector<int64_t>{1, 4}},
                                                   {"align_corners", false},
                                                   {"scale_factors", none()}}),
                f32({1, 1, 1, 4}, {1, 1.5, 2.5, 3}));
  expect_tensor(run_op("upsample_bilinear2d.vec", {{"input", x},
                                                   {"output_size", std::vector<int64_t>{1, 3}},
                                                   {"align_corners", true},
                                                   {"scale_factors", none()}}),
                f32({1, 1, 1, 3}, {1, 2, 3}));
  expect_tensor(
      run_op("pixel_shuffle.default", {{"self", f32({1, 4, 1, 1}, {1, 2, 3, 4})}, {"upscale_factor", 2}}),
      f32({1, 1, 2, 2}, {1, 2, 3, 4}));
}

TEST(TorchOps, MultiplyMatrices) {
  const Tensor b = f32({3, 1}, {1, 10, 100});
  expect_tensor(run_op("addmm.default",
                       {{"self", f32({1}, {1})}, {"mat1", kMatrix}, {"mat2", b}, {"beta", 2}, {"alpha", 3}}),
                f32({2, 1}, {965, 1964}));
  expect_tensor(
      run_op("einsum.default", {{"equation", "ij,jk->ki"}, {"tensors", std::vector<Tensor>{kMatrix, b}}}),
      f32({1, 2}, {321, 654}));
  expect_tensor(run_op("linear.default", {{"input", f32({2}, {1, 2})}, {"weight", f32({1, 2}, {3, 4})}}),
                f32({1}, {11}));
}

TEST(TorchOps, Attend) {
  const Tensor q = f32({1, 1, 2, 1}, {0, 0}), v = f32({1, 1, 2, 1}, {1, 3});
  expect_near(run_op("scaled_dot_product_attention.default", {{"query", q}, {"key", q}, {"value", v}}),
              f32({1, 1, 2, 1}, {2, 2}), 1e-6);
  expect_near(run_op("scaled_dot_product_attention.default",
                     {{"query", q}, {"key", q}, {"value", v}, {"is_causal", true}}),
              f32({1, 1, 2, 1}, {1, 2}), 1e-6);
  const Tensor mask = tensor(DType::Bool, {2, 2}, {0, 1, 1, 0});
  expect_near(run_op("scaled_dot_product_attention.default", {{"query", f32({1, 2, 1}, {0, 0})},
                                                              {"key", f32({1, 2, 1}, {0, 0})},
                                                              {"value", f32({1, 2, 1}, {1, 3})},
                                                              {"attn_mask", mask}}),
              f32({1, 2, 1}, {3, 1}), 1e-6);
}

TEST(TorchOps, Normalise) {
  const Tensor x = f32({2, 1}, {1, 3}), one = f32({1}, {1}), zero = f32({1}, {0});
  const GivenArguments given = {{"input", x},          {"weight", none()},   {"bias", none()},
                                {"running_mean", one}, {"running_var", one}, {"training", false},
                                {"momentum", 0.1},     {"eps", 0.0},         {"cudnn_enabled", true}};
  expect_tensor(run_op("batch_norm.default", given), f32({2, 1}, {0, 2}));
  GivenArguments training = given;
  training[5].second = true;
  // The statistics that it moves become outputs after the others.
  const Data all = run_all("batch_norm.default", training, 1);
  ASSERT_EQ(all.size(), 3u);
  expect_tensor(all[0], f32({2, 1}, {-1, 1}));
  expect_near(all[1], f32({1}, {1.1}), 1e-6);
  expect_near(all[2], f32({1}, {1.1}), 1e-6);
  const Data functional = run_all("_native_batch_norm_legit_functional.default",
                                  {{"input", x},
                                   {"weight", one},
                                   {"bias", zero},
                                   {"running_mean", one},
                                   {"running_var", one},
                                   {"training", true},
                                   {"momentum", 0.1},
                                   {"eps", 0.0}},
                                  5);
  expect_near(functional[4], f32({1}, {1.1}), 1e-6);
  const Data layer = run_all("native_layer_norm.default",
                             {{"input", f32({1, 2}, {1, 3})},
                              {"normalized_shape", std::vector<int64_t>{2}},
                              {"weight", none()},
                              {"bias", none()},
                              {"eps", 0.0}},
                             3);
  expect_tensor(layer[0], f32({1, 2}, {-1, 1}));
  expect_tensor(layer[1], f32({1, 1}, {2}));
  expect_tensor(layer[2], f32({1, 1}, {1}));
}

TEST(TorchOps, MakeTensors) {
  expect_tensor(run_op("arange.start_step", {{"start", 1}, {"end", 8}, {"step", 3}}), i64({3}, {1, 4, 7}));
  expect_tensor(run_op("arange.default", {{"end", 1.5}}), f32({2}, {0, 1}));
  expect_tensor(run_op("full.default", {{"size", std::vector<int64_t>{2}}, {"fill_value", true}}),
                tensor(DType::Bool, {2}, {1, 1}));
  expect_tensor(run_op("new_zeros.default", {{"self", i64({1}, {1})}, {"size", std::vector<int64_t>{2}}}),
                i64({2}, {0, 0}));
  expect_tensor(run_op("linspace.default", {{"start", 0}, {"end", 1}, {"steps", 3}}), f32({3}, {0, 0.5, 1}));
  expect_tensor(run_op("tril.default", {{"self", f32({2, 2}, {1, 2, 3, 4})}}), f32({2, 2}, {1, 0, 3, 4}));
  const double infinity = std::numeric_limits<double>::infinity();
  expect_tensor(run_op("full.default",
                       {{"size", std::vector<int64_t>{1}}, {"fill_value", Json{{"as_float", "-Infinity"}}}}),
                f32({1}, {-infinity}));
}

TEST(TorchOps, SoftmaxSafely) {
  const double infinity = std::numeric_limits<double>::infinity();
  expect_tensor(
      run_op("_safe_softmax.default", {{"self", f32({2, 2}, {-infinity, -infinity, 0, 0})}, {"dim", 1}}),
      f32({2, 2}, {0, 0, 0.5, 0.5}));
  expect_tensor(run_op("softmax.int", {{"self", f32({}, {3})}, {"dim", 0}}), f32({}, {1}));
}

// An argument that nobody looked at might change what is computed.
TEST(TorchOps, RefuseArgumentsThatTheyDoNotKnow) {
  write::refuse<UnsupportedError>(
      OneNode("unfold.default",
              {{"self", f32({3}, {1, 2, 3})}, {"dimension", 0}, {"size", 2}, {"step", 1}, {"gap", 2}})
          .program,
      "node \"y0\": unfold.default: its argument gap");
  write::refuse<UnsupportedError>(
      OneNode("dropout.default", {{"input", f32({1}, {1})}, {"p", 0.5}, {"train", true}}).program,
      "node \"y0\": dropout.default while training\n  hint: call model.eval() before the export");
  write::refuse(OneNode("add.Tensor", {{"self", f32({1}, {1})}}).program,
                "node \"y0\": add.Tensor: argument other is missing");
  write::refuse(OneNode("relu.default", {{"self", 1}}).program,
                "node \"y0\": relu.default: argument self is an int, but must be a tensor");
}

TEST(TorchOps, AreFoundByNameOverloadAndInPlace) {
  EXPECT_EQ(op_of("torch.ops.aten.add.Tensor"), "add.Tensor");
  EXPECT_EQ(op_of("torch.ops.higher_order.cond"), "higher_order.cond");
  EXPECT_EQ(op_of("_operator.mul"), "_operator.mul");
  EXPECT_FALSE(find_conversion("add.Tensor").in_place);
  EXPECT_TRUE(find_conversion("add_.Tensor").in_place);
  EXPECT_FALSE(find_conversion("__and__.Tensor").in_place);
  EXPECT_NE(find_conversion("__and__.Tensor").conversion, nullptr);
  EXPECT_EQ(find_conversion("where.default").conversion, nullptr);
  EXPECT_EQ(find_conversion("no_such_op.default").conversion, nullptr);
}

}  // namespace
}  // namespace tenon::torch
