#include "onnxruntime/provider.h"

#include <algorithm>
#include <charconv>

#include "api/default_context.h"
#include "onnxruntime/compiled_graph.h"
#include "onnxruntime/read_graph.h"
#include "onnxruntime/status.h"
#include "target/target.h"

namespace tenon::onnxruntime {
namespace {

// --- options, which a session has as ep.tenonexecutionprovider.NAME

std::string read_option(const Ort::ConstSessionOptions& options, std::string_view name,
                        const std::string& otherwise) {
  std::string key = fmt::format("ep.{}.{}", kProviderName, name);
  std::ranges::transform(key, key.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return options.GetConfigEntryOrDefault(key.c_str(), otherwise);
}

int read_threads(const std::string& text) {
  constexpr int kMost = 1024;
  int threads = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, threads);
  if (problem != std::errc() || stop != end || threads < 0 || threads > kMost)
    throw user_error("threads must be 0 to {}, but is '{}'", kMost, text);
  return threads == 0 ? this_machine().cores : threads;
}

MatmulPrecision read_precision(const std::string& text) {
  if (text != "f32" && text != "bf16")
    throw user_error("precision must be f32 or bf16, but is '{}'", text);
  return text == "f32" ? MatmulPrecision::F32 : MatmulPrecision::BF16;
}

compiler::CompileContext read_context(const Ort::ConstSessionOptions& options) {
  return api::default_context({.numerics = parse_numerics_budget(read_option(options, "numerics", "default")),
                               .precision = read_precision(read_option(options, "precision", "f32")),
                               .threads = read_threads(read_option(options, "threads", "0")),
                               .device = "cpu"});
}

// --- what runs in a graph's place

struct ComputeInfo : OrtNodeComputeInfo {
  ComputeInfo(const Ort::ConstGraph& graph, const Ort::ConstNode& node,
              const compiler::CompileContext& context)
      : OrtNodeComputeInfo{}, compiled(graph, node, context) {
    ort_version_supported = kApiVersion;
    CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) noexcept -> OrtStatus* {
      *state = nullptr;
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* call) noexcept {
      return guard([&] { static_cast<ComputeInfo*>(self)->compiled.run(Ort::KernelContext(call)); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
  }

  CompiledGraph compiled;
};

struct Provider : OrtEp {
  Provider(compiler::CompileContext how, Ort::Logger where)
      : OrtEp{}, context(std::move(how)), logger(std::move(where)) {
    ort_version_supported = kApiVersion;
    GetName = [](const OrtEp*) noexcept { return kProviderName; };
    GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* taken) noexcept {
      return guard([&] { static_cast<Provider*>(self)->take(Ort::ConstGraph(graph), *taken); });
    };
    Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** nodes, size_t count,
                 OrtNodeComputeInfo** made, OrtNode**) noexcept {
      return guard([&] {
        for (size_t i = 0; i < count; ++i)
          made[i] = new ComputeInfo(Ort::ConstGraph(graphs[i]), Ort::ConstNode(nodes[i]),
                                    static_cast<Provider*>(self)->context);
      });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
      for (size_t i = 0; i < count; ++i)
        delete static_cast<ComputeInfo*>(infos[i]);
    };
  }

  // The whole graph or nothing. A nested one goes with the node that it is in.
  void take(const Ort::ConstGraph& graph, OrtEpGraphSupportInfo& taken) const {
    const std::vector<Ort::ConstNode> nodes = graph.GetNodes();
    if (nodes.empty() || static_cast<const OrtNode*>(graph.GetParentNode()) != nullptr)
      return;
    try {
      check_passable(*read_graph(graph, Weights::View));
    } catch (const UserError& error) {
      say(fmt::format("Tenon leaves the graph to other providers: {}", error.what()));
      return;
    }
    const std::vector<const OrtNode*> all(nodes.begin(), nodes.end());
    // Weights are packed, or copied, when the graph is compiled.
    OrtNodeFusionOptions options{};
    options.ort_version_supported = kApiVersion;
    options.drop_constant_initializers = true;
    Ort::ThrowOnError(
        Ort::GetEpApi().EpGraphSupportInfo_AddNodesToFuse(&taken, all.data(), all.size(), &options));
  }

  void say(const std::string& message) const {
    logger.LogMessage(ORT_LOGGING_LEVEL_WARNING, ORT_FILE, __LINE__, __FUNCTION__, message.c_str());
  }

  const compiler::CompileContext context;
  Ort::Logger logger;
};

}  // namespace

OrtEp* make_provider(const Ort::ConstSessionOptions& options, Ort::Logger logger) {
  return new Provider(read_context(options), std::move(logger));
}

void free_provider(OrtEp* provider) { delete static_cast<Provider*>(provider); }

}  // namespace tenon::onnxruntime
