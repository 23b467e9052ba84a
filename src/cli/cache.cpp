// cache.cpp — tenon cache: what is kept on disk from one start to the next, and how to get rid of it.
#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "codegen/object_cache.h"
#include "compiler/tuned_choices.h"

namespace tenon::cli {
namespace {

using codegen::ObjectCache;
using compiler::read_tuned;
using compiler::tuned_file;

std::string count_and_bytes(const ObjectCache::Usage& usage) {
  return fmt::format("{} ({})", format_count(usage.objects, "compiled kernel"),
                     format_bytes(static_cast<double>(usage.bytes)));
}

void show(const ObjectCache& cache) {
  write_output(fmt::format("{}\n{}, at most {}\n{}\n", cache.folder().string(),
                           count_and_bytes(cache.usage()), format_bytes(ObjectCache::kMostBytes),
                           format_count(read_tuned(*tuned_file(cache)).size(), "tuned choice")));
}

// The file is ours by its name: tenon tune would write over it.
size_t remove_tuned(const std::filesystem::path& file) {
  const size_t count = read_tuned(file).size();
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error) && !std::filesystem::remove(file, error) && error)
    throw user_error("cannot remove {}: {}", file.string(), error.message());
  return count;
}

void clear(const ObjectCache& cache) {
  const ObjectCache::Usage removed = cache.clear();
  const size_t choices = remove_tuned(*tuned_file(cache));
  write_output(
      fmt::format("removed {} and {}\n", count_and_bytes(removed), format_count(choices, "tuned choice")));
}

void show_or_clear(bool is_to_clear) {
  const std::optional<ObjectCache> cache = codegen::default_cache();
  if (!cache)
    throw user_error("the cache is switched off\n  hint: TENON_CACHE names its folder");
  is_to_clear ? clear(*cache) : show(*cache);
}

}  // namespace

void add_cache(CLI::App& program) {
  auto is_to_clear = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("cache", "says what the cache holds, or clears it");
  command->add_flag("--clear", *is_to_clear, "removes the compiled kernels and tuned choices");
  command->footer(examples({"tenon cache", "tenon cache --clear"}));
  command->callback([is_to_clear] { show_or_clear(*is_to_clear); });
}

}  // namespace tenon::cli
