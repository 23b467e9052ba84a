#include "codegen/cuda/run_on_host.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <regex>

#include "base/error.h"
#include "codegen/cuda/elements.h"
#include "source_tree.h"
#include "tensor/wide.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int64_t kSharedBytes = 227 << 10;
constexpr int64_t kTeamsThatStay = 2;  // where thread blocks stay for several iterations
constexpr int kStep = 7;               // what a failed requirement is to write

// A line of inline assembly that begins with this, in other words.
void replace_assembly(std::string& text, std::string_view begin, std::string_view with) {
  for (const std::string_view asm_begin : {"asm volatile(\"", "asm(\""}) {
    const std::string whole = fmt::format("{}{}", asm_begin, begin);
    for (size_t at = text.find(whole); at != std::string::npos; at = text.find(whole, at))
      text.replace(at, text.find(");\n", at) + 2 - at, with);
  }
}

// wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {…}, %64, %65, 1, 1, 1, 0, 1; with which factors have
// k first at its end; or …}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1; where the first is in registers.
void replace_warpgroup_products(std::string& text) {
  const std::string begin = "asm volatile(\"wgmma.mma_async.", has_k_first = ", 1, 1, 1, ";
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    const size_t end = text.find(");\n", at), flags = text.find(has_k_first, at) + has_k_first.size();
    const std::string_view widened = text.find(".bf16.", at) < end ? "f32_of_bf16_bits" : "f32_of_f16_bits";
    text.replace(at, end + 2 - at,
                 text.find("\"r\"(a0)", at) < end
                     ? fmt::format("wgmma(s, std::array{{a0, a1, a2, a3}}, b, {}, {});", text[flags], widened)
                     : fmt::format("wgmma(s, a, b, {}, {}, {});", text[flags], text[flags + 3], widened));
  }
}

// What differs for the host: one shared object has many kernels, and instructions are functions of the shim.
std::string for_host(std::string text) {
  text = std::regex_replace(text, std::regex("extern \"C\" "), "");
  text = std::regex_replace(text,
                            std::regex("extern __shared__ __align__\\([0-9]+\\) unsigned char shared\\[\\];"),
                            "unsigned char* const shared = shared_of_block();");
  for (const auto& [begin, with] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"cp.async.cg.shared.global [%0], [%1], 16, %2", "cp_async(place, from, bytes, count);"},
           {"cp.async.ca.shared.global [%0], [%1], %2, %3", "cp_async(place, from, bytes, count);"},
           {"cp.async.cg", "cp_async(place, from, bytes, bytes);"},
           {"cp.async.ca", "cp_async(place, from, bytes, bytes);"},
           {"cp.async.commit_group", "cp_async_commit_group();"},
           {"cp.async.wait_group", "cp_async_wait_group(later);"},
           {"cp.async.wait_all", "cp_async_wait_all();"},
           {"mbarrier.init", "mbarrier_init(own);"},
           {"mbarrier.arrive.expect_tx", "mbarrier_expect(own, bytes);"},
           {"{ .reg .pred p; mbarrier.try_wait", "came = mbarrier_wait(own, parity);"},
           {"ldmatrix.sync.aligned.m8n8.x4.shared", "ldmatrix(to, own, false);"},
           {"ldmatrix.sync.aligned.m8n8.x2.shared", "ldmatrix(to, own, false);"},
           {"ldmatrix.sync.aligned.m8n8.x4.trans", "ldmatrix(to, own, true);"},
           {"ldmatrix.sync.aligned.m8n8.x2.trans", "ldmatrix(to, own, true);"},
           {"mma.sync.aligned.m16n8k16.row.col.f32.bf16",
            "mma_m16n8k16(s0, s1, s2, s3, a, b0, b1, f32_of_bf16_bits);"},
           {"mma.sync.aligned.m16n8k16.row.col.f32.f16",
            "mma_m16n8k16(s0, s1, s2, s3, a, b0, b1, f32_of_f16_bits);"},
           {"fence.proxy.async", ""},
           {"wgmma.fence", ""},
           {"wgmma.commit_group", "wgmma_commit_group();"},
           {"wgmma.wait_group", "wgmma_wait_group(later);"},
           {"st.async", "st_async(there, value, its_barrier);"},
           {"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(there)", "there = own;"},
           {"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(its_barrier)", "its_barrier = own_barrier;"}})
    replace_assembly(text, begin, with);
  replace_warpgroup_products(text);
  // asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); becomes cvt_f32_f16(value, bits);
  const std::regex instruction(
      R"re(asm\("([A-Za-z0-9.]+) [^"]*" : "=\w"\((\w+)\) : "\w"\((\w+)\)(, "\w"\((\w+)\))?\);)re");
  text = std::regex_replace(
      text, std::regex(R"re(asm volatile\("barrier.cluster.(\w+).aligned;" ::: "memory"\);)re"),
      "barrier_cluster_$1_aligned();");
  std::string result;
  auto from = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), instruction), end; it != end; ++it) {
    std::string name = (*it)[1];
    std::ranges::replace(name, '.', '_');
    result.append(from, (*it)[0].first);
    result += fmt::format("{}({}, {}{});", name, (*it)[2].str(), (*it)[3].str(),
                          (*it)[5].matched ? ", " + (*it)[5].str() : "");
    from = (*it)[0].second;
  }
  return result.append(from, text.cend());
}

