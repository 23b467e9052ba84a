// fuzz_program.cpp — opens and runs damaged saved programs. With their weights checked, each is refused, or
// gives the same bits as the undamaged one; without, it may give others, but must not crash. Where a section
// is damaged whose hash is right again, as a program that was written wrongly would be, opening it must not
// crash.
//
//   fuzz_program COUNT SEED      input i of a seed is always the same
#include <fstream>
#include <random>

#include "base/hash.h"
#include "base/temporary_folder.h"
#include "compile_here.h"
#include "compiler/save_program.h"
#include "fuzz/isolate.h"
#include "ir/parse.h"
#include "ops/data.h"
#include "ops/registry.h"
#include "target/compile_targets.h"
#include "verify/sample_inputs.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecondsPerInput = 20, kSecondsToCompile = 600;

// Of large weights, of fixed sizes and open ones, calls of libm, indices among the weights, nested graphs,
// and steps on the host.
constexpr const char* kModels[] = {
    R"(graph main(%x: f32[4,64], %v: f32[64,40], %v1: f32[40,64]) {
      %0 = matmul(%x, %v)
      %1 = relu(%0)
      %2 = matmul(%1, %v1)
      return %2
    })",
    R"(graph main(%x: f32[4,64], %w: f32[64,16], %b: f32[16]) {
      %v = constant(value=f32[4] {1, 2, 3, 4})
      %0 = matmul(%x, %w)
      %1 = add(%0, %b)
      %2 = softmax(%1)
      %3 = sin(%v)
      return %2, %3
    })",
    R"(graph main(%x: f32[n,8], %y: f32[m,8]) {
      %w = constant(value=f32[8,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
      %0 = add(%x, %y)
      %1 = matmul(%0, %w)
      %2 = concat([%1, %1], axis=0)
      return %2
    })",
    R"(graph main(%x: f32[9,8]) {
      %i = constant(value=i64[12] {0, 3, 8, 1, 1, 7, 2, 6, 4, 5, 0, 8})
      %j = constant(value=i64[2,1] {7, 2})
      %u = constant(value=f32[2,8] splat 3)
      %0 = gather(%x, %i, axis=0)
      %1 = scatter_nd(%x, %j, %u, reduction="none")
      %2 = gather_elements(%x, %j, axis=1)
      return %0, %1, %2
    })",
    R"(graph main(%x: f32[5,8], %w: f32[8,8]) {
      %s = reduce_sum(%x, axes=[0, 1])
      %z = constant(value=f32[] {0})
      %c = greater(%s, %z)
      %0 = if(%c, [%x, %w]) then(%a: f32[5,8], %m: f32[8,8]) {
        %0 = matmul(%a, %m)
        return %0
      } else(%a: f32[5,8], %m: f32[8,8]) {
        %0 = exp(%a)
        return %0
      }
      return %0
    })",
    R"(graph main(%h: f32[4], %xs: f32[t,4], %m: f32[4,4]) {
      %h1, %ys = scan([%h], [%xs], [%m], axes=[0], reversed=[1], output_axes=[1], output_reversed=[0])
          body(%c: f32[4], %x: f32[4], %w: f32[4,4]) {
        %0 = matmul(%c, %w)
        %1 = add(%0, %x)
        %2 = tanh(%1)
        return %2, %1
      }
      return %h1, %ys
    })",
    R"(graph main(%x: f32[40]) {
      %0 = relu(%x)
      %1 = nonzero(%0) from "find them"
      return %1
    })",
};

fs::path program_in(const fs::path& folder, size_t number) {
  return folder / fmt::format("{}{}", number, runtime::kProgramExtension);
}

// Inputs called v.
void make_constant(Graph& graph) {
  for (Value input : graph.inputs())
    if (input.name().starts_with("v")) {
      Tensor elements(input.dtype(), *input.shape().extents());
      float next = 0;
      for (float& element : elements.mutable_data<float>())
        element = next += 0.25F;
      const InsertBefore here(graph.first());
      input.replace_all_uses(constant(graph, elements));
    }
}

// In a process of its own, lest threads of it are missing in those that come.
void save_models(const fs::path& folder) {
  const ChildEnd end = run_in_child(kSecondsToCompile, [&] {
    for (size_t i = 0; i < std::size(kModels); ++i) {
      const std::unique_ptr<Graph> graph = parse(kModels[i]);
      make_constant(*graph);
      // Weights of the first target's, which the other packs anew.
      compiler::CompileContext other = here();
      other.target = compile_target(this_machine().architecture == Architecture::X86_64 ? "armv8" : "x86-64");
      compiler::save_program({.model = *graph, .optimised = *graph, .made_with = "fuzz_program"},
                             {{"other", other}, {"native", here()}}, program_in(folder, i));
    }
    return "";
  });
  if (!end.failure.empty())
    throw InternalError("saving: " + end.failure);
}

