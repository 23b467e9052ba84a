#include "verify/verify_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "ir/lint.h"
#include "ir/print.h"
#include "tensor/wide.h"
#include "verify/random_inputs.h"
#include "verify/rewrite_checks.h"
#include "views/constants.h"

namespace tenon {
namespace {

using Random = std::mt19937_64;

constexpr std::array kDTypes = {DType::F32, DType::F64, DType::F16, DType::BF16,
                                DType::I64, DType::I32, DType::U8,  DType::Bool};
constexpr int64_t kGraphs = 12;     // that a rule rewrites, for each dtype
constexpr int64_t kAttempts = 150;  // to draw one that the pattern can be traced with
constexpr int64_t kMostRank = 4;
constexpr size_t kMostShown = 24;  // elements of a tensor

bool stands_for_any(const Type& type) {
  return type.is_tensor() && !type.as_tensor().shape.ranked() && type.as_tensor().dtype == DType::F32;
}

// Types for the inputs of a pattern, simple ones first, so that the first counterexample is a small one.
class TypeDrawing {
 public:
  TypeDrawing(DType dtype, int64_t attempt, Random& random)
      : dtype_(dtype), attempt_(attempt), random_(random) {
    constexpr int64_t kFirstRanks[] = {1, 1, 2, 0, 4, 3};
    is_simple_ = attempt < std::ssize(kFirstRanks);
    has_equal_sizes_ = is_simple_ ? attempt == 0 : random() % 2 == 0;
    const int64_t rank = is_simple_ ? kFirstRanks[attempt] : draw(1, std::min(1 + attempt / 8, kMostRank));
    const int64_t equal = is_simple_ ? 1 : draw(1, 3);
    for (int64_t axis = 0; axis < rank; ++axis)
      sizes_.push_back(has_equal_sizes_ ? equal : is_simple_ ? 2 + axis % 3 : draw_size());
  }

  Type operator()(const Type& given) {
    if (!given.is_tensor())
      return given;
    const DType dtype = stands_for_any(given) || (is_float(given.as_tensor().dtype) && is_float(dtype_))
                            ? dtype_
                            : given.as_tensor().dtype;
    return Type::tensor(dtype,
                        given.as_tensor().shape.ranked() ? bind(given.as_tensor().shape) : draw_shape());
  }

 private:
  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  int64_t draw_size() { return draw(0, 15) == 0 ? 0 : draw(1, 4); }

  // Most often a shape that broadcasts to that of the others. With equal sizes, also matrices can be
  // multiplied, whatever their ranks.
  std::vector<Dim> draw_shape() {
    const auto rank = static_cast<int64_t>(sizes_.size());
    const int64_t left_out = is_simple_ || draw(0, 1) == 0 ? 0 : draw(0, rank);
    std::vector<Dim> dims;
    for (int64_t axis = left_out; axis < rank; ++axis)
      dims.emplace_back(is_simple_ || draw(0, 5) > 0 ? sizes_[static_cast<size_t>(axis)] : 1);
    return dims;
  }

  std::vector<Dim> bind(const Shape& shape) {
    std::vector<Dim> dims;
    for (const Dim& dim : shape.dims()) {
      for (const std::string& symbol : dim.symbols())
        bindings_.try_emplace(symbol, is_simple_ ? attempt_ % 4 + 1 : draw_size());
      dims.emplace_back(dim.evaluate(bindings_).value_or(draw(1, 4)));
    }
    return dims;
  }

  DType dtype_;
  int64_t attempt_;
  Random& random_;
  bool is_simple_, has_equal_sizes_;
  std::vector<int64_t> sizes_;
  std::map<std::string, int64_t> bindings_;
};

// Some of the numbers become those at which functions bend, have poles or change their sign.
Data with_telling_numbers(Data inputs, Numerics numerics, Random& random) {
  std::vector<double> numbers = {0.0, -0.0, 1, -1, 0.5, 2, -3};
  if (numerics == Numerics::BitExact)
    numbers.insert(numbers.end(), {NAN, INFINITY, -INFINITY, 1e30, -1e-30});
  for (Datum& input : inputs) {
    const Tensor& tensor = input.tensor();
    if (tensor.dtype() == DType::Bool)
      continue;
    std::vector<double> elements = widen<double>(tensor);
    for (double& element : elements)
      if (random() % 2 == 0)
        element = is_float(tensor.dtype()) ? numbers[random() % numbers.size()]
                                           : static_cast<double>(random() % 11) - 5;
    input = narrow<double>(tensor.dtype(), tensor.extents(), elements);
  }
  return inputs;
}

// A class of numerics that is not bit-exact says nothing where something on the way is not finite.
bool is_finite_throughout(const RecordedValues& recorded) {
  return std::ranges::all_of(recorded, [](const auto& each) {
    const auto* tensor = std::get_if<Tensor>(&each.second);
    return tensor == nullptr || !is_float(tensor->dtype()) ||
           std::ranges::all_of(widen<double>(*tensor), [](double number) { return std::isfinite(number); });
  });
}

class Verifier {
 public:
  Verifier(const PatternRewrite& rewrite, const RuleOptions& options)
      : rewrite_(rewrite), options_(options), random_(options.seed) {
    result_.rule = fmt::format("{}: {}", rewrite.name, formula_of(rewrite));
    result_.numerics = rewrite.numerics;
  }