// The regions of a kernel as functions of all that they take.
std::string entries_of(const loops::Kernel& kernel, size_t number, size_t regions) {
  std::string text =
      fmt::format("struct Arguments{} {{ void** buffers; long long* sizes; int* failure; }};\n", number);
  for (size_t region = 0; region < regions; ++region) {
    std::vector<std::string> arguments;
    for (const loops::Buffer& input : kernel.inputs)
      arguments.push_back(
          fmt::format("(const {}*)a.buffers[{}]", stored_type(input.dtype), arguments.size()));
    for (const loops::Buffer& output : kernel.outputs)
      arguments.push_back(fmt::format("({}*)a.buffers[{}]", stored_type(output.dtype), arguments.size()));
    for (size_t i = 0; i < kernel.size_symbols().size(); ++i)
      arguments.push_back(fmt::format("a.sizes[{}]", i));
    text += fmt::format(
        "extern \"C\" void kernel{0}_phase_{1}(void* arguments) {{\n"
        "  const auto& a = *(const Arguments{0}*)arguments;\n"
        "  kernel{0}::phase_{1}({2}, a.failure, {3});\n}}\n",
        number, region, fmt::join(arguments, ", "), kStep);
  }
  return text;
}

// Small numbers, so that sums of them differ little by their order; some below 0.
Tensor random_input(DType dtype, const Extents& extents, unsigned seed) {
  std::mt19937 random(seed);
  return with_wide(dtype, [&]<class T>(T) {
    std::vector<T> values;
    for (int64_t i = 0; i < element_count(extents); ++i) {
      const auto number = static_cast<int64_t>(random() % 200) - 100;
      values.push_back(is_float(dtype) ? static_cast<T>(static_cast<double>(number) / 32)
                                       : static_cast<T>(number));
    }
    return narrow<T>(dtype, extents, values);
  });
}

}  // namespace

std::vector<Tensor> random_inputs(const loops::Kernel& kernel, const std::map<std::string, int64_t>& sizes) {
  std::vector<Tensor> inputs;
  for (const loops::Buffer& input : kernel.inputs) {
    Extents extents;
    for (const Dim& size : input.sizes)
      extents.push_back(size.evaluate(sizes).value());
    inputs.push_back(random_input(input.dtype, extents, static_cast<unsigned>(inputs.size() + 1)));
  }
  return inputs;
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  if (tolerance == 0) {
    EXPECT_TRUE(identical(got, want));
    return;
  }
  const std::vector<double> a = widen<double>(got), b = widen<double>(want);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "at " << i;
}

HostKernels::~HostKernels() {
  if (library_ != nullptr)
    dlclose(library_);
}

size_t HostKernels::add(loops::Kernel kernel) {
  CudaText text = emit_cuda(kernel);
  return add(std::move(kernel), std::move(text));
}

size_t HostKernels::add(loops::Kernel kernel, CudaText text) {
  CHECK(library_ == nullptr, "a kernel comes late");
  added_.push_back({std::move(kernel), std::move(text)});
  return added_.size() - 1;
}

