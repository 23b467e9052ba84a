// einsum.cpp — sums of products as the ops that others know: transposes, sums, products of matrices.
//
//   einsum("bqhd,bkhd->bhqk")   matmul(transpose(a), transpose(b), transpose_b=true), both [b, h, …, d]
//   einsum("bsd,dhk->bshk")     reshape(matmul(a, reshape(b)))
//   einsum("i,j->ij")           unsqueeze(a) * b
#include "ops/einsum.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Labels = std::vector<int>;  // see read_equation

struct Labelled {
  Value x;
  Labels labels;

  bool has(int label) const { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
  const Dim& size(int label) const {
    return x.dim(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
};

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool has_repeats(Labels labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) != labels.end();
}

struct Equation {
  std::vector<Labelled> operands;
  Labels result;

  // How many operands have it.
  int64_t count(int label) const {
    return std::count_if(operands.begin(), operands.end(),
                         [&](const Labelled& operand) { return operand.has(label); });
  }
  // Whether it is summed over in this operand alone.
  bool is_lone(int label) const { return count(label) == 1 && !contains(result, label); }
};

// Nothing where an operand has no rank, or where a label stands twice in one, which takes a diagonal.
std::optional<Equation> read(const Node& node) {
  std::vector<int64_t> ranks;
  for (Value operand : node.ins("x")) {
    if (!operand.shape().ranked())
      return std::nullopt;
    ranks.push_back(operand.rank());
  }
  const EinsumTerms terms = read_equation(node.attr("equation").as<std::string>(), ranks);
  Equation equation{{}, terms.result};
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (has_repeats(terms.operands[i]))
      return std::nullopt;
    equation.operands.push_back({node.ins("x")[i], terms.operands[i]});
  }
  return equation;
}

constexpr size_t kLetters = 52;

// The einsum that says it, with letters in the order in which labels appear; nothing if they do not suffice.
Value write(const Equation& equation) {
  Labels seen;
  const auto letters = [&](const Labels& labels) {
    std::string text;
    for (int label : labels) {
      if (!contains(seen, label))
        seen.push_back(label);
      const auto index = std::find(seen.begin(), seen.end(), label) - seen.begin();
      text += static_cast<char>(index < 26 ? 'a' + index : 'A' + index - 26);  // of the first 52
    }
    return text;
  };
  std::vector<std::string> terms;
  std::vector<Value> operands;
  for (const Labelled& operand : equation.operands) {
    terms.push_back(letters(operand.labels));
    operands.push_back(operand.x);
  }
  const std::string result = letters(equation.result);
  return seen.size() > kLetters ? Value()
                                : einsum(operands, fmt::format("{}->{}", fmt::join(terms, ","), result));
}

// --- one operand ---

Labelled in_order(const Labelled& from, const Labels& order) {
  if (from.labels == order)
    return from;
  std::vector<int64_t> permutation;
  for (int label : order)
    permutation.push_back(std::find(from.labels.begin(), from.labels.end(), label) - from.labels.begin());
  return {transpose(from.x, permutation), order};
}

// Summed over the labels that nothing else needs.
Labelled without_lone(const Labelled& from, const Equation& equation) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t axis = 0; axis < from.labels.size(); ++axis)
    if (equation.is_lone(from.labels[axis]))
      axes.push_back(static_cast<int64_t>(axis));
    else
      kept.push_back(from.labels[axis]);
  return axes.empty() ? from : Labelled{reduce_sum(from.x, axes), kept};
}

// --- two operands ---

// In the order of the result, with dimensions of size 1 where the other operand has what it lacks.
Value spread(const Labelled& from, const Labels& result) {
  Labels order;
  std::vector<int64_t> missing;
  for (int label : result)
    if (from.has(label))
      order.push_back(label);
  for (size_t axis = 0; axis < result.size(); ++axis)
    if (!from.has(result[axis]))
      missing.push_back(static_cast<int64_t>(axis));
  const Value x = in_order(from, order).x;
  return missing.empty() ? x : unsqueeze(x, missing);
}

// The labels of a product of matrices by what becomes of them.
struct Roles {
  Labels batch, left, right, contracted;
};

Roles roles_of(const Labelled& a, const Labelled& b, const Labels& result) {
  Roles roles;
  for (int label : result)
    (a.has(label) && b.has(label) ? roles.batch : a.has(label) ? roles.left : roles.right).push_back(label);
  for (int label : a.labels)
    if (b.has(label) && !contains(result, label))
      roles.contracted.push_back(label);
  return roles;
}

// Whether the sizes of what the operands share are known to be such as matmul wants them.
bool fit(const Labelled& a, const Labelled& b, const Roles& roles) {
  return std::all_of(roles.contracted.begin(), roles.contracted.end(),
                     [&](int label) { return provably_equal(a.size(label), b.size(label)); });
}

