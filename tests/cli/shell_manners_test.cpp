// What holds for every command: help with examples that run, exit statuses, JSON, quiet, and suggestions.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class ShellManners : public CommandLine {
 protected:
  std::vector<std::string> lines_of(const std::string& command) const {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.status, 0) << command << outcome.error;
    std::istringstream stream(outcome.out);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    return lines;
  }

  std::vector<std::string> commands() const { return lines_of("tenon complete ''"); }

  nlohmann::json json_of(const std::string& command, int status = 0) const {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.status, status) << command << outcome.error;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(ShellManners, EveryCommandHasExamplesThatRun) {
  std::filesystem::create_directory_symlink(source_tree() / "docs", folder_ / "docs");
  for (const std::string& command : commands()) {
    if (command == "tour")
      continue;  // its own test runs it
    int64_t examples = 0;
    for (const std::string& line : lines_of("tenon " + command + " --help"))
      if (line.starts_with("  tenon " + command)) {
        const Outcome outcome = shell(line);
        EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.error;
        EXPECT_EQ(outcome.error, "") << line;
        ++examples;
      }
    EXPECT_GT(examples, 0) << command;
  }
}

TEST_F(ShellManners, HelpListsOptionsForPeople) {
  const std::string help = shell("tenon verify --help").out;
  const size_t start = help.find("Usage:"), end = help.find("\nChecks:");
  ASSERT_LT(start, end) << help;
  EXPECT_EQ(help.substr(start, end - start), R"(Usage: tenon verify [OPTIONS] MODEL

Arguments:
  MODEL                     a file (.onnx, .pt2, .gguf, .tenon) or builtin:NAME

Options:
  -h, --help                prints this
  --dim NAME=N              binds a symbolic dimension; may be given several
                            times
  --inputs FILE             an .npz with the inputs, by name or as input_0,
                            input_1, …; drawn when left out
  --samples N               how many random inputs, where none are given
                            [default: 3]
  --tolerance T             max |difference| over max |expected|; more where a
                            model rounds to 16 bits [default: 0.0001]
  --numerics strict|default|fast
                            how exact it must stay [default: default]
  --saturate SECONDS        also applies rules in any order (equality
                            saturation), for at most so many seconds each time
  --gradients auto|always|never
                            whether gradients are compared; auto: unless the
                            model is large [default: auto]
  --device DEVICE           where the model runs: cpu, cuda or cuda:N, as tenon
                            devices lists them [default: TENON_DEVICE, else cpu]
  --json FILE               writes the results to this file; -: to stdout, and
                            nothing else
  -q, --quiet               shows no progress and no remarks on stderr
)");
  EXPECT_NE(shell("tenon report --help").out.find("\n  --verify, --no-verify     checks every pass"),
            std::string::npos);
}

TEST_F(ShellManners, HelpHasNoWordsOfTheParser) {
  for (const std::string& command : commands()) {
    const std::string help = shell("tenon " + command + " --help").out;
    EXPECT_NE(help.find("\nUsage: tenon " + command), std::string::npos) << help;
    for (const char* raw : {" TEXT", " INT", " UINT", " FLOAT", " REQUIRED", "Excludes", "{"})
      EXPECT_EQ(help.find(raw), std::string::npos) << command << ": " << raw;
  }
}