std::string HostKernels::source() const {
  std::string text = fmt::format("#include \"{}\"\n", (source_tree() / "tests/codegen/cuda/shim.h").string());
  for (size_t i = 0; i < added_.size(); ++i)
    text += fmt::format(
        "namespace kernel{0} {{\nalignas(1024) unsigned char shared[{3}];\n{1}}}\n"
        "extern \"C\" void* kernel{0}_shared() {{ return kernel{0}::shared; }}\n{2}\n",
        i, for_host(added_[i].text.text), entries_of(added_[i].kernel, i, added_[i].text.shapes.size()),
        kSharedBytes);
  return text;
}

void HostKernels::compile() {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("tenon_cuda_on_host_{}", getpid());
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "kernels.cpp", library = folder / "kernels.so",
                              said = folder / "said.txt";
  std::ofstream(file) << source();
  const std::string command =
      fmt::format("{} -std=c++20 -O1 -w -fwrapv -ffp-contract=off -fPIC -shared '{}' -o '{}' >'{}' 2>&1",
                  TENON_COMPILER, file.string(), library.string(), said.string());
  const int status = std::system(command.c_str());
  std::ifstream output(said);
  CHECK(status == 0, "{}\n{}", command, std::string(std::istreambuf_iterator<char>(output), {}));
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library_ != nullptr, "{}", dlerror());
  std::filesystem::remove_all(folder);
}

HostKernels::Result HostKernels::run(size_t number, const std::vector<Tensor>& inputs,
                                     std::map<std::string, int64_t> sizes, Order order, Copies copies) const {
  const auto& [kernel, text] = added_.at(number);
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t axis = 0; axis < kernel.inputs[i].sizes.size(); ++axis)
      if (const Dim& size = kernel.inputs[i].sizes[axis]; size.is_symbol())
        sizes.emplace(size.to_string(), inputs[i].extents()[axis]);
  const auto value_of = [&](const Dim& dim) { return dim.evaluate(sizes).value(); };
  Result result;
  std::vector<void*> buffers;
  for (const Tensor& input : inputs)
    buffers.push_back(const_cast<std::byte*>(input.bytes().data()));
  for (const loops::Buffer& output : kernel.outputs) {
    Extents extents;
    for (const Dim& size : output.sizes)
      extents.push_back(value_of(size));
    result.outputs.emplace_back(output.dtype, extents);
  }
  for (Tensor& output : result.outputs)
    buffers.push_back(output.mutable_bytes().data());
  std::vector<long long> numbers;
  for (const std::string& symbol : kernel.size_symbols())
    numbers.push_back(sizes.at(symbol));
  int failure = 0;
  struct {
    void** buffers;
    long long* sizes;
    int* failure;
  } arguments{buffers.data(), numbers.data(), &failure};
  const auto function = [&](const std::string& name) {
    void* found = dlsym(library_, name.c_str());
    CHECK(found != nullptr, "{}", dlerror());
    return found;
  };
  const auto launch = reinterpret_cast<bool (*)(void (*)(void*), void*, long long, unsigned, unsigned, void*,
                                                size_t, bool, bool)>(function("shim_launch"));
  const auto shared = reinterpret_cast<void* (*)()>(function(fmt::format("kernel{}_shared", number)));
  const std::vector<loops::ParallelRegion> regions = loops::parallel_regions_of(kernel);
  for (size_t i = 0; i < text.shapes.size() && failure == 0 && !result.is_deadlock; ++i) {
    const runtime::LaunchConfiguration& shape = text.shapes[i];
    const int64_t iterations = value_of(regions[i].iterations);
    const int64_t shared_size = value_of(shared_bytes(regions[i])) * shape.iterations_per_block;
    CHECK(shared_size * shape.blocks_per_iteration <= kSharedBytes, "{} bytes of shared memory", shared_size);
    const auto entry =
        reinterpret_cast<void (*)(void*)>(function(fmt::format("kernel{}_phase_{}", number, i)));
    int64_t blocks = (iterations + shape.iterations_per_block - 1) / shape.iterations_per_block;
    if (shape.is_persistent)
      blocks = std::min(blocks, kTeamsThatStay);
    result.is_deadlock =
        !launch(entry, &arguments, blocks, static_cast<unsigned>(shape.blocks_per_iteration),
                static_cast<unsigned>(shape.threads), shared(), static_cast<size_t>(shared_size),
                order == Order::Descending, copies == Copies::Late);
  }
  CHECK(failure == 0 || failure == kStep, "a failure wrote {}", failure);
  result.failed = failure != 0;
  return result;
}

}  // namespace tenon::codegen::cuda
