#include "optimizer/optimize_to_write.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "frontends/onnx_model.h"
#include "ir/graph_text.h"
#include "ops/registry.h"
#include "ops/unary.h"

namespace tenon::optimizer {
namespace {

namespace encode = onnx::encode;

Source source_from(const encode::Bytes& model) {
  register_ops();
  return {MappedFile::copy("m.onnx", std::as_bytes(std::span(model)))};
}

OptimizedModel optimized(const Source& source, const OptimizeToWriteOptions& options = {}) {
  return optimize_to_write(source.read(), source, options);
}

std::vector<std::string> reverted_in(const OptimizedModel& model) {
  std::vector<std::string> lines;
  for (const Remark& remark : model.reverted)
    lines.push_back(remark.node + ": " + remark.reason);
  return lines;
}

// Of x, a tensor of these sizes, as is the output.
encode::Bytes model_of(const encode::Messages& nodes, const std::string& output, int64_t opset,
                       const std::vector<encode::Size>& sizes = {2, 3, 4}) {
  return encode::model({.nodes = nodes,
                        .inputs = {encode::value("x", encode::kFloat, sizes)},
                        .outputs = {encode::value(output, encode::kFloat, sizes)}},
                       {}, {encode::opset(opset)});
}

// Before opset 13 it normalises two axes together, which are one only once they are reshaped.
encode::Bytes softmax_of_two_axes(const std::vector<encode::Size>& sizes = {2, 3, 4}) {
  return model_of({encode::node("Softmax", {"x"}, {"y"}, {encode::int_attribute("axis", 1)})}, "y", 11,
                  sizes);
}

encode::Bytes normalization_and_two_relus() {
  return model_of({encode::node("LpNormalization", {"x"}, {"y"}), encode::node("Relu", {"y"}, {"a"}),
                   encode::node("Relu", {"a"}, {"z"})},
                  "z", 17);
}

TEST(OptimizeToWrite, KeepsNodesThatDecomposeIntoSeveral) {
  const OptimizedModel model = optimized(source_from(normalization_and_two_relus()));
  EXPECT_EQ(model.nodes_before, 3);
  EXPECT_EQ(model.ops_after, (Counts{{"LpNormalization", 1}, {"Relu", 1}}));
  EXPECT_EQ(reverted_in(model),
            std::vector<std::string>{"node \"y\": kept unchanged: it decomposes into several nodes"});
  EXPECT_EQ(model.unchanged, nullptr);
}

TEST(OptimizeToWrite, LeavesAModelUnchangedThatWouldGrow) {
  const Source source = source_from(softmax_of_two_axes());
  const OptimizedModel model = optimized(source);
  EXPECT_EQ(model.unchanged, source.file);
  EXPECT_EQ(model.ops_after, (Counts{{"Softmax", 1}}));
  const TemporaryFolder folder;
  EXPECT_TRUE(write_optimized(model, folder / "n.onnx").is_unchanged);
  EXPECT_EQ(read_file(folder / "n.onnx"), softmax_of_two_axes());
}

// The file says something else then.
TEST(OptimizeToWrite, WritesAModelThatGrewWhereTheFileIsNotWhatIsWanted) {
  const Source source = source_from(softmax_of_two_axes());
  EXPECT_EQ(optimized(source, {.opset = 17}).unchanged, nullptr);
  Source bound = source_from(softmax_of_two_axes({"n", 3, 4}));
  bound.sizes.emplace("n", 2);
  EXPECT_EQ(optimized(bound).unchanged, nullptr);
}

TEST(OptimizeToWrite, TextMayGrowAndHasOurOpsAlone) {
  const OptimizedModel model = optimized(source_from(normalization_and_two_relus()), {.form = Form::Text});
  EXPECT_GT(count_ops(*model.graph).size(), 2U);
  EXPECT_EQ(count_ops(*model.graph).count("custom"), 0U);
  EXPECT_TRUE(model.reverted.empty());
}

// Whoever adds a pass that makes a model larger wants it to.
TEST(OptimizeToWrite, PassesOfUsersMayMakeItLarger) {
  OptimizeToWriteOptions options;
  const auto negate_twice = [](Graph& graph, Journal& journal) {
    Node* const node = graph.outputs()[0].node();
    if (node->is("neg") || !journal.is_open())
      return;
    journal.applied("negate-twice", {node}, Numerics::BitExact);
    graph.set_outputs({-(-node->result(0))}, {"y"});
  };
  insert_pass(options.passes.pipeline,
              {.name = "negate-twice", .doc = "", .run = negate_twice, .why_here = ""}, "freeze-parameters");
  options.passes.only = {"negate-twice"};
  const Source source = source_from(model_of({encode::node("Relu", {"x"}, {"y"})}, "y", 17));
  const OptimizedModel model = optimized(source, options);
  EXPECT_EQ(model.ops_after, (Counts{{"Neg", 2}, {"Relu", 1}}));
  EXPECT_EQ(model.unchanged, nullptr);
}

// Unrolled, it would take 9 nodes.
TEST(OptimizeToWrite, AModelWithoutASourceIsNotLargerThanUnoptimised) {
  register_ops();
  const auto graph = parse_graph(R"(
    graph(%start: f32[4], %xs: f32[5,4]) {
      %last: f32[4], %all: f32[5,4] = scan([%start], [%xs], axes=[0], reversed=[0], output_axes=[0],
                                           output_reversed=[0]) body(%s: f32[4], %x: f32[4]) {
        %0 = add(%s, %x)
        %1 = tanh(%s)
        return %0, %1
      }
      return %all
    })");
  const OptimizedModel model = optimize_to_write(graph->clone(), std::nullopt, {});
  EXPECT_EQ(model.ops_after, (Counts{{"Add", 1}, {"Scan", 1}, {"Tanh", 1}}));
  EXPECT_EQ(reverted_in(model),
            std::vector<std::string>{"the model: unroll-loops was reverted: the model grew"});
  EXPECT_GT(sum(optimize_to_write(graph->clone(), std::nullopt, {.form = Form::Text}).ops_after), 3);
}

TEST(OptimizeToWrite, CountsAModelWithoutASourceAsOnnxWouldHaveIt) {
  const OptimizedModel model =
      optimize_to_write(source_from(normalization_and_two_relus()).read(), std::nullopt, {});
  EXPECT_GT(model.nodes_before, 3);
  EXPECT_EQ(model.ops_after.count("Relu"), 1U);
}

TEST(OptimizeToWrite, TheNameSaysInWhichForm) {
  EXPECT_EQ(form_of("a.onnx"), Form::Onnx);
  EXPECT_EQ(form_of("a.tenon"), Form::Text);
  try {
    form_of("a.pb");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "cannot write a.pb: its name must end in .onnx or .tenon");
  }
}

}  // namespace
}  // namespace tenon::optimizer
