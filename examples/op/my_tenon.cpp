// my_tenon.cpp — tenon with one more op: a linear layer and the relu behind it, as one node.
#include <tenon/extend.hpp>

using namespace tenon;

namespace {

Types infer(const Node& n) {
  const Value x = n.in("x"), weight = n.in("weight");
  if (x.rank() != 2 || weight.rank() != 2 || provably_different(x.dim(1), weight.dim(1)))
    throw user_error("fused_linear_relu: x is {}, and weight {}, but [rows, in] and [out, in] were wanted",
                     x.type(), weight.type());
  return {Type::tensor(x.dtype(), {x.dim(0), weight.dim(0)})};
}

// The elements, written from the formula: everything that is faster is compared with it.
Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &weight = c.in("weight");
  const int64_t rows = x.extent(0), inner = x.extent(1), columns = weight.extent(0);
  const std::vector<double> a = widen<double>(x), b = widen<double>(weight),
                            bias = widen<double>(c.in("bias"));
  std::vector<double> y;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = bias.at(column);
      for (int64_t k = 0; k < inner; ++k)
        sum += a.at(row * inner + k) * b.at(column * inner + k);
      y.push_back(sum > 0 ? sum : 0);
    }
  return {narrow<double>(x.dtype(), {rows, columns}, std::span<const double>(y))};
}

// The same in ops that Tenon has: by that it is compiled, and differentiated.
std::vector<Value> decompose(const Node& n) {
  return {relu(linear(n.in("x"), n.in("weight"), n.in("bias")))};
}

}  // namespace

int main(int argc, char** argv) {
  add_op({.name = "fused_linear_relu",
          .doc = "relu(x · weightᵀ + bias)",
          .operands = {{"x", "T"}, {"weight", "T"}, {"bias", "T"}},
          .results = {{"y", "T"}},
          .types = {{"T", Floats}},
          .infer = infer,
          .eval = eval,
          .decompose = decompose},
         {.domain = "com.example", .op_type = "FusedLinearReLU"});
  add_rewrite({.name = "fuse-linear-relu",
               .numerics = Numerics::BitExact,
               .pattern = [](Value x, Value weight, Value bias) { return relu(linear(x, weight, bias)); },
               .replacement =
                   [](Value x, Value weight, Value bias) {
                     return x.graph()
                         .create("fused_linear_relu", {{"x", x}, {"weight", weight}, {"bias", bias}})
                         ->result();
                   }});
  return command_line(argc, argv);
}
