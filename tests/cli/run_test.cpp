#include <gtest/gtest.h>

#include <cmath>

#include "cli/shell.h"
#include "frontends/onnx_model.h"
#include "tensor/npy.h"

namespace tenon::cli {
namespace {

class Run : public CommandLine {
 protected:
  void SetUp() override {
    folder_.write("sub.tenon", "graph main(%a: f32[n], %b: f32[n]) {\n  %y = sub(%a, %b)\n  return %y\n}\n");
  }

  void write_inputs(const NamedTensors& tensors) const { write_npz(folder_ / "in.npz", tensors); }

  // What `tenon run` says of a tensor.
  void expect_summary(const Tensor& tensor, const std::string& summary) const {
    write_inputs({{"x", tensor}});
    folder_.write("same.tenon",
                  "graph main(%x: " + describe(tensor.dtype(), tensor.extents()) + ") {\n  return %x\n}\n");
    expect_done("tenon run same.tenon --inputs in.npz", "x: " + summary + "\n");
  }

  const Tensor a_ = Tensor::of<float>({5, 7}), b_ = Tensor::of<float>({1, 2});
};

TEST_F(Run, TakesInputsByName) {
  write_inputs({{"b", b_}, {"a", a_}});
  expect_done("tenon run sub.tenon --inputs in.npz", "y: f32[2] = [4, 5], from 4 to 5\n");
}

TEST_F(Run, TakesInputsByPlace) {
  write_inputs({{"input_1", b_}, {"input_0", a_}});
  expect_done("tenon run sub.tenon --inputs in.npz", "y: f32[2] = [4, 5], from 4 to 5\n");
}

TEST_F(Run, AnInputsOwnNameIsNoPlaceOfAnother) {
  folder_.write("swap.tenon",
                "graph main(%input_1: f32[2], %b: f32[2]) {\n  %y = sub(%input_1, %b)\n  return %y\n}\n");
  write_inputs({{"input_1", a_}});
  expect_refused("tenon run swap.tenon --inputs in.npz",
                 "in.npz: there is no \"b\" (nor input_1) for the input of type f32[2]");
}

TEST_F(Run, MissingArraysAreRefused) {
  write_inputs({{"a", a_}});
  expect_refused("tenon run sub.tenon --inputs in.npz",
                 "in.npz: there is no \"b\" (nor input_1) for the input of type f32[n]");
}

TEST_F(Run, NamesTheInputThatWasMeant) {
  folder_.write(
      "named.tenon",
      "graph main(%mask: f32[n], %token_ids: f32[n]) {\n  %y = sub(%token_ids, %mask)\n  return %y\n}\n");
  write_inputs({{"mask", a_}, {"tokenids", a_}});
  expect_refused("tenon run named.tenon --inputs in.npz",
                 "in.npz: there is no \"token_ids\" (nor input_1) for the input of type f32[n]\n"
                 "  hint: it has tokenids, but the inputs are token_ids, mask");
}

TEST_F(Run, ArraysThatNoInputTakesAreNoted) {
  write_inputs({{"a", a_}, {"b", b_}, {"output_0", b_}});
  const Outcome outcome = shell("tenon run sub.tenon --inputs in.npz");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "y: f32[2] = [4, 5], from 4 to 5\n");
  EXPECT_EQ(outcome.error, "note: in.npz: no input takes output_0\n");
}

TEST_F(Run, OverridesTheValuesOfInputs) {
  using namespace onnx::encode;
  folder_.write("m.onnx", model({.nodes = {node("Sub", {"x", "w"}, {"y"})},
                                 .inputs = {value("w", kFloat, {2}), value("x", kFloat, {2})},
                                 .outputs = {untyped("y")},
                                 .initializers = {tensor<float>("w", {2}, {1, 1})}}));
  write_inputs({{"x", a_}});
  expect_done("tenon run m.onnx --inputs in.npz", "y: f32[2] = [4, 6], from 4 to 6\n");
  write_inputs({{"input_0", a_}, {"w", b_}});
  expect_done("tenon run m.onnx --inputs in.npz", "y: f32[2] = [4, 5], from 4 to 5\n");
}

TEST_F(Run, SaysWhenTheInputsThatDoNotFitWereMadeUp) {
  folder_.write("ids.tenon",
                "graph main(%table: f32[4,2], %ids: i64[3]) {\n  %places = abs(%ids)\n  %y = gather(%table, "
                "%places)\n  return %y\n}\n");
  expect_refused("tenon run ids.tenon --engine reference",
                 "node %y: gather: index 919 is out of range for dimension 0 of size 4\n"
                 "  hint: the inputs were made up; give your own with --inputs");
  expect_refused("tenon run ids.tenon",
                 "node \"%y\": an index is out of range, or an integer is divided by zero\n"
                 "  hint: tenon run --engine reference says more\n"
                 "  hint: the inputs were made up; give your own with --inputs");
}

TEST_F(Run, MakesUpIndicesThatFit) {
  folder_.write(
      "ids.tenon",
      "graph main(%table: f32[4,2], %ids: i64[3]) {\n  %y = gather(%table, %ids)\n  return %y\n}\n");
  for (const char* engine : {"reference", "compiled"})
    expect_done(std::string("tenon run ids.tenon --engine ") + engine,
                "y: f32[3,2] = [0.1, 0.461615, 0.896565, 0.624044, 1.09588, 1.06128], from 0.1 to 1.09588\n");
}

TEST_F(Run, CompilesTheModelUnlessToldOtherwise) {
  write_inputs({{"a", a_}, {"b", b_}});
  const std::string result = "y: f32[2] = [4, 5], from 4 to 5\n";
  for (const std::string options :
       {"", "--engine compiled", "--engine reference", "--threads 1", "--threads 3"})
    expect_done("tenon run sub.tenon --inputs in.npz " + options, result);
}

TEST_F(Run, RefusesEnginesAndThreadsThatThereAreNot) {
  const Outcome engine = shell("tenon run sub.tenon --engine warp");
  EXPECT_EQ(engine.status, 2);
  EXPECT_NE(engine.error.find("--engine: it must be compiled, reference, but is warp"), std::string::npos)
      << engine.error;
  for (const std::string threads : {"0", "-1", "1.5", "1025"}) {
    const Outcome outcome = shell("tenon run sub.tenon --threads " + threads);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.error.find("--threads: it must be a whole number from 1 to 1024, but is " + threads),
              std::string::npos)
        << outcome.error;
  }
}

