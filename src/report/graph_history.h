// graph_history.h — a graph over time: every node that ever was, with a number of its own, and what each pass
// added, removed and connected otherwise.
#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace tenon {

// What a node reads: which node makes it, and which of its results it is.
struct SeenValue {
  int64_t node, result;

  friend bool operator==(const SeenValue&, const SeenValue&) = default;
};

// A node, or an input or output of a graph.
struct SeenNode {
  std::string op, name;
  std::string type;  // of its results, as printed; when it first appeared, like what it reads
  std::vector<SeenValue> inputs;
  std::string attributes;            // as printed
  std::vector<std::string> sources;  // nodes of the user's model; all that it came to stand for
  std::string kind;     // compute, data, shape, control, memory; constant, parameter, input, output
  int64_t parent = -1;  // the node in whose nested graph it is; -1 at the top level
  std::string region;   // and the name of that graph there
};

// What the graph became, beside what it was.
struct GraphStage {
  std::string name;
  int64_t nodes = 0;  // constants and parameters not counted
  double milliseconds = 0;
  int64_t changes = 0;  // rewrites
  std::vector<int64_t> added = {}, removed = {};
  std::vector<std::pair<int64_t, std::vector<SeenValue>>> rewired = {};  // what they read now
  std::vector<std::pair<int64_t, std::string>> retyped = {};
  // Those that from now on follow from constants and parameters alone, with these themselves; those that no
  // longer do.
  std::vector<int64_t> fixed = {}, unfixed = {};
};

class GraphHistory {
 public:
  // The graph as it is now. A node is known again by its address, if it looks the same otherwise.
  void record(std::string stage, const Graph& graph);

  // Of a node of the graph that was recorded last.
  int64_t number_of(const Node& node) const { return now_.at({&node, 0}).number; }
  const std::vector<SeenNode>& nodes() const { return nodes_; }
  const std::vector<GraphStage>& stages() const { return stages_; }
  std::vector<GraphStage>& stages() { return stages_; }

 private:
  // Of a node or an input, by its address; of an output, by that of the return node and its place there.
  using Key = std::pair<const void*, size_t>;
  struct Known {
    int64_t number;
    std::vector<SeenValue> inputs;
    std::string type;
    bool is_fixed;
  };
  using Table = std::map<Key, Known>;

  void see_graph(const Graph& graph, int64_t parent, const std::string& region);
  void see_node(const Node& node, int64_t parent, const std::string& region);
  int64_t see(Key key, SeenNode seen, bool is_fixed);
  std::vector<SeenValue> seen(const std::vector<Value>& values) const;

  std::vector<SeenNode> nodes_;
  std::vector<GraphStage> stages_;
  Table before_, now_;
  std::unordered_set<const Node*> running_;  // of the graph that is recorded
};

}  // namespace tenon
