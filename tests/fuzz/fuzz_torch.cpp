// fuzz_torch.cpp — feeds damaged torch.export archives to the reader: bytes flipped and cut off; and, since
// few such archives come past the checksums, programs and indices whose JSON says something else: absurd
// numbers, other names and ops, values that change places, are left out or come twice.
//
//   fuzz_torch COUNT SEED FOLDER...      takes the .pt2 files below the folders; input i of a seed is always
//   the same
#include <nlohmann/json.hpp>
#include <random>

#include "base/temporary_folder.h"
#include "base/zip_bytes.h"
#include "base/zip_file.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/import.h"
#include "fuzz/reader.h"

namespace tenon {
namespace {

using fuzz::Bytes;
using Json = nlohmann::json;

std::vector<ZipPart> unzipped(const Bytes& bytes) {
  const TemporaryFolder folder;
  const ZipFile zip(MappedFile::open(folder.write("a.zip", {bytes.begin(), bytes.end()})));
  std::vector<ZipPart> parts;
  for (const auto& [name, entry] : zip.entries()) {
    std::string content(entry.size, '\0');
    zip.read(entry, std::as_writable_bytes(std::span(content)));
    parts.push_back({name, content});
  }
  return parts;
}

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& files, uint64_t seed) : files_(files), random_(seed) {}

  Bytes next() {
    Bytes bytes = files_[below(files_.size())];
    if (below(5) == 0) {
      damage_bytes(bytes);
      return bytes;
    }
    std::vector<ZipPart> parts = unzipped(bytes);
    std::vector<size_t> texts;
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].name.ends_with(".json"))
        texts.push_back(i);
    for (size_t rounds = 1 + below(3); rounds > 0; --rounds)
      damage(parts, texts);
    const std::string archive = zip_bytes(parts);
    return {archive.begin(), archive.end()};
  }

 private:
  size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }

  void damage_bytes(Bytes& bytes) {
    if (below(3) == 0)
      bytes.resize(below(bytes.size()));
    for (size_t flips = below(4); flips > 0 && !bytes.empty(); --flips)
      bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
  }

  void damage(std::vector<ZipPart>& parts, const std::vector<size_t>& texts) {
    const size_t kind = below(20);
    if (kind == 0)
      return void(parts.erase(parts.begin() + static_cast<long>(below(parts.size()))));
    if (kind == 1) {
      std::string& content = parts[below(parts.size())].content;
      return content.resize(below(content.size() + 1));
    }
    if (kind == 2) {
      ZipPart& part = parts[below(parts.size())];
      part.deflated = true;
      part.size =
          static_cast<int64_t>(below(2) == 0 ? below(part.content.size() + 2) : size_t{1} << below(32));
      return;
    }
    ZipPart& part = parts[texts[below(texts.size())] % parts.size()];
    Json json = Json::parse(part.content, nullptr, false);
    if (json.is_discarded() || json.empty())
      return;
    std::vector<Json*> values;
    collect(json, values);
    damage_value(*values[below(values.size())], *values[below(values.size())]);
    part.content = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static void collect(Json& json, std::vector<Json*>& values) {
    values.push_back(&json);
    for (Json& each : json)
      if (json.is_structured())
        collect(each, values);
  }

  void damage_value(Json& value, Json& other) {
    constexpr int64_t absurd[] = {
        0,         1,        -1, 2, 127, 1 << 20, int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62,
        INT64_MAX, INT64_MIN};
    switch (below(6)) {
      case 0:  // a number made absurd
        if (value.is_number() || value.is_boolean())
          value = absurd[below(std::size(absurd))];
        break;
      case 1:  // another op
        if (value.is_string() && value.get<std::string>().starts_with("torch.ops.")) {
          const std::vector<std::string_view> ops = torch::known_ops();
          value = fmt::format("torch.ops.aten.{}{}", ops[below(ops.size())],
                              below(3) == 0 ? "_.default" : ".default");
        }
        break;
      case 2: {  // one of its values left out, or twice
        if (!value.is_structured() || value.empty())
          break;
        auto at = value.begin();
        std::advance(at, static_cast<long>(below(value.size())));
        if (value.is_array() && below(2) == 0)
          value.push_back(Json(*at));
        else
          value.erase(at);
        break;
      }
      case 3:  // what stands elsewhere, of the same kind
        if (value.type() == other.type())
          value = Json(other);
        break;
      case 4:  // something else altogether
        value = Json(other);
        break;
      default:  // a word that is no name, or no size
        if (value.is_string())
          value = below(2) == 0 ? "" : value.get<std::string>() + "'(";
    }
  }

  const std::vector<Bytes>& files_;
  std::mt19937_64 random_;
};

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  return tenon::fuzz::run_reader(
      argc, argv,
      {.name = "fuzz_torch",
       .extension = ".pt2",
       .read = [](const auto& path) { return tenon::torch::read_torch(path); },
       .mutate = [](const std::vector<tenon::fuzz::Bytes>& files,
                    uint64_t seed) { return tenon::Mutator(files, seed).next(); }});
}
