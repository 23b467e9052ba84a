#include "onnxruntime/provider.h"

#include <algorithm>
#include <charconv>

#include "api/targets_to_save.h"
#include "base/scratch_folder.h"
#include "onnxruntime/compatibility.h"
#include "onnxruntime/compile_graph.h"
#include "onnxruntime/compiled_graph.h"
#include "onnxruntime/context_node.h"
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

bool read_flag(const std::string& text) {
  if (text != "0" && text != "1")
    throw user_error("check_weights must be 0 or 1, but is '{}'", text);
  return text == "1";
}

struct Options {
  explicit Options(const Ort::ConstSessionOptions& session)
      : how{.numerics = parse_numerics_budget(read_option(session, "numerics", "default")),
            .precision = read_precision(read_option(session, "precision", "f32")),
            .threads = read_threads(read_option(session, "threads", "0")),
            .device = "cpu"},
        targets(read_option(session, "target", api::kNativeTarget)),
        check_weights(read_flag(read_option(session, "check_weights", "0"))),
        context(read_context_options(session)) {}

  api::ContextOptions how;
  std::string targets;  // of a program that is written
  bool check_weights;   // of one that is opened
  ContextModelOptions context;
};

// --- what runs in a graph's place

struct ComputeInfo : OrtNodeComputeInfo {
  ComputeInfo(std::shared_ptr<const runtime::Executor> program, const Ort::ConstNode& node, int threads)
      : OrtNodeComputeInfo{}, compiled(std::move(program), node, threads) {
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
  Provider(const Ort::ConstSessionOptions& session, Ort::Logger where)
      : OrtEp{}, options(session), logger(std::move(where)) {
    ort_version_supported = kApiVersion;
    GetName = [](const OrtEp*) noexcept { return kProviderName; };
    GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* taken) noexcept {
      return guard([&] { static_cast<Provider*>(self)->take(Ort::ConstGraph(graph), *taken); });
    };
    Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** nodes, size_t count,
                 OrtNodeComputeInfo** made, OrtNode** context_nodes) noexcept {
      return guard([&] {
        auto& provider = *static_cast<Provider*>(self);
        // Where one fails, ONNX Runtime releases none.
        std::vector<std::unique_ptr<ComputeInfo>> infos;
        for (size_t i = 0; i < count; ++i) {
          const Ort::ConstNode node(nodes[i]);
          infos.push_back(std::make_unique<ComputeInfo>(
              provider.make_program(Ort::ConstGraph(graphs[i]), node, context_nodes[i]), node,
              provider.options.how.threads));
        }
        for (size_t i = 0; i < count; ++i)
          made[i] = infos[i].release();
      });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
      for (size_t i = 0; i < count; ++i)
        delete static_cast<ComputeInfo*>(infos[i]);
    };
    GetCompiledModelCompatibilityInfo = [](OrtEp* self, const OrtGraph*) noexcept {
      return static_cast<Provider*>(self)->compatibility.c_str();
    };
  }

  // Programs that were saved, each by itself, as nobody else runs them. Else the whole graph or nothing; a
  // nested one goes with the node that it is in.
  void take(const Ort::ConstGraph& graph, OrtEpGraphSupportInfo& taken) const {
    const std::vector<Ort::ConstNode> nodes = graph.GetNodes();
    bool has_programs = false;
    for (const Ort::ConstNode& node : nodes)
      if (is_context_node(node)) {
        fuse({node}, taken);
        has_programs = true;
      }
    if (nodes.empty() || has_programs || static_cast<const OrtNode*>(graph.GetParentNode()) != nullptr)
      return;
    try {
      check_graph(graph);
    } catch (const UserError& error) {
      say(fmt::format("Tenon leaves the graph to other providers: {}", error.what()));
      return;
    }
    fuse({nodes.begin(), nodes.end()}, taken);
  }

  static void fuse(const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo& taken) {
    // Weights are packed, or copied, when the graph is compiled.
    OrtNodeFusionOptions fusion{};
    fusion.ort_version_supported = kApiVersion;
    fusion.drop_constant_initializers = true;
    Ort::ThrowOnError(
        Ort::GetEpApi().EpGraphSupportInfo_AddNodesToFuse(&taken, nodes.data(), nodes.size(), &fusion));
  }

  // What runs in the graph's place. Where the session writes a model, `context_node` is what stands for the
  // graph there.
  std::shared_ptr<const runtime::Executor> make_program(const Ort::ConstGraph& graph,
                                                        const Ort::ConstNode& fused, OrtNode*& context_node) {
    const std::filesystem::path path = graph.GetModelPath();
    const std::vector<Ort::ConstNode> nodes = graph.GetNodes();
    if (nodes.size() == 1 && is_context_node(nodes.front()))
      return open_context(nodes.front(), (path.empty() ? options.context.model : path).parent_path(),
                          options.check_weights);
    if (!options.context.is_written)
      return compile_graph(graph, api::default_context(options.how));
    const ScratchFolder scratch;
    const bool is_embedded = options.context.is_embedded;
    const std::filesystem::path file =
        is_embedded ? scratch.path() / "program.tnp" : program_path(options.context, path);
    const std::vector<compiler::TargetToSave> targets =
        with_context([] { return "target"; },
                     [&] {
                       auto named = api::targets_to_save(options.targets, options.how);
                       check_runs_here(named);
                       return named;
                     });
    save_graph(graph, targets, file);
    const auto program = runtime::ProgramFile::open(file);
    compatibility = describe_compatibility(*program);
    context_node = make_context_node(fused, *program, is_embedded).release();
    return compiler::open_program(*program).executor;
  }

  void say(const std::string& message) const {
    logger.LogMessage(ORT_LOGGING_LEVEL_WARNING, ORT_FILE, __LINE__, __FUNCTION__, message.c_str());
  }

  const Options options;
  std::string compatibility;  // of the model that is written
  Ort::Logger logger;
};

}  // namespace

OrtEp* make_provider(const Ort::ConstSessionOptions& options, Ort::Logger logger) {
  return new Provider(options, std::move(logger));
}

void free_provider(OrtEp* provider) { delete static_cast<Provider*>(provider); }

}  // namespace tenon::onnxruntime
