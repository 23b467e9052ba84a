#include "report/modules.h"

#include <algorithm>

#include "ir/print.h"

namespace tenon {
namespace {

std::string with_slashes(std::string_view dotted) {
  std::string path(dotted);
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

// Nothing where a name holds no module.
std::optional<std::string> module_in(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos)
    return std::nullopt;
  // Components of ONNX's scopes may have dots of their own: /encoder/layer.0/MatMul.
  return name.front() == '/' ? std::string(name.substr(1, slash == 0 ? 0 : slash - 1))
                             : with_slashes(name.substr(0, slash));
}

std::optional<std::string> module_of_parameter(Value value) {
  if (value.is_input() || !value.node()->is("parameter"))
    return std::nullopt;
  const std::string& name = value.name();
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::nullopt : std::optional(with_slashes(name.substr(0, dot)));
}

std::optional<std::string> module_of(const Node& node) {
  for (const std::string& source : node.sources())
    if (std::optional<std::string> module = module_in(source))
      return module;
  std::optional<std::string> common;
  for (Value operand : node.operands())
    if (operand)
      if (const std::optional<std::string> module = module_of_parameter(operand))
        common = common ? common_module(*common, *module) : *module;
  return common;
}

// What all modules that nodes are known to belong to have in common.
std::string common_root(const Graph& graph) {
  std::optional<std::string> common;
  for (const Node* node : graph.nodes())
    if (const std::optional<std::string> module = module_of(*node))
      common = common ? common_module(*common, *module) : *module;
  return common.value_or("");
}

}  // namespace

void name_nodes(Graph& as_read) {
  for_each_graph(as_read, [](Graph& graph) {
    const ValueNames names(graph);
    for (Node* node : graph.nodes())
      if (node->sources().empty() && node->result_count() > 0 && node->op().category != Category::Data)
        node->set_sources({fmt::format("%{} {}", names.of(node->result()), node->op().name)});
  });
}

Modules::Modules(const Graph& as_read) { add(as_read); }

void Modules::add(const Graph& graph) {
  const std::string root = common_root(graph);
  std::string before = root;
  std::vector<const Node*> open;  // since the last node whose module is known
  const auto close = [&](const std::string& after) {
    const std::string common = common_module(before, after);
    for (const Node* node : open)
      for (const std::string& source : node->sources())
        modules_.emplace(source, common);
    open.clear();
    before = after;
  };
  for (const Node* node : graph.nodes()) {
    for (const auto& region : node->regions())
      add(*region);
    if (node->sources().empty())
      continue;
    const std::optional<std::string> module = module_of(*node);
    if (!module) {
      open.push_back(node);
      continue;
    }
    close(*module);
    for (const std::string& source : node->sources())
      modules_.emplace(source, *module);
  }
  close(root);
}

std::string Modules::of(const std::vector<std::string>& sources) const {
  std::optional<std::string> common;
  for (const std::string& source : sources)
    if (const auto known = modules_.find(source); known != modules_.end())
      common = common ? common_module(*common, known->second) : known->second;
  return common.value_or("");
}

std::string common_module(std::string_view a, std::string_view b) {
  size_t end = 0;
  for (size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '/', b_ends = i == b.size() || b[i] == '/';
    if (a_ends && b_ends)
      end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i])
      break;
  }
  return std::string(a.substr(0, end));
}

std::string cut_module(std::string_view module, size_t depth) {
  size_t end = 0;
  for (; depth > 0 && end < module.size(); --depth)
    end = std::min(module.find('/', end == 0 ? 0 : end + 1), module.size());
  return std::string(module.substr(0, end));
}

}  // namespace tenon
