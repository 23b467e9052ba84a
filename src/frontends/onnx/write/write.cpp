#include "frontends/onnx/write/write.h"

#include "base/error.h"
#include "base/write_file.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/tensor_proto.h"
#include "frontends/onnx/write/draft.h"
#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/legalise.h"
#include "frontends/onnx/write/schemas.h"

namespace tenon::onnx {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kAlignment = 64;   // of weights in a file of their own
constexpr uint64_t kSmallest = 1024;  // bytes: smaller weights stay in the model, where shapes are read
constexpr uint64_t kMostInModel = 1u << 30;  // bytes: half of what the format can count

void check_opset(const WriteOptions& options) {
  if (options.opset && (*options.opset < kOldestWritten || *options.opset > kNewestOpset))
    throw user_error("opset {} cannot be written, only {} to {}", *options.opset, kOldestWritten,
                     kNewestOpset);
}

// From the end, so that what only they use is gone too.
void erase_dead(Graph& graph) {
  std::vector<Node*> nodes = graph.nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const std::vector<Value> results = (*it)->results();
    if (std::ranges::all_of(results, [](Value result) { return result.use_count() == 0; }))
      graph.erase(*it);
  }
}

bool may_go_outside(const DraftInitializer& weight) {
  return !weight.tensor && weight.value.dtype() != DType::String && size_in_file(weight.value) >= kSmallest;
}

uint64_t total_size(const Draft& draft) {
  uint64_t total = 0;
  for (const DraftInitializer& weight : draft.initializers)
    total += may_go_outside(weight) ? size_in_file(weight.value) : 0;
  return total;
}

// The elements of weights, one after another, in a file of their own.
class DataFile {
 public:
  DataFile(const fs::path& path, std::string location) : location_(std::move(location)), file_(path) {}

  ExternalData append(Value value) {
    file_.append(std::string((kAlignment - file_.size() % kAlignment) % kAlignment, '\0'));
    const ExternalData where = {location_, file_.size(), size_in_file(value)};
    with_packed(value, [&](std::span<const std::byte> bytes) { file_.append(bytes); });
    CHECK(file_.size() == where.offset + where.size, "{} bytes were written, not {}",
          file_.size() - where.offset, where.size);
    return where;
  }

  void close() { file_.close(); }
  uint64_t size() const { return file_.size(); }

 private:
  std::string location_;
  FileWriter file_;
};

// Gives the bytes in the file of weights.
uint64_t write_with_data(const Draft& draft, const fs::path& path) {
  fs::path data_path = path;
  data_path += ".data";
  std::vector<std::string> weights;
  uint64_t size = 0;
  const auto write_data = [&](const fs::path& temporary) {
    DataFile file(temporary, data_path.filename());
    for (const DraftInitializer& weight : draft.initializers)
      weights.push_back(may_go_outside(weight) ? encode_weight(weight, file.append(weight.value))
                                               : encode_weight(weight));
    file.close();
    size = file.size();
  };
  const auto write_model = [&](const fs::path& temporary) {
    write_content(temporary, encode_model(draft, weights));
  };
  write_files({{data_path, write_data}, {path, write_model}});
  return size;
}

void write_whole(const Draft& draft, const fs::path& path) {
  std::vector<std::string> weights;
  for (const DraftInitializer& weight : draft.initializers)
    weights.push_back(encode_weight(weight));
  write_file(path, encode_model(draft, weights));
}

// Of a copy of the graph, which lives as long as the draft does.
struct DraftOfCopy {
  DraftOfCopy(const Graph& graph, const WriteOptions& options) : copy(graph.clone()) {
    erase_dead(*copy);
    ConstantExpressions constants;
    legalise(*copy, constants, {options.opset, options.avoided});
    draft = make_draft(*copy, constants, {options.opset, options.wanted_opset});
  }

  std::unique_ptr<Graph> copy;
  Draft draft;
};

void count_sources(const DraftGraph& graph, std::map<std::string, int64_t, std::less<>>& nodes_of) {
  for (const DraftNode& node : graph.nodes) {
    if (node.sources.size() == 1)
      ++nodes_of[node.sources.front()];
    for (const auto& [name, nested] : node.graphs)
      count_sources(*nested, nodes_of);
  }
}

}  // namespace

Written write_onnx(const Graph& graph, const fs::path& path, const WriteOptions& options) {
  check_opset(options);
  check_writable(path);
  const DraftOfCopy drafted(graph, options);
  const Draft& draft = drafted.draft;
  Written written = {.opset = draft.opset, .newest_op = draft.newest_op, .nodes = count_nodes(draft.graph)};
  if (total_size(draft) > std::min(options.most_inside, kMostInModel))
    written.data_bytes = write_with_data(draft, path);
  else
    write_whole(draft, path);
  return written;
}

Outline outline_onnx(const Graph& graph, const WriteOptions& options) {
  check_opset(options);
  const DraftOfCopy drafted(graph, options);
  Outline outline;
  std::vector<std::string> weights;
  for (const DraftInitializer& weight : drafted.draft.initializers) {
    weights.push_back(weight.tensor ? encode_weight(weight) : encode_head(weight));
    if (!weight.tensor && weight.value.dtype() != DType::String)
      outline.weight_bytes += size_in_file(weight.value);
  }
  outline.model = encode_model(drafted.draft, weights);
  count_sources(drafted.draft.graph, outline.nodes_of);
  return outline;
}

std::set<std::string> find_unwritable(const Graph& graph, const WriteOptions& options) {
  const std::unique_ptr<Graph> copy = graph.clone();
  erase_dead(*copy);
  ConstantExpressions constants;
  return find_unwritable(*copy, constants, {options.opset, options.avoided});
}

}  // namespace tenon::onnx
