#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class Compile : public CommandLine {
 protected:
  void compile(const std::string& model, const std::string& options = "") const {
    const Outcome outcome = shell("tenon compile " + model + " -o a.tnp " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(outcome.out.find("wrote a.tnp: "), 0U) << outcome.out;
  }
};

TEST_F(Compile, WritesWhatRunsLikeTheModel) {
  for (const char* model : {"attention", "resnet_block", "cond", "scan", "while_loop"}) {
    const Outcome compiled = shell(std::string("tenon run --outputs a.npz builtin:") + model);
    EXPECT_EQ(compiled.status, 0) << compiled.error;
    compile(std::string("builtin:") + model);
    expect_done("tenon run a.tnp --check --outputs b.npz", compiled.out);
    expect_done("cmp a.npz b.npz", "");
  }
}

TEST_F(Compile, LeavesSizesOpenOrFixesThem) {
  compile("builtin:attention_any_length");
  const Outcome open = shell("tenon run a.tnp");
  EXPECT_EQ(open.out, shell("tenon run builtin:attention_any_length").out);
  expect_refused("tenon run a.tnp --dim length=9",
                 "--dim is for a model: a.tnp is a saved program, for which it was decided by tenon compile");
  compile("builtin:attention_any_length", "--dim length=9");
  EXPECT_EQ(shell("tenon run a.tnp").out, shell("tenon run builtin:attention_any_length --dim length=9").out);
}

TEST_F(Compile, IsShown) {
  compile("builtin:tiny");
  const std::string model = shell("tenon print a.tnp").out;
  EXPECT_EQ(model.find("graph tiny(%x: f32[1,4]) {\n"), 0U) << model;
  EXPECT_EQ(shell("tenon print a.tnp --stage program").out,
            shell("tenon print builtin:tiny --stage program").out);
  EXPECT_NE(shell("tenon print a.tnp --as fx").out.find("placeholder"), std::string::npos);
  EXPECT_EQ(shell("tenon print a.tnp -o b.tenon").status, 0);
  EXPECT_EQ(read_file(folder_ / "b.tenon"), model);
  expect_refused("tenon print a.tnp --stage fused",
                 "a.tnp is a saved program, of which there are the stages imported and program");
}

TEST_F(Compile, IsMeasured) {
  compile("builtin:resnet_block");
  const Outcome bench = shell("tenon bench a.tnp --seconds 0 --json b.json");
  EXPECT_EQ(bench.status, 0) << bench.error;
  EXPECT_NE(bench.out.find("\nopen "), std::string::npos);
  EXPECT_EQ(bench.out.find("compile"), std::string::npos);
  const Outcome profile = shell("tenon profile a.tnp --seconds 0");
  EXPECT_EQ(profile.status, 0) << profile.error;
  EXPECT_NE(profile.out.find("GFLOP/s"), std::string::npos);
  for (const char* command : {"bench --against unfused", "profile --precision bf16", "run --engine reference",
                              "run --device cpu"}) {
    const std::string text = command, option = text.substr(text.find("--"));
    expect_refused(
        "tenon " + text + " a.tnp",
        option.substr(0, option.find(' ')) +
            " is for a model: a.tnp is a saved program, for which it was decided by tenon compile");
  }
}

// This machine, described in a file, has the same code as it has by itself.
TEST_F(Compile, TakesMachinesFromFiles) {
  EXPECT_EQ(shell("tenon devices --json here.json").status, 0);
  compile("builtin:attention", "--like here.json");
  const Outcome compiled = shell("tenon run builtin:attention --outputs a.npz");
  expect_done("tenon run a.tnp --outputs b.npz", compiled.out);
  expect_done("cmp a.npz b.npz", "");
  expect_done("TENON_TARGET=here tenon run a.tnp", compiled.out);
  std::ofstream(folder_ / "there.json") << R"({"cpu": {"target": "armv8.2+dotprod", "name": "a board",
    "caches": {"level1_data": 32768, "level2": 524288, "level3_share": 0}}})";
  compile("builtin:attention", "--target native --like here.json --like there.json");
  expect_refused("TENON_TARGET=elsewhere tenon run a.tnp",
                 "a.tnp: the saved program has no code for elsewhere; it has code for native, here, there");
}

