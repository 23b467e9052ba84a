#include <sstream>

#include "base/temporary_folder.h"
#include "ir/graph_text.h"
#include "ops/data.h"
#include "source_tree.h"

namespace tenon {
namespace {

void expect_round_trip(const std::string& text) {
  register_ops();
  EXPECT_EQ(print(*parse(text)), text);
}

TEST(Text, PrintsAndParsesBack) {
  expect_round_trip(R"(graph "my model"(%x: f32[batch,4], %"0": i64[]) {
  %w: f32[4,3] = parameter(name="layer.weight", value=f32[4,3] splat 0.5) from "layer"
  %0: f32[batch,3] = matmul(%x, %w) from "layer/MatMul", "layer"
  %1: f32[batch,3] = relu(%0)
  return %1 as "y", %"0"
}
)");
}

TEST(Text, PrintsConstantsInEveryForm) {
  expect_round_trip(R"(graph g() {
  %0: f32[2,2] = constant(value=f32[2,2] {1, -0, nan, 0.1})
  %1: f16[3] = constant(value=f16[3] {inf, -inf, 0.5})
  %2: str[2] = constant(value=str[2] {"a \"b\"", "line\n"})
  %3: i64[1000] = constant(value=i64[1000] iota 5 -2)
  %4: bool[] = constant(value=bool[] {1})
  %5: u8[1000000000] = constant(value=u8[1000000000] splat 7)
  return %0, %1, %2, %3, %4, %5
}
)");
}

// Without them, padding would be zeros, one for each side.
TEST(Text, PrintsNoPaddingWhereLeavingItOutMeansZeros) {
  const auto graph = parse_graph(R"(graph g(%s: i64[1], %x: f32[3,4,n]) {
    %0 = col2im(%x, %s, %s, strides=[1,2], dilations=[], pads=[]) return %0 })");
  EXPECT_NE(print(*graph).find("pads=[]"), std::string::npos) << print(*graph);
}

TEST(Text, InfersTypesThatAreLeftOut) {
  EXPECT_EQ(print(*parse_graph("graph(%x: f32[2]) { %y = relu(%x) // a comment\n return %y }")),
            "graph main(%x: f32[2]) {\n  %y: f32[2] = relu(%x)\n  return %y\n}\n");
}

TEST(Text, LargeConstantsGoByHash) {
  register_ops();
  Graph graph;
  std::vector<double> values(100);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i * i);
  graph.set_outputs({constant(graph, f32({100}, values))});
  const std::string text = print(graph);
  EXPECT_NE(text.find("f32[100] hash 0x"), std::string::npos);
  const LiteralTable literals = large_literals(graph);
  EXPECT_EQ(difference(*parse(text, {.literals = &literals}), graph), "");
  expect_error<UserError>(
      [&] { parse(text); },
      fmt::format("line 2, column 65: the constant with hash {:#018x} is not at hand\n"
                  "  hint: tenon print MODEL -o FILE.tenon writes constants that read back",
                  literals.begin()->first));
}

// A graph of one constant that is too large to be printed, the elements of which are in the file.
std::unique_ptr<Graph> graph_of_file(const std::filesystem::path& file) {
  register_ops();
  const std::string text = fmt::format(
      "graph() {{ %y = constant(value=u8[100000] file {} 0 100000) return %y }}", quote(file.string()));
  return parse(text);
}

TEST(Text, NamesFilesInItsFolderSoThatBothCanMove) {
  const TemporaryFolder folder, elsewhere;
  const auto graph = graph_of_file(folder.write("w.bin", std::string(100000, 'a')));
  save(*graph, folder / "g.tenon");
  EXPECT_NE(read_file(folder / "g.tenon").find("file \"w.bin\" 0 100000 check 0x"), std::string::npos);
  std::filesystem::create_directory(folder / "sub");
  save(*graph, folder / "sub/g.tenon");
  EXPECT_NE(read_file(folder / "sub/g.tenon").find("file " + quote((folder / "w.bin").string())),
            std::string::npos);
  for (const char* name : {"w.bin", "g.tenon"})
    std::filesystem::rename(folder / name, elsewhere / name);
  const auto moved = parse(read_file(elsewhere / "g.tenon"), {.folder = elsewhere.path()});
  EXPECT_EQ(difference(*moved, *graph), "");
}

TEST(Text, KnowsWeightsThatHaveChanged) {
  const TemporaryFolder folder;
  const std::string weights(100000, 'a'), half(50000, 'a');
  save(*graph_of_file(folder.write("w.bin", weights)), folder / "g.tenon");
  const std::string text = read_file(folder / "g.tenon");
  parse(text, {.folder = folder.path()});
  for (const std::string& changed :
       {'b' + weights.substr(1), weights.substr(1) + 'b', half + std::string(50000, 'b')}) {
    folder.write("w.bin", changed);
    expect_error<UserError>(
        [&] { parse(text, {.folder = folder.path()}); },
        fmt::format("line 2, column 92: {} has changed since this was written", (folder / "w.bin").string()));
  }
}