// `from` as a stack of matrices, [batch…, rows, columns], where rows and columns stand for several labels
// each; or, where rows may stay apart, [batch…, rows…, columns].
Value as_matrices(const Labelled& from, const Labels& batch, const Labels& rows, const Labels& columns,
                  bool joins_rows) {
  Labels order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  std::vector<Dim> dims;
  for (int label : batch)
    dims.push_back(from.size(label));
  const auto add_joined = [&](const Labels& labels) {
    Dim size = 1;
    for (int label : labels)
      size = size * from.size(label);
    dims.push_back(size);
  };
  if (joins_rows)
    add_joined(rows);
  else
    for (int label : rows)
      dims.push_back(from.size(label));
  add_joined(columns);
  return view(in_order(from, order).x, Shape(dims));
}

// Whether of the labels besides the batch, those that are summed over come first.
bool starts_contracted(const Labelled& x, const Roles& roles) {
  const auto first = std::find_if(x.labels.begin(), x.labels.end(),
                                  [&](int label) { return !contains(roles.batch, label); });
  return first != x.labels.end() && contains(roles.contracted, *first);
}

// Nothing where no constant says the shapes on the way.
Value product(const Labelled& a, const Labelled& b, const Roles& roles, const Labels& result) {
  const bool one_matrix = roles.batch.empty();  // then the rows of `a` need not be one dimension
  const bool transpose_a = starts_contracted(a, roles) && !(one_matrix && roles.left.size() != 1);
  const bool transpose_b = !starts_contracted(b, roles);
  const Value left = transpose_a ? as_matrices(a, roles.batch, roles.contracted, roles.left, true)
                                 : as_matrices(a, roles.batch, roles.left, roles.contracted, !one_matrix);
  const Value right = transpose_b ? as_matrices(b, roles.batch, roles.right, roles.contracted, true)
                                  : as_matrices(b, roles.batch, roles.contracted, roles.right, true);
  if (!left || !right)
    return {};
  const Value y = matmul(left, right, {transpose_a, transpose_b});
  std::vector<Dim> dims(y.shape().dims().begin(),
                        y.shape().dims().begin() + static_cast<std::ptrdiff_t>(roles.batch.size()));
  for (int label : roles.left)
    dims.push_back(a.size(label));
  for (int label : roles.right)
    dims.push_back(b.size(label));
  const Value apart = view(y, Shape(dims));
  if (!apart)
    return {};
  Labels order = roles.batch;
  order.insert(order.end(), roles.left.begin(), roles.left.end());
  order.insert(order.end(), roles.right.begin(), roles.right.end());
  return in_order({apart, order}, result).x;
}

// The operand whose label comes last in the result stands on the right, so that the result need not be
// transposed.
Value product_of(const Equation& equation) {
  const Labelled &a = equation.operands[0], &b = equation.operands[1];
  const Labels& result = equation.result;
  Roles roles = roles_of(a, b, result);
  if (!fit(a, b, roles))
    return {};
  if (result.empty() || !contains(roles.left, result.back()))
    return product(a, b, roles, result);
  std::swap(roles.left, roles.right);
  return product(b, a, roles, result);
}

// --- the rules ---

using Question = std::function<bool(const Equation&)>;
using Make = std::function<Value(const Equation&)>;

bool has_lone(const Equation& equation) {
  for (const Labelled& operand : equation.operands)
    for (int label : operand.labels)
      if (equation.is_lone(label))
        return true;
  return false;
}

// What both operands of a product have and the result has not, in the order of the first.
Labels contracted(const Equation& equation) {
  return roles_of(equation.operands[0], equation.operands[1], equation.result).contracted;
}

// Where nothing is left of either operand, there are no rows and columns: as products, dot products would
// take reshapes.
bool is_product(const Equation& equation) {
  if (equation.operands.size() != 2 || has_lone(equation))
    return false;
  const Roles roles = roles_of(equation.operands[0], equation.operands[1], equation.result);
  return !roles.contracted.empty() && !(roles.left.empty() && roles.right.empty());
}

// The evaluator sums over labels in the order of the alphabet.
bool is_in_order(const Equation& equation) {
  const Labels labels = contracted(equation);
  return std::is_sorted(labels.begin(), labels.end());
}

Rule rule(std::string_view name, std::string formula, std::string condition, Question holds, Make make,
          Numerics numerics, std::string_view fires, std::string_view stays) {
  return {.name = name,
          .match = result_of("einsum"),
          .replace = {std::move(formula), [=](const Match& m) { return make(*read(*m.root().node())); }},
          .when = {{"no dimension stands twice in an operand",
                    [](const Match& m) { return read(*m.root().node()).has_value(); }, true},
                   {std::move(condition),
                    [=](const Match& m) {
                      const auto equation = read(*m.root().node());
                      return equation && holds(*equation);
                    }}},
          .numerics = numerics,
          .fires = fires,
          .stays = stays};
}

