// compile.cpp — models compiled.
#include "compiler/compile.h"

#include "api/default_context.h"
#include "api/model.h"
#include "api/program.h"
#include "api/sized_struct.h"
#include "api/status.h"
#include "compiler/tuned_choices.h"
#include "passes/pipeline.h"

using namespace tenon;
using namespace tenon::api;

namespace {

MatmulPrecision precision_of(const tenon_compile_options& options) {
  switch (options.precision) {
    case TENON_PRECISION_F32:
      return MatmulPrecision::F32;
    case TENON_PRECISION_BF16:
      return MatmulPrecision::BF16;
    default:
      throw user_error("precision cannot be {}", options.precision);
  }
}

std::string device_of(const tenon_compile_options& options) {
  const tenon_device& device = options.device;
  if (device.index < 0 ||
      (device.type == TENON_DEVICE_CPU ? device.index > 0 : device.type != TENON_DEVICE_CUDA))
    throw user_error("programs cannot run on {}", name_of(device));
  return device.type == TENON_DEVICE_CPU ? "cpu" : name_of(device);
}

compiler::CompileContext context_of(const tenon_compile_options& options) {
  compiler::CompileContext context = default_context({.numerics = numerics_of(options.numerics),
                                                      .precision = precision_of(options),
                                                      .threads = count_threads(options.threads),
                                                      .device = device_of(options)});
  if (options.cache_folder == nullptr)
    return context;
  const std::string folder = options.cache_folder;
  context.cache = folder.empty() ? std::nullopt : std::optional(codegen::ObjectCache(folder));
  context.tuning = compiler::tuned_choices(context.cache);
  return context;
}

std::unique_ptr<Graph> bind_all(const Graph& graph, const tenon_compile_options& options) {
  std::unique_ptr<Graph> bound = graph.clone();
  if (options.dimension_count > 0)
    given(options.dimensions, "dimensions");
  for (size_t i = 0; i < options.dimension_count; ++i)
    bound = bind_dimension(*bound, &given(options.dimensions[i].name, "the name of a dimension"),
                           options.dimensions[i].size);
  return bound;
}

// Tells the caller how far compiling is.
class Listener {
 public:
  explicit Listener(const tenon_compile_options& options) : options_(options) {}

  PipelineOptions passes() {
    PipelineOptions passes;
    if (options_.on_progress != nullptr)
      passes.before_pass = [this](const Pass& pass, int64_t) {
        options_.on_progress(options_.user_data, std::string(pass.name).c_str(), ++passes_, 0);
      };
    return passes;
  }

  void listen(compiler::CompileContext& context) {
    if (options_.on_progress != nullptr)
      context.before_kernel = [this](int64_t kernels) {
        options_.on_progress(options_.user_data, "kernel", ++kernels_, kernels);
      };
  }

  void tell(const std::set<Remark>& remarks) const {
    if (options_.on_remark != nullptr)
      for (const Remark& remark : remarks)
        options_.on_remark(options_.user_data, remark.node.c_str(), remark.pass.c_str(),
                           remark.reason.c_str());
  }

 private:
  const tenon_compile_options& options_;
  int64_t passes_ = 0, kernels_ = 0;
};

}  // namespace

tenon_status tenon_compile(const tenon_model* model, const tenon_compile_options* options,
                           tenon_program** program) {
  return guard([&] {
    const Graph& loaded = *given(model, "model").graph;
    tenon_program*& made = given(program, "program");  // first, lest what is made is lost
    const tenon_compile_options asked = read_options(options);
    compiler::CompileContext context = context_of(asked);
    Listener listener(asked);
    listener.listen(context);
    const std::unique_ptr<Graph> graph = bind_all(loaded, asked);
    Journal journal(context.numerics);
    optimize(*graph, journal, listener.passes());
    listener.tell(journal.remarks());
    made = new tenon_program(compiler::compile(*graph, context), asked.device);
  });
}