enum class Weights { Checked, Unchecked };

Data run(const fs::path& path, Weights weights) {
  const auto file = runtime::ProgramFile::open(path);
  if (weights == Weights::Checked)
    file->check_weights();
  const std::unique_ptr<Graph> model = compiler::read_saved_model(*file);
  return compiler::open_program(*file).executor->run(sample_inputs(*model));
}

class Fuzzer {
 public:
  Fuzzer(const fs::path& folder, uint64_t seed) : folder_(folder), seed_(seed) {}

  void run(int64_t number) {
    std::mt19937_64 random(hash_combine(seed_, static_cast<uint64_t>(number)));
    const auto below = [&](size_t bound) {
      return std::uniform_int_distribution<size_t>(0, bound - 1)(random);
    };
    const size_t model = below(std::size(kModels));
    const fs::path damaged = folder_ / "damaged.tnp";
    if (below(3) == 0) {
      write_with_hashes(program_in(folder_, model), damaged, below);
      return open(damaged);
    }
    std::string bytes = read_file(program_in(folder_, model));
    damage(bytes, below);
    std::ofstream(damaged, std::ios::binary) << bytes;
    if (below(2) == 0)
      run_unchecked(damaged);
    else
      expect_the_same(damaged, model);
  }

 private:
  template <class Below>
  static void damage(std::string& bytes, Below&& below) {
    for (size_t rounds = 1 + below(3); rounds > 0 && !bytes.empty(); --rounds) {
      const size_t at = below(bytes.size()), count = std::min(below(64) + 1, bytes.size() - at);
      switch (below(6)) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.erase(at, count);
          break;
        case 2:
          bytes.insert(at, bytes.substr(below(bytes.size()), count));
          break;
        case 3:
          bytes.replace(at, count, std::string(count, static_cast<char>(below(256))));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
      }
    }
  }

  // Damages one section, but not code or weights, in which nothing can be told from what is meant.
  template <class Below>
  static void write_with_hashes(const fs::path& from, const fs::path& to, Below&& below) {
    const auto file = runtime::ProgramFile::open(from);
    std::vector<std::string> contents;
    std::vector<size_t> tables;
    for (const auto& section : file->sections()) {
      const std::span<const std::byte> bytes = file->bytes_of(section.name);
      contents.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (!section.name.starts_with("code ") && section.name != runtime::kWeightsSection)
        tables.push_back(contents.size() - 1);
    }
    damage(contents[tables[below(tables.size())]], below);
    std::vector<runtime::SectionToWrite> sections;
    for (size_t i = 0; i < contents.size(); ++i)
      sections.push_back({.name = file->sections()[i].name,
                          .pieces = {{0, std::as_bytes(std::span(contents[i]))}},
                          .alignment = 64 << 10});
    write_program_file(to, sections);
  }

  static void open(const fs::path& path) {
    try {
      const auto file = runtime::ProgramFile::open(path);
      compiler::open_program(*file);
      compiler::read_saved_model(*file);
    } catch (const UserError&) {
      // As it should be.
    }
  }

  static void run_unchecked(const fs::path& path) {
    try {
      tenon::run(path, Weights::Unchecked);
    } catch (const UserError&) {
      // As it should be.
    }
  }

  void expect_the_same(const fs::path& path, size_t model) {
    if (!expected_.contains(model))
      expected_.emplace(model, tenon::run(program_in(folder_, model), Weights::Checked));
    try {
      const Data got = tenon::run(path, Weights::Checked), &wanted = expected_.at(model);
      for (size_t i = 0; i < wanted.size(); ++i)
        if (!identical(got.at(i).tensor(), wanted[i].tensor()))
          throw InternalError("a damaged program gives something else");
    } catch (const UserError&) {
      // As it should be.
    }
  }

  const fs::path folder_;
  const uint64_t seed_;
  std::map<size_t, Data> expected_;  // of the undamaged programs
};

int run_fuzzer(int64_t count, uint64_t seed) {
  register_ops();
  const TemporaryFolder folder;
  save_models(folder.path());
  Fuzzer fuzzer(folder.path(), seed);
  const int64_t failures = fuzz::run_isolated(count, kSecondsPerInput, [&](int64_t number) {
    try {
      fuzzer.run(number);
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
      std::fflush(stdout);
      std::abort();
    }
  });
  std::printf("%ld passed, %ld failed\n", static_cast<long>(count - failures), static_cast<long>(failures));
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fuzz_program COUNT SEED\n");
    return 2;
  }
  try {
    return tenon::run_fuzzer(std::stol(argv[1]), std::stoul(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_program: %s\n", error.what());
    return 2;
  }
}