TEST_F(ShellManners, ExitStatusesSayWhoseFaultItIs) {
  folder_.write("bad.onnx", "no protobuf");
  folder_.write("bad.pt2", "no archive");
  folder_.write("bad.tenon", "graph main(%x: f32[2]) { %y = relu(%z) return %y }");
  folder_.write("bad.npz", "no archive");
  folder_.write("bad.loops", "kernel k(");
  folder_.write("twice.loops",
                "kernel k(x: f32[4]) -> (y: f32[4]) {\n  for i in 0..4 {\n    y[0] = x[i]\n  }\n}\n");
  std::filesystem::create_directory(folder_ / "folder");
  std::vector<std::pair<std::string, int>> cases = {
      {"", 2},
      {"nonsense", 2},
      {"--help", 0},
      {"--version", 0},
      {"tour nonsense", 2},
      {"tour --list", 0},
      {"completion", 2},
      {"completion tcsh", 2},
      {"ops nonsense", 2},
      {"ops --frontend jax", 2},
      {"rules nonsense", 2},
      {"passes nonsense", 2},
      {"passes --json missing/p.json", 2},
      {"loops", 2},
      {"loops missing.loops", 2},
      {"loops bad.loops", 2},
      {"loops twice.loops --apply 'tile(q,2)'", 2},
      {"loops twice.loops --apply 'parallelise(i)'", 1},
      {"conformance", 2},
      {"conformance missing", 2},
      {"conformance folder", 2},
      {"print builtin:tiny --as nonsense", 2},
      {"print builtin:tiny --stage nonsense", 2},
      {"print builtin:tiny --as fx --stage scheduled", 2},
      {"run builtin:tiny --threads 0", 2},
      {"run builtin:tiny --outputs missing/o.npz", 2},
      {"bench builtin:tiny --seconds -1", 2},
      {"bench builtin:tiny --against nonsense", 2},
      {"bench builtin:tiny --json missing/b.json", 2},
      {"profile builtin:tiny --seconds -1", 2},
      {"profile builtin:tiny --json missing/p.json", 2},
      {"profile builtin:tiny --trace missing/t.json", 2},
      {"profile builtin:tiny --json t.json --trace t.json", 2},
      {"profile builtin:tiny --json t.json --trace ./t.json", 2},
      {"tune builtin:tiny --seconds -1", 2},
      {"tune builtin:tiny --json missing/t.json", 2},
      {"tune builtin:tiny --threads 0", 2},
      {"report builtin:tiny", 2},
      {"report builtin:tiny -o missing/r.html", 2},
      {"report builtin:tiny --inputs bad.npz -o bad.npz", 2},
      {"optimize builtin:tiny -o tiny.txt", 2},
      {"optimize builtin:tiny -o missing/tiny.onnx", 2},
      {"optimize builtin:tiny --passes nonsense", 2},
      {"optimize builtin:tiny --numerics loose", 2},
      {"verify builtin:tiny --samples 0", 2},
      {"verify builtin:tiny --json missing/v.json", 2},
      {"bisect builtin:tiny --expected bad.npz", 2},
      {"bisect builtin:tiny -o small.txt", 2},
  };
  for (const std::string command :
       {"print", "run", "bench", "optimize", "verify", "bisect", "profile", "tune", "report -o r.html"}) {
    cases.emplace_back(command, 2);
    for (const char* arguments :
         {"missing.onnx", "folder", "bad.onnx", "bad.pt2", "bad.tenon", "model.txt", "builtin:nonsense",
          "builtin:tiny extra", "builtin:tiny --nonsense", "builtin:tiny --dim n=4", "builtin:tiny --dim n",
          "builtin:attention_any_length --dim length=-1"})
      cases.emplace_back(command + " " + arguments, 2);
  }
  for (const std::string command :
       {"run", "bench", "verify", "bisect", "profile", "tune", "report -o r.html"})
    for (const char* arguments : {"--inputs missing.npz", "--inputs bad.npz", "--numerics loose"})
      cases.emplace_back(command + " builtin:tiny " + arguments, 2);
  for (const auto& [arguments, status] : cases) {
    const Outcome outcome = shell("tenon " + arguments);
    EXPECT_EQ(outcome.status, status) << "tenon " << arguments << "\n" << outcome.error;
    if (status == 2) {
      EXPECT_EQ(outcome.out, "") << "tenon " << arguments;
      EXPECT_TRUE(outcome.error.starts_with("tenon: ")) << "tenon " << arguments << "\n" << outcome.error;
    }
  }
  EXPECT_EQ(files(), (std::set<std::string>{"bad.loops", "bad.npz", "bad.onnx", "bad.pt2", "bad.tenon",
                                            "folder", "twice.loops"}));
}

TEST_F(ShellManners, WritesNoFileOverAnother) {
  expect_refused("tenon profile builtin:tiny --json t.json --trace ./t.json",
                 "--json and --trace are the same file, t.json");
  expect_done("tenon run builtin:tiny --outputs x.npz >log", "");
  const std::string arrays = read_file(folder_ / "x.npz");
  expect_refused("tenon report builtin:tiny --inputs x.npz -o ./x.npz",
                 "./x.npz holds the inputs, which would be lost");
  EXPECT_EQ(read_file(folder_ / "x.npz"), arrays);
}

TEST_F(ShellManners, SuggestsWhatWasMeant) {
  expect_refused("tenon verfy builtin:tiny", "there is no command verfy\n  hint: did you mean verify?");
  expect_refused("tenon verify builtin:tiny --sampls 3",
                 "verify has no option --sampls\n  hint: did you mean --samples?");
  expect_refused("tenon verify builtin:tiny --nonsense",
                 "verify has no option --nonsense\n  hint: tenon verify --help lists them");
  expect_refused("tenon --verson", "tenon has no option --verson\n  hint: did you mean --version?");
  expect_refused("tenon run builtin:tiny more", "run takes no further argument, but got more");
  expect_refused("tenon optimize builtin:tiny --passes nonsense",
                 "there is no pass \"nonsense\"\n  hint: tenon passes lists them");
  expect_refused("tenon passes nonsense", "there is no pass \"nonsense\"\n  hint: tenon passes lists them");
  expect_refused("tenon rules nonsense", "there is no rule \"nonsense\"\n  hint: tenon rules lists them");
  expect_refused("tenon ops matmull", "there is no op matmull\n  hint: did you mean matmul?");
  expect_refused(
      "tenon print builtin:tiny --as fxx",
      "--as: it must be tenon, fx, fx-code, torchscript, onnx, hlo, relay, cpp, dot, deps, but is fxx\n"
      "  hint: did you mean fx?");
  expect_refused("tenon optimize builtin:tiny --outptu x.onnx",
                 "optimize has no option --outptu\n  hint: did you mean --output?");
  expect_refused("tenon bench builtin:tiny --against fused",
                 "--against: it must be reference, unfused or without=NAME,…, but is fused\n"
                 "  hint: did you mean unfused?");
  expect_refused("tenon bench builtin:tiny --against without=simplfy",
                 "there is no pass \"simplfy\"\n  hint: did you mean simplify?");
  const Outcome model = shell("tenon print builtin:tinny");
  EXPECT_EQ(model.error.find("tenon: there is no built-in model tinny\n  hint: did you mean tiny?\n"), 0u)
      << model.error;
}

