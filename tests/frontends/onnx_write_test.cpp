#include <numeric>

#include "frontends/onnx_written.h"
#include "ops/data.h"

namespace tenon::onnx {
namespace {

// --- opsets

TEST(WriteOnnx, TakesTheOldestOpsetThatHasEveryOp) {
  EXPECT_EQ(written("graph(%x: f32[2]) { %0 = relu(%x) return %0 }").opset, 13);
  EXPECT_EQ(written("graph(%x: i32[2]) { %0 = relu(%x) return %0 }").opset, 14);  // floats only until then
  EXPECT_EQ(written("graph(%x: f32[2]) { %0 = relu(%x) %1 = gelu(%0) return %1 }").opset, 20);
  EXPECT_EQ(written("graph(%x: f32[2,3]) { %0 = cumulative_prod(%x, axis=0) return %0 }").opset, 26);
}

TEST(WriteOnnx, TakesAnOpsetThatHasTheModesOfItsOps) {
  const auto opset_for = [](std::string_view node) {
    return written(fmt::format("graph(%x: f32[3], %i: i64[2], %u: f32[2]) {{ %y = {} return %y }}", node))
        .opset;
  };
  EXPECT_EQ(opset_for("pad(%x, %i, axes=[0], mode=\"edge\")"), 13);
  EXPECT_EQ(opset_for("pad(%x, %i, axes=[0], mode=\"wrap\")"), 19);
  EXPECT_EQ(opset_for("scatter_elements(%x, %i, %u, axis=0, reduction=\"add\")"), 16);
  EXPECT_EQ(opset_for("scatter_elements(%x, %i, %u, axis=0, reduction=\"max\")"), 18);
}

// Older versions count the padding differently where sizes are rounded up, and have no dilations.
TEST(WriteOnnx, TakesAnOpsetThatHasTheWindowsOfAPool) {
  const auto opset_for = [](std::string_view attributes) {
    return written(fmt::format("graph(%x: f32[1,2,9]) {{ %y = average_pool(%x, kernel=[2], strides=[2], "
                               "pads=[0,0], count_padding=false, {}) return %y }}",
                               attributes))
        .opset;
  };
  EXPECT_EQ(opset_for("dilations=[1], round_up=false"), 13);
  EXPECT_EQ(opset_for("dilations=[1], round_up=true"), 19);
  EXPECT_EQ(opset_for("dilations=[2], round_up=false"), 19);
}

TEST(WriteOnnx, NamesTheIrVersionThatCameWithTheOpset) {
  const std::string relu = "graph(%x: f32[2]) { %0 = relu(%x) return %0 }";
  for (const auto& [opset, ir_version] :
       {std::pair(13, 7), {14, 7}, {15, 8}, {18, 8}, {19, 9}, {21, 10}, {23, 11}, {24, 12}, {28, 13}})
    EXPECT_EQ(written(relu, {.opset = opset}).ir_version, ir_version) << opset;
}

TEST(WriteOnnx, WritesTheOpsetThatIsAskedFor) {
  const std::string mean = "graph(%x: f32[2,3]) { %y = reduce_mean(%x, axes=[1]) return %y }";
  EXPECT_EQ(written(mean).nodes, "ReduceMean[keepdims, axes](x) -> y\n");
  EXPECT_EQ(written(mean, {.opset = 18}).nodes, "ReduceMean[keepdims](x, constant) -> y\n");
}

// ONNX takes a size of 0 for that of x, unless told otherwise.
TEST(WriteOnnx, SaysWhatASizeOfZeroMeansOnlyWhereOneMayBe) {
  const auto reshaped = [](std::string_view x, const std::string& shape) {
    const Found found =
        written(fmt::format("graph(%x: f32[{}], %z: f32[n,m]) {{ %a = shape(%z) {} %y = "
                            "reshape(%x, %s) return %y }}",
                            x, shape));
    return fmt::format("{} {}", found.opset, found.nodes.find("allowzero") != std::string::npos);
  };
  EXPECT_EQ(reshaped("2,3", "%s = constant(value=i64[2] {-1, 2})"), "13 false");
  EXPECT_EQ(reshaped("2,0", "%s = constant(value=i64[2] {5, 0})"), "13 false");
  EXPECT_EQ(reshaped("2,0", "%s = constant(value=i64[2] {0, 5})"), "14 true");
  EXPECT_EQ(reshaped("n,m", "%s = add(%a, %a)").substr(3), "true");
  EXPECT_EQ(reshaped("n,m,1", "%s = mul(%a, %a)").substr(3), "true");
  EXPECT_EQ(reshaped("n,m,1", "%s = copy(%a)"), "13 false");
}

TEST(WriteOnnx, PadsAllAxesInOldOpsets) {
  const auto padded = [](std::string_view attributes) {
    return fmt::format(
        "graph(%x: f32[2,3], %v: f32[], %q: i64[4], %r: i64[2]) {{ %p = constant(value=i64[2] {{1, 2}}) "
        "%y = pad(%x, {}) return %y }}",
        attributes);
  };
  const Found all = written(padded("%q, %v, axes=[0, 1]")), one = written(padded("%p, axes=[-1]"));
  EXPECT_EQ(all.nodes, "Pad[mode](x, q, v) -> y\n");
  EXPECT_EQ(all.opset, 13);
  EXPECT_EQ(one.nodes, "Pad[mode](x, constant) -> y\n");
  EXPECT_EQ(one.opset, 13);
  EXPECT_EQ(written(padded("%p, axes=[-1]"), {.opset = 18}).nodes, "Pad[mode](x, p, , constant) -> y\n");
  EXPECT_EQ(written(padded("%r, axes=[0]")).opset, 18);
  const auto graph = parse_graph(
      "graph(%x: f32[2,1]) { %p = constant(value=i64[2] {1, 2}) "
      "%y = pad(%x, %p, axes=[-1]) return %y }");
  expect_same_results(*graph, {f32({2, 1}, {3, 4})});
}

TEST(WriteOnnx, RefusesOpsetsThatCannotBeWritten) {
  const std::string relu = "graph(%x: f32[2]) { %0 = relu(%x) return %0 }";
  refuse<UserError>(relu, "opset 12 cannot be written, only 13 to 28", {.opset = 12});
  refuse<UserError>(relu, "opset 29 cannot be written, only 13 to 28", {.opset = 29});
}

TEST(WriteOnnx, RefusesWhatOnnxHasNot) {
  refuse(R"(graph(%x: f32[2,3]) { %0 = cumulative_prod(%x, axis=0) from "/block/CumProd" return %0 })",
         "node \"/block/CumProd\": CumProd needs opset 26, but opset 20 is asked for", {.opset = 20});
  refuse("graph(%x: f8e5m2[2]) { %y = relu(%x) return %y }",
         "node %y: no opset of ONNX has Relu for (f8e5m2[2]) -> (f8e5m2[2])");
  refuse(
      "graph(%x: f32[1,1,4,4], %r: f32[2,4], %i: i64[2]) { %y = roi_align(%x, %r, %i, size=[1,1]) return %y "
      "}",
      "node %y: RoiAlign needs opset 16, but opset 15 is asked for: roi_align: with samples=0, the number "
      "of samples in a bin is dynamic",
      {.opset = 15});
}

TEST(WriteOnnx, SamplesInSimplerOpsWhereTheOpsetHasNoOpForIt) {
  const std::unique_ptr<Graph> graph = parse_graph(
      "graph(%x: f32[1,2,3,2], %g: f32[1,1,4,2]) { %y = grid_sample(%x, %g, mode=\"cubic\", "
      "outside=\"reflection\") return %y }");
  const Data inputs = {f32({1, 2, 3, 2}, {1, 2, 3, 4, 5, 6, -1, 3, 2, 0, -4, 1}),
                       f32({1, 1, 4, 2}, {-0.3, 0.2, 0.9, -0.7, 1.4, -2.1, 0, 0})};
  EXPECT_EQ(written(*graph).opset, 20);
  const std::unique_ptr<Graph> older = read_back(*graph, {.opset = 15});
  EXPECT_FALSE(std::ranges::any_of(older->nodes(), [](const Node* node) { return node->is("grid_sample"); }));
  expect_near(evaluate(*older, inputs)[0], evaluate(*graph, inputs)[0].tensor(), 1e-5);
}

TEST(WriteOnnx, MultipliesByNoOneToWriteSilu) {
  const auto nodes = [](std::string_view attributes) {
    return written(fmt::format("graph(%x: f32[2]) {{ %0 = silu(%x{}) return %0 }}", attributes),
                   {.opset = 13})
        .nodes;
  };
  EXPECT_EQ(nodes(""), "Sigmoid(x) -> sigmoid\nMul(x, sigmoid) -> output\n");
  EXPECT_NE(nodes(", alpha=2.0").find("Sigmoid(mul)"), std::string::npos) << nodes(", alpha=2.0");
}

TEST(WriteOnnx, NamesTheConstantThatCannotBeComputed) {
  refuse<UserError>(R"(
    graph(%x: i64[1]) {
      %a = constant(value=i64[1] {1})
      %b = constant(value=i64[1] {0})
      %c = div(%a, %b)
      %y = add(%x, %c)
      return %y
    })",
                    "node %c: div: an integer is divided by zero");
}

// --- constants

TEST(WriteOnnx, ComputesWhatDependsOnConstantsAlone) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[2]) {
      %0 = constant(value=f32[2] {1, 2})
      %1 = exp(%0)
      %2 = neg(%1)
      %y = add(%x, %2)
      return %y
    })")
                .nodes,
            "Add(x, neg) -> y\n");
}

