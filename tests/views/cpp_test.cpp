#include "base/temporary_folder.h"
#include "source_tree.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/traced_graphs.h"

namespace tenon {
namespace {

// The source of all graphs as one program, which compares what they trace to with them.
TEST(Cpp, CompilesToAProgramThatTracesToTheSameGraphs) {
  std::string source, functions;
  for (const auto& graph : make_traced_graphs()) {
    source += show_as_cpp(*graph);
    functions += fmt::format("{}, ", identifier("trace_" + graph->name()));
  }
  source += "#include \"views/traced_graphs.h\"\n";
  source += fmt::format("int main() {{ return tenon::compare_traced({{{}}}); }}\n", functions);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("traced.cpp", source), program = folder / "traced",
                              said = folder / "said.txt";
  const auto run = [&](const std::string& command) {
    return std::system(fmt::format("{} >'{}' 2>&1", command, said.string()).c_str());
  };
  // The options end with the libraries, so the source comes before it.
  ASSERT_EQ(run(fmt::format("{} '{}' @'{}' -o '{}'", TENON_COMPILER, file.string(),
                            (build_folder() / "compile_traced.txt").string(), program.string())),
            0)
      << read_file(said) << source;
  EXPECT_EQ(run(fmt::format("'{}'", program.string())), 0) << read_file(said);
}

}  // namespace
}  // namespace tenon