TEST_F(Run, NamesTheSizesThatCanBeGiven) {
  folder_.write("halves.tenon",
                "graph main(%x: f32[batch,seq]) {\n  %s = constant(value=i64[2] {-1, 2})\n"
                "  %y = reshape(%x, %s)\n  return %y\n}\n");
  const std::string hint =
      "\n  hint: the inputs were made up; give your own with --inputs, or sizes with --dim batch=… --dim "
      "seq=…";
  expect_refused("tenon run halves.tenon --engine reference",
                 "node %y: reshape: 1 elements do not fit into [-1,2]" + hint);
  expect_refused(
      "tenon run halves.tenon",
      "node %y: reshape: 1 elements do not divide into [-1,2]\n  x  %x: f32[1,1]\n  shape  %s: i64[2]" +
          hint);
  folder_.write(
      "found.tenon",
      "graph main(%x: f32[batch,seq]) {\n  %a = nonzero(%x)\n  %s = constant(value=i64[2] {-1, 4})\n"
      "  %y = reshape(%a, %s)\n  return %y\n}\n");
  expect_refused("tenon run found.tenon --engine reference",
                 "node %y: reshape: 2 elements do not fit into [-1,4]" + hint);
  expect_refused(
      "tenon run found.tenon",
      "node %y: reshape: 2 elements do not divide into [-1,4]\n  x  %a: i64[2,1]\n  shape  %s: i64[2]" +
          hint);
}

TEST_F(Run, AnOutputListedTwiceIsWrittenOnce) {
  folder_.write("twice.tenon", "graph main(%x: f32[2]) {\n  %y = relu(%x)\n  return %y, %y\n}\n");
  EXPECT_EQ(shell("tenon run twice.tenon --outputs out.npz").status, 0);
  EXPECT_EQ(read_npz(folder_ / "out.npz").size(), 1u);
}

TEST_F(Run, WrongShapesAndFilesAreRefused) {
  write_inputs({{"a", a_}, {"b", Tensor::of<float>({1, 2, 3})}});
  const Outcome shapes = shell("tenon run sub.tenon --inputs in.npz");
  EXPECT_EQ(shapes.status, 2);
  EXPECT_NE(shapes.error.find("f32[3]"), std::string::npos) << shapes.error;
  expect_refused("tenon run sub.tenon --inputs none.npz", "cannot open none.npz: No such file or directory");
}

TEST_F(Run, MakesInputsThatFitEachOther) {
  folder_.write("double.tenon",
                "graph main(%a: f32[n], %b: f32[2*n]) {\n  %y = concat([%a, %b], axis=0)\n  return %y\n}\n");
  expect_done("tenon run double.tenon", "y: f32[3] = [0.1, 0.1, 0.461615], from 0.1 to 0.461615\n");
}