  RuleVerification run() {
    for (DType dtype : dtypes()) {
      verify_for(dtype);
      if (result_.counterexample)
        break;
    }
    if (result_.counterexample)
      result_.verdict = Verdict::Failed;
    else if (result_.samples > 0)
      result_.verdict = Verdict::Passed;
    else
      result_.detail = why_unknown();
    return std::move(result_);
  }

 private:
  // Those that make a difference.
  std::vector<DType> dtypes() const {
    const auto is_any = [](const TracedInput& input) { return stands_for_any(input.type); };
    const auto is_some_float = [](const TracedInput& input) {
      return input.type.is_tensor() && is_float(input.type.as_tensor().dtype);
    };
    if (std::ranges::all_of(rewrite_.inputs, is_any))
      return {kDTypes.begin(), kDTypes.end()};
    if (!std::ranges::any_of(rewrite_.inputs, is_some_float))
      return {DType::F32};  // of no input
    std::vector<DType> floats;
    std::ranges::copy_if(kDTypes, std::back_inserter(floats), [](DType dtype) { return is_float(dtype); });
    return floats;
  }

  void verify_for(DType dtype) {
    const int64_t samples_before = result_.samples;
    int64_t rewritten = 0;
    for (int64_t attempt = 0; attempt < kAttempts && rewritten < kGraphs && !result_.counterexample;
         ++attempt) {
      TypeDrawing draw(dtype, attempt, random_);
      TracedInputs inputs;
      for (const TracedInput& input : rewrite_.inputs)
        inputs.emplace_back(draw(input.type), input.name);
      if (const std::unique_ptr<Graph> graph = trace_pattern(inputs))
        rewritten += verify_on(*graph);
    }
    if (result_.samples > samples_before)
      result_.dtypes.push_back(dtype);
  }

  // Null where the pattern has no meaning for these.
  std::unique_ptr<Graph> trace_pattern(const TracedInputs& inputs) {
    try {
      std::unique_ptr<Graph> graph = trace(inputs, rewrite_.pattern);
      was_traced_ = true;
      return graph;
    } catch (const InternalError&) {
      throw;
    } catch (const std::exception& error) {
      if (not_traced_.empty())
        not_traced_ = error.what();
      return nullptr;
    }
  }

  // Whether the rule rewrites the graph.
  bool verify_on(const Graph& graph) {
    bool is_rewritten = false;
    const int64_t samples_before = result_.samples;
    const auto verify = [&](const Data& inputs) {
      const std::unique_ptr<Graph> copy = graph.clone();
      RecordedValues recorded = record_values(*copy, inputs);
      if (rewrite_.numerics == Numerics::BitExact || is_finite_throughout(recorded))
        is_rewritten = verify_with(graph, *copy, inputs, std::move(recorded)) || is_rewritten;
    };
    for (const Spread& spread : spreads()) {
      if (result_.counterexample)
        break;
      try {
        run_on_random_inputs(graph, random_, spread, verify);
        verify(with_telling_numbers(random_inputs(graph, random_, spread), rewrite_.numerics, random_));
      } catch (const UserError&) {
        // The pattern itself takes no such numbers: indices out of range, say.
      }
      if (!is_rewritten)
        break;
    }
    result_.graphs += result_.samples > samples_before ? 1 : 0;
    return is_rewritten;
  }

