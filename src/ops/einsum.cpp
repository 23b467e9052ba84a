#include "ops/einsum.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/elements.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon {
namespace {

constexpr std::string_view kEllipsis = "...";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The terms between commas, without blanks. Each holds letters and at most one ellipsis.
std::vector<std::string> split_terms(std::string_view list, std::string_view equation) {
  std::vector<std::string> terms(1);
  for (char c : list)
    if (c == ',')
      terms.emplace_back();
    else if (c != ' ')
      terms.back() += c;
  for (const std::string& term : terms) {
    std::string letters = term;
    if (const size_t at = letters.find(kEllipsis); at != std::string::npos)
      letters.erase(at, kEllipsis.size());
    const auto wrong = std::find_if_not(letters.begin(), letters.end(), is_letter);
    if (wrong != letters.end())
      throw user_error("einsum: \"{}\" has a '{}' where a letter or one \"...\" per term was wanted",
                       equation, *wrong);
  }
  return terms;
}

// The labels of a term, its ellipsis standing for `wide` dimensions.
std::vector<int> labels_of(const std::string& term, int64_t wide) {
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i)
    if (term[i] != '.') {
      labels.push_back(term[i]);
    } else {
      for (int64_t dim = wide; dim > 0; --dim)
        labels.push_back(static_cast<int>(-dim));
      i += kEllipsis.size() - 1;
    }
  return labels;
}

bool contains(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The size of each label: dimensions of one label broadcast to each other.
template <class Size, class Broadcast>
std::map<int, Size> label_sizes(const EinsumTerms& terms, const std::vector<std::vector<Size>>& shapes,
                                const Broadcast& broadcast_sizes) {
  std::map<int, Size> sizes;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const int label = terms.operands[i][axis];
      const auto [it, first] = sizes.emplace(label, shapes[i][axis]);
      if (first)
        continue;
      const std::optional<Size> both = broadcast_sizes(it->second, shapes[i][axis]);
      if (!both)
        throw user_error("einsum: {} is {} in one place and {} in another",
                         label < 0 ? std::string("a dimension of the ellipsis")
                                   : fmt::format("the dimension {}", static_cast<char>(label)),
                         it->second, shapes[i][axis]);
      it->second = *both;
    }
  return sizes;
}

Types infer(const Node& n) {
  const std::vector<Value> operands = n.ins("x");
  if (operands.empty())
    throw user_error("einsum: it needs at least one operand");
  std::vector<int64_t> ranks;
  std::vector<std::vector<Dim>> shapes;
  for (Value operand : operands) {
    ranks.push_back(operand.rank());
    shapes.push_back(operand.shape().dims());
  }
  const EinsumTerms terms = read_equation(n.attr("equation").as<std::string>(), ranks);
  const std::map<int, Dim> sizes =
      label_sizes(terms, shapes, [](const Dim& a, const Dim& b) { return broadcast(a, b); });
  std::vector<Dim> dims;
  for (int label : terms.result)
    dims.push_back(sizes.at(label));
  return {Type::tensor(operands.front().dtype(), dims)};
}

// A tensor of doubles or 64-bit integers, with a label for each dimension.
struct Labelled {
  std::vector<int> labels;
  Tensor tensor;

  // How far one step along `label` goes here: along the diagonal where the label is repeated, nowhere where
  // it is missing, or 1 wide and broadcast.
  int64_t stride(int label) const {
    const Extents strides = row_major_strides(tensor.extents());
    int64_t sum = 0;
    for (size_t axis = 0; axis < labels.size(); ++axis)
      if (labels[axis] == label && tensor.extents()[axis] != 1)
        sum += strides[axis];
    return sum;
  }
};

