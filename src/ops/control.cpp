#include "ops/control.h"

#include <algorithm>
#include <limits>

#include "ops/control_gradient.h"
#include "ops/elements.h"
#include "ops/nested.h"
#include "ops/shapes.h"
#include "ops/stack.h"

namespace tenon {
namespace {

template <class List>
List in_order(std::initializer_list<List> parts) {
  List all;
  for (const List& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

Data copy(std::span<const Datum> data) { return {data.begin(), data.end()}; }

Types types_of(std::span<const Datum> data) {
  Types types;
  for (const Datum& datum : data)
    types.push_back(type_of(datum));
  return types;
}

// Conditions and counts are tensors of one element.
void check_single(const Node& n, std::string_view what, const Type& type) {
  const Dim count = type.as_tensor().shape.ranked() ? type.as_tensor().shape.element_count() : Dim();
  if (count.is_constant() && count != Dim(1))
    throw user_error("{}: {} must be one element, but is {}", n.op().name, what, type);
}
int64_t single(const Call& c, std::string_view what, const Datum& datum) {
  if (datum.tensor().count() != 1)
    throw user_error("{}: {} must be one element, but is {}", c.node().op().name, what, type_of(datum));
  return as_int(datum.tensor());
}

// The type of collected values once they are stacked.
Type stacked_type(const Node& n, size_t index, const Type& part, const Dim& length, int64_t axis) {
  if (!part.is_tensor())
    throw user_error("{}: only tensors can be collected, but value {} is {}", n.op().name, index, part);
  const auto& [dtype, shape] = part.as_tensor();
  if (!shape.ranked())
    return part;
  std::vector<Dim> dims = shape.dims();
  dims.insert(dims.begin() + checked_axis(n.op().name, axis, shape.rank() + 1), length);
  return Type::tensor(dtype, dims);
}

// What is collected in no iterations at all: `part` is the type that one iteration would give.
Tensor empty_stack(const Graph& body, const Types& inputs, const Type& part, const auto& axis_for_rank) {
  Extents extents = extents_when_fed(body, inputs, part);
  extents.insert(extents.begin() + axis_for_rank(static_cast<int64_t>(extents.size())), 0);
  return {part.as_tensor().dtype, extents};
}

// The symbols of a body that stand for the same size in every iteration, with that size. `all` feeds the
// first iteration; later ones get the same, but for the carried values, which start at `first_carried` and
// then have the types `next`.
Sizes lasting_sizes(const Node& n, std::vector<Fed> all, size_t first_carried, std::span<const Type> next) {
  Sizes sizes = feed(n, "body", all);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].type = n.region("body").input(static_cast<int64_t>(i)).type();
  for (size_t i = 0; i < next.size(); ++i)
    all[first_carried + i] = {fmt::format("carried value {} of the next iteration", i), next[i]};
  const Sizes later = feed(n, "body", all);
  std::erase_if(sizes, [&](const auto& entry) {
    const auto it = later.find(entry.first);
    return it == later.end() || !(it->second == Dim::symbol(entry.first));
  });
  return sizes;
}

// --- if ---

namespace if_op {

Types infer(const Node& n) {
  check_single(n, "condition", n.in("condition").type());
  const std::vector<Fed> inputs = fed("input", types_of(n.ins("inputs")));
  const auto results = [&](std::string_view branch) {
    const Sizes sizes = feed(n, branch, inputs);
    Types types = n.region(branch).output_types();
    for (Type& type : types)
      type = seen_outside(type, sizes);
    return types;
  };
  const Types then = results("then"), otherwise = results("else");
  if (then.size() != otherwise.size())
    throw user_error("if: then gives {} values, but else gives {}", then.size(), otherwise.size());
  if (const auto known = n.in("condition").known_ints(); known && known->size() == 1)
    return known->front() != 0 ? then : otherwise;
  Types joined;
  for (size_t i = 0; i < then.size(); ++i) {
    const std::optional<Type> type = join(then[i], otherwise[i]);
    if (!type)
      throw user_error("if: value {} is {} in then, but {} in else", i, then[i], otherwise[i]);
    joined.push_back(*type);
  }
  return joined;
}

Data eval(const Call& c) {
  const bool holds = single(c, "condition", c.datum("condition")) != 0;
  return c.run(holds ? "then" : "else", copy(c.all("inputs")));
}

}  // namespace if_op

// --- while ---

namespace while_op {

// How many iterations there are, where that is known.
Dim iterations(const Node& n) { return ends_by_count(n) ? max(known_number(n, "trip_count"), 0) : Dim(); }

Types infer(const Node& n) {
  for (std::string_view single : {"trip_count", "condition"})
    if (n.has(single))
      check_single(n, single, n.in(single).type());
  const Graph& body = n.region("body");
  const size_t carried = n.ins("carried").size();
  const Types outputs = body.output_types();
  if (outputs.size() < 1 + carried)
    throw user_error("while: body gives {} values, but must give whether to go on, and {} carried values",
                     outputs.size(), carried);
  const Type& go_on = outputs.front();
  if (!go_on.is_tensor() || go_on.as_tensor().dtype != DType::Bool)
    throw user_error("while: whether to go on must be bool[], but is {}", go_on);
  check_single(n, "whether to go on", go_on);

  const Sizes lasting = lasting_sizes(
      n,
      in_order<std::vector<Fed>>({{{"the number of the iteration", Type::tensor(DType::I64, {})}},
                                  fed("carried value", types_of(n.ins("carried"))),
                                  fed("captured value", types_of(n.ins("captured")))}),
      1, std::span(outputs).subspan(1, carried));
  Types types;
  for (size_t i = 0; i < carried; ++i)
    types.push_back(seen_outside(body.input(static_cast<int64_t>(1 + i)).type(), lasting));
  for (size_t i = 1 + carried; i < outputs.size(); ++i)
    types.push_back(stacked_type(n, i - 1 - carried, seen_outside(outputs[i], lasting), iterations(n), 0));
  return types;
}

Data eval(const Call& c) {
  const Graph& body = c.node().region("body");
  const int64_t limit = c.has("trip_count") ? single(c, "trip_count", c.datum("trip_count"))
                                            : std::numeric_limits<int64_t>::max();
  bool go_on = !c.has("condition") || single(c, "condition", c.datum("condition")) != 0;
  Data carried = copy(c.all("carried"));
  const auto inputs = [&](int64_t iteration) {
    return in_order<Data>({{Tensor::scalar(iteration)}, carried, copy(c.all("captured"))});
  };
  const Types outputs_types = body.output_types();
  std::vector<std::vector<Tensor>> collected(outputs_types.size() - 1 - carried.size());
  for (int64_t iteration = 0; iteration < limit && go_on; ++iteration) {
    Data outputs = c.run("body", inputs(iteration));
    go_on = single(c, "whether to go on", outputs.front()) != 0;
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = std::move(outputs[1 + i]);
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(outputs[1 + carried.size() + i].tensor());
  }
  Data results = carried;
  for (size_t i = 0; i < collected.size(); ++i)
    results.emplace_back(collected[i].empty()
                             ? empty_stack(body, types_of(inputs(0)), outputs_types[1 + carried.size() + i],
                                           [](int64_t) { return 0; })
                             : stack("while", collected[i], 0));
  return results;
}

}  // namespace while_op

// --- scan ---

namespace scan_op {

void check_operands(const Node& n, size_t collected) {
  const std::vector<Value> scanned = n.ins("scanned");
  if (scanned.empty())
    throw user_error("scan: nothing is scanned");
  for (size_t i = 0; i < scanned.size(); ++i)
    if (!scanned[i].type().is_tensor())
      throw user_error("scan: scanned value {} must be a tensor, but is {}", i, scanned[i].type());
  const auto check = [&](std::string_view list, std::string_view what, size_t count) {
    const std::vector<int64_t>& values = n.attr(list);
    if (values.size() != count)
      throw user_error("scan: {} has {} numbers for {} {} values", list, values.size(), count, what);
  };
  check("axes", "scanned", scanned.size());
  check("reversed", "scanned", scanned.size());
  check("output_axes", "collected", collected);
  check("output_reversed", "collected", collected);
}

// The number of slices, in which all scanned values must agree.
Dim iterations(const std::vector<Value>& scanned, const std::vector<int64_t>& axes) {
  Dim length;
  for (size_t i = 0; i < scanned.size(); ++i) {
    const Shape& shape = scanned[i].shape();
    if (!shape.ranked())
      continue;
    const Dim& own = shape[checked_axis("scan", axes[i], shape.rank())];
    if (own.is_constant() && length.is_constant() && !(own == length))
      throw user_error("scan: scanned value {} has {} slices, but those before it have {}", i, own, length);
    if (!length.is_constant())
      length = own;
  }
  return length;
}

// What the body gets of the scanned values.
Types slice_types(const Types& scanned, const std::vector<int64_t>& axes) {
  Types types;
  for (size_t i = 0; i < scanned.size(); ++i) {
    const auto& [dtype, shape] = scanned[i].as_tensor();
    types.push_back(scanned[i]);
    if (!shape.ranked())
      continue;
    std::vector<Dim> dims = shape.dims();
    dims.erase(dims.begin() + checked_axis("scan", axes[i], shape.rank()));
    types.back() = Type::tensor(dtype, dims);
  }
  return types;
}

Types infer(const Node& n) {
  const Graph& body = n.region("body");
  const size_t carried = n.ins("carried").size();
  const Types outputs = body.output_types();
  if (outputs.size() < carried)
    throw user_error("scan: body gives {} values, but must give {} carried values", outputs.size(), carried);
  check_operands(n, outputs.size() - carried);
  const std::vector<int64_t>&axes = n.attr("axes"), &output_axes = n.attr("output_axes");
  const Dim length = iterations(n.ins("scanned"), axes);
  const Sizes lasting =
      lasting_sizes(n,
                    in_order<std::vector<Fed>>(
                        {fed("carried value", types_of(n.ins("carried"))),
                         fed("slice of scanned value", slice_types(types_of(n.ins("scanned")), axes)),
                         fed("captured value", types_of(n.ins("captured")))}),
                    0, std::span(outputs).first(carried));
  Types types;
  for (size_t i = 0; i < carried; ++i)
    types.push_back(seen_outside(body.input(static_cast<int64_t>(i)).type(), lasting));
  for (size_t i = 0; i < output_axes.size(); ++i)
    types.push_back(stacked_type(n, i, seen_outside(outputs[carried + i], lasting), length, output_axes[i]));
  return types;
}

Tensor slice(const Tensor& x, int64_t axis, int64_t index) {
  Extents extents = x.extents(), strides = row_major_strides(x.extents());
  const int64_t offset = index * strides[static_cast<size_t>(axis)];
  extents.erase(extents.begin() + axis);
  strides.erase(strides.begin() + axis);
  return gather_strided(x, extents, strides, offset);
}

Data eval(const Call& c) {
  const Node& n = c.node();
  const Graph& body = n.region("body");
  const std::vector<int64_t>&reversed = n.attr("reversed"), &output_axes = n.attr("output_axes"),
        &output_reversed = n.attr("output_reversed");
  const std::vector<Tensor> scanned = c.tensors("scanned");
  std::vector<int64_t> axes = n.attr("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = checked_axis("scan", axes[i], scanned[i].rank());
    if (scanned[i].extent(axes[i]) != scanned[0].extent(axes[0]))
      throw user_error("scan: scanned value {} has {} slices, but those before it have {}", i,
                       scanned[i].extent(axes[i]), scanned[0].extent(axes[0]));
  }
  const int64_t length = scanned[0].extent(axes[0]);
  const Data captured = copy(c.all("captured"));
  Data carried = copy(c.all("carried"));
  std::vector<std::vector<Tensor>> collected(output_axes.size());
  for (int64_t iteration = 0; iteration < length; ++iteration) {
    Data slices;
    for (size_t i = 0; i < scanned.size(); ++i)
      slices.emplace_back(slice(scanned[i], axes[i], reversed[i] != 0 ? length - 1 - iteration : iteration));
    Data outputs = c.run("body", in_order<Data>({carried, slices, captured}));
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = std::move(outputs[i]);
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(outputs[carried.size() + i].tensor());
  }
  Data results = carried;
  for (size_t i = 0; i < collected.size(); ++i) {
    const auto axis = [&](int64_t rank) { return checked_axis("scan", output_axes[i], rank + 1); };
    if (length == 0) {
      results.emplace_back(
          empty_stack(body,
                      in_order<Types>({types_of(carried), slice_types(types_of(c.all("scanned")), axes),
                                       types_of(captured)}),
                      body.output_types()[carried.size() + i], axis));
      continue;
    }
    if (output_reversed[i] != 0)
      std::reverse(collected[i].begin(), collected[i].end());
    results.emplace_back(stack("scan", collected[i], output_axes[i]));
  }
  return results;
}

}  // namespace scan_op

bool is_known_true(Value value) {
  const auto known = value.known_ints();
  return known && known->size() == 1 && known->front() != 0;
}

}  // namespace

LoopBody::LoopBody(const Node& loop) : graph(loop.region("body")) {
  const std::vector<Value> inputs = graph.inputs(), outputs = graph.outputs();
  auto input = inputs.begin();
  auto output = outputs.begin();
  if (loop.is("while")) {
    iteration = *input++;
    go_on = *output++;
  }
  const auto count = static_cast<int64_t>(loop.ins("carried").size());
  captured.assign(inputs.end() - static_cast<int64_t>(loop.ins("captured").size()), inputs.end());
  carried.assign(input, input + count);
  slices.assign(input + count, inputs.end() - static_cast<int64_t>(captured.size()));
  next.assign(output, output + count);
  collected.assign(output + count, outputs.end());
}

std::vector<Value> LoopBody::varying() const {
  std::vector<Value> values;
  if (iteration)
    values.push_back(iteration);
  values.insert(values.end(), carried.begin(), carried.end());
  values.insert(values.end(), slices.begin(), slices.end());
  return values;
}

bool ends_by_count(const Node& loop) {
  if (loop.is("scan"))
    return true;
  return loop.has("trip_count") && (!loop.has("condition") || is_known_true(loop.in("condition"))) &&
         is_known_true(loop.region("body").outputs().front());
}

const Family& control_ops() {
  static const Family ops = {
      {.name = "if",
       .doc = "what one of two nested graphs gives: then where the condition holds, or else",
       .category = Category::Control,
       .operands = {{"condition", "bool"}, {"inputs", "any", Arity::Many}},
       .results = {{"y", "any", Arity::Many}},
       .regions = {"then", "else"},
       .traits = {.takes_unranked = true},
       .infer = if_op::infer,
       .eval = if_op::eval,
       .grad = grad_if},
      {.name = "while",
       .doc = "runs body(iteration, carried, captured) -> (go on, carried, collected) again and again; gives "
              "the "
              "last carried values, and those collected, stacked",
       .category = Category::Control,
       .operands = {{"trip_count", "i64", Arity::Optional},
                    {"condition", "bool", Arity::Optional},
                    {"carried", "any", Arity::Many},
                    {"captured", "any", Arity::Many}},
       .results = {{"y", "any", Arity::Many}},
       .regions = {"body"},
       .traits = {.takes_unranked = true},
       .infer = while_op::infer,
       .eval = while_op::eval,
       .grad = grad_while},
      {.name = "scan",
       .doc = "runs body(carried, slices, captured) -> (carried, collected) for each slice of the scanned "
              "values; gives the last carried values, and those collected, stacked",
       .category = Category::Control,
       .operands = {{"carried", "any", Arity::Many},
                    {"scanned", "any", Arity::Many},
                    {"captured", "any", Arity::Many}},
       .attributes = {{"axes", AttributeKind::Ints,
                       "for each scanned value, the axis along which it is sliced"},
                      {"reversed", AttributeKind::Ints,
                       "for each scanned value, 1 where slices are taken from the end"},
                      {"output_axes", AttributeKind::Ints,
                       "for each collected value, the axis along which it is stacked"},
                      {"output_reversed", AttributeKind::Ints,
                       "for each collected value, 1 where the first one collected comes last"}},
       .results = {{"y", "any", Arity::Many}},
       .regions = {"body"},
       .traits = {.takes_unranked = true},
       .infer = scan_op::infer,
       .eval = scan_op::eval,
       .grad = grad_scan},
  };
  return ops;
}

std::vector<Value> if_else(Value condition, const std::vector<Value>& inputs, Region then, Region otherwise) {
  std::vector<Region> regions;
  regions.push_back(std::move(then));
  regions.push_back(std::move(otherwise));
  return condition.graph()
      .create("if", {{"condition", condition}, {"inputs", inputs}}, {}, std::move(regions))
      ->results();
}

std::vector<Value> while_loop(Graph& graph, const Loop& loop, Region body) {
  std::vector<Region> regions;
  regions.push_back(std::move(body));
  return graph
      .create("while",
              {{"trip_count", loop.trip_count},
               {"condition", loop.condition},
               {"carried", loop.carried},
               {"captured", loop.captured}},
              {}, std::move(regions))
      ->results();
}

std::vector<Value> scan(Graph& graph, const Scan& scan, Region body) {
  std::vector<Region> regions;
  regions.push_back(std::move(body));
  return graph
      .create("scan", {{"carried", scan.carried}, {"scanned", scan.scanned}, {"captured", scan.captured}},
              {{"axes", scan.axes},
               {"reversed", scan.reversed},
               {"output_axes", scan.output_axes},
               {"output_reversed", scan.output_reversed}},
              std::move(regions))
      ->results();
}

}  // namespace tenon