TEST_F(Run, InputsThatNoMemoryHoldsAreRefused) {
  folder_.write("huge.tenon", "graph main(%x: f32[4611686018427387904]) {\n  return %x\n}\n");
  const Outcome outcome = shell("tenon run huge.tenon");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(outcome.error.starts_with("tenon: input x of type f32[4611686018427387904]: "))
      << outcome.error;
}

TEST_F(Run, SummarizesNumbersAsWhatTheyAre) {
  expect_summary(Tensor::of<float>({1, 2.5, 0.1234567F}),
                 "f32[3] = [1, 2.5, 0.123457], from 0.123457 to 2.5");
  expect_summary(Tensor::of<int64_t>({1234567, -9007199254740993}),
                 "i64[2] = [1234567, -9007199254740993], from -9007199254740993 to 1234567");
  expect_summary(Tensor::of<uint64_t>({18446744073709551615U}),
                 "u64[1] = [18446744073709551615], from 18446744073709551615 to 18446744073709551615");
  expect_summary(Tensor::of<int32_t>({0, 1, 2, 3, 4, 5, 6, 7}),
                 "i32[8] = [0, 1, 2, 3, 4, 5, …], from 0 to 7");
  expect_summary(Tensor(DType::F32, {0, 3}), "f32[0,3]");
}

TEST_F(Run, SummarizesStrings) {
  expect_summary(Tensor::strings({"a", "say \"b\"\n"}, {2}), R"(str[2] = ["a", "say \"b\"\n"])");
  expect_summary(Tensor::strings(std::vector<std::string>(7, "é"), {7}),
                 R"(str[7] = ["é", "é", "é", "é", "é", "é", …])");
}

TEST_F(Run, SummarizesSequencesAndOptionals) {
  folder_.write("sequence.tenon",
                "graph main(%a: f32[2], %b: f32[2]) {\n"
                "  %s = sequence_construct([%a, %b])\n"
                "  %long = sequence_construct([%a, %a, %a, %a, %a, %a, %b])\n"
                "  %empty = sequence_empty(element=f32[2])\n"
                "  %some = optional(%s)\n"
                "  %none = optional_empty(element=f32[2])\n"
                "  return %s, %long, %empty, %some, %none\n}\n");
  write_inputs({{"a", a_}, {"b", b_}});
  const std::string a = "  f32[2] = [5, 7], from 5 to 7\n", b = "  f32[2] = [1, 2], from 1 to 2\n";
  const std::string out = "s: seq<f32[2]> of length 2\n" + a + b + "long: seq<f32[2]> of length 7\n" + a + a +
                          a + a + a + a + "  …\n" + "empty: empty sequence\n" +
                          "some: optional of seq<f32[2]> of length 2\n" + a + b + "none: empty optional\n";
  expect_done("tenon run sequence.tenon --inputs in.npz", out);
}

TEST_F(Run, RangesOverFiniteNumbersAndCountsTheOthers) {
  expect_summary(Tensor::of<float>({NAN, 3, -1, NAN}),
                 "f32[4] = [nan, 3, -1, nan], from -1 to 3, with 2 NaN");
  expect_summary(Tensor::of<float>({-INFINITY, 3, INFINITY, NAN}),
                 "f32[4] = [-inf, 3, inf, nan], from 3 to 3, with 1 NaN, with 2 inf");
  expect_summary(Tensor::of<float>({NAN}), "f32[1] = [nan], with 1 NaN");
}

TEST_F(Run, ComparesWithWhatIsExpected) {
  const std::string y = "y: f32[2] = [4, 5], from 4 to 5\n";
  write_inputs({{"a", a_}, {"b", b_}, {"output_0", Tensor::of<float>({4, 5})}});
  // One file may have both, and then no input is missed that takes the outputs.
  expect_done("tenon run sub.tenon --inputs in.npz --expected in.npz",
              y + "y: agrees with output_0, off by 0.0e+00\n");
  write_npz(folder_ / "out.npz", {{"y", Tensor::of<float>({4, 5.001F})}});
  const Outcome outcome = shell("tenon run sub.tenon --inputs in.npz --expected out.npz");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out,
            y + "y: differs from y: element 1 of f32[2] is 5, expected 5.000999927520752: off by "
                "0.001, more than 0.0001 of 5\n");
  EXPECT_EQ(shell("tenon run sub.tenon --inputs in.npz --expected out.npz --tolerance 1e-3").status, 0);
}