TEST(Text, ValuesOfTheSameNameAreToldApart) {
  register_ops();
  Graph graph;
  Value x = graph.add_input(Type::tensor(DType::F32, {}), "x");
  Value y = graph.create("relu", {{"x", x}})->result();
  y.set_name("x");
  graph.set_outputs({y});
  EXPECT_EQ(print(graph), "graph main(%x: f32[]) {\n  %x_1: f32[] = relu(%x)\n  return %x_1 as \"x\"\n}\n");
}

TEST(Text, SaysWhatIsWrongAndWhere) {
  const auto refuse = [](std::string_view text, const std::string& message) {
    register_ops();
    expect_error<UserError>([&] { parse(text); }, message);
  };
  refuse("", "line 1, column 1: 'graph' was expected");
  refuse("graph(x: f32[2]) { return }", "line 1, column 7: an input such as %x: f32[2] was expected");
  refuse("graph(%x: f33[2]) { return %x }", "line 1, column 11: 'f33' is not a dtype");
  refuse("graph(%x: f32[2]) {\n  %y = rellu(%x)\n  return %y }",
         "line 2, column 8: there is no op rellu\n  hint: did you mean relu?");
  refuse("graph(%x: f32[2]) { %y = relu(%z) return %y }", "line 1, column 31: %z is not defined here");
  refuse("graph(%x: f32[2], %x: f32[2]) { return %x }", "line 1, column 19: %x is defined twice");
  refuse("graph(%x: f32[2]) { %y: f32[3] = relu(%x) return %y }",
         "line 1, column 34: relu: result 0 is f32[2], but f32[3] was written");
  refuse("graph(%x: f32[2]) { %a, %b = relu(%x) return %a }",
         "line 1, column 30: relu has 1 results, but 2 names were given");
  refuse("graph(%x: f32[2]) { %y = relu(%x, slope=1) return %y }",
         "line 1, column 35: relu: there is no operand or attribute slope");
  refuse("graph(%x: f32[2]) { %y = softmax(%x, axs=1) return %y }",
         "line 1, column 38: softmax: there is no operand or attribute axs\n  hint: did you mean axis?");
  refuse("graph(%x: f32[2], %s: seq<i64[1]>) { %y = reduce_sum(%x, axes=%s) return %y }",
         "line 1, column 43: reduce_sum: a tensor is wanted here, but this is seq<i64[1]>");
  refuse("graph(%x: f32[2]) { y = relu(%x) return %x }",
         "line 1, column 21: a value such as %y was expected");
  refuse("graph(%x: f32[2]) { %y = relu(%x) }", "line 1, column 35: 'return' was expected");
  refuse("graph(%x: f32[-3]) { return %x }", "line 1, column 15: a size cannot be negative");
  refuse("graph() { %y = constant(value=i8[2] {1, 300}) return %y }",
         "line 1, column 45: these elements do not all fit i8");
  refuse("graph() { %y = constant(value=f32[1] {1e999}) return %y }",
         "line 1, column 39: this number does not fit 64 bits");
  refuse("graph() { %y = constant(value=f32[1] file \"nowhere\" 0 4) return %y }",
         "line 1, column 31: cannot open nowhere: No such file or directory");
  refuse("graph(%x: f32[2]) { return %x } more", "line 1, column 33: text after the end of the graph");
  refuse("graph(%x: f32[n,) { return %x }",
         "line 1, column 17: dimension \"\": wanted a number, a symbol or '(' at the end");
}

TEST(Text, SymbolsMadeUpAreNotThoseWrittenLater) {
  register_ops();
  const auto graph = parse(R"(graph(%x: f32[2], %y: f32[2]) {
    %a = nonzero(%x)
    %b: i64[1,d0] = nonzero(%y)
    return %a, %b
  })");
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "i64[1,d1]");
  EXPECT_EQ(to_string(graph->outputs()[1].type()), "i64[1,d0]");
}

TEST(Text, DeepNestingIsRefusedNotFollowed) {
  std::string type;
  for (int i = 0; i < 5000; ++i)
    type += "seq<";
  expect_error<UserError>([&] { parse_type(type); }, "line 1, column 405: types are nested too deeply");
}

TEST(Types, ParseAsTheyPrint) {
  for (const char* text :
       {"f32[]", "i4[2,n]", "f32[*]", "seq<f32[2]>", "opt<seq<str[*]>>", "f8e4m3fn[floor((n+1)/2),2*m]"})
    EXPECT_EQ(to_string(parse_type(text)), text);
}

}  // namespace
}  // namespace tenon
