#include "frontends/builtin/builtin.h"

#include "ir/graph_text.h"

namespace tenon::builtin {
namespace {

TEST(Builtin, AreSoundAndReadBack) {
  for (const Model& model : all_models()) {
    const std::unique_ptr<Graph> graph = make_model(model.name);
    EXPECT_EQ(lint(*graph), std::vector<std::string>()) << model.name;
    EXPECT_EQ(graph->name(), model.name);
    const LiteralTable literals = large_literals(*graph);
    EXPECT_EQ(difference(*parse(print(*graph), {.literals = &literals}), *graph), "") << model.name;
    EXPECT_FALSE(model.doc.empty()) << model.name;
  }
}

TEST(Builtin, RunAndGiveFiniteNumbersThatDiffer) {
  for (const Model& model : all_models()) {
    const std::unique_ptr<Graph> graph = make_model(model.name);
    Data inputs;
    for (Value input : graph->inputs()) {
      std::map<std::string, Dim> sizes;
      for (const std::string& symbol : symbols_of(input.type()))
        sizes.emplace(symbol, 3);
      const Extents extents = *substitute(input.type(), sizes).as_tensor().shape.extents();
      std::vector<double> values(static_cast<size_t>(element_count(extents)));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<double>(i) * 0.37) + 0.1;
      inputs.emplace_back(narrow<double>(input.dtype(), extents, values));
    }
    for (const Datum& output : evaluate(*graph, inputs)) {
      const std::vector<double> values = widen<double>(output.tensor());
      const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
      EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }))
          << model.name;
      EXPECT_LT(*least, *greatest) << model.name;
    }
  }
}

TEST(Builtin, TinyIsALinearLayerAndRelu) {
  const std::unique_ptr<Graph> graph = make_model("tiny");
  std::vector<std::string_view> ops;
  for (const Node* node : graph->nodes())
    ops.push_back(node->op().name);
  EXPECT_EQ(ops, (std::vector<std::string_view>{"parameter", "parameter", "linear", "relu"}));
}

TEST(Builtin, ListsTheNamesThereAre) {
  std::vector<std::string_view> names;
  for (const Model& model : all_models())
    names.push_back(model.name);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  expect_error<UserError>(
      [] { make_model("resnet_blok"); },
      fmt::format("there is no built-in model resnet_blok\n  hint: did you mean resnet_block?"
                  "\n  there are: {}",
                  fmt::join(names, " ")));
  expect_error<UserError>(
      [] { make_model("zzzzzzzzzz"); },
      fmt::format("there is no built-in model zzzzzzzzzz\n  there are: {}", fmt::join(names, " ")));
}

}  // namespace
}  // namespace tenon::builtin
