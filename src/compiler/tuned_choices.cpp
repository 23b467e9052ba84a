#include "compiler/tuned_choices.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/write_file.h"
#include "codegen/object_cache.h"

namespace tenon::compiler {

using lowering::ContractionChoice;
using lowering::ContractionChoices;
using lowering::ContractionKey;

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kFormat = 2;  // another one is of another version, and is ignored

// The numbers of a choice: what each is called, and the least and the most that it can be.
struct Field {
  const char* name;
  std::optional<int64_t> ContractionChoice::*member;
  int64_t least, most;
};
constexpr Field kFields[] = {
    {"winograd_tile", &ContractionChoice::winograd_tile, 0, 4},
    {"tile_rows", &ContractionChoice::tile_rows, 1, 1 << 20},
    {"filter_parts", &ContractionChoice::filter_parts, 1, 1 << 20},
    {"mr", &ContractionChoice::mr, 1, 64},
    {"nr", &ContractionChoice::nr, 1, 1024},
};
struct Flag {
  const char* name;
  std::optional<bool> ContractionChoice::*member;
};
constexpr Flag kFlags[] = {
    {"pack_a", &ContractionChoice::pack_a},
    {"bf16x3", &ContractionChoice::bf16x3},
};

struct Damaged {};

Json entry_of(ContractionKey key, const TunedChoice& tuned) {
  Json json = {{"key", fmt::format("{:016x}", key)}};
  json.update(as_json(tuned.choice));
  json["before_ms"] = 1e3 * tuned.before;
  json["after_ms"] = 1e3 * tuned.after;
  return json;
}

ContractionKey key_in(const std::string& text) {
  size_t used = 0;
  const ContractionKey key = std::stoull(text, &used, 16);
  return used == text.size() ? key : throw Damaged();
}

TunedChoice tuned_in(const Json& json) {
  TunedChoice tuned;
  for (const Field& field : kFields)
    if (json.contains(field.name)) {
      const Json& number = json.at(field.name);
      if (!number.is_number_integer())  // others would be rounded
        throw Damaged();
      const auto value = number.get<int64_t>();
      if (value < field.least || value > field.most)
        throw Damaged();
      tuned.choice.*field.member = value;
    }
  for (const Flag& flag : kFlags)
    if (json.contains(flag.name))
      tuned.choice.*flag.member = json.at(flag.name).get<bool>();
  tuned.before = json.at("before_ms").get<double>() / 1e3;
  tuned.after = json.at("after_ms").get<double>() / 1e3;
  return tuned;
}

}  // namespace

Json as_json(const ContractionChoice& choice) {
  Json json = Json::object();
  for (const Field& field : kFields)
    if (const std::optional<int64_t>& value = choice.*field.member)
      json[field.name] = *value;
  for (const Flag& flag : kFlags)
    if (const std::optional<bool>& value = choice.*flag.member)
      json[flag.name] = *value;
  return json;
}

std::optional<fs::path> tuned_file(const std::optional<codegen::ObjectCache>& cache) {
  return cache ? std::optional(cache->folder() / "tuned.json") : std::nullopt;
}

TunedChoices read_tuned(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))  // what is read from others may never end
    return {};
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return {};
  try {
    const Json json = Json::parse(stream);
    if (json.at("format") != kFormat)
      return {};
    TunedChoices choices;
    for (const Json& each : json.at("choices"))
      choices.insert_or_assign(key_in(each.at("key").get<std::string>()), tuned_in(each));
    return choices;
  } catch (const Json::exception&) {
  } catch (const std::logic_error&) {        // of a key that is no number
  } catch (const std::ios_base::failure&) {  // of a disk that fails
  } catch (const Damaged&) {
  }
  return {};
}

void add_tuned(const fs::path& file, const TunedChoices& choices) {
  TunedChoices all = read_tuned(file);
  for (const auto& [key, tuned] : choices)
    all.insert_or_assign(key, tuned);
  Json json = {{"format", kFormat}, {"choices", Json::array()}};
  for (const auto& [key, tuned] : all)
    json["choices"].push_back(entry_of(key, tuned));
  std::error_code ignored;  // write_file says why where it cannot
  fs::create_directories(file.parent_path(), ignored);
  write_file(file, json.dump(1) + "\n");
}

ContractionChoices tuned_choices(const std::optional<codegen::ObjectCache>& cache) {
  ContractionChoices choices;
  if (const std::optional<fs::path> file = tuned_file(cache))
    for (const auto& [key, tuned] : read_tuned(*file))
      choices.emplace(key, tuned.choice);
  return choices;
}

}  // namespace tenon::compiler