  bool verify_with(const Graph& before, Graph& graph, const Data& inputs, RecordedValues recorded) {
    Journal journal(NumericsBudget::Fast);
    std::vector<RewriteCheck> checks;
    try {
      checks = check_rewrites(graph, std::move(recorded), journal,
                              [&] { replace_pattern(graph, rewrite_, journal); },
                              {.tolerance = options_.tolerance});
    } catch (const UserError& error) {
      result_.counterexample = {
          before.clone(),
          nullptr,
          inputs,
          evaluate(before, inputs),
          {},
          fmt::format("{}\n  hint: where a replacement does not fit, it may return none", error.what())};
      return true;
    }
    if (checks.empty())
      return false;
    const std::vector<std::string> problems = lint(graph);
    if (const Check& check = checks.front().numbers; !problems.empty() || check.verdict == Verdict::Failed)
      fail(before, graph, inputs, problems.empty() ? check.detail : problems.front());
    else if (check.verdict == Verdict::Passed)
      ++result_.samples;
    return true;
  }

  void fail(const Graph& before, const Graph& after, const Data& inputs, const std::string& problem) {
    Data actual;
    try {
      actual = evaluate(after, inputs);
    } catch (const UserError&) {
      // The problem says why.
    }
    result_.counterexample = {before.clone(),           after.clone(),     inputs,
                              evaluate(before, inputs), std::move(actual), problem};
  }

  std::string why_unknown() const {
    constexpr std::string_view kHint = "\n  hint: give types for its inputs, such as f32[n,8]";
    if (!was_traced_)
      return fmt::format("the pattern can be traced with none of the types that were drawn: {}{}",
                         not_traced_, kHint);
    return fmt::format(
        "the rule rewrites none of the graphs that were drawn, or nothing in them could be compared{}",
        kHint);
  }

  const PatternRewrite& rewrite_;
  const RuleOptions& options_;
  Random random_;
  RuleVerification result_;
  bool was_traced_ = false;
  std::string not_traced_;  // why the pattern was not, for the first types
};

std::string describe(const std::string& name, const Datum& datum) {
  if (!std::holds_alternative<Tensor>(datum))
    return fmt::format("  {}: {}\n", name, type_of(datum));
  std::vector<std::string> elements = element_texts(datum.tensor(), kPlainNumbers);
  if (elements.size() > kMostShown) {
    elements.resize(kMostShown);
    elements.emplace_back("…");
  }
  return fmt::format("  {}: {} = [{}]\n", name, type_of(datum), fmt::join(elements, ", "));
}

std::string describe(const RuleCounterexample& counterexample) {
  std::string text;
  const std::vector<Value> inputs = counterexample.before->inputs();
  for (size_t i = 0; i < inputs.size(); ++i)
    text += describe(inputs[i].name(), counterexample.inputs[i]);
  for (size_t i = 0; i < counterexample.expected.size(); ++i) {
    text += describe("expected", counterexample.expected[i]);
    if (!counterexample.actual.empty())
      text += describe("got", counterexample.actual[i]);
  }
  text += "\nbefore:\n" + print(*counterexample.before);
  if (counterexample.after)
    text += "\nafter:\n" + print(*counterexample.after);
  return text;
}

}  // namespace

RuleVerification verify_rule(const PatternRewrite& rewrite, const RuleOptions& options) {
  RuleVerification result = Verifier(rewrite, options).run();
  if (result.verdict != Verdict::Failed)
    return result;
  for (Numerics looser : {Numerics::Reassociates, Numerics::AssumesFinite, Numerics::ChangesPrecision}) {
    if (looser <= rewrite.numerics)
      continue;
    PatternRewrite promising_less = rewrite;
    promising_less.numerics = looser;
    if (Verifier(promising_less, options).run().verdict == Verdict::Passed) {
      result.holds_as = looser;
      break;
    }
  }
  return result;
}

std::string describe(const RuleVerification& verification) {
  const std::string rule = verification.rule + '\n';
  const std::string_view numerics = name(verification.numerics);
  switch (verification.verdict) {
    case Verdict::Passed: {
      std::vector<std::string_view> dtypes;
      for (DType dtype : verification.dtypes)
        dtypes.push_back(name(dtype));
      return fmt::format("{}ok as {}, for {} samples of {} graphs: {}\n", rule, numerics,
                         verification.samples, verification.graphs, fmt::join(dtypes, ", "));
    }
    case Verdict::Failed: {
      const std::string loosely =
          verification.holds_as ? fmt::format("It holds as {}.\n", name(*verification.holds_as)) : "";
      return fmt::format("{}FAILED as {}: {}\n{}{}", rule, numerics, verification.counterexample->problem,
                         describe(*verification.counterexample), loosely);
    }
    default:
      return fmt::format("{}unknown: {}\n", rule, verification.detail);
  }
}

}  // namespace tenon
