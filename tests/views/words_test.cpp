#include "views/dtype_words.h"
#include "views/show.h"

namespace tenon {
namespace {

// As many dimensions as the image has, and pads said once for both ends.
TEST(Views, NameConvolutionsByTheirDimensions) {
  const auto shown = [](std::string_view view, std::string_view op, int dims, std::string_view pads) {
    const std::string ones = dims == 1 ? "1" : dims == 3 ? "1, 1, 1" : "1, 1, 1, 1";
    const std::string sizes = dims == 1 ? "5" : dims == 3 ? "5,5,5" : "5,5,5,5";
    return show_text(
        view,
        fmt::format("graph(%x: f32[1,1,{0}], %w: f32[1,1,{0}]) {{ %y = {1}(%x, %w, "
                    "strides=[{2}], dilations=[{2}], pads=[{3}]{4}) return %y }}",
                    sizes, op, ones, pads,
                    op == "conv" ? "" : fmt::format(", output_padding=[{}]", dims == 1 ? "0" : "0, 0, 0")));
  };
  const auto expect_word = [](const std::string& text, std::string_view word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  const std::string_view three = "1, 2, 3, 1, 2, 3";
  expect_word(shown("fx", "conv", 1, "2, 2"), "torch.conv1d  (x, w)  {'stride': [1], 'padding': [2], ");
  expect_word(shown("fx", "conv_transpose", 3, three),
              "torch.conv_transpose3d  (x, w)  {'stride': [1, 1, 1], 'padding': [1, 2, 3], ");
  expect_word(shown("torchscript", "conv", 3, three),
              "aten::conv3d(%x, %w, %bias, %stride, %padding, %dilation, %groups)");
  expect_word(
      shown("torchscript", "conv_transpose", 1, "0, 0"),
      "aten::conv_transpose1d(%x, %w, %bias, %stride, %padding, %output_padding, %groups, %dilation)");
  expect_word(shown("relay", "conv", 3, three), "nn.conv3d(%x, %w, ");
  expect_word(shown("relay", "conv", 1, "1, 2"),
              "nn.conv1d(%x, %w, groups=1, strides=[1], dilation=[1], padding=[1, 2])");
  expect_word(shown("relay", "conv_transpose", 3, three), "nn.conv3d_transpose(%x, %w, ");
  // PyTorch has no word for pads that differ, and none of them for four dimensions.
  expect_word(shown("fx", "conv", 1, "1, 2"), "tenon.conv ");
  for (const std::string_view view : {"fx", "relay"})
    expect_word(shown(view, "conv", 4, "0, 0, 0, 0, 0, 0, 0, 0"), "tenon.conv");
}

// What the other tool takes is in its own order, not ours.
TEST(Views, OrderArgumentsAsTheOtherToolDoes) {
  const auto expect_shown = [](std::string_view view, std::string_view graph, std::string_view wanted) {
    const std::string shown = show_text(view, graph);
    EXPECT_NE(shown.find(wanted), std::string::npos) << shown;
  };
  const std::string_view norm =
      "graph(%x: f32[1,2,3,3], %s: f32[2], %b: f32[2], %m: f32[2], %v: f32[2]) { %y = batch_norm(%x, %s, %b, "
      "%m, "
      "%v) return %y }";
  expect_shown("fx", norm, "torch.nn.functional.batch_norm  (x, m, v, s, b, False, 0.1, 1e-05)  {}\n");
  expect_shown("torchscript", norm,
               "aten::batch_norm(%x, %s, %b, %m, %v, %training, %momentum, %eps, %cudnn_enabled)\n");
  expect_shown("torchscript", norm, "%training : bool = prim::Constant[value=0]()\n");
  expect_shown("relay", norm, "  %0 = nn.batch_norm(%x, %s, %b, %m, %v, epsilon=1e-05);\n  %0.0\n");
  const std::string_view gather =
      "graph(%x: f32[2,3], %i: i64[2,3]) { %y = gather_elements(%x, %i, axis=1) return %y }";
  expect_shown("fx", gather, "torch.gather  (x, 1, i)  {}\n");
  expect_shown("torchscript", gather, "aten::gather(%x, %dim, %i, %sparse_grad)\n");
}

TEST(TorchScript, GivesTheArgumentsThatAreAlwaysTheSame) {
  EXPECT_EQ(show_text("torchscript", "graph(%x: f32[2,3]) { %0 = add(%x, %x) %1 = softmax(%0) return %1 }"),
            R"(graph(%self : __torch__.Main,
      %x : Float(2, 3)):
  %alpha : int = prim::Constant[value=1]()
  %add : Float(2, 3) = aten::add(%x, %x, %alpha)
  %dim : int = prim::Constant[value=-1]()
  %dtype : NoneType = prim::Constant()
  %softmax : Float(2, 3) = aten::softmax(%add, %dim, %dtype)
  return (%softmax)
)");
}

// PyTorch names the sizes that a layer norm goes over, so they must be known.
TEST(Views, TellTheSizesThatALayerNormGoesOver) {
  const auto shown = [](std::string_view type) {
    return show_text("fx-code",
                     fmt::format("graph(%x: {}) {{ %y = layer_norm(%x, axis=1) return %y }}", type));
  };
  EXPECT_NE(
      shown("f32[n,3,4]").find("torch.nn.functional.layer_norm](args = (%x, [3, 4], None, None, 1e-05)"),
      std::string::npos)
      << shown("f32[n,3,4]");
  EXPECT_NE(shown("f32[2,n]").find("target=tenon.layer_norm](args = (%x,), kwargs = {axis: 1})"),
            std::string::npos)
      << shown("f32[2,n]");
}

TEST(Views, AddOneDimensionOrReshape) {
  const auto shown = [](std::string_view view, std::string_view type, std::string_view axes) {
    return show_text(view,
                     fmt::format("graph(%x: {}) {{ %y = unsqueeze(%x, axes={}) return %y }}", type, axes));
  };
  EXPECT_NE(shown("fx", "f32[n]", "[1]").find("torch.unsqueeze  (x,)  {'dim': 1}\n"), std::string::npos);
  EXPECT_NE(shown("fx", "f32[8]", "[1, 2]").find("torch.reshape  (x,)  {'shape': [8, 1, 1]}\n"),
            std::string::npos);
  EXPECT_NE(shown("fx", "f32[n]", "[1, 2]").find("tenon.unsqueeze  (x,)  {'axes': [1, 2]}\n"),
            std::string::npos);
  EXPECT_NE(shown("relay", "f32[n]", "[1]").find("expand_dims(%x, axis=1)\n"), std::string::npos);
  EXPECT_NE(shown("relay", "f32[8]", "[1, 2]").find("reshape(%x, newshape=[8, 1, 1])\n"), std::string::npos);
}

TEST(Relay, MultipliesMatricesOrOneBatchOfThem) {
  const auto shown = [](std::string_view a, std::string_view b) {
    return show_text("relay",
                     fmt::format("graph(%a: f32{}, %b: f32{}) {{ %y = matmul(%a, %b) return %y }}", a, b));
  };
  const std::string_view plain = "(%a, %b, transpose_a=False, transpose_b=False)\n";
  EXPECT_NE(shown("[2,3]", "[3,4]").find(fmt::format("  nn.matmul{}", plain)), std::string::npos);
  EXPECT_NE(shown("[5,2,3]", "[5,3,4]").find(fmt::format("  nn.batch_matmul{}", plain)), std::string::npos);
  EXPECT_NE(shown("[6,1,2,3]", "[6,5,3,4]").find("call_extern(\"tenon.matmul\", %a, %b)\n"),
            std::string::npos);
}

TEST(Fx, QuotesTextsSoThatPythonReadsThem) {
  const auto shown = [](std::string_view delimiter) {
    const std::string text = show_text(
        "fx-code",
        fmt::format("graph(%x: str[2]) {{ %y, %n = string_split(%x, delimiter={}) return %n }}", delimiter));
    const size_t begin = text.find("kwargs = {delimiter: ") + 21;
    return text.substr(begin, text.find("})", begin) - begin);
  };
  EXPECT_EQ(shown(R"(", ")"), "', '");
  EXPECT_EQ(shown(R"("it's")"), R"("it's")");
  EXPECT_EQ(shown(R"("a\\b")"), R"("a\\b")");
}

TEST(DTypeWords, StandInTheOrderOfTheDTypes) {
  for (const DTypeInfo& info : all_dtypes())
    EXPECT_EQ(words_for(info.dtype).dtype, info.dtype);
}

// An op without a word of theirs, or with an attribute that the word cannot tell or that is given late.
TEST(Views, ShowWhatTheyHaveNoWordForAsACustomCall) {
  struct Case {
    std::string_view op, text;
  };
  const std::vector<Case> cases = {
      {"max_pool",
       "graph(%x: f32[1,1,4,4]) { %y, %i = max_pool(%x, kernel=[2, 2], strides=[2, 2], dilations=[1, 1], "
       "pads=[0, 0, 0, 0]) return %i, %y }"},
      {"reduce_sum", "graph(%x: f32[2,3], %a: i64[n]) { %y = reduce_sum(%x, axes=%a) return %y }"},
      {"cast", "graph(%x: f32[n]) { %y = cast(%x, to=i8, saturate=true) return %y }"},
      {"cast", "graph(%x: f32[n]) { %y = cast(%x, to=str) return %y }"},
  };
  for (const auto& [op, text] : cases)
    for (std::string_view view : {"fx", "fx-code", "torchscript", "hlo", "relay"}) {
      const std::string shown = show_text(view, text);
      const std::string word = fmt::format("tenon{}{}", view == "torchscript" ? "::" : ".", op);
      EXPECT_NE(shown.find(word), std::string::npos) << view << " of " << op << ":\n" << shown;
    }
}

// Inference checks no attributes where a rank is unknown, so that any may come.
TEST(Views, ShowAttributesThatMakeNoSenseAsACustomCall) {
  for (std::string_view text :
       {"graph(%x: f32[], %s: f32[*]) { %y = layer_norm(%x, %s) return %y }",
        "graph(%x: f32[*]) { %y, %i = max_pool(%x, kernel=[2, 2, 2], strides=[], dilations=[], pads=[1]) "
        "return %y }"})
    for (std::string_view view : {"fx", "fx-code", "torchscript"}) {
      const std::string shown = show_text(view, text);
      EXPECT_NE(shown.find("tenon"), std::string::npos) << shown;
    }
}

}  // namespace
}  // namespace tenon