// The sum of a · b over the labels that are not kept. Integers wrap around.
template <class T>
Labelled contract(const Labelled& a, const Labelled& b, const std::vector<int>& kept,
                  const std::map<int, int64_t>& sizes) {
  std::vector<int> labels = kept;
  for (const std::vector<int>* more : {&a.labels, &b.labels})
    for (int label : *more)
      if (!contains(labels, label))
        labels.push_back(label);
  Extents kept_extents, extents;
  for (int label : kept)
    kept_extents.push_back(sizes.at(label));
  Labelled result{kept, Tensor(dtype_of<T>(), kept_extents)};
  std::array<Extents, 3> strides;
  for (int label : labels) {
    extents.push_back(sizes.at(label));
    strides[0].push_back(a.stride(label));
    strides[1].push_back(b.stride(label));
    strides[2].push_back(result.stride(label));
  }
  const std::span<const T> left = a.tensor.data<T>(), right = b.tensor.data<T>();
  const std::span<T> sums = result.tensor.mutable_data<T>();
  walk<3>(extents, strides, [&](const std::array<int64_t, 3>& at) {
    add_product(sums[static_cast<size_t>(at[2])], left[static_cast<size_t>(at[0])],
                right[static_cast<size_t>(at[1])]);
  });
  return result;
}

// The labels to keep when the operands up to `i` have been multiplied: those of the result, and before the
// last operand, in any order, those that a later one needs.
std::vector<int> labels_to_keep(const EinsumTerms& terms, size_t i) {
  if (i + 1 == terms.operands.size())
    return terms.result;
  std::set<int> needed(terms.result.begin(), terms.result.end()), present;
  for (size_t later = i + 1; later < terms.operands.size(); ++later)
    needed.insert(terms.operands[later].begin(), terms.operands[later].end());
  for (size_t earlier = 0; earlier <= i; ++earlier)
    present.insert(terms.operands[earlier].begin(), terms.operands[earlier].end());
  std::vector<int> kept;
  std::set_intersection(needed.begin(), needed.end(), present.begin(), present.end(),
                        std::back_inserter(kept));
  return kept;
}

// Operand by operand, from the left: a label is summed over as soon as nothing further needs it.
Data eval(const Call& c) {
  const std::vector<Tensor> operands = c.tensors("x");
  std::vector<int64_t> ranks;
  std::vector<Extents> shapes;
  for (const Tensor& operand : operands) {
    ranks.push_back(operand.rank());
    shapes.push_back(operand.extents());
  }
  const EinsumTerms terms = read_equation(c.attr("equation").as<std::string>(), ranks);
  const std::map<int, int64_t> sizes = label_sizes(terms, shapes, [](int64_t a, int64_t b) {
    return a == b || b == 1 ? std::optional(a) : a == 1 ? std::optional(b) : std::nullopt;
  });
  const DType dtype = operands.front().dtype();
  return with_wide(dtype, [&]<class T>(T) -> Data {
    Labelled product{{}, Tensor::scalar(T{1})};
    for (size_t i = 0; i < operands.size(); ++i) {
      const Tensor widened = narrow<T>(dtype_of<T>(), shapes[i], widen<T>(operands[i]));
      product = contract<T>(product, {terms.operands[i], widened}, labels_to_keep(terms, i), sizes);
    }
    return {narrow<T>(dtype, product.tensor.extents(), product.tensor.data<T>())};
  });
}

// --- lowering ---

// Elements by the indices of labels.
struct LabelledFormula {
  std::vector<int> labels;
  std::function<Scalar(const std::map<int, Scalar>&)> element;
};

// An operand; along a dimension of size 1 it is broadcast.
LabelledFormula operand_formula(LowerContext& c, Value operand, const std::vector<int>& labels,
                                const std::map<int, Dim>& sizes) {
  return {labels, [&c, operand, labels, &sizes](const std::map<int, Scalar>& at) {
            Index own;
            for (size_t axis = 0; axis < labels.size(); ++axis)
              own.push_back(LowerContext::broadcast_index(
                  at.at(labels[axis]), operand.dim(static_cast<int64_t>(axis)), sizes.at(labels[axis])));
            return c.in(operand, own);
          }};
}

