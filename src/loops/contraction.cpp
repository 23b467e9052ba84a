#include "loops/contraction.h"

#include <algorithm>
#include <numeric>

namespace tenon::loops {

std::optional<Product> match_product(const Scalar& value) {
  if (value.kind() != Scalar::Kind::Apply)
    return std::nullopt;
  switch (value.function()) {
    case Function::Multiply:
    case Function::DotI8x4:
    case Function::DotBf16x2:
      return Product{value.function(), value.operands()[0], value.operands()[1]};
    default:
      return std::nullopt;
  }
}

std::vector<Product> match_products(const Scalar& value) {
  std::vector<Product> products;
  const auto add = [&](const Scalar& term) {
    const std::optional<Product> product = match_product(term);
    if (product)
      products.push_back(*product);
    return product.has_value();
  };
  Scalar left = value;
  for (; left.kind() == Scalar::Kind::Apply && left.function() == Function::Add;
       left = Scalar(left.operands()[0]))
    if (!add(left.operands()[1]))
      return {};
  if (!add(left))
    return {};
  const bool all_of_bf16 = std::ranges::all_of(
      products, [](const Product& product) { return product.function == Function::DotBf16x2; });
  if (products.size() > 1 && !all_of_bf16)
    return {};
  std::ranges::reverse(products);
  return products;
}

std::optional<Contraction> match_contraction(const Definition& definition) {
  if (definition.combine != "+" || definition.values.size() != 1)
    return std::nullopt;
  Contraction contraction{.products = match_products(definition.values.front()),
                          .m = {},
                          .n = {},
                          .batch = {},
                          .k = std::vector<size_t>(definition.reduced.size()),
                          .accumulator = definition.results.front().dtype};
  if (contraction.products.empty())
    return std::nullopt;
  std::iota(contraction.k.begin(), contraction.k.end(), 0);
  for (size_t i = 0; i < definition.axes.size(); ++i) {
    const std::string& variable = definition.axes[i].variable;
    const bool of_lhs = mentions(contraction.product().lhs, variable),
               of_rhs = mentions(contraction.product().rhs, variable);
    if (of_lhs && of_rhs)
      contraction.batch.push_back(i);
    else if (of_lhs)
      contraction.m.push_back(i);
    else if (of_rhs)
      contraction.n.push_back(i);
  }
  return contraction;
}

}  // namespace tenon::loops
