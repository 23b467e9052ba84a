#include "ops/svm.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/unary.h"
#include "ops/words.h"

namespace tenon {
namespace {

using Doubles = std::vector<double>;
using Matrix = std::vector<Doubles>;

enum class Kernel : uint8_t { Linear, Polynomial, Gaussian, Sigmoid };
Kernel kernel_of(const Node& n) {
  return named<Kernel>(n, "kernel",
                       {{"linear", Kernel::Linear},
                        {"poly", Kernel::Polynomial},
                        {"rbf", Kernel::Gaussian},
                        {"sigmoid", Kernel::Sigmoid}});
}

// Gamma, offset and degree; those that are not given are 0.
Doubles parameters_of(const Node& n) {
  Doubles parameters = n.attr("kernel_parameters");
  parameters.resize(3);
  return parameters;
}

// How much two rows of features are alike.
double likeness(Kernel kernel, const Doubles& parameters, const double* a, const double* b, size_t features) {
  double distance = 0, product = 0;
  for (size_t i = 0; i < features; ++i) {
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    product += a[i] * b[i];
  }
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  switch (kernel) {
    case Kernel::Linear:
      return product;
    case Kernel::Polynomial:
      return std::pow(gamma * product + offset, degree);
    case Kernel::Gaussian:
      return std::exp(-gamma * distance);
    case Kernel::Sigmoid:
      return std::tanh(gamma * product + offset);
  }
  CHECK(false, "a kernel of no kind");
}

// The rows of x, which has the features of one where it is a vector.
Dim count_rows(const Node& n, size_t features) {
  const Shape& x = n.in("x").shape();
  if (!x.ranked())
    return {};
  if (x.rank() != 1 && x.rank() != 2)
    throw operand_error(n, "x must be a matrix or a vector");
  if (provably_different(x[-1], Dim(static_cast<int64_t>(features))))
    throw operand_error(n, fmt::format("x needs {} features", features));
  return x.rank() == 2 ? x[0] : Dim(1);
}

int64_t count_rows(const Call& c, size_t features) {
  const Extents& x = c.in("x").extents();
  if ((x.size() != 1 && x.size() != 2) || x.back() != static_cast<int64_t>(features))
    throw user_error("{}: x of shape [{}] has not {} features in each row", c.node().op().name,
                     fmt::join(x, ","), features);
  return x.size() == 1 ? 1 : x.front();
}

namespace svm_regressor_op {

size_t feature_count(const Node& n) {
  const Doubles &vectors = n.attr("vectors"), &coefficients = n.attr("coefficients");
  if (vectors.empty())
    return coefficients.size();
  if (coefficients.empty() || vectors.size() % coefficients.size() != 0)
    throw user_error("svm_regressor: {} coefficients and {} numbers in support vectors", coefficients.size(),
                     vectors.size());
  return vectors.size() / coefficients.size();
}

Types infer(const Node& n) { return {Type::tensor(n.in("x").dtype(), {count_rows(n, feature_count(n)), 1})}; }

Data eval(const Call& c) {
  const Node& n = c.node();
  const Kernel kernel = kernel_of(n);
  const Doubles &vectors = n.attr("vectors"), &coefficients = n.attr("coefficients");
  const Doubles parameters = parameters_of(n);
  const size_t features = feature_count(n);
  const int64_t rows = count_rows(c, features);
  const Doubles x = widen<double>(c.in("x"));
  Doubles all;
  for (int64_t i = 0; i < rows; ++i) {
    const double* row = x.data() + static_cast<size_t>(i) * features;
    double y = n.attr("rho");
    for (size_t k = 0; k < coefficients.size(); ++k)
      y += coefficients[k] *
           (vectors.empty() ? row[k]
                            : likeness(kernel, parameters, row, vectors.data() + k * features, features));
    all.push_back(!n.attr("one_class") ? y : y > 0 ? 1 : -1);
  }
  return {narrow<double>(c.in("x").dtype(), {rows, 1}, std::span<const double>(all))};
}

Value matrix(Value like, const Doubles& elements, const Extents& extents) {
  return constant(like.graph(), narrow<double>(like.dtype(), extents, std::span<const double>(elements)));
}

Value kernel_values(const Node& n, Value x, Value vectors) {
  const Doubles parameters = parameters_of(n);
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  const Kernel kernel = kernel_of(n);
  if (kernel == Kernel::Gaussian) {
    const Value difference = unsqueeze(x, {1}) - vectors;
    return exp(reduce_sum(difference * difference, {-1}) * -gamma);
  }
  const Value products = matmul(x, vectors, {.b = true});
  if (kernel == Kernel::Linear)
    return products;
  const Value moved = products * gamma + offset;
  return kernel == Kernel::Sigmoid ? tanh(moved) : pow(moved, degree);
}

std::vector<Value> decompose(const Node& n) {
  const Doubles &vectors = n.attr("vectors"), &coefficients = n.attr("coefficients");
  const auto count = static_cast<int64_t>(coefficients.size());
  Value x = n.in("x");
  if (x.rank() == 1)
    x = unsqueeze(x, {0});
  if (!vectors.empty())
    x = kernel_values(n, x, matrix(x, vectors, {count, static_cast<int64_t>(feature_count(n))}));
  const Value y = matmul(x, matrix(x, coefficients, {count, 1})) + n.attr("rho").as<double>();
  if (!n.attr("one_class"))
    return {y};
  const auto number = [&](double value) { return scalar(x.graph(), x.dtype(), value); };
  return {where(greater(y, number(0)), number(1), number(-1))};
}

}  // namespace svm_regressor_op

namespace svm_classifier_op {

enum class Transform : uint8_t { None, Logistic, Softmax, SoftmaxZero, Probit };

// What the attributes of a node say, checked.
struct Machine {
  explicit Machine(const Node& n)
      : kernel(kernel_of(n)),
        transform(named<Transform>(n, "transform",
                                   {{"none", Transform::None},
                                    {"logistic", Transform::Logistic},
                                    {"softmax", Transform::Softmax},
                                    {"softmax_zero", Transform::SoftmaxZero},
                                    {"probit", Transform::Probit}})),
        parameters(parameters_of(n)),
        vectors(n.attr("vectors").as<Doubles>()),
        coefficients(n.attr("coefficients").as<Doubles>()),
        rho(n.attr("rho").as<Doubles>()),
        prob_a(n.attr("prob_a").as<Doubles>()),
        prob_b(n.attr("prob_b").as<Doubles>()),
        classes(static_cast<size_t>(n.attr("labels").as<Literal>().count())) {
    const auto& counts = n.attr("counts").as<Attribute::Ints>();
    if (classes < 2)
      throw user_error("svm_classifier: it needs at least two labels, but has {}", classes);
    if (std::ranges::any_of(counts, [&](int64_t count) { return count < 0 || count > std::ssize(vectors); }))
      throw user_error("svm_classifier: counts are [{}]", fmt::join(counts, ","));
    starts.resize(counts.size() + 1);
    for (size_t i = 0; i < counts.size(); ++i)
      starts[i + 1] = starts[i] + static_cast<size_t>(counts[i]);
    check_counts(counts.size());
    has_positive_weights_only = std::ranges::all_of(coefficients, [](double weight) { return weight >= 0; });
  }