// The sum over the labels that are not kept; the same where all are.
LabelledFormula sum_over(LowerContext& c, const LabelledFormula& product, const std::vector<int>& kept,
                         const std::map<int, Dim>& sizes) {
  std::vector<int> summed;
  for (int label : product.labels)
    if (!contains(kept, label) && !contains(summed, label))
      summed.push_back(label);
  if (summed.empty())
    return {kept, product.element};
  const auto sizes_of = [&](const std::vector<int>& labels) {
    std::vector<Dim> dims;
    for (int label : labels)
      dims.push_back(sizes.at(label));
    return dims;
  };
  const DType dtype = wide_dtype(c.node().result().dtype());
  const auto sum = c.reduce(sizes_of(kept), sizes_of(summed), "+", Scalar::zero(dtype),
                            [&](const Index& at, const Index& over) {
                              std::map<int, Scalar> indices;
                              for (size_t i = 0; i < kept.size(); ++i)
                                indices.emplace(kept[i], at[i]);
                              for (size_t i = 0; i < summed.size(); ++i)
                                indices.emplace(summed[i], over[i]);
                              return product.element(indices);
                            });
  return {kept, [sum, kept](const std::map<int, Scalar>& at) {
            Index own;
            for (int label : kept)
              own.push_back(at.at(label));
            return sum(own);
          }};
}

// Operand by operand, as labels are summed over as soon as nothing further needs them.
void lower(LowerContext& c) {
  const std::vector<Value> operands = c.node().ins("x");
  std::vector<int64_t> ranks;
  std::vector<std::vector<Dim>> shapes;
  for (Value operand : operands) {
    ranks.push_back(operand.rank());
    shapes.push_back(operand.shape().dims());
  }
  const EinsumTerms terms = read_equation(c.node().attr("equation").as<std::string>(), ranks);
  const std::map<int, Dim> sizes =
      label_sizes(terms, shapes, [](const Dim& a, const Dim& b) { return broadcast(a, b); });
  if (std::ranges::any_of(sizes, [](const auto& entry) { return entry.second.is_unknown(); }))
    return;
  LabelledFormula product;
  for (size_t i = 0; i < operands.size(); ++i) {
    const LabelledFormula next = operand_formula(c, operands[i], terms.operands[i], sizes);
    LabelledFormula both = next;
    if (i > 0) {
      both.labels.insert(both.labels.end(), product.labels.begin(), product.labels.end());
      both.element = [product, next](const std::map<int, Scalar>& at) {
        return product.element(at) * next.element(at);
      };
    }
    product = sum_over(c, both, labels_to_keep(terms, i), sizes);
  }
  c.define([&](const Index& at) {
    std::map<int, Scalar> indices;
    for (size_t i = 0; i < at.size(); ++i)
      indices.emplace(terms.result[i], at[i]);
    return product.element(indices);
  });
}

// --- gradient ---

// A letter for every label, also for those of dimensions that an ellipsis stands for.
std::map<int, char> letters_for(const EinsumTerms& terms) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::map<int, char> names;
  for (const std::vector<int>& labels : terms.operands)
    for (int label : labels)
      if (!names.contains(label) && names.size() < letters.size())
        names.emplace(label, letters[names.size()]);
  return names;
}

// The gradient of operand i: dy times the other operands, summed over what i does not have.
Value operand_gradient(const GradContext& n, const EinsumTerms& terms, size_t i) {
  const std::map<int, char> names = letters_for(terms);
  const auto term = [&](const std::vector<int>& labels) {
    std::string text;
    for (int label : labels) {
      if (!names.contains(label))
        throw n.decline("it has more dimensions than there are letters");
      text += names.at(label);
    }
    return text;
  };
  std::string equation = term(terms.result);
  std::vector<Value> factors = {n.dy()};
  std::set<int> known(terms.result.begin(), terms.result.end());
  for (size_t k = 0; k < terms.operands.size(); ++k)
    if (k != i) {
      equation += "," + term(terms.operands[k]);
      factors.push_back(n.ins("x")[k]);
      known.insert(terms.operands[k].begin(), terms.operands[k].end());
    }
  // A label that is repeated stands once, and one that only i has is missing: it was summed over.
  const std::vector<int>& own = terms.operands[i];
  std::vector<int> present;
  Axes missing;
  for (size_t axis = 0; axis < own.size(); ++axis)
    if (known.contains(own[axis]) && !contains(present, own[axis]))
      present.push_back(own[axis]);
    else
      missing.push_back(static_cast<int64_t>(axis));
  const Value x = n.ins("x")[i];
  Value gradient =
      broadcast_to(unsqueeze(einsum(factors, equation + "->" + term(present)), missing), shape_of(x));
  // Off the diagonal of a repeated label nothing was read.
  for (size_t axis = 0; axis < own.size(); ++axis) {
    const auto first = static_cast<size_t>(std::ranges::find(own, own[axis]) - own.begin());
    if (first == axis)
      continue;
    std::vector<int64_t> off_axes;
    for (int64_t other = 0; other < x.rank(); ++other)
      if (other != static_cast<int64_t>(first) && other != static_cast<int64_t>(axis))
        off_axes.push_back(other);
    const Value sizes =
        concat({size_along(x, static_cast<int64_t>(first)), size_along(x, static_cast<int64_t>(axis))}, 0);
    gradient = gradient * unsqueeze(eye(sizes, x.dtype()), off_axes);
  }
  return gradient;
}

