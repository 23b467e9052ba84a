// report.cpp — the tour: writes a report, to go on looking at what the tour has shown.
#include "report/report.h"

#include <nlohmann/json.hpp>

#include "api/default_context.h"
#include "base/units.h"
#include "base/write_file.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kFile = "tenon-report.html";

std::string make_page() {
  const std::unique_ptr<Graph> graph = builtin::make_model("resnet_block");
  const Data inputs = sample_inputs(*graph);
  return page_of(make_report(*graph, inputs,
                             {.model = "builtin:resnet_block",
                              .version = TENON_VERSION,
                              .compile = api::default_context(),
                              .measure = {.threads = this_machine().cores, .seconds = 0.5}}));
}

}  // namespace

void show_report(Screen& screen) {
  try {
    check_writable(kFile);
  } catch (const UserError& error) {
    screen.subheading("This folder takes no file, so there is no report today:");
    return screen.notes(error.what());
  }
  const std::string page = make_page();
  write_file(kFile, page);
  screen.subheading("Written, to be opened in a browser:");
  screen.excerpt(fmt::format("{}, {}\n", (std::filesystem::current_path() / kFile).string(),
                             format_bytes(static_cast<double>(page.size()))));
}

}  // namespace tenon::cli
