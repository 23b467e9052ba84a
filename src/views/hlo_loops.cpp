#include "views/hlo_loops.h"

#include <algorithm>

#include "ops/control.h"
#include "views/axes.h"
#include "views/hlo_types.h"

namespace tenon {
namespace {

const Type kNumber = Type::tensor(DType::I64, {}), kFlag = Type::tensor(DType::Bool, {});

bool has_constant_sizes(const Type& type) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return false;
  const std::vector<Dim>& dims = type.as_tensor().shape.dims();
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_constant(); });
}

// One slice of x, or one part of a stack, with that axis.
Type with_axis(const Type& part, int64_t axis) {
  const auto& [dtype, shape] = part.as_tensor();
  std::vector<Dim> dims = shape.dims();
  dims.insert(dims.begin() + axis, Dim(1));
  return Type::tensor(dtype, dims);
}

// What a loop goes through and collects, with the axes as numbers from the front.
struct Lane {
  Value whole;  // of a scanned value; of a collected one, the result
  Type part;
  int64_t axis;
  bool is_reversed;
};

class HloLoop {
 public:
  HloLoop(HloComputation& out, const Node& node, const WriteHloNodes& write_nodes)
      : out_(out),
        node_(node),
        write_nodes_(write_nodes),
        body_(node),
        carried_(node.ins("carried")),
        captured_(node.ins("captured")),
        is_scan_(node.is("scan")) {
    find_lanes();
  }

  bool can_be_told() const {
    if (is_scan_) {
      if (!std::all_of(scanned_.begin(), scanned_.end(),
                       [](const Lane& l) { return has_constant_sizes(l.part); }))
        return false;
    } else if (!collected_.empty() && !ends_by_count(node_)) {
      return false;
    }
    return std::all_of(collected_.begin(), collected_.end(), [&](const Lane& lane) {
      return has_constant_sizes(lane.part) && (is_scan_ || has_constant_sizes(lane.whole.type()));
    });
  }

  void write() {
    const std::vector<std::string> start = start_state();
    const std::string tuple =
        out_.emit("tuple", hlo_tuple(state_), fmt::format("tuple({})", fmt::join(start, ", ")));
    HloModule& module = out_.module();
    const std::string condition = module.take_name("condition"), body = module.take_name("body");
    module.add(write_condition(condition));
    module.add(write_body(body));
    const std::string end = out_.emit(
        "while", hlo_tuple(state_), fmt::format("while({}), condition={}, body={}", tuple, condition, body));
    for (Value result : node_.results()) {
      const auto index = static_cast<size_t>(result.index());
      const size_t place =
          index < carried_.size() ? first_carried() + index : first_collected() + index - carried_.size();
      out_.define(result, element(out_, end, place, result.name()));
    }
  }

 private:
  // (iteration, go on, carried, scanned, captured, limit, collected): a scan has no word in whether to go on.
  size_t first_carried() const { return is_scan_ ? 1 : 2; }
  size_t first_collected() const { return state_.size() - collected_.size(); }

  void find_lanes() {
    const auto lane = [&](Value whole, const Type& part, std::string_view axes, std::string_view reversed,
                          size_t place) {
      if (!is_scan_)
        return Lane{whole, part, 0, false};
      const int64_t axis = node_.attr(axes).as<std::vector<int64_t>>()[place];
      const bool is_reversed = node_.attr(reversed).as<std::vector<int64_t>>()[place] != 0;
      return Lane{whole, part, from_the_front(axis, whole.rank()), is_reversed};
    };
    for (size_t i = 0; i < body_.collected.size(); ++i)
      collected_.push_back(lane(node_.result(static_cast<int64_t>(carried_.size() + i)),
                                body_.collected[i].type(), "output_axes", "output_reversed", i));
    if (!is_scan_)
      return;
    const std::vector<Value> scanned = node_.ins("scanned");
    for (size_t i = 0; i < scanned.size(); ++i)
      scanned_.push_back(lane(scanned[i], body_.slices[i].type(), "axes", "reversed", i));
  }

  bool has_unknown_limit() const {
    return !is_scan_ && node_.has("trip_count") && !node_.in("trip_count").known_ints();
  }

  std::vector<std::string> start_state() {
    std::vector<std::string> start;
    const auto add = [&](const Type& type, const std::string& text) {
      state_.push_back(type);
      start.push_back(text);
    };
    add(kNumber, "s64[] constant(0)");
    if (!is_scan_)
      add(kFlag, node_.has("condition") ? out_.use(node_.in("condition")) : "pred[] constant(true)");
    std::vector<Value> values = carried_;
    for (const Lane& lane : scanned_)
      values.push_back(lane.whole);
    values.insert(values.end(), captured_.begin(), captured_.end());
    if (has_unknown_limit())
      values.push_back(node_.in("trip_count"));
    for (Value value : values)
      add(value.type(), out_.use(value));
    for (const Lane& lane : collected_)
      add(lane.whole.type(), hlo_splat(0, lane.whole.type()));
    return start;
  }

  std::string element(HloComputation& out, const std::string& tuple, size_t place,
                      std::string_view wanted) const {
    return out.emit(wanted.empty() ? "gte" : wanted, state_[place],
                    fmt::format("get-tuple-element({}), index={}", tuple, place));
  }