// Of a weight that is also used for something small, only what is made of it is written; one that is used as
// it is too is not written twice.
TEST(WriteOnnx, WritesALargeWeightOnce) {
  const auto with_weights = [](std::string_view outputs) {
    std::unique_ptr<Graph> graph = parse_graph(fmt::format(
        R"(graph(%x: f32[2,n,600], %w: f32[600,600]) {{ %b = constant(value=f32[600] splat 2)
           %t = transpose(%w, permutation=[1, 0]) %c = matmul(%b, %t) %p = matmul(%x, %t) %y = add(%p, %c)
           return {} }})",
        outputs));
    std::vector<float> numbers(600 * 600);
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    const Value input = graph->input(1);
    {
      const InsertBefore here(graph->first());
      input.replace_all_uses(parameter(*graph, "w", Literal(Tensor::of(numbers).reshaped({600, 600}))));
    }
    graph->erase_input(1);
    return graph;
  };
  EXPECT_EQ(written(*with_weights("%y")).nodes, "MatMul(x, t) -> p\nAdd(p, c) -> y\n");
  EXPECT_EQ(written(*with_weights("%y, %w")).nodes,
            "Transpose[perm](w_1) -> t\nMatMul(b, t) -> c\nMatMul(x, t) -> p\nAdd(p, c) -> y\nIdentity(w_1) "
            "-> w\n");
}