  size_t vector_count() const { return starts.back(); }
  bool is_linear() const { return vector_count() == 0; }  // a score for each class, without support vectors
  size_t pairs() const { return classes * (classes - 1) / 2; }
  size_t features() const {
    return is_linear() ? coefficients.size() / classes : vectors.size() / vector_count();
  }
  size_t columns() const { return is_linear() || classes == 2 || !prob_a.empty() ? classes : pairs(); }
  // The other class of two then has what follows from it.
  bool has_one_score() const { return !is_linear() && classes == 2 && prob_a.empty(); }

  Kernel kernel;
  Transform transform;
  Doubles parameters, vectors, coefficients, rho, prob_a, prob_b;
  size_t classes;
  std::vector<size_t> starts = {0};  // where the vectors of each class start, and where those of the last end
  bool has_positive_weights_only = false;

 private:
  void check_counts(size_t counts) const {
    const auto check = [](std::string_view what, size_t got, size_t wanted) {
      if (got != wanted)
        throw user_error("svm_classifier: it has {} {}, but needs {}", got, what, wanted);
    };
    if (rho.empty())
      throw user_error("svm_classifier: rho is empty");
    if (is_linear()) {
      check("coefficients", coefficients.size(), features() * classes);
      return check("probabilities", prob_a.size() + prob_b.size(), 0);
    }
    check("counts", counts, classes);
    check("numbers in support vectors", vectors.size(), features() * vector_count());
    check("coefficients", coefficients.size(), (classes - 1) * vector_count());
    check("numbers in rho", rho.size(), pairs());
    check("numbers in prob_b", prob_b.size(), prob_a.size());
    if (!prob_a.empty())
      check("numbers in prob_a", prob_a.size(), pairs());
    if (has_one_score() && transform == Transform::Probit)
      throw unsupported("svm_classifier: probit of a single score");
  }
};

Types infer(const Node& n) {
  const Machine machine(n);
  const Dim rows = count_rows(n, machine.features());
  return {Type::tensor(n.attr("labels").as<Literal>().dtype(), {rows}),
          Type::tensor(DType::F32, {rows, static_cast<int64_t>(machine.columns())})};
}

// For each pair of classes i < j, above 0 for i and below for j.
Doubles pair_scores(const Machine& m, const double* row) {
  Doubles kernels;
  for (size_t v = 0; v < m.vector_count(); ++v)
    kernels.push_back(
        likeness(m.kernel, m.parameters, row, m.vectors.data() + v * m.features(), m.features()));
  Doubles scores;
  // The coefficients of a vector, one for each of the other classes, stand in as many rows.
  const auto add = [&](size_t coefficients, size_t of) {
    for (size_t v = m.starts[of]; v < m.starts[of + 1]; ++v)
      scores.back() += m.coefficients[coefficients * m.vector_count() + v] * kernels[v];
  };
  for (size_t i = 0; i < m.classes; ++i)
    for (size_t j = i + 1; j < m.classes; ++j) {
      scores.push_back(m.rho[scores.size()]);
      add(j - 1, i);
      add(i, j);
    }
  return scores;
}

Doubles linear_scores(const Machine& m, const double* row) {
  Doubles scores(m.classes, m.rho.front());
  for (size_t i = 0; i < m.classes; ++i)
    for (size_t f = 0; f < m.features(); ++f)
      scores[i] += m.coefficients[i * m.features() + f] * row[f];
  return scores;
}

size_t winner_of(const Machine& m, const Doubles& pairs) {
  std::vector<size_t> votes(m.classes);
  size_t pair = 0;
  for (size_t i = 0; i < m.classes; ++i)
    for (size_t j = i + 1; j < m.classes; ++j)
      ++votes[pairs[pair++] > 0 ? i : j];
  return static_cast<size_t>(std::ranges::max_element(votes) - votes.begin());
}

// The probabilities p of classes of which those of pairs, r[i][j] = P(i, given i or j), are known: Wu, Lin
// and Weng (2004), second approach. They minimise the sum of (r[j][i] p[i] - r[i][j] p[j])², by one p after
// another until the gradient is small, as far as engines go.
Doubles class_probabilities(const Matrix& r) {
  const size_t count = r.size();
  const size_t most_rounds = std::max<size_t>(100, count);
  const double enough = 0.005 / static_cast<double>(count);
  Matrix q(count, Doubles(count));
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (i != j) {
        q[i][i] += r[j][i] * r[j][i];
        q[i][j] = -r[j][i] * r[i][j];
      }
  Doubles p(count, 1 / static_cast<double>(count)), qp(count);
  for (size_t round = 0; round < most_rounds; ++round) {
    for (size_t i = 0; i < count; ++i)
      qp[i] = std::inner_product(p.begin(), p.end(), q[i].begin(), 0.0);
    double pqp = std::inner_product(p.begin(), p.end(), qp.begin(), 0.0);
    if (std::ranges::all_of(qp, [&](double each) { return std::fabs(each - pqp) < enough; }))
      break;
    for (size_t i = 0; i < count; ++i) {
      const double step = (pqp - qp[i]) / q[i][i], scale = 1 + step;
      pqp = (pqp + step * (step * q[i][i] + 2 * qp[i])) / scale / scale;
      p[i] += step;
      for (size_t j = 0; j < count; ++j) {
        qp[j] = (qp[j] + step * q[i][j]) / scale;
        p[j] /= scale;
      }
    }
  }
  return p;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

Doubles probabilities(const Machine& m, const Doubles& pairs) {
  constexpr double least = 1e-7;
  Matrix r(m.classes, Doubles(m.classes));
  size_t pair = 0;
  for (size_t i = 0; i < m.classes; ++i)
    for (size_t j = i + 1; j < m.classes; ++j, ++pair) {
      r[i][j] = std::clamp(logistic(-(pairs[pair] * m.prob_a[pair] + m.prob_b[pair])), least, 1 - least);
      r[j][i] = 1 - r[i][j];
    }
  return class_probabilities(r);
}

// Winitzki's approximation of √2 · erf⁻¹(2p − 1), which is what other engines compute.
double probit(double p) {
  constexpr double a = 0.147;
  const double y = 2 * p - 1, logarithm = std::log((1 - y) * (1 + y));
  const double t = 2 / (std::numbers::pi * a) + logarithm / 2;
  const double magnitude = std::sqrt(std::sqrt(t * t - logarithm / a) - t);
  return (1 - y) * (1 + y) == 0 ? 0 : std::copysign(magnitude, y) * std::numbers::sqrt2;
}

void make_softmax(Doubles& scores, bool zero_counts) {
  const double greatest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) {
    const bool counts = zero_counts || std::fabs(score) > 1e-7;
    score = counts ? std::exp(score - greatest) : score * std::exp(-greatest);
    sum += score;
  }
  for (double& score : scores)
    score = sum == 0 && !zero_counts ? 0.5 : score / sum;
}

void transform(const Machine& m, Doubles& scores) {
  if (m.has_one_score()) {
    const double score = scores.front();
    if (m.transform == Transform::Logistic)
      scores = {logistic(-score), logistic(score)};
    else
      scores = {m.transform == Transform::None ? -score : 1 - score, score};
    return;
  }
  switch (m.transform) {
    case Transform::None:
      return;
    case Transform::Logistic:
      std::ranges::transform(scores, scores.begin(), logistic);
      return;
    case Transform::Softmax:
      return make_softmax(scores, true);
    case Transform::SoftmaxZero:
      return make_softmax(scores, false);
    case Transform::Probit:
      std::ranges::transform(scores, scores.begin(), probit);
      return;
  }
}

// The class of a row, and the scores.
std::pair<size_t, Doubles> classify(const Machine& m, const double* row) {
  if (!m.is_linear()) {
    const Doubles pairs = pair_scores(m, row);
    return {winner_of(m, pairs), m.prob_a.empty() ? pairs : probabilities(m, pairs)};
  }
  const Doubles scores = linear_scores(m, row);
  const auto greatest = std::ranges::max_element(scores);
  // Of two classes, the second wins whenever the greater score is high enough, whosever it is.
  const bool wins =
      m.classes == 2 && m.rho.size() == 1 && (m.has_positive_weights_only ? *greatest >= 0.5 : *greatest > 0);
  return {wins ? 1 : static_cast<size_t>(greatest - scores.begin()), scores};
}

Tensor labels_at(const Tensor& labels, const std::vector<size_t>& places) {
  const auto count = static_cast<int64_t>(places.size());
  if (labels.dtype() == DType::String) {
    std::vector<std::string> strings;
    for (const size_t place : places)
      strings.push_back(labels.strings()[place]);
    return Tensor::strings(std::move(strings), {count});
  }
  const std::vector<int64_t> numbers = as_ints(labels);
  std::vector<int64_t> chosen;
  for (const size_t place : places)
    chosen.push_back(numbers[place]);
  return narrow<int64_t>(labels.dtype(), {count}, std::span<const int64_t>(chosen));
}

Data eval(const Call& c) {
  const Machine machine(c.node());
  const int64_t rows = count_rows(c, machine.features());
  const Doubles values = widen<double>(c.in("x"));
  std::vector<size_t> chosen;
  Doubles all;
  for (int64_t row = 0; row < rows; ++row) {
    auto [winner, scores] = classify(machine, values.data() + static_cast<size_t>(row) * machine.features());
    transform(machine, scores);
    chosen.push_back(winner);
    all.insert(all.end(), scores.begin(), scores.end());
  }
  const Extents extents = {rows, static_cast<int64_t>(machine.columns())};
  return {labels_at(c.node().attr("labels").as<Literal>().tensor(), chosen),
          narrow<double>(DType::F32, extents, std::span<const double>(all))};
}

}  // namespace svm_classifier_op

AttributeDecl kernel_attribute() {
  return {"kernel", AttributeKind::String, "linear, poly, rbf or sigmoid", "linear"};
}
AttributeDecl kernel_parameters_attribute() {
  return {"kernel_parameters", AttributeKind::Floats, "gamma, offset and degree", Attribute::Floats()};
}

}  // namespace

const Family& svm_ops() {
  static const Family ops = {
      {.name = "svm_regressor",
       .doc = "for every row of features, the number that a support vector machine gives",
       .operands = {{"x", "T"}},
       .attributes = {kernel_attribute(),
                      kernel_parameters_attribute(),
                      {"vectors", AttributeKind::Floats,
                       "the support vectors, one after another; none: the features are taken as they are",
                       Attribute::Floats()},
                      {"coefficients", AttributeKind::Floats,
                       "one for each support vector, or for each feature"},
                      {"rho", AttributeKind::Float, "what is added"},
                      {"one_class", AttributeKind::Bool, "whether only the sign is given, 1 or -1", false}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = svm_regressor_op::infer,
       .eval = svm_regressor_op::eval,
       .decompose = svm_regressor_op::decompose},
      {.name = "svm_classifier",
       .doc = "for every row of features, the label that support vector machines choose, and the scores",
       .operands = {{"x", "T"}},
       .attributes = {{"labels", AttributeKind::Literal, "of the classes"},
                      kernel_attribute(),
                      kernel_parameters_attribute(),
                      {"vectors", AttributeKind::Floats,
                       "the support vectors, class by class; none: the scores are linear",
                       Attribute::Floats()},
                      {"counts", AttributeKind::Ints, "how many each class has", Attribute::Ints()},
                      {"coefficients", AttributeKind::Floats,
                       "of each support vector one for each of the other classes; or those of the features"},
                      {"rho", AttributeKind::Floats, "what is added, for each pair of classes"},
                      {"prob_a", AttributeKind::Floats,
                       "with prob_b, for each pair of classes: the scores are probabilities then",
                       Attribute::Floats()},
                      {"prob_b", AttributeKind::Floats, "likewise", Attribute::Floats()},
                      {"transform", AttributeKind::String,
                       "what becomes of scores: none, logistic, softmax, softmax_zero or probit", "none"}},
       .results = {{"label", "any"}, {"scores", "f32"}},
       .types = {{"T", Numbers}},
       .traits = {.takes_unranked = true},
       .infer = svm_classifier_op::infer,
       .eval = svm_classifier_op::eval},
  };
  return ops;
}

Value svm_regressor(Value x, const SvmRegressor& regressor) {
  return x.graph()
      .create("svm_regressor", {{"x", x}},
              {{"kernel", regressor.kernel},
               {"kernel_parameters", regressor.kernel_parameters},
               {"vectors", regressor.vectors},
               {"coefficients", regressor.coefficients},
               {"rho", regressor.rho},
               {"one_class", regressor.one_class}})
      ->result();
}

std::vector<Value> svm_classifier(Value x, const SvmClassifier& classifier) {
  return x.graph()
      .create("svm_classifier", {{"x", x}},
              {{"labels", classifier.labels},
               {"kernel", classifier.kernel},
               {"kernel_parameters", classifier.kernel_parameters},
               {"vectors", classifier.vectors},
               {"counts", classifier.counts},
               {"coefficients", classifier.coefficients},
               {"rho", classifier.rho},
               {"prob_a", classifier.prob_a},
               {"prob_b", classifier.prob_b},
               {"transform", classifier.transform}})
      ->results();
}

}  // namespace tenon
