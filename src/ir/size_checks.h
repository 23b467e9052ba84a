// size_checks.h — whether the sizes that symbols stand for go together, asked again and again for other
// sizes.
#pragma once

#include <mutex>

#include "ir/graph.h"
#include "ir/size_condition.h"

namespace tenon {

// What sizes a node takes, its infer knows, so that is asked once more with numbers for symbols. Models
// repeat themselves, and mostly few of their sizes change from run to run: nodes that are alike are asked
// once, and only for sizes that they were not asked for lately. What control flow gives may have any sizes,
// because which way it goes, and so what must fit, is known only by running.
class SizeChecks : public SizeCheck {
 public:
  explicit SizeChecks(const Graph& graph);

  // Whether all sizes are known, so that there is nothing to check.
  bool empty() const { return parts_.empty(); }

  void check(const Bindings& sizes) override;
  std::vector<SizeCondition> conditions() const override;

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
  static void infer(const Part& part, const std::map<std::string, Dim>& sizes);

  mutable std::mutex mutex_;
  std::map<std::string, size_t> symbols_;  // their numbers
  std::vector<Part> parts_;
};

}  // namespace tenon