Rules make_rules() {
  return {
      // An einsum adds to 0, so that -0 becomes 0; a transpose and a product leave it.
      rule(
          "einsum-of-one", "transpose(reduce_sum(x))", "there is one operand",
          [](const Equation& e) { return e.operands.size() == 1; },
          [](const Equation& e) { return in_order(without_lone(e.operands[0], e), e.result).x; },
          Numerics::Reassociates, "(%x: T[2,n,3]) { %y = einsum([%x], equation=\"ijk->ki\") return %y }",
          "(%x: T[2,n,n]) { %y = einsum([%x], equation=\"ijj->ij\") return %y }"),
      rule(
          "einsum-sum-first", "einsum(reduce_sum(a), b)", "a dimension of one operand alone is summed over",
          [](const Equation& e) { return e.operands.size() > 1 && has_lone(e); },
          [](const Equation& e) {
            Equation less = e;
            for (Labelled& operand : less.operands)
              operand = without_lone(operand, e);
            return write(less);
          },
          Numerics::Reassociates,
          "(%x: T[2,n,3], %y: T[3,m]) { %a = neg(%x) %b = neg(%y) "
          "%z = einsum([%a, %b], equation=\"...ij,jk->...j\") return %z }",
          "(%a: T[2,n], %b: T[n,m]) { %y = einsum([%a, %b], equation=\"ij,jk->ik\") return %y }"),
      rule(
          "einsum-outer", "a * b, aligned", "nothing is summed over",
          [](const Equation& e) { return e.operands.size() == 2 && !has_lone(e) && contracted(e).empty(); },
          [](const Equation& e) { return spread(e.operands[0], e.result) * spread(e.operands[1], e.result); },
          Numerics::Reassociates,
          "(%a: T[2,n], %b: T[m,2]) { %y = einsum([%a, %b], equation=\"ij,ki->kij\") return %y }",
          "(%a: T[2,n], %b: T[n,m]) { %y = einsum([%a, %b], equation=\"ij,jk->ik\") return %y }"),
      rule(
          "einsum-matmul", "matmul(a, b)",
          "rows or columns are left; all that is summed over is in both operands, and in the order in which "
          "a "
          "product adds it up",
          [](const Equation& e) { return is_product(e) && is_in_order(e); }, product_of, Numerics::BitExact,
          "(%a: T[2,n,3,2], %b: T[2,m,3,2]) { %y = einsum([%a, %b], equation=\"bqhd,bkhd->bhqk\") return %y "
          "}",
          "(%a: T[2,n], %b: T[2,n]) { %y = einsum([%a, %b], equation=\"ij,ij->i\") return %y }"),
      rule(
          "einsum-matmul-in-another-order", "matmul(a, b)",
          "rows or columns are left, and all that is summed over is in both operands",
          [](const Equation& e) { return is_product(e) && !is_in_order(e); }, product_of,
          Numerics::Reassociates,
          "(%a: T[2,n,2,3], %b: T[2,3,m]) { %y = einsum([%a, %b], equation=\"bshd,hdo->bso\") return %y }",
          "(%a: T[2,n,2,3], %b: T[2,3,m]) { %y = einsum([%a, %b], equation=\"bsde,deo->bso\") return %y }"),
      rule(
          "einsum-of-many", "einsum(einsum(a, b), c)",
          "there are more than two operands, and a product of two of them has a place in their dtype",
          [](const Equation& e) {
            const DType dtype = e.operands.front().x.dtype();
            return e.operands.size() > 2 && (!is_float(dtype) || info(dtype).bits >= 16);
          },
          [](const Equation& e) {
            Equation first{{e.operands[0], e.operands[1]}, {}}, rest = e;
            rest.operands.erase(rest.operands.begin());
            for (const Labelled& operand : first.operands)
              for (int label : operand.labels)
                if (!contains(first.result, label) &&
                    (contains(e.result, label) || e.count(label) > first.count(label)))
                  first.result.push_back(label);
            rest.operands.front() = {write(first), first.result};
            return rest.operands.front().x ? write(rest) : Value();
          },
          Numerics::Reassociates,
          "(%a: T[2,n], %b: T[n,m], %c: T[m,2]) { %y = einsum([%a, %b, %c], equation=\"ij,jk,kl->il\") "
          "return %y }",
          "(%a: T[2,n], %b: T[n,m]) { %y = einsum([%a, %b], equation=\"ij,jk->ik\") return %y }"),
  };
}

}  // namespace

const Rules& einsum_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
