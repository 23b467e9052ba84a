// random_inputs.h — inputs drawn at random from what a graph takes: token ids are within the table they are
// looked up in, and masks are 0 or 1.
#pragma once

#include <limits>
#include <random>

#include "base/error.h"
#include "verify/listener.h"

namespace tenon {

// What is drawn from: for floats the normal distribution times a factor, or what is positive of it; for
// integers what is below a number, or below what is known to bound them.
struct Spread {
  double factor = 1;
  bool is_positive = false;
  int64_t most_integers = std::numeric_limits<int64_t>::max();
  bool shows_first = false;  // whether the first of each row of truth values is true, lest a mask hide all
};

bool takes_integers(const Graph& graph);

// One draw. All sizes must be known; sequences and optionals are for the user to give.
Data random_inputs(const Graph& graph, std::mt19937_64& random, const Spread& spread = {});

// Spreads that tell different things of a graph, the usual one first.
std::span<const Spread> spreads();

// Inputs, and what the graph gives for them.
struct Sample {
  Data inputs, outputs;
};

// What `run` gives for inputs that are drawn. Where it throws an error of the user's, integers are drawn
// smaller: what they are looked up in may be small, and computing with them on the way there hides how small.
template <class Run>
auto run_on_random_inputs(const Graph& graph, std::mt19937_64& random, Spread spread, Run&& run) {
  constexpr int64_t kMostIntegers[] = {std::numeric_limits<int64_t>::max(), 4, 2, 1};
  std::optional<UserError> first;
  for (int64_t most : kMostIntegers) {
    spread.most_integers = most;
    try {
      return run(random_inputs(graph, random, spread));
    } catch (const UserError& error) {
      if (!takes_integers(graph))
        throw;
      if (!first)
        first = error;
    }
  }
  throw *first;
}

// What the graph gives for a draw in which masks leave each query something to attend to, as far as a few
// draws give one: what it gives where all is masked is nobody's concern.
Sample seeing_sample(const Graph& graph, std::mt19937_64& random, const EvaluateOptions& options = {});

// Such a draw for which no output is nearly zero or not a number throughout, as far as a few spreads give
// one: comparing such outputs would prove nothing.
Sample telling_sample(const Graph& graph, std::mt19937_64& random, const EvaluateOptions& options = {});

}  // namespace tenon
