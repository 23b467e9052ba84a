// devices.cpp — tenon devices: what models can run on here, and if not, why.
#include "runtime/cuda/devices.h"

#include "base/error.h"
#include "cli/commands.h"
#include "cli/machine_file.h"
#include "cli/options.h"
#include "cli/output.h"
#include "codegen/cuda/nvrtc.h"
#include "target/target.h"

namespace tenon::cli {
namespace {

std::string describe_gpus() {
  try {
    std::string lines;
    int number = 0;
    for (const Gpu& gpu : runtime::list_gpus())
      lines += fmt::format("cuda:{}: {}\n", number++, describe(gpu));
    return lines;
  } catch (const UserError& error) {
    return fmt::format("cuda: none: {}\n", error.what());
  }
}

std::string describe_compiler() {
  try {
    return fmt::format("nvrtc: {}\n", codegen::describe_nvrtc());
  } catch (const UserError& error) {
    return fmt::format("nvrtc: none: {}\n", error.what());
  }
}

void show_devices(const std::string& json) {
  check_json(json);
  const std::string cpu = fmt::format("cpu: {}: {}\n", processor_name(), describe(this_machine()));
  write_results(cpu + describe_gpus() + describe_compiler(), json,
                describe_machine(this_machine(), processor_name()));
}

}  // namespace

void add_devices(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("devices", "lists what models can run on here, or says why they cannot");
  auto json = std::make_shared<std::string>();
  add_json(*command, *json)
      ->description("writes what the processor is to this file, for tenon compile --like; -: to stdout");
  command->footer(examples({"tenon devices", "tenon devices --json machine.json"}));
  command->callback([json] { show_devices(*json); });
}

}  // namespace tenon::cli