TEST(WriteOnnx, DoesNotWriteOutLargeConstantsOfFewNumbers) {
  const std::string text = R"(
    graph(%x: f32[]) {
      %0 = constant(value=f32[100000,100000] splat 1)
      %i = constant(value=i64[1000000000] iota 3 2)
      %y = add(%x, %0)
      return %y, %i
    })";
  EXPECT_EQ(written(text).nodes,
            "Expand(constant, constant_1) -> broadcast\nRange(constant_2, constant_3, constant_4) -> "
            "i\nAdd(x, broadcast) -> y\n");
}

TEST(WriteOnnx, WritesLongIotasAsRangesOfTheSameNumbers) {
  const auto expect_same = [](std::string_view iota, const std::string& nodes) {
    const auto graph = parse_graph(fmt::format("graph() {{ %i = constant(value={}) return %i }}", iota));
    EXPECT_EQ(written(*graph).nodes, nodes);
    expect_same_results(*graph, {});
  };
  const std::string range = "Range(constant, constant_1, constant_2) -> i\n";
  expect_same("i32[1073742] iota 0 2000", range);  // one step more would not be an i32
  expect_same("i32[1073742] iota -1 -2000", range);
  expect_same("i64[200000] iota 9007199254740993 2", range);  // no double
  expect_same("i16[1000000] iota -7 0", "Expand(constant, constant_1) -> i\n");
}

