// after.h — what transformations make of a kernel, which must compute the same after them.
#pragma once

#include <gtest/gtest.h>

#include "loops/interpret.h"
#include "loops/transform.h"

namespace tenon::loops {

inline std::vector<Tensor> sample_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs;
  for (const Buffer& buffer : kernel.inputs) {
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(size.constant().value_or(7));
    Tensor tensor(DType::F32, extents);
    int64_t i = 0;
    for (float& element : tensor.mutable_data<float>())
      element = static_cast<float>((7919 * ++i) % 64);  // whole numbers: sums are the same in any order
    inputs.push_back(tensor);
  }
  return inputs;
}

// Applies the steps; the last kernel must compute the same as the first. Its text.
inline std::string after(std::string_view text, std::string_view steps) {
  const Kernel kernel = parse_kernel(text);
  const std::vector<Step> done = apply_steps(kernel, steps);
  for (const Step& step : done) {
    if (!step.result.kernel)
      return "declined: " + step.result.declined;
    EXPECT_EQ(parse_kernel(print(*step.result.kernel)), *step.result.kernel);
  }
  const std::vector<Tensor> inputs = sample_inputs(kernel), expected = interpret(kernel, inputs),
                            actual = interpret(*done.back().result.kernel, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(identical(actual[i], expected[i])) << steps << " changes the result\n"
                                                   << print(*done.back().result.kernel);
  return print(*done.back().result.kernel);
}

}  // namespace tenon::loops
