// runtime_library.h — libtenonrt as it was built, beside the Tenon that the tests are linked with: it shares
// nothing with that but the file of a program.
#pragma once

#include <dlfcn.h>
#include <tenon/tenon.h>

#include "base/temporary_folder.h"
#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "compiler/save_program.h"
#include "source_tree.h"

namespace tenon::deploy {

class RuntimeLibrary {
 public:
  static const RuntimeLibrary& get() {
    static const RuntimeLibrary library;
    return library;
  }

  template <class Function>
  Function* find(const char* name) const {
    auto* const found = reinterpret_cast<Function*>(::dlsym(handle_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }

 private:
  RuntimeLibrary() : handle_(::dlopen((build_folder() / "libtenonrt.so.0").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << ::dlerror();
  }

  void* const handle_;
};

// tenon_NAME of the library.
#define RUNTIME(NAME) (*tenon::deploy::RuntimeLibrary::get().find<decltype(tenon_##NAME)>("tenon_" #NAME))

// A test whose program is saved, and opened by libtenonrt.
class Deploy : public ::testing::Test {
 protected:
  void TearDown() override { RUNTIME(free_program)(program_); }

  void save(const Graph& graph, const std::string& target = "native") const {
    compiler::save_program({.model = graph, .optimised = graph, .made_with = "a test"},
                           {{target, without_cache()}}, path_);
  }

  // What was wrong; empty where it is open.
  std::string open(const tenon_open_options* options = nullptr) {
    RUNTIME(free_program)(std::exchange(program_, nullptr));
    if (RUNTIME(open)(path_.c_str(), options, &program_) == TENON_OK)
      return "";
    EXPECT_EQ(program_, nullptr);
    return RUNTIME(error_message)();
  }

  // The outputs, which have these sizes; or what was wrong.
  struct Results {
    Data outputs;
    std::string error;
  };
  Results run(const Data& inputs, const Data& like, int threads) const {
    Results results{like, ""};
    std::vector<tenon_tensor> given, wanted;
    std::vector<std::vector<int64_t>> sizes;
    for (const Datum& datum : inputs)
      given.push_back(describe(datum.tensor(), const_cast<int64_t*>(datum.tensor().extents().data())));
    for (const Datum& datum : like)
      sizes.push_back(datum.tensor().extents());
    for (size_t i = 0; i < like.size(); ++i) {
      results.outputs[i] = Tensor(like[i].tensor().dtype(), sizes[i]);
      wanted.push_back(describe(results.outputs[i].tensor(), sizes[i].data()));
    }
    const tenon_run_options options = {
        .struct_size = sizeof options, .threads = threads, .seed = 3, .stream = nullptr};
    if (RUNTIME(run)(program_, given.data(), given.size(), wanted.data(), wanted.size(), &options) !=
        TENON_OK)
      return {{}, RUNTIME(error_message)()};
    for (size_t i = 0; i < like.size(); ++i)
      EXPECT_EQ(sizes[i], like[i].tensor().extents()) << "output " << i;
    return results;
  }

  // That it gives the same bits as what is compiled here.
  void expect_same(std::string_view text, const std::vector<std::map<std::string, int64_t>>& sizes = {{}}) {
    const std::unique_ptr<Graph> graph = read(text);
    save(*graph);
    ASSERT_EQ(open(), "");
    const std::unique_ptr<runtime::Executor> compiled = compile(*graph, without_cache());
    for (const auto& each : sizes) {
      const Data inputs = inputs_for(*graph, each);
      for (const int threads : {1, 2})
        expect_identical(run(inputs, compiled->run(inputs, {.seed = 3, .threads = threads}), threads),
                         compiled->run(inputs, {.seed = 3, .threads = threads}));
    }
  }

  static void expect_identical(const Results& got, const Data& wanted) {
    ASSERT_EQ(got.error, "");
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(identical(got.outputs[i].tensor(), wanted[i].tensor())) << "output " << i;
  }

  static tenon_tensor describe(const Tensor& tensor, int64_t* sizes) {
    return {.struct_size = sizeof(tenon_tensor),
            .data = const_cast<std::byte*>(tensor.bytes().data()),
            .bytes = tensor.bytes().size(),
            .dtype = static_cast<int32_t>(tensor.dtype()),
            .rank = static_cast<int32_t>(tensor.rank()),
            .sizes = sizes,
            .strides = nullptr,
            .device = {}};
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.tnp";
  tenon_program* program_ = nullptr;
};

}  // namespace tenon::deploy