TEST(WriteOnnx, RefusesLongIotasThatWrapAround) {
  const auto refuse = [](std::string_view iota, const std::string& message) {
    const auto graph = parse_graph(fmt::format("graph() {{ %i = constant(value={}) return %i }}", iota));
    expect_error<UnsupportedError>([&] { written(*graph); }, "node %i: a constant of " + message);
  };
  refuse("i16[1000000] iota 0 1", "1000000 elements from 0 in steps of 1 leaves the range of i16");
  refuse("i32[1000000] iota 0 2148", "1000000 elements from 0 in steps of 2148 leaves the range of i32");
  refuse("i32[1000000] iota 4294967296 1",
         "1000000 elements from 4294967296 in steps of 1 leaves the range of i32");
  refuse("i64[1000000] iota 9223372036854775000 1",
         "1000000 elements from 9223372036854775000 in steps of 1 leaves the range of i64");
}

TEST(WriteOnnx, KeepsRandomNumbersRandom) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[2]) {
      %s = constant(value=i64[1] {2})
      %0 = random_normal(%s, dtype=f32)
      %y = add(%x, %0)
      return %y
    })")
                .nodes.substr(0, 12),
            "RandomNormal");
}

// Not the key, and what is drawn by it.
TEST(WriteOnnx, RefusesRandomNumbersOfAnyShape) {
  expect_error<UnsupportedError>(
      [] { written("graph(%s: i64[2]) { %y = random_normal(%s, dtype=f32) return %y }"); },
      "node %y: ONNX has no op for random_normal as it is used here");
}

// --- names

TEST(WriteOnnx, KeepsTheNamesOfInputsOutputsAndWeights) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph(%x: f32[batch,2]) {
      %w = parameter(name="layer.weight", value=f32[2,2] {1, 2, 3, 4})
      %0 = matmul(%x, %w) from "/layer/MatMul"
      return %0 as "scores", %0 as "again", %x as "same", %w as "weight"
    })");
  EXPECT_EQ(written(*graph).nodes, R"(MatMul(x, layer.weight) -> scores
Identity(scores) -> again
Identity(x) -> same
Identity(layer.weight) -> weight
)");
  const std::unique_ptr<Graph> back = read_back(*graph);
  EXPECT_EQ(back->input(0).type(), graph->input(0).type());
  EXPECT_EQ(back->output_names(), graph->output_names());
  EXPECT_EQ(back->outputs().front().node()->sources(), std::vector<std::string>{"/layer/MatMul"});
}

TEST(WriteOnnx, CallsAWeightThatIsComputedAsTheLargestItIsMadeOf) {
  constexpr std::string_view kModel = R"(
    graph(%x: f32[2]) {
      %s = parameter(name="scale", value=f32[] {2})
      %w = parameter(name="weight", value=f32[2] {1, 2})
      %0 = exp(%s)
      %1 = mul(%0, %w)
      %y = add(%x, %1)
      return %y
    })";
  EXPECT_EQ(written(*parse_graph(kModel)).nodes, "Add(x, weight) -> y\n");
}

TEST(WriteOnnx, LeavesAWeightThatIsWrittenItsName) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph(%x: f32[2]) {
      %w = parameter(name="weight", value=f32[2] {1, 2})
      %0 = exp(%w)
      %1 = add(%x, %0)
      %y = mul(%1, %w)
      return %y
    })");
  EXPECT_EQ(written(*graph).nodes, "Add(x, exp) -> add\nMul(add, weight) -> y\n");
}