TEST_F(ShellManners, SaysWhatIsMissing) {
  expect_refused("tenon optimize", "optimize needs MODEL\n  hint: tenon optimize --help says more");
  expect_refused("tenon report", "report needs MODEL and --output\n  hint: tenon report --help says more");
  expect_refused("tenon optimize builtin:tiny -o",
                 "--output needs a value\n  hint: tenon optimize --help says more");
  expect_refused("tenon optimize builtin:tiny -o a.onnx -o b.onnx",
                 "--output is given more than once\n  hint: tenon optimize --help says more");
  const Outcome outcome = shell("tenon");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.error.starts_with("tenon: a command is missing; there are\n  tour         "))
      << outcome.error;
  for (const std::string& command : commands())
    EXPECT_NE(outcome.error.find("\n  " + command + " "), std::string::npos) << command;
  EXPECT_TRUE(outcome.error.ends_with("\n  hint: tenon COMMAND --help tells about one\n")) << outcome.error;
}

TEST_F(ShellManners, SaysWhatAFileIsInstead) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  for (const char* file : {"model.onnx", "model.pt2", "model.gguf", "model.tenon"}) {
    folder_.write(file, pointer);
    const Outcome outcome = shell(std::string("tenon print ") + file);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.error.ends_with(
        "\n  hint: this is a Git LFS pointer, not the file itself; run `git lfs pull`\n"))
        << outcome.error;
  }
}

TEST_F(ShellManners, QuietLeavesErrorsAlone) {
  // An array that no input takes is worth a remark.
  folder_.write("two.tenon",
                "graph main(%x: f32[2], %z: f32[2]) { %y = relu(%x) return %y, %z as \"extra\" }");
  expect_done("tenon run two.tenon --outputs two.npz >log", "");
  folder_.write("one.tenon", "graph main(%y: f32[2]) { %r = relu(%y) return %r }");
  const Outcome loud = shell("tenon run one.tenon --inputs two.npz >log");
  EXPECT_EQ(loud.status, 0) << loud.error;
  EXPECT_NE(loud.error.find("no input takes"), std::string::npos) << loud.error;
  for (const char* command :
       {"tenon run one.tenon --inputs two.npz --quiet >log", "tenon -q run one.tenon --inputs two.npz >log"})
    expect_done(command, "");
  expect_refused("tenon --quiet ops matmull", "there is no op matmull\n  hint: did you mean matmul?");
}

TEST_F(ShellManners, ListsAsJson) {
  EXPECT_EQ(json_of("tenon passes --json -")["passes"][0]["name"], "remove-dead");
  const nlohmann::json rule = json_of("tenon rules multiply-by-one --json -")["rules"].at(0);
  EXPECT_EQ(rule["rule"], "(x * 1) => x");
  EXPECT_EQ(rule["numerics"], "bit-exact");
  EXPECT_GT(json_of("tenon rules --json -")["rules"].size(), 100u);
  const nlohmann::json op = json_of("tenon ops reduce_sum --json -")["ops"].at(0);
  EXPECT_EQ(op["category"], "compute");
  EXPECT_EQ(op["attributes"][0]["may_be_computed"], true);
  EXPECT_GT(json_of("tenon ops --json -")["ops"].size(), 100u);
  EXPECT_TRUE(json_of("tenon ops --frontend torch --json -")["ops"][0].contains("core"));
  expect_done("tenon passes --json p.json | sed -n 2p | cut -d ' ' -f 1", "remove-dead\n");
  EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "p.json"))["passes"][0]["name"], "remove-dead");
}

TEST_F(ShellManners, ResultsGoToStdoutAsJson) {
  EXPECT_EQ(json_of("tenon verify builtin:tiny --json -")["passes"].back()["name"], "compiled program");
  EXPECT_EQ(json_of("tenon bench builtin:tiny --seconds 0 --json -")["model"], "builtin:tiny");
  EXPECT_EQ(json_of("tenon bisect builtin:tiny --json -")["found"], false);
  EXPECT_EQ(json_of("tenon optimize builtin:unoptimized --stats -")["nodes_after"], 5);
  EXPECT_EQ(files(), std::set<std::string>());
}

}  // namespace
}  // namespace tenon::cli
