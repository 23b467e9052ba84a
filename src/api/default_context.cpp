#include "api/default_context.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "compiler/tuned_choices.h"
#include "runtime/cuda/devices.h"

namespace tenon::api {
namespace {

// N of "cuda:N"; nothing where the text is something else.
std::optional<int> cuda_number(std::string_view device) {
  constexpr std::string_view kCuda = "cuda";
  if (!device.starts_with(kCuda))
    return std::nullopt;
  device.remove_prefix(kCuda.size());
  if (device.empty())
    return 0;
  int number = 0;
  const auto [end, error] = std::from_chars(device.data() + 1, device.data() + device.size(), number);
  const bool is_number =
      device.front() == ':' && error == std::errc() && end == device.data() + device.size();
  return is_number && number >= 0 ? std::optional(number) : std::nullopt;
}

void choose_device(compiler::CompileContext& context, std::string_view device) {
  if (device == "cpu")
    return;
  const std::optional<int> number = cuda_number(device);
  const std::vector<std::string_view> names = gpu_names();
  if (!number && std::ranges::find(names, device) == names.end())
    throw user_error("there is no device '{}'; there are cpu, cuda, cuda:N, and to look at code for them {}",
                     device, fmt::join(names, ", "));
  context.backend = &compiler::backend_named("cuda");
  context.device = number.value_or(compiler::kNoDevice);
  context.target = beside(context.target, number ? runtime::gpu_numbered(*number) : gpu_named(device));
}

}  // namespace

std::string default_device() {
  const char* given = std::getenv("TENON_DEVICE");
  return given == nullptr || *given == '\0' ? "cpu" : given;
}

compiler::CompileContext default_context(const ContextOptions& options) {
  compiler::CompileContext context{.target = this_machine(),
                                   .threads = options.threads,
                                   .numerics = options.numerics,
                                   .precision = options.precision,
                                   .cache = codegen::default_cache(),
                                   .tuning = compiler::tuned_choices(codegen::default_cache())};
  choose_device(context, options.device);
  return context;
}

}  // namespace tenon::api
