// convolution.cpp — built-in models of convolutions and batch normalisations, in the combinations that
// folding one into the other must tell apart.
#include "frontends/builtin/builtin.h"
#include "ops/binary.h"
#include "ops/module.h"
#include "ops/trace.h"
#include "ops/unary.h"

namespace tenon::builtin {
namespace {

std::unique_ptr<Graph> simple_conv_bn() {
  return trace({f32({1, 3, 16, 16})}, [](Value x) {
    const Value y = Conv2d{.name = "conv", .in = 3, .out = 16, .kernel = 3, .padding = 1}(x);
    return BatchNorm2d{.name = "bn", .channels = 16}(y);
  });
}

std::unique_ptr<Graph> multi_conv_bn() {
  return trace({f32({2, 3, 16, 16})}, [](Value x) {
    Value y = Conv2d{.name = "conv1", .in = 3, .out = 32, .kernel = 3, .padding = 1}(x);
    y = relu(BatchNorm2d{.name = "bn1", .channels = 32}(y));
    y = Conv2d{.name = "conv2", .in = 32, .out = 64, .kernel = 3, .padding = 1}(y);
    return relu(BatchNorm2d{.name = "bn2", .channels = 64}(y));
  });
}

std::unique_ptr<Graph> conv_without_bn() {
  return trace({f32({1, 3, 32, 32})}, [](Value x) {
    return relu(Conv2d{.name = "conv", .in = 3, .out = 16, .kernel = 3, .padding = 1}(x));
  });
}

std::unique_ptr<Graph> residual_conv() {
  return trace({f32({1, 16, 16, 16})}, [](Value x) {
    const Value y = Conv2d{.name = "conv", .in = 16, .out = 16, .kernel = 3, .padding = 1}(x);
    return relu(BatchNorm2d{.name = "bn", .channels = 16}(y) + x);
  });
}

std::unique_ptr<Graph> depthwise_conv_bn() {
  return trace({f32({1, 32, 14, 14})}, [](Value x) {
    Value y = Conv2d{.name = "dw", .in = 32, .out = 32, .kernel = 3, .padding = 1, .groups = 32}(x);
    y = relu(BatchNorm2d{.name = "dwb", .channels = 32}(y));
    y = Conv2d{.name = "pw", .in = 32, .out = 64, .kernel = 1}(y);
    return relu(BatchNorm2d{.name = "pwb", .channels = 64}(y));
  });
}

std::unique_ptr<Graph> conv_bn_nobias() {
  return trace({f32({4, 3, 16, 16})}, [](Value x) {
    const Value y = Conv2d{.name = "conv", .in = 3, .out = 16, .kernel = 3, .padding = 1, .bias = false}(x);
    return BatchNorm2d{.name = "bn", .channels = 16}(y);
  });
}

std::unique_ptr<Graph> conv_bn_noaffine() {
  return trace({f32({1, 3, 16, 16})}, [](Value x) {
    const Value y = Conv2d{.name = "conv", .in = 3, .out = 8, .kernel = 3}(x);
    return BatchNorm2d{.name = "bn", .channels = 8, .affine = false}(y);
  });
}

std::unique_ptr<Graph> conv_transpose_bn() {
  return trace({f32({1, 8, 16, 16})}, [](Value x) {
    const Value y = ConvTranspose2d{
        .name = "conv", .in = 8, .out = 12, .kernel = 3, .stride = 2, .padding = 1, .groups = 2}(x);
    return BatchNorm2d{.name = "bn", .channels = 12}(y);
  });
}

std::unique_ptr<Graph> conv_multi_use() {
  return trace({f32({1, 3, 16, 16})}, [](Value x) {
    const Value y = Conv2d{.name = "conv", .in = 3, .out = 8, .kernel = 3, .padding = 1}(x);
    return BatchNorm2d{.name = "bn", .channels = 8}(y) + sigmoid(y);
  });
}

std::unique_ptr<Graph> resnet_block() {
  return trace({f32({1, 64, 14, 14})}, [](Value x) {
    Value y = Conv2d{.name = "conv1", .in = 64, .out = 64, .kernel = 3, .padding = 1, .bias = false}(x);
    y = relu(BatchNorm2d{.name = "bn1", .channels = 64}(y));
    y = Conv2d{.name = "conv2", .in = 64, .out = 64, .kernel = 3, .padding = 1, .bias = false}(y);
    y = relu(BatchNorm2d{.name = "bn2", .channels = 64}(y));
    y = Conv2d{.name = "conv3", .in = 64, .out = 256, .kernel = 1, .bias = false}(y);
    return BatchNorm2d{.name = "bn3", .channels = 256}(y);
  });
}

}  // namespace

const Models& convolution_models() {
  static const Models models = {
      {"simple_conv_bn", "a convolution and a batch normalisation", simple_conv_bn},
      {"multi_conv_bn", "two of each, with relu", multi_conv_bn},
      {"conv_without_bn", "a convolution and relu: nothing to fold", conv_without_bn},
      {"residual_conv", "a convolution and a batch normalisation with a skip connection", residual_conv},
      {"depthwise_conv_bn", "a convolution per channel, then one per pixel", depthwise_conv_bn},
      {"conv_bn_nobias", "the convolution has no bias to fold into", conv_bn_nobias},
      {"conv_bn_noaffine", "the normalisation has no scale and bias of its own", conv_bn_noaffine},
      {"conv_transpose_bn", "a transposed convolution in two groups", conv_transpose_bn},
      {"conv_multi_use", "the convolution's result is used twice: folding would change the other use",
       conv_multi_use},
      {"resnet_block", "three convolutions with normalisations, as in a ResNet", resnet_block},
  };
  return models;
}

}  // namespace tenon::builtin
