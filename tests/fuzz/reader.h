// reader.h — what the fuzzers of readers share: damaged files are fed to a reader, one by one. Whatever the
// file, it must end quickly, with a graph that lints, or with a UserError.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "fuzz/isolate.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "verify/sample_inputs.h"

namespace tenon::fuzz {

namespace fs = std::filesystem;

constexpr unsigned kSecondsPerInput = 5;
constexpr int64_t kElementsToRun = 1 << 16;  // models whose values have more in all are read but not run

using Bytes = std::vector<char>;

struct Reader {
  std::string name, extension;
  std::function<std::unique_ptr<Graph>(const fs::path&)> read;
  std::function<Bytes(const std::vector<Bytes>& files, uint64_t seed)>
      mutate;  // a damaged file, always the same
};

inline bool is_small(Graph& graph) {
  int64_t total = 0;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes()) {
      total += each.input_count();
      for (Value result : node->results()) {
        const auto extents = result.type().is_tensor() ? result.shape().extents() : std::nullopt;
        total +=
            extents ? std::min<int64_t>(*Shape::of(*extents).element_count().constant(), kElementsToRun) : 1;
      }
      if (node->is("while") || node->is("scan"))
        total += kElementsToRun;  // there is no telling how long it runs
    }
  });
  return total < kElementsToRun;
}

inline void check(const Reader& reader, const fs::path& file) {
  try {
    const std::unique_ptr<Graph> graph = reader.read(file);
    if (const auto problems = lint(*graph); !problems.empty())
      throw InternalError("lint: " + problems.front());
    const LiteralTable literals = large_literals(*graph);
    const std::unique_ptr<Graph> again = parse(print(*graph), {.literals = &literals});
    if (const std::string what = difference(*graph, *again); !what.empty())
      throw InternalError("the text form reads back as another graph: " + what);
    if (is_small(*graph))
      evaluate(*graph, sample_inputs(*graph));
  } catch (const UserError&) {
    // As it should be.
  }
}

inline int run(const Reader& reader, int64_t count, uint64_t seed, const std::vector<fs::path>& folders) {
  std::vector<fs::path> paths;
  for (const fs::path& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == reader.extension && entry.file_size() < 65536)
        paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const fs::path& path : paths) {
    const auto file = MappedFile::open(path);
    const auto* data = reinterpret_cast<const char*>(file->bytes().data());
    if (!file->bytes().empty())
      files.emplace_back(data, data + file->bytes().size());
  }
  if (files.empty())
    throw user_error("there are no small {} files to start from", reader.extension);
  const fs::path target =
      fs::temp_directory_path() / fmt::format("{}.{}{}", reader.name, ::getpid(), reader.extension);
  const int64_t failures = run_isolated(count, kSecondsPerInput, [&](int64_t i) {
    const Bytes bytes = reader.mutate(files, hash_combine(seed, static_cast<uint64_t>(i)));
    std::ofstream(target, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    try {
      check(reader, target);
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
      std::fflush(stdout);
      const fs::path kept =
          fs::temp_directory_path() / fmt::format("{}.{}.{}{}", reader.name, seed, i, reader.extension);
      fs::copy_file(target, kept, fs::copy_options::overwrite_existing);
      std::printf("kept as %s\n", kept.c_str());
      std::fflush(stdout);
      std::abort();
    }
  });
  fs::remove(target);
  std::printf("%ld passed, %ld failed\n", static_cast<long>(count - failures), static_cast<long>(failures));
  return failures == 0 ? 0 : 1;
}

inline int run_reader(int argc, char** argv, const Reader& reader) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s COUNT SEED FOLDER...\n", reader.name.c_str());
    return 2;
  }
  register_ops();
  try {
    return run(reader, std::stol(argv[1]), std::stoul(argv[2]), {argv + 3, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", reader.name.c_str(), error.what());
    return 2;
  }
}

}  // namespace tenon::fuzz