TEST(WriteOnnx, WritesSizesOfAnyKind) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph(%x: f32[n,2], %s: seq<f32[*]>, %o: opt<i64[3]>) {
      %0 = concat([%x, %x], axis=0)
      return %0, %s, %o
    })");
  const std::unique_ptr<Graph> back = read_back(*graph);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(back->input(i).type(), graph->input(i).type());
  EXPECT_EQ(back->output_types(), graph->output_types());
}

// --- control flow

TEST(WriteOnnx, LetsBranchesSeeTheValuesAroundThem) {
  const std::string text = R"(
    graph(%c: bool[], %x: f32[2]) {
      %y = if(%c, [%x]) then(%a: f32[2]) {
        %0 = relu(%a)
        return %0
      } else(%b: f32[2]) {
        return %b
      }
      return %y
    })";
  EXPECT_EQ(written(text).nodes,
            "If(c) -> y then_branch{\nRelu(x) -> relu\n} else_branch{\nIdentity(x) -> output\n}\n");
  expect_same_after_reading(text);
}

TEST(WriteOnnx, TellsTheBodyOfALoopItsCondition) {
  const std::string text = R"(
    graph(%n: i64[], %x: f32[2], %w: f32[2]) {
      %y, %all = while(%n, carried=[%x], captured=[%w]) body(%iteration: i64[], %c: f32[2], %u: f32[2]) {
        %0 = add(%c, %u)
        %1 = constant(value=bool[] {1})
        return %1, %0, %0
      }
      return %y, %all
    })";
  EXPECT_EQ(written(text).nodes,
            "Loop(n, , x) -> y, all body{\nAdd(c, w) -> add\nIdentity(constant) -> output\nIdentity(add) -> "
            "output_1\n}\n");
}

TEST(WriteOnnx, TakesAnOpsetWhoseBranchesGiveSuchValues) {
  const std::string text = R"(
    graph(%c: bool[], %x: bf16[2]) {
      %y = if(%c, [%x]) then(%a: bf16[2]) {
        %0 = neg(%a)
        return %0
      } else(%b: bf16[2]) {
        return %b
      }
      return %y
    })";
  EXPECT_EQ(written(text).opset, 16);
  refuse(text, "node %y: If needs opset 16, but opset 15 is asked for", {.opset = 15});
}

// ONNX Runtime compares it with what the loop is given.
TEST(WriteOnnx, TellsTheBodyOfALoopItsConditionInTheShapeItCameIn) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph(%go: bool[1], %x: f32[2]) {
      %y = while(condition=%go, carried=[%x]) body(%iteration: i64[], %c: f32[2]) {
        %0 = add(%c, %c)
        %1 = constant(value=bool[1] {0})
        return %1, %0
      }
      return %y
    })");
  const TemporaryFolder folder;
  write_onnx(*graph, folder / "m.onnx");
  const Model model = read_model(folder / "m.onnx");
  const GraphProto& body = model.proto.graph.node.front().attribute.front().graphs.front();
  EXPECT_EQ(body.input[1].name, "condition");
  EXPECT_EQ(body.input[1].type.shape->dim.size(), 1U);
}

TEST(WriteOnnx, ReadsBackScans) {
  expect_same_after_reading(R"(
    graph(%s: f32[4], %x: f32[6,4]) {
      %0, %1 = scan([%s], [%x], axes=[0], reversed=[1], output_axes=[1], output_reversed=[0]) body(%c: f32[4], %row: f32[4]) {
        %0 = add(%c, %row)
        %1 = mul(%c, %row)
        return %0, %1
      }
      return %0, %1
    })");
}

// --- weights

std::string many_weights() {
  return R"(
    graph(%x: f32[600]) {
      %a = parameter(name="a", value=f32[600] splat 0.5)
      %b = parameter(name="b", value=bool[1025] splat 1)
      %c = parameter(name="c", value=i4[2049] iota 0 1)
      %d = parameter(name="d", value=str[2] {"one", "two"})
      %e = parameter(name="e", value=f8e5m2[3] {1, 2, 4})
      %0 = add(%x, %a)
      return %0, %b, %c, %d, %e
    })";
}