TEST_F(Compile, RefusesMachinesThatAreNone) {
  const auto refuses = [&](const std::string& text, const std::string& error) {
    std::ofstream(folder_ / "m.json") << text;
    expect_refused("tenon compile builtin:tiny -o b.tnp --like m.json", "m.json: " + error);
  };
  refuses("{", "this is no machine that tenon devices --json has written");
  refuses("[]", "this is no machine that tenon devices --json has written");
  refuses(R"({"cpu": {"target": "x86-64"}})", "this is no machine that tenon devices --json has written");
  refuses(
      R"({"cpu": {"target": "x86-64+mmx"}})",
      "x86-64 has no feature 'mmx'; there are sse2, sse3, ssse3, sse4.1, sse4.2, popcnt, lzcnt, movbe, bmi, "
      "bmi2, avx, f16c, fma, avx2, avxvnni, avx512f, avx512cd, avx512bw, avx512dq, avx512vl, avx512ifma, "
      "avx512vbmi, avx512vbmi2, avx512vnni, avx512bitalg, avx512vpopcntdq, avx512bf16, avx512fp16, amx-tile, "
      "amx-bf16, amx-int8");
  refuses(R"({"cpu": {"target": "x86-64",
              "caches": {"level1_data": 32768, "level2": 0, "level3_share": 0}}})",
          "level2 cannot be 0");
  refuses(R"({"cpu": {"target": "x86-64",
              "caches": {"level1_data": -1, "level2": 524288, "level3_share": 0}}})",
          "level1_data cannot be -1");
  ASSERT_EQ(shell("tenon devices --json 'my server.json'").status, 0);
  expect_refused(
      "tenon compile builtin:tiny -o b.tnp --like 'my server.json'",
      "--like: \"my server\" cannot be the name of a target: it is empty, or has spaces or commas");
  expect_refused("tenon compile builtin:tiny -o b.tnp --like none.json",
                 "cannot open none.json: No such file or directory");
  expect_refused("tenon compile builtin:tiny -o b.tnp --like m.json --like m.json",
                 "m.json: level1_data cannot be -1");
}

TEST_F(Compile, WritesObjects) {
  const Outcome outcome =
      shell("tenon compile builtin:tiny --as object -o my-model.o --target x86-64,x86-64-v3");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out.find("wrote my-model.o and my-model.h: "), 0U) << outcome.out;
  EXPECT_NE(read_file(folder_ / "my-model.h").find("my_model_open(const tenon_open_options*"),
            std::string::npos);
  EXPECT_EQ(read_file(folder_ / "my-model.o").substr(0, 4),
            "\x7f"
            "ELF");
  expect_refused("tenon compile builtin:tiny --as object -o a.tnp",
                 "cannot write a.tnp: its name must end in .o");
  expect_refused("tenon compile builtin:tiny --as object -o a.o --target x86-64,armv8",
                 "--as object: x86-64 and armv8 are not of one architecture, as what is linked must be");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.o"));
}

TEST_F(Compile, RefusesWhatItCannotWrite) {
  expect_refused("tenon compile builtin:tiny -o a.onnx", "cannot write a.onnx: its name must end in .tnp");
  expect_refused("tenon compile builtin:tiny -o none/a.tnp",
                 "cannot write none/a.tnp: No such file or directory");
  EXPECT_EQ(files(), std::set<std::string>{});
}

TEST_F(Compile, IsNoModelForOtherCommands) {
  compile("builtin:tiny");
  for (const char* command : {"optimize", "verify", "bisect", "tune", "report -o r.html", "compile -o b.tnp"})
    expect_refused(
        std::string("tenon ") + command + " a.tnp",
        "a.tnp is a saved program, which tenon run, bench, profile and print take\n  hint: give the "
        "model that it was made of");
}

