#include "views/show.h"

namespace tenon {
namespace {

// Without the head, and without what is returned.
std::string body_of(std::string_view text) {
  const std::string shown = show_text("torchscript", text);
  const size_t begin = shown.find("):\n") + 3;
  return shown.substr(begin, shown.rfind("  return (") - begin);
}

// A loop runs on ints and bools, and appends what it collects to lists.
TEST(TorchScript, CollectsInLists) {
  EXPECT_EQ(body_of(R"(graph(%x: f32[2], %n: i64[], %w: f32[2]) {
              %y, %b, %t = while(%n, carried=[%x], captured=[%w]) body(%iteration: i64[], %a: f32[2], %w: f32[2]) {
                %c = constant(value=bool[] {1})
                %0 = exp(%a)
                return %c, %0, %w, %iteration
              }
              return %y, %b, %t })"),
            R"(  %collected : Tensor[] = prim::ListConstruct()
  %collected.1 : Tensor[] = prim::ListConstruct()
  %trip_count : int = aten::Int(%n)
  %true : bool = prim::Constant[value=1]()
  %y : Float(2) = prim::Loop(%trip_count, %true, %x)
    block0(%iteration : int, %a : Float(2)):
      %iteration.1 : Long() = prim::NumToTensor(%iteration)
      %exp : Float(2) = aten::exp(%a)
      %append : Tensor[] = aten::append(%collected, %w)
      %append.1 : Tensor[] = aten::append(%collected.1, %iteration.1)
      %c : bool = prim::Constant[value=1]()
      -> (%c, %exp)
  %dim : int = prim::Constant[value=0]()
  %b : Float(*, 2) = aten::stack(%collected, %dim)
  %dim.1 : int = prim::Constant[value=0]()
  %t : Long(*) = aten::stack(%collected.1, %dim.1)
)");
}

TEST(TorchScript, ScansFromTheEnd) {
  EXPECT_EQ(body_of(R"(graph(%x: f32[3,2]) {
              %y = scan(scanned=[%x], axes=[1], reversed=[1], output_axes=[1], output_reversed=[1])
                body(%row: f32[3]) {
                %0 = exp(%row)
                return %0
              }
              return %y })"),
            R"(  %collected : Tensor[] = prim::ListConstruct()
  %dim : int = prim::Constant[value=1]()
  %size : int = aten::size(%x, %dim)
  %true : bool = prim::Constant[value=1]()
   = prim::Loop(%size, %true)
    block0(%iteration : int):
      %last : int = prim::Constant[value=-1]()
      %index : int = aten::sub(%last, %iteration)
      %row : Float(3) = aten::select(%x, %dim, %index)
      %exp : Float(3) = aten::exp(%row)
      %append : Tensor[] = aten::append(%collected, %exp)
      %true.1 : bool = prim::Constant[value=1]()
      -> (%true.1)
  %dim.1 : int = prim::Constant[value=1]()
  %stack : Tensor = aten::stack(%collected, %dim.1)
  %dims : int[] = prim::Constant[value=[1]]()
  %y : Float(3, 2) = aten::flip(%stack, %dims)
)");
}

// A constant is a number only where PyTorch takes one, and a computed list of sizes is made one of ints.
TEST(TorchScript, GivesEachArgumentTheTypeThatIsWanted) {
  EXPECT_EQ(body_of(R"(graph(%x: f32[2,3], %s: i64[2]) {
              %two = constant(value=f32[] {2})
              %0 = sub(%two, %x)
              %1 = mul(%0, %two)
              %2 = reshape(%1, %s)
              return %2 })"),
            R"(  %two : Float(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %alpha : int = prim::Constant[value=1]()
  %sub : Float(2, 3) = aten::sub(%two, %x, %alpha)
  %two.1 : float = prim::Constant[value=2.0]()
  %mul : Float(2, 3) = aten::mul(%sub, %two.1)
  %dim : int = prim::Constant[value=1]()
  %type : int = prim::Constant[value=0]()
  %shape : int[] = prim::tolist(%s, %dim, %type)
  %reshape : Float(*, *) = aten::reshape(%mul, %shape)
)");
}

TEST(TorchScript, BoundsByNumbersOrByTensors) {
  const std::string text =
      "graph(%x: f32[2], %m: f32[]) {{ %two = constant(value=f32[] {{2}}) %y = clip(%x, {}) return %y }}";
  EXPECT_NE(body_of(fmt::format(fmt::runtime(text), "%two")).find("%two : float = "), std::string::npos);
  EXPECT_NE(body_of(fmt::format(fmt::runtime(text), "%m, %two"))
                .find("%two : Float(requires_grad=0, device=cpu) = "),
            std::string::npos);
}

// Sizes, lengths and parts are no tensors there.
TEST(TorchScript, ConvertsWhatPyTorchGivesInOtherTypes) {
  EXPECT_EQ(body_of("graph(%x: f32[2,n]) { %s = shape(%x) %y = cast(%s, to=f32) return %y }"),
            R"(  %size : int[] = aten::size(%x)
  %dtype : NoneType = prim::Constant()
  %device : NoneType = prim::Constant()
  %requires_grad : bool = prim::Constant[value=0]()
  %s : Long(2) = aten::tensor(%size, %dtype, %device, %requires_grad)
  %dtype.1 : int = prim::Constant[value=6]()
  %non_blocking : bool = prim::Constant[value=0]()
  %copy : bool = prim::Constant[value=0]()
  %memory_format : NoneType = prim::Constant()
  %y : Float(2) = aten::to(%s, %dtype.1, %non_blocking, %copy, %memory_format)
)");
  EXPECT_NE(body_of("graph(%x: f32[6]) { %n = constant(value=i64[2] {2, 4}) %a, %b = split(%x, %n, axis=0) "
                    "return %a, %b }")
                .find("  %split : Tensor[] = aten::split(%x, %n, %dim)\n  %a : Float(2), %b : Float(4) = "
                      "prim::ListUnpack(%split)\n"),
            std::string::npos);
}

TEST(TorchScript, UsesNoKeywordAsAName) {
  EXPECT_NE(body_of("graph(%a: bool[2], %b: bool[2]) { %0 = and(%a, %b) return %0 }")
                .find("%and_ : Bool(2) = aten::logical_and(%a, %b)\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