  // How many iterations there are; of a scan, the number of slices.
  std::string limit(HloComputation& out, const std::string& tuple) const {
    if (!is_scan_) {
      const auto known = node_.in("trip_count").known_ints();
      return known ? fmt::format("s64[] constant({})", known->front())
                   : element(out, tuple, first_collected() - 1, "trip_count");
    }
    const Lane& lane = scanned_.front();
    if (const auto known = lane.whole.dim(lane.axis).constant())
      return fmt::format("s64[] constant({})", *known);
    const std::string x = element(out, tuple, first_carried() + carried_.size(), "scanned");
    const std::string size = out.emit("size", Type::tensor(DType::I32, {}),
                                      fmt::format("get-dimension-size({}), dimensions={{{}}}", x, lane.axis));
    return out.emit("convert", kNumber, fmt::format("convert({})", size));
  }

  std::string write_condition(const std::string& name) const {
    HloComputation out(out_.module());
    const std::string tuple = out.emit("p", hlo_tuple(state_), "parameter(0)");
    std::string go_on = is_scan_ ? "" : element(out, tuple, 1, "go_on");
    if (is_scan_ || node_.has("trip_count")) {
      const std::string iteration = element(out, tuple, 0, "iteration");
      const std::string in_time = out.emit(
          "compare", kFlag, fmt::format("compare({}, {}), direction=LT", iteration, limit(out, tuple)));
      go_on = is_scan_ ? in_time : out.emit("and", kFlag, fmt::format("and({}, {})", go_on, in_time));
    }
    return out.finish(name, {go_on}, {kFlag});
  }

  std::string write_body(const std::string& name) const {
    HloComputation out(out_.module());
    const std::string tuple = out.emit("p", hlo_tuple(state_), "parameter(0)");
    const std::string iteration = element(out, tuple, 0, "iteration");
    const std::vector<std::string> handed_on = define_inputs(out, tuple, iteration);
    write_nodes_(out, body_.graph);
    std::vector<std::string> roots, collected;
    for (size_t i = 0; i < collected_.size(); ++i)
      collected.push_back(update(out, tuple, iteration, i));
    roots.push_back(out.emit("add", kNumber, fmt::format("add({}, s64[] constant(1))", iteration)));
    if (body_.go_on)
      roots.push_back(out.use(body_.go_on));
    for (Value value : body_.next)
      roots.push_back(out.use(value));
    roots.insert(roots.end(), handed_on.begin(), handed_on.end());
    roots.insert(roots.end(), collected.begin(), collected.end());
    return out.finish(name, roots, state_);
  }

  // What the body takes; gives what goes on to the next iteration as it is.
  std::vector<std::string> define_inputs(HloComputation& out, const std::string& tuple,
                                         const std::string& iteration) const {
    if (body_.iteration)
      out.define(body_.iteration, iteration);
    size_t at = first_carried();
    for (Value input : body_.carried)
      out.define(input, element(out, tuple, at++, input.name()));
    std::vector<std::string> handed_on;
    for (size_t i = 0; i < body_.slices.size(); ++i) {
      handed_on.push_back(element(out, tuple, at++, "scanned"));
      out.define(body_.slices[i], slice(out, tuple, handed_on.back(), iteration, body_.slices[i], i));
    }
    for (Value input : body_.captured) {
      handed_on.push_back(element(out, tuple, at++, input.name()));
      out.define(input, handed_on.back());
    }
    if (has_unknown_limit())
      handed_on.push_back(element(out, tuple, first_collected() - 1, "trip_count"));
    return handed_on;
  }

  // 0 but along the lane's axis.
  std::string place(HloComputation& out, const std::string& tuple, const std::string& iteration,
                    const Lane& lane) const {
    std::string index = iteration;
    if (lane.is_reversed) {
      const std::string from_end =
          out.emit("subtract", kNumber, fmt::format("subtract({}, {})", limit(out, tuple), iteration));
      index = out.emit("subtract", kNumber, fmt::format("subtract({}, s64[] constant(1))", from_end));
    }
    std::vector<std::string> indices(static_cast<size_t>(lane.whole.rank()), "s64[] constant(0)");
    indices[static_cast<size_t>(lane.axis)] = index;
    return fmt::format("{}", fmt::join(indices, ", "));
  }

  std::string slice(HloComputation& out, const std::string& tuple, const std::string& operand,
                    const std::string& iteration, Value input, size_t index) const {
    const Lane& lane = scanned_[index];
    const Type type = with_axis(lane.part, lane.axis);
    const std::string where = place(out, tuple, iteration, lane);
    const std::string part =
        out.emit("slice", type,
                 fmt::format("dynamic-slice({}, {}), dynamic_slice_sizes={{{}}}", operand, where,
                             fmt::join(type.as_tensor().shape.dims(), ",")));
    return out.emit(input.name().empty() ? "reshape" : input.name(), lane.part,
                    fmt::format("reshape({})", part));
  }

  std::string update(HloComputation& out, const std::string& tuple, const std::string& iteration,
                     size_t index) const {
    const Lane& lane = collected_[index];
    const std::string before = element(out, tuple, first_collected() + index, "collected");
    const std::string part = out.emit("reshape", with_axis(lane.part, lane.axis),
                                      fmt::format("reshape({})", out.use(body_.collected[index])));
    return out.emit(
        "update", lane.whole.type(),
        fmt::format("dynamic-update-slice({}, {}, {})", before, part, place(out, tuple, iteration, lane)));
  }

  HloComputation& out_;
  const Node& node_;
  const WriteHloNodes& write_nodes_;
  LoopBody body_;
  std::vector<Value> carried_, captured_;
  bool is_scan_;
  std::vector<Lane> scanned_, collected_;
  Types state_;
};

}  // namespace

bool write_hlo_loop(HloComputation& out, const Node& node, const WriteHloNodes& write_nodes) {
  if (!node.is("while") && !node.is("scan"))
    return false;
  HloLoop loop(out, node, write_nodes);
  if (!loop.can_be_told())
    return false;
  loop.write();
  return true;
}

}  // namespace tenon
