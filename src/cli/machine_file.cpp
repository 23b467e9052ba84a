#include "cli/machine_file.h"

#include <fstream>

#include "base/error.h"
#include "target/compile_targets.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

// By the name that --target would take.
std::string target_name(const Target& machine) {
  std::string name = machine.architecture == Architecture::Arm64 ? "armv8" : machine.cpu;
  for (const std::string& feature : machine.features)
    name += feature;  // each begins with +
  return name;
}

int64_t bytes_of(const Json& caches, const char* level, int64_t least) {
  const int64_t bytes = caches.at(level).get<int64_t>();
  constexpr int64_t kMost = int64_t{1} << 40;
  if (bytes < least || bytes > kMost)
    throw user_error("{} cannot be {}", level, bytes);
  return bytes;
}

Target parse_machine(const Json& json) {
  const Json& cpu = json.at("cpu");
  Target machine = compile_target(cpu.at("target").get<std::string>());
  const Json& caches = cpu.at("caches");
  constexpr int64_t kLeast = 1 << 10;  // tiles are made for caches that there are
  machine.caches = {.level1_data = bytes_of(caches, "level1_data", kLeast),
                    .level2 = bytes_of(caches, "level2", kLeast),
                    .level3_share = bytes_of(caches, "level3_share", 0)};
  return machine;
}

}  // namespace

Json describe_machine(const Target& machine, const std::string& name) {
  return {{"cpu",
           {{"name", name},
            {"target", target_name(machine)},
            {"caches",
             {{"level1_data", machine.caches.level1_data},
              {"level2", machine.caches.level2},
              {"level3_share", machine.caches.level3_share}}}}}};
}

Target read_machine(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file)
    throw user_error("cannot open {}: {}", path.string(), std::generic_category().message(errno));
  return with_context([&] { return path.string(); },
                      [&] {
                        try {
                          return parse_machine(Json::parse(file));
                        } catch (const Json::exception&) {
                          throw user_error("this is no machine that tenon devices --json has written");
                        }
                      });
}

}  // namespace tenon::cli
