#include "codegen/cuda/nvrtc.h"

#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"
#include "runtime/cuda/cuda_library.h"
#include "target/warpgroups.h"

namespace tenon::codegen {
namespace {

// As in nvrtc.h.
using Result = int;
using Program = struct NvrtcProgram*;
constexpr Result kSuccess = 0;
constexpr Result kInvalidOption = 5;  // NVRTC_ERROR_INVALID_OPTION
constexpr Result kCompilation = 6;    // NVRTC_ERROR_COMPILATION

constexpr const char* kFileName = "kernel.cu";  // what the log calls the text

SharedLibrary open_nvrtc() {
  try {
    return runtime::cuda::open_cuda_library({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  } catch (const UserError& error) {
    throw user_error("{}\n  hint: pip install nvidia-cuda-nvrtc brings it; TENON_CUDA_PATH names its folder",
                     error.what());
  }
}

struct Nvrtc {
  SharedLibrary library = open_nvrtc();
  Result (*version)(int* major, int* minor);
  const char* (*error_string)(Result);
  Result (*create)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                   const char* const* names);
  Result (*destroy)(Program*);
  Result (*compile)(Program, int count, const char* const* options);
  Result (*cubin_bytes)(Program, size_t* bytes);
  Result (*cubin)(Program, char* cubin);
  Result (*log_bytes)(Program, size_t* bytes);
  Result (*log)(Program, char* log);
  int major = 0, minor = 0;

  Nvrtc() {
    library.find("nvrtcVersion", version);
    library.find("nvrtcGetErrorString", error_string);
    library.find("nvrtcCreateProgram", create);
    library.find("nvrtcDestroyProgram", destroy);
    library.find("nvrtcCompileProgram", compile);
    library.find("nvrtcGetCUBINSize", cubin_bytes);
    library.find("nvrtcGetCUBIN", cubin);
    library.find("nvrtcGetProgramLogSize", log_bytes);
    library.find("nvrtcGetProgramLog", log);
    check(version(&major, &minor), "tell its version");
  }

  void check(Result result, const char* doing) const {
    CHECK(result == kSuccess, "NVRTC cannot {}: {}", doing, error_string(result));
  }
  std::string describe() const { return fmt::format("{}.{} at {}", major, minor, library.path()); }
};

const Nvrtc& nvrtc() {
  static const Nvrtc& loaded = *new Nvrtc();  // for good: it has threads of its own
  return loaded;
}

// Nothing is approximated; products are added as fused multiply-adds. Instructions that only one architecture
// has need its own.
std::vector<std::string> options_for(const Gpu& gpu) {
  return {fmt::format("--gpu-architecture=sm_{}{}", gpu.architecture, has_warpgroup_products(gpu) ? "a" : ""),
          "--std=c++17", "--fmad=true"};
}

std::string key_of(const CudaText& text, const std::vector<std::string>& options) {
  std::string key = fmt::format("nvrtc {}.{}", nvrtc().major, nvrtc().minor);
  for (const std::string& option : options)
    key += " " + option;
  return key + "\n" + text.text;
}

// The numbers of the lines that the log speaks of: "kernel.cu(12): error: …".
std::set<size_t> lines_named(const std::string& log) {
  const std::string before = std::string(kFileName) + "(";
  std::set<size_t> lines;
  for (size_t at = log.find(before); at != std::string::npos; at = log.find(before, at + 1)) {
    size_t line = 0;
    std::from_chars(log.data() + at + before.size(), log.data() + log.size(), line);
    lines.insert(line);
  }
  return lines;
}

std::string show_lines(const std::string& text, const std::set<size_t>& numbers) {
  std::string shown;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);)
    if (numbers.contains(++number))
      shown += fmt::format("{:>5} | {}\n", number, line);
  return shown;
}

// A text while NVRTC works on it.
class Compilation {
 public:
  explicit Compilation(const std::string& text) : text_(text) {
    nvrtc().check(nvrtc().create(&program_, text.c_str(), kFileName, 0, nullptr, nullptr), "take the text");
  }
  ~Compilation() { nvrtc().destroy(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  std::string compile(const Gpu& gpu, const std::vector<std::string>& options) const {
    std::vector<const char*> given;
    for (const std::string& option : options)
      given.push_back(option.c_str());
    const Result result = nvrtc().compile(program_, static_cast<int>(given.size()), given.data());
    if (result == kInvalidOption)
      throw user_error("NVRTC {} does not compile for sm_{}: {}", nvrtc().describe(), gpu.architecture,
                       log());
    if (result == kCompilation)
      throw InternalError(fmt::format("NVRTC refuses what was generated\n{}\n{}", log(),
                                      show_lines(text_, lines_named(log()))));
    nvrtc().check(result, "compile");
    return read(nvrtc().cubin_bytes, nvrtc().cubin);
  }

 private:
  std::string log() const {
    std::string text = read(nvrtc().log_bytes, nvrtc().log);
    text.erase(std::min(text.find('\0'), text.size()));  // it counts the end
    while (text.ends_with('\n'))
      text.pop_back();
    return text;
  }

  std::string read(Result (*count)(Program, size_t*), Result (*get)(Program, char*)) const {
    size_t bytes = 0;
    nvrtc().check(count(program_, &bytes), "tell the size of a result");
    std::string result(bytes, '\0');
    nvrtc().check(get(program_, result.data()), "give a result");
    return result;
  }

  const std::string& text_;
  Program program_ = nullptr;
};

std::string cubin_of(const CudaText& text, const Gpu& gpu, const std::optional<ObjectCache>& cache) {
  const std::vector<std::string> options = options_for(gpu);
  const std::string key = key_of(text, options);
  if (cache)
    if (std::optional<std::string> kept = cache->find(key))
      return *kept;
  const std::string cubin = Compilation(text.text).compile(gpu, options);
  if (cache)
    cache->store(key, cubin);
  return cubin;
}

}  // namespace

std::string describe_nvrtc() { return nvrtc().describe(); }

runtime::KernelCode compile_cuda(const CudaText& text, const Gpu& gpu,
                                 const std::optional<ObjectCache>& cache) {
  return {.bytes = cubin_of(text, gpu, cache), .regions = text.shapes.size(), .shapes = text.shapes};
}

}  // namespace tenon::codegen