TEST(WriteOnnx, WritesWeightsOfEveryKind) {
  const std::unique_ptr<Graph> graph = parse_graph(many_weights());
  const Data inputs = {Tensor(DType::F32, {600})};
  for (const uint64_t most_inside : {uint64_t{0}, uint64_t{1} << 20}) {
    const TemporaryFolder folder;
    write_onnx(*graph, folder / "m.onnx", {.most_inside = most_inside});
    EXPECT_EQ(std::filesystem::exists(folder / "m.onnx.data"), most_inside == 0);
    const Data expected = evaluate(*graph, inputs), actual = evaluate(*read_onnx(folder / "m.onnx"), inputs);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(identical(actual[i].tensor(), expected[i].tensor())) << i;
  }
}

TEST(WriteOnnx, SaysWhatItWrote) {
  const TemporaryFolder folder;
  const Written relu =
      write_onnx(*parse_graph("graph(%x: f32[2]) { %0 = relu(%x) return %0 }"), folder / "m.onnx");
  EXPECT_EQ(relu.newest_op, "");
  EXPECT_EQ(relu.data_bytes, 0u);
  const Written gelu = write_onnx(*parse_graph("graph(%x: f32[2]) { %0 = relu(%x) %1 = gelu(%0) return %1 }"),
                                  folder / "m.onnx");
  EXPECT_EQ(gelu.opset, 20);
  EXPECT_EQ(gelu.newest_op, "Gelu");
}

TEST(WriteOnnx, OutlinesWithoutComputingWeights) {
  const std::unique_ptr<Graph> graph = parse_graph(many_weights());
  const TemporaryFolder folder;
  write_onnx(*graph, folder / "m.onnx");
  const Model model = read_model(folder / "m.onnx");
  const std::string bytes = outline_onnx(*graph).model;
  const ModelProto outline = decode_model(std::as_bytes(std::span(bytes)));
  ASSERT_EQ(outline.graph.node.size(), model.proto.graph.node.size());
  for (size_t i = 0; i < outline.graph.node.size(); ++i)
    EXPECT_EQ(outline.graph.node[i].op_type, model.proto.graph.node[i].op_type);
  ASSERT_EQ(outline.graph.initializer.size(), model.proto.graph.initializer.size());
  for (size_t i = 0; i < outline.graph.initializer.size(); ++i)
    EXPECT_EQ(outline.graph.initializer[i].name, model.proto.graph.initializer[i].name);
  EXPECT_LT(bytes.size(), std::filesystem::file_size(folder / "m.onnx"));
}

TEST(WriteOnnx, AlignsWeightsInAFileOfTheirOwn) {
  const TemporaryFolder folder;
  const Written written = write_onnx(*parse_graph(many_weights()), folder / "m.onnx", {.most_inside = 0});
  EXPECT_EQ(written.data_bytes, std::filesystem::file_size(folder / "m.onnx.data"));
  const Model model = read_model(folder / "m.onnx");
  int64_t outside = 0;
  for (const TensorProto& tensor : model.proto.graph.initializer)
    for (const StringStringEntry& entry : tensor.external_data) {
      if (entry.key == "location") {
        EXPECT_EQ(entry.value, "m.onnx.data");
      }
      if (entry.key == "offset") {
        EXPECT_EQ(std::stoll(std::string(entry.value)) % 64, 0);
        ++outside;
      }
    }
  EXPECT_EQ(outside, 3);  // the others are too small
}

TEST(WriteOnnx, OverwritesTheFilesItReadsFrom) {
  const TemporaryFolder folder;
  write_onnx(*parse_graph(many_weights()), folder / "m.onnx", {.most_inside = 0});
  const std::string model = read_file(folder / "m.onnx"), data = read_file(folder / "m.onnx.data");
  write_onnx(*read_onnx(folder / "m.onnx"), folder / "m.onnx", {.most_inside = 0});
  EXPECT_EQ(read_file(folder / "m.onnx"), model);
  EXPECT_EQ(read_file(folder / "m.onnx.data"), data);
}

}  // namespace
}  // namespace tenon::onnx