TEST_F(Compile, RefusesWhatIsDamaged) {
  compile("builtin:tiny");
  const std::string whole = read_file(folder_ / "a.tnp");
  folder_.write("cut.tnp", whole.substr(0, 100));
  expect_refused("tenon run cut.tnp", "cut.tnp: the saved program is cut off: 100 of its " +
                                          std::to_string(whole.size()) + " bytes are there");
  folder_.write("text.tnp", "graph main() { return }");
  expect_refused("tenon run text.tnp", "text.tnp: this is no saved program");
  std::string damaged = whole;
  damaged[whole.find("graph tiny")] = 'G';
  folder_.write("damaged.tnp", damaged);
  for (const char* command : {"run", "bench", "profile", "print"})
    expect_refused(
        std::string("tenon ") + command + " damaged.tnp",
        "damaged.tnp: the saved program is damaged: its section \"model\" is not as it was written");
}

TEST_F(Compile, FindsDamagedWeights) {
  compile("builtin:resnet_block");
  std::string damaged = read_file(folder_ / "a.tnp");
  damaged[damaged.size() - 100] ^= 1;
  folder_.write("a.tnp", damaged);
  EXPECT_EQ(shell("tenon run a.tnp").status, 0);
  expect_refused("tenon run a.tnp --check",
                 "a.tnp: the saved program is damaged: its section \"weights\" is not as it was written");
  expect_refused("tenon run builtin:tiny --check",
                 "--check is for a saved program, which builtin:tiny is not");
}

TEST_F(Compile, RunsForATargetThatThereIs) {
  compile("builtin:tiny");
  EXPECT_EQ(shell("TENON_TARGET=native tenon run a.tnp").status, 0);
  expect_refused("TENON_TARGET=avx2 tenon run a.tnp",
                 "a.tnp: the saved program has no code for avx2; it has code for native");
}

#ifdef __x86_64__
constexpr const char *kHere = "x86-64", *kBetter = "x86-64-v2", *kElsewhere = "armv8.2+dotprod",
                     *kNeeded = "arm64";
#else
constexpr const char *kHere = "armv8", *kBetter = "armv8+neon", *kElsewhere = "x86-64-v3",
                     *kNeeded = "x86-64";
#endif

TEST_F(Compile, HasCodeForSeveralTargets) {
  const std::string here = kHere, elsewhere = kElsewhere;
  for (const char* model : {"attention_any_length", "resnet_block", "cond"}) {
    compile(std::string("builtin:") + model, "--target " + here + ",native," + elsewhere);
    const Outcome native = shell("tenon run a.tnp");
    EXPECT_EQ(native.status, 0) << native.error;
    EXPECT_EQ(native.out, shell(std::string("tenon run builtin:") + model).out);
    const Outcome plain = shell("TENON_TARGET=" + here + " tenon run a.tnp --outputs plain.npz");
    EXPECT_EQ(plain.status, 0) << plain.error;
    EXPECT_EQ(shell(std::string("tenon run --expected plain.npz builtin:") + model).status, 0);
  }
}

TEST_F(Compile, RefusesTargetsThatDoNotFit) {
  const std::string elsewhere = kElsewhere;
  compile("builtin:tiny", "--target " + elsewhere);
  expect_refused("tenon run a.tnp", "a.tnp: the saved program has no code for this processor: " + elsewhere +
                                        " needs " + kNeeded);
  expect_refused("tenon compile builtin:tiny -o b.tnp --target native,native",
                 "--target: native is named twice");
  expect_refused("tenon compile builtin:tiny -o b.tnp --target ''", "--target: no target is named");
  expect_refused(
      "tenon compile builtin:tiny -o b.tnp --target pentium",
      "--target: there is no target 'pentium'; there are native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, "
      "sapphirerapids, armv8, armv8.2, armv8.4, armv8.6, each also with features, as in "
      "armv8.2+dotprod");
  expect_refused("tenon compile builtin:tiny -o b.tnp --target armv8.6+fullfp16+fp16fml+bf16+i8mm",
                 "--target: armv8.6+fullfp16+fp16fml+bf16+i8mm: a target has a name of at most 30 letters");
}

// Constants of the same elements are there once.
TEST_F(Compile, SharesWeightsAmongTargets) {
  const std::string here = kHere, better = kBetter;
  compile("builtin:resnet_block", "--target " + here);
  const auto one = std::filesystem::file_size(folder_ / "a.tnp");
  compile("builtin:resnet_block", "--target " + here + "," + better);
  EXPECT_LT(std::filesystem::file_size(folder_ / "a.tnp"), 2 * one);
}

}  // namespace
}  // namespace tenon::cli