std::vector<Operand> grad(const GradContext& n) {
  std::vector<int64_t> ranks;
  for (Value operand : n.ins("x"))
    ranks.push_back(operand.rank());
  const EinsumTerms terms = read_equation(n.attr("equation").as<std::string>(), ranks);
  std::vector<Value> gradients;
  for (size_t i = 0; i < ranks.size(); ++i)
    gradients.push_back(n.wants("x", i) ? operand_gradient(n, terms, i) : Value());
  return {{"x", gradients}};
}

}  // namespace

EinsumTerms read_equation(std::string_view equation, const std::vector<int64_t>& ranks) {
  const size_t arrow = equation.find("->");
  const std::vector<std::string> terms = split_terms(equation.substr(0, arrow), equation);
  if (terms.size() != ranks.size())
    throw user_error("einsum: \"{}\" has {} terms on the left, but there are {} operands", equation,
                     terms.size(), ranks.size());
  EinsumTerms read;
  int64_t widest = 0;
  std::map<int, int> counts;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto letters = static_cast<int64_t>(std::count_if(terms[i].begin(), terms[i].end(), is_letter));
    const bool open = static_cast<size_t>(letters) < terms[i].size();
    if (open ? ranks[i] < letters : ranks[i] != letters)
      throw user_error("einsum: \"{}\" in \"{}\" names {}{} dimensions, but operand {} has rank {}", terms[i],
                       equation, open ? "at least " : "", letters, i, ranks[i]);
    read.operands.push_back(labels_of(terms[i], ranks[i] - letters));
    widest = std::max(widest, ranks[i] - letters);
    for (int label : read.operands.back())
      ++counts[label];
  }

  if (arrow == std::string_view::npos) {
    // The dimensions of ellipses, then the letters that appear once: the order of the labels.
    for (const auto& [label, count] : counts)
      if (label < 0 || count == 1)
        read.result.push_back(label);
    return read;
  }
  const std::vector<std::string> right = split_terms(equation.substr(arrow + 2), equation);
  if (right.size() != 1)
    throw user_error("einsum: \"{}\" has {} terms on the right, but one was wanted", equation, right.size());
  read.result = labels_of(right.front(), widest);
  for (size_t i = 0; i < read.result.size(); ++i) {
    const int label = read.result[i];
    if (!counts.contains(label))
      throw user_error("einsum: \"{}\" has no '{}' on the left", equation, static_cast<char>(label));
    if (std::count(read.result.begin(), read.result.end(), label) > 1)
      throw user_error("einsum: \"{}\" names '{}' twice on the right", equation, static_cast<char>(label));
  }
  if (widest > 0 && !contains(read.result, -1))
    throw user_error("einsum: \"{}\" has an ellipsis on the left that the right does not mention", equation);
  return read;
}

const Family& einsum_ops() {
  static const Family ops = {
      {.name = "einsum",
       .doc = "the sum of products of tensors over the dimensions that an equation does not keep",
       .operands = {{"x", "T", Arity::Many}},
       .attributes = {{"equation", AttributeKind::String,
                       "a term per operand, whose letters name its dimensions, and after -> the result's"}},
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .infer = infer,
       .eval = eval,
       .lower = lower,
       .grad = grad},
  };
  return ops;
}

Value einsum(const std::vector<Value>& operands, std::string_view equation) {
  return operands.front().graph().create("einsum", {{"x", operands}}, {{"equation", equation}})->result();
}

}  // namespace tenon
