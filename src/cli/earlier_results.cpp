#include "cli/earlier_results.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/units.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string format_milliseconds(double value) { return format_seconds(value / 1000); }
std::string format_mebibytes(double value) { return format_bytes(value * 1024 * 1024); }
std::string format_number(double value) { return fmt::format("{}", value); }

// The rows that are compared, and the field that each shows.
struct Row {
  std::string_view title;
  const char* field;
  std::string (*format)(double);
};
constexpr Row kRows[] = {
    {"median", "median_ms", format_milliseconds},
    {"p95", "p95_ms", format_milliseconds},
    {"min", "min_ms", format_milliseconds},
    {"compile", "compile_ms", format_milliseconds},
    {"  from cache", "cached_compile_ms", format_milliseconds},
    {"kernels", "kernels", format_number},
    {"host steps", "host_steps", format_number},
    {"bytes moved", "bytes_moved", format_bytes},
    {"intermediate memory", "arena_bytes", format_bytes},
    {"  at least", "arena_lower_bound", format_bytes},
    {"peak memory", "peak_rss_mib", format_mebibytes},
};

// How many times as much it is now. Nothing stays nothing, and is no multiple of it otherwise.
std::string ratio(double now, double then) {
  if (then == 0)
    return now == 0 ? "1.00x" : "-";
  return fmt::format("{:.2f}x", now / then);
}

}  // namespace

EarlierResults::EarlierResults(const std::string& path) : path_(path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  json_ = Json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  const bool is_of_bench = json_.is_object() && json_.contains("model") && json_["model"].is_string();
  if (!is_of_bench)
    throw user_error("--compare: {} is not what tenon bench --json writes", path);
  number("threads");
  for (const Row& row : kRows)
    number(row.field);
}

double EarlierResults::number(const char* field) const {
  if (!json_.contains(field) || !json_[field].is_number())
    throw user_error("--compare: {} is not what tenon bench --json writes: it has no number {}", path_,
                     field);
  return json_[field].get<double>();
}

std::string EarlierResults::mismatch(const Json& now) const {
  if (json_["model"] == now["model"] && json_["threads"] == now["threads"])
    return "";
  return fmt::format("note: {} was measured for {}, with {}\n", path_, json_["model"].get<std::string>(),
                     format_count(static_cast<uint64_t>(number("threads")), "thread"));
}

std::optional<EarlierResults::Comparison> EarlierResults::compare(std::string_view title,
                                                                  const Json& now) const {
  for (const Row& row : kRows)
    if (row.title == title) {
      const double then = number(row.field);
      return Comparison{row.format(then), ratio(now[row.field].get<double>(), then)};
    }
  return std::nullopt;
}

}  // namespace tenon::cli