TEST_F(Run, ComparesTheOutputsThatAreExpected) {
  folder_.write("two.tenon",
                "graph main(%a: f32[2]) {\n  %y = neg(%a)\n  %z = sub(%a, %a)\n  return %y, %z\n}\n");
  write_inputs({{"a", a_}});
  write_npz(folder_ / "out.npz", {{"output_1", Tensor::of<float>({0, 1e-7F})}});
  expect_done("tenon run two.tenon --inputs in.npz --expected out.npz",
              "y: f32[2] = [-5, -7], from -7 to -5\nz: f32[2] = [0, 0], from 0 to 0\n"
              "y: not compared: out.npz does not have it\n"
              "z: nearly zero, as output_1 is, so that comparing proves nothing\n");
}

TEST_F(Run, ExpectationsOfAnotherModelAreRefused) {
  write_inputs({{"a", a_}, {"b", b_}});
  write_npz(folder_ / "out.npz", {{"x", a_}});
  expect_refused("tenon run sub.tenon --inputs in.npz --expected out.npz",
                 "out.npz: it has none of the outputs, by name or as output_0, output_1, …\n"
                 "  hint: it has x, but the outputs are y");
  write_npz(folder_ / "out.npz", {{"y", Tensor::of<float>({4, 5, 6})}});
  const Outcome outcome = shell("tenon run sub.tenon --inputs in.npz --expected out.npz");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error, "tenon: out.npz: \"y\" is f32[3], but the output \"y\" is f32[2]\n");
}

TEST_F(Run, WritesItsOutputs) {
  write_inputs({{"a", a_}, {"b", b_}});
  expect_done("tenon run sub.tenon --inputs in.npz --outputs out.npz", "y: f32[2] = [4, 5], from 4 to 5\n");
  const NamedTensors outputs = read_npz(folder_ / "out.npz");
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].first, "y");
  EXPECT_TRUE(identical(outputs[0].second, Tensor::of<float>({4, 5})));
}

TEST_F(Run, OutputsThatCannotBeWrittenAreKnownBeforeItRuns) {
  // The inputs do not fit: whoever looked at them first would say so.
  write_inputs({{"other", a_}});
  const auto refused = [&](const std::string& arguments, const std::string& message) {
    expect_refused("tenon run " + arguments + " --inputs in.npz", message);
  };
  refused("sub.tenon --outputs none/out.npz", "cannot write none/out.npz: No such file or directory");
  refused("sub.tenon --outputs .", "cannot write .: not a regular file");
  folder_.write("twice.tenon", "graph main(%x: f32[1], %y: f32[1]) {\n  return %x, %y as \"x\"\n}\n");
  refused("twice.tenon --outputs out.npz", "two outputs have the name \"x\", which an .npz cannot hold");
  folder_.write("sequence.tenon", "graph main(%x: seq<f32[1]>) {\n  return %x\n}\n");
  refused("sequence.tenon --outputs out.npz", "the output \"x\" is no tensor, which an .npz cannot hold");
  folder_.write("none.tenon", "graph main(%x: f32[1]) {\n  return\n}\n");
  refused("none.tenon --outputs out.npz", "cannot write out.npz: the model has no outputs");
  EXPECT_EQ(files(),
            (std::set<std::string>{"in.npz", "sub.tenon", "twice.tenon", "sequence.tenon", "none.tenon"}));
}

TEST_F(Run, LeavesNoHalfWrittenOutputs) {
  folder_.write("out.npz", "precious");
  folder_.write("big.tenon", "graph main(%x: f32[10000]) {\n  return %x\n}\n");
  const Outcome outcome = shell("trap '' XFSZ; ulimit -f 8; tenon run big.tenon --outputs out.npz");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.error.starts_with("tenon: cannot write out.npz: ")) << outcome.error;
  EXPECT_TRUE(outcome.error.ends_with(": File too large\n")) << outcome.error;
  EXPECT_EQ(read_file(folder_ / "out.npz"), "precious");
  EXPECT_EQ(files(), (std::set<std::string>{"sub.tenon", "big.tenon", "out.npz"}));
}

TEST_F(Run, TheSeedDecidesWhatRandomOpsDraw) {
  folder_.write("random.tenon",
                "graph main() {\n  %s = constant(value=i64[1] {3})\n  %y = random_uniform(%s, dtype=f32)\n"
                "  return %y\n}\n");
  const std::string first = shell("tenon run random.tenon").out;
  EXPECT_NE(first, "");
  EXPECT_EQ(shell("tenon run random.tenon --seed 0").out, first);
  EXPECT_NE(shell("tenon run random.tenon --seed 1").out, first);
}

TEST_F(Run, WritesOutputsOnlyToAnNpz) {
  expect_refused("tenon run builtin:tiny --outputs output",
                 "cannot write output: its name must end in .npz\n"
                 "  hint: --outputs names the file that all outputs are written to, each under its own name");
  EXPECT_FALSE(files().contains("output"));
}

}  // namespace
}  // namespace tenon::cli
