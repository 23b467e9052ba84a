#include "verify/small_sizes.h"

#include "verify/random_inputs.h"
#include "verify/sample_inputs.h"

namespace tenon {
namespace {

using SizeMap = std::map<std::string, Dim>;

// Of most models all sizes may be equal. The larger ones are for those that halve them again and again.
constexpr int64_t kSizes[] = {3, 8, 32, 64, 128, 224};
// What a dimension that is fixed elsewhere in the model may have to be.
constexpr int64_t kUsualSizes[] = {2, 3, 4, 8, 12, 16, 32, 64, 77, 80, 128, 224, 256, 384, 512, 768, 1024, 1};

// Sizes that do not fit are mostly found out without running anything.
constexpr int64_t kMostRuns = 32;

std::set<std::string> symbols_of_inputs(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    symbols.merge(symbols_of(input.type()));
  return symbols;
}

// The symbols that are the first dimension of an input: a batch, which often must be 1.
std::set<std::string> leading_symbols(const Graph& graph) {
  std::set<std::string> leading;
  for (Value input : graph.inputs())
    if (input.type().is_tensor() && input.shape().ranked() && input.rank() > 1 && input.dim(0).is_symbol())
      leading.insert(input.dim(0).symbols().front());
  return leading;
}

// Assignments to try, the likely ones first.
std::vector<SizeMap> candidates(const Graph& graph) {
  const std::set<std::string> symbols = symbols_of_inputs(graph), leading = leading_symbols(graph);
  const auto all = [&](int64_t size, int64_t batch) {
    SizeMap sizes;
    for (const std::string& symbol : symbols)
      sizes.emplace(symbol, leading.contains(symbol) ? batch : size);
    return sizes;
  };
  std::vector<SizeMap> candidates;
  for (int64_t size : kSizes) {
    candidates.push_back(all(size, size));
    candidates.push_back(all(size, 1));
  }
  // One may be the sum of two others, as that of past and new tokens is.
  for (int64_t batch : {8, 1})
    for (const std::string& symbol : symbols) {
      candidates.push_back(all(8, batch));
      candidates.back().at(symbol) = 16;
    }
  // Or it may be fixed elsewhere in the model.
  for (int64_t batch : {8, 1})
    for (const std::string& symbol : symbols)
      for (int64_t size : kUsualSizes) {
        candidates.push_back(all(8, batch));
        candidates.back().at(symbol) = size;
      }
  candidates.push_back(all(1, 1));  // the last, as what is broadcast from one element tells little
  return candidates;
}

std::string text_of(const SizeMap& sizes) {
  std::vector<std::string> texts;
  for (const auto& [symbol, size] : sizes)
    texts.push_back(fmt::format("{}={}", symbol, size));
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace

std::unique_ptr<Graph> with_small_sizes(const Graph& graph, const Listener& listener) {
  if (symbols_of_inputs(graph).empty())
    return graph.clone();
  std::string first_error;
  int64_t runs = 0;
  for (const SizeMap& sizes : candidates(graph)) {
    try {
      std::unique_ptr<Graph> sized = graph.bind(sizes);
      if (++runs > kMostRuns)
        break;
      std::mt19937_64 random(0);
      const EvaluateOptions options =
          heard_by(listener, fmt::format("trying {}, running node", text_of(sizes)), *sized);
      run_on_random_inputs(*sized, random, {},
                           [&](const Data& inputs) { return evaluate(*sized, inputs, options); });
      return sized;
    } catch (const UserError& error) {
      if (first_error.empty())
        first_error = error.what();
    }
  }
  throw user_error("no small sizes fit: {}\n  hint: give the sizes with {}, or inputs with --inputs",
                   first_error, dims_to_bind(graph));
}

std::unique_ptr<Graph> with_sizes_of(const Graph& graph, const Data& inputs) {
  std::map<std::string, Dim> sizes;
  for (Value input : graph.inputs()) {
    const Datum& datum = inputs[static_cast<size_t>(input.index())];
    if (!input.type().is_tensor() || !input.shape().ranked() || !std::holds_alternative<Tensor>(datum) ||
        datum.tensor().rank() != input.rank())
      continue;
    for (int64_t i = 0; i < input.rank(); ++i)
      if (input.dim(i).is_symbol())
        sizes.emplace(input.dim(i).symbols().front(), datum.tensor().extent(i));
  }
  return graph.bind(sizes);
}

}  // namespace tenon
