#include "views/show.h"

namespace tenon {
namespace {

void expect_in(const std::string& shown, const std::vector<std::string_view>& lines) {
  size_t at = 0;
  for (std::string_view line : lines) {
    const size_t found = shown.find(line, at);
    ASSERT_NE(found, std::string::npos) << "no " << line << " after " << at << " in\n" << shown;
    at = found + line.size();
  }
}

constexpr std::string_view kLoop = "call_function[target=torch.ops.higher_order.while_loop]";
constexpr std::string_view kScan = "call_function[target=torch.ops.higher_order.scan]";

// The state of a loop of n iterations is the number of the iteration, and what is carried.
TEST(HigherOrder, LoopsSoManyTimes) {
  expect_in(show_text("fx-code", R"(graph(%x: f32[2], %w: f32[2], %n: i64[]) {
              %y = while(%n, carried=[%x], captured=[%w]) body(%iteration: i64[], %a: f32[2], %b: f32[2]) {
                %go = constant(value=bool[] {1})
                %0 = add(%a, %b)
                return %go, %0
              }
              return %y })"),
            {"%tensor : [num_users=1] = call_function[target=torch.tensor](args = (0,), kwargs = {})\n",
             kLoop, "(args = (%while_loop_cond_graph_0, %while_loop_body_graph_0, (%tensor, %x), (%w, %n))",
             "%y : [num_users=1] = call_function[target=operator.getitem](args = (%while_loop, 1), ",
             "while_loop_cond_graph_0 = graph():\n",
             "%lt : [num_users=1] = call_function[target=operator.lt](args = (%iteration, %trip_count), ",
             "return lt\n", "while_loop_body_graph_0 = graph():\n", "(args = (%iteration, 1), kwargs = {})\n",
             "return (add_1, add)\n"});
}

TEST(HigherOrder, LoopsUntilEitherSaysSo) {
  expect_in(show_text("fx-code", R"(graph(%x: f32[2], %go: bool[]) {
              %n = constant(value=i64[] {7})
              %y = while(%n, %go, carried=[%x]) body(%iteration: i64[], %a: f32[2]) {
                %c = constant(value=bool[] {0})
                %0 = exp(%a)
                return %c, %0
              }
              return %y })"),
            {"(%tensor, %go, %x), ())", "(%while_loop, 2)", "operator.lt](args = (%iteration, 7), ",
             "torch.logical_and](args = (%go_on, %lt), ", "return logical_and\n",
             "get_attr[target=_tensor_constant0]\n", "return (add, _tensor_constant0, exp)\n"});
}

TEST(HigherOrder, CollectsByAScanOfTheTurns) {
  expect_in(show_text("fx-code", R"(graph(%x: f32[2]) {
              %n = constant(value=i64[] {7})
              %y, %all = while(%n, carried=[%x]) body(%iteration: i64[], %a: f32[2]) {
                %c = constant(value=bool[] {1})
                %0 = exp(%a)
                return %c, %0, %iteration
              }
              return %y, %all })"),
            {"%arange : [num_users=1] = call_function[target=torch.arange](args = (7,), kwargs = {})\n",
             kScan, "(args = (%scan_combine_graph_0, [%x], [%arange], ()), kwargs = {})\n",
             "%a : [num_users=1] = placeholder[target=a]\n    %iteration : ", "return [exp, iteration]\n"});
}

// Only running tells how much is collected, or sequences are carried.
TEST(HigherOrder, HasNoWordForOtherLoops) {
  for (std::string_view text : {R"(graph(%x: f32[2], %go: bool[]) {
          %n = constant(value=i64[] {7})
          %y, %all = while(%n, %go, carried=[%x]) body(%iteration: i64[], %a: f32[2]) {
            %c = constant(value=bool[] {1})
            return %c, %a, %iteration
          }
          return %y, %all })",
                                R"(graph(%x: f32[2], %n: i64[]) {
          %s = sequence_construct([%x])
          %y = while(%n, carried=[%s]) body(%iteration: i64[], %a: seq<f32[2]>) {
            %c = constant(value=bool[] {1})
            return %c, %a
          }
          return %y })"})
    EXPECT_NE(show_text("fx-code", text).find("[target=tenon.while](args = (%while_body_graph_0, "),
              std::string::npos)
        << show_text("fx-code", text);
}

TEST(HigherOrder, MovesWhatIsScannedAlongOtherAxes) {
  expect_in(show_text("fx-code", R"(graph(%x: f32[3,2], %c: f32[]) {
              %y, %z = scan(scanned=[%x], captured=[%c], axes=[1], reversed=[1], output_axes=[1, 0],
                            output_reversed=[1, 1]) body(%row: f32[3], %c: f32[]) {
                %0 = mul(%row, %c)
                return %0, %c
              }
              return %y, %z })"),
            {"torch.movedim](args = (%x, 1, 0), kwargs = {})\n", "torch.flip](args = (%movedim, [0]), ",
             kScan, "(args = (%scan_combine_graph_0, [], [%flip], (%c,)), kwargs = {})\n",
             "%getitem : [num_users=1] = call_function[target=operator.getitem](args = (%scan, 0), ",
             "%flip_1 : [num_users=1] = call_function[target=torch.flip](args = (%getitem, [0]), ",
             "%y : [num_users=1] = call_function[target=torch.movedim](args = (%flip_1, 0, 1), ",
             "%z : [num_users=1] = call_function[target=torch.flip](args = (%getitem_1, [0]), "});
}

// Python's operators take a number on either side, its functions a tensor.
TEST(Fx, FetchesConstantsWhereATensorIsWanted) {
  expect_in(show_text("fx-code", R"(graph(%x: f32[2]) {
              %two = constant(value=f32[] {2})
              %list = constant(value=f32[2] {1, 2})
              %0 = sub(%two, %x)
              %1 = max(%0, %two)
              %2 = add(%1, %list)
              return %2 })"),
            {"operator.sub](args = (2.0, %x)",
             "%_tensor_constant0 : [num_users=2] = get_attr[target=_tensor_constant0]\n",
             "torch.maximum](args = (%sub, %_tensor_constant0)",
             "%_tensor_constant1 : ", "operator.add](args = (%maximum, %_tensor_constant1)"});
}

}  // namespace
}  // namespace tenon
