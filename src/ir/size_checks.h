// size_checks.h — whether the sizes that symbols stand for go together, asked again and again for other
// sizes.
#pragma once

#include <mutex>

#include "ir/fit.h"
#include "ir/graph.h"

namespace tenon {

// A node by itself in a graph, whose inputs are its operands, and what is known of their elements.
struct SizeCheckText {
  std::string graph;
  std::vector<std::optional<Content>> contents;
};

// What sizes a node takes, its infer knows, so that is asked once more with numbers for symbols. Models
// repeat themselves, and mostly few of their sizes change from run to run: nodes that are alike are asked
// once, and only for sizes that they were not asked for lately. What control flow gives may have any sizes,
// because which way it goes, and so what must fit, is known only by running.
class SizeChecks {
 public:
  explicit SizeChecks(const Graph& graph);
  explicit SizeChecks(const std::vector<SizeCheckText>& texts);

  // What the same checks are made of again.
  std::vector<SizeCheckText> texts() const;

  // Whether all sizes are known, so that there is nothing to check.
  bool empty() const { return parts_.empty(); }

  // Sizes that do not go together are a user_error. Nodes of which not all symbols are bound are left out.
  // Several threads may ask at once.
  void check(const Bindings& sizes);

 private:
  // A node by itself, its operands the inputs of a graph.
  struct Part {
    std::unique_ptr<Graph> graph;
    const Node* node;
    Types types;                                   // of the inputs
    std::vector<std::optional<Content>> contents;  // that are known of them
    std::vector<size_t> symbols;                   // by number
    std::vector<std::vector<int64_t>> passed;      // what the symbols stood for lately
  };

  Part make_part(const Node& node);
  void number_symbols(Part& part);
  static void infer(Part& part, const std::map<std::string, Dim>& sizes);

  std::mutex mutex_;
  std::map<std::string, size_t> symbols_;  // their numbers
  std::vector<Part> parts_;
};

}  // namespace tenon
