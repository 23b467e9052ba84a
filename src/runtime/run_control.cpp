#include "runtime/run_control.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/fit.h"
#include "tensor/join.h"
#include "tensor/wide.h"

namespace tenon::runtime {
namespace {

// Conditions and counts are tensors of one element.
int64_t single(std::string_view op, std::string_view what, const Tensor& tensor) {
  if (tensor.count() != 1)
    throw user_error("{}: {} must be one element, but is {}", op, what, type_of(Datum(tensor)));
  return as_int(tensor);
}

int64_t checked_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw user_error("scan: axis {} is out of range for a tensor of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

// Axis of a result that has one more than each part.
int64_t new_axis(int64_t axis, int64_t rank) { return checked_axis(axis, rank + 1); }

void append(Data& data, std::span<const Datum> more) { data.insert(data.end(), more.begin(), more.end()); }

// The elements at one place of an axis, which the result does not have.
Tensor slice(const Tensor& x, int64_t axis, int64_t index) {
  Extents extents = x.extents();
  extents.erase(extents.begin() + axis);
  const int64_t outer = element_count(Extents(x.extents().begin(), x.extents().begin() + axis));
  if (x.dtype() == DType::String) {
    std::vector<std::string> strings;
    const int64_t inner = outer == 0 ? 0 : element_count(extents) / outer;
    for (int64_t block = 0; block < outer; ++block) {
      const auto begin = x.strings().begin() + (block * x.extent(axis) + index) * inner;
      strings.insert(strings.end(), begin, begin + inner);
    }
    return Tensor::strings(std::move(strings), extents);
  }
  Tensor made(x.dtype(), extents);
  if (made.count() == 0)
    return made;
  const int64_t block = made.count() / outer * x.element_size();
  for (int64_t i = 0; i < outer; ++i)
    std::memcpy(made.mutable_bytes().data() + i * block,
                x.bytes().data() + (i * x.extent(axis) + index) * block, static_cast<size_t>(block));
  return made;
}

// Side by side along a new axis.
Tensor stack(std::string_view op, const std::vector<Tensor>& parts, int64_t axis) {
  const Tensor& first = parts.front();
  std::vector<Tensor> layers;
  for (const Tensor& part : parts) {
    if (part.extents() != first.extents() || part.dtype() != first.dtype())
      throw user_error("{}: {} and {} cannot be stacked", op, type_of(Datum(first)), type_of(Datum(part)));
    Extents extents = part.extents();
    extents.insert(extents.begin() + axis, 1);
    layers.push_back(part.reshaped(extents));
  }
  return join(layers, static_cast<size_t>(axis));
}

class ControlRun {
 public:
  ControlRun(const ControlFlow& control, std::span<const Datum> operands, const FindRegion& region,
             const RunOptions& options)
      : control_(control), operands_(control, operands), region_(region), options_(options) {}

  Data run() {
    if (control_.kind == ControlFlow::Kind::If) {
      const bool holds = single("if", "condition", *operands_.condition) != 0;
      return region_(holds ? "then" : "else").run(copy(operands_.captured), options_);
    }
    carried_ = copy(operands_.carried);
    collected_.resize(collected_count());
    if (control_.kind == ControlFlow::Kind::While)
      run_while();
    else
      run_scan();
    return std::move(carried_);
  }

 private:
  static Data copy(std::span<const Datum> data) { return {data.begin(), data.end()}; }

  size_t collected_count() const {
    return region_("body").program().outputs.size() - control_.leading() - operands_.carried.size();
  }

  void run_while() {
    const int64_t limit = operands_.trip_count != nullptr
                              ? single("while", "trip_count", *operands_.trip_count)
                              : std::numeric_limits<int64_t>::max();
    bool goes_on = operands_.condition == nullptr || single("while", "condition", *operands_.condition) != 0;
    const auto inputs = [&](int64_t iteration) {
      Data inputs{Tensor::scalar(iteration)};
      append(inputs, carried_);
      append(inputs, operands_.captured);
      return inputs;
    };
    for (int64_t iteration = 0; iteration < limit && goes_on; ++iteration) {
      Data outputs = region_("body").run(inputs(iteration), options_);
      goes_on = single("while", "whether to go on", outputs.front().tensor()) != 0;
      take(std::move(outputs));
    }
    const auto axis = [](size_t, int64_t) { return int64_t{0}; };
    stack_collected(inputs(0), axis);
  }

  void run_scan() {
    std::vector<int64_t> axes = control_.axes;
    const auto scanned = [&](size_t i) -> const Tensor& { return operands_.scanned[i].tensor(); };
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i] = checked_axis(axes[i], scanned(i).rank());
      if (scanned(i).extent(axes[i]) != scanned(0).extent(axes[0]))
        throw user_error("scan: scanned value {} has {} slices, but those before it have {}", i,
                         scanned(i).extent(axes[i]), scanned(0).extent(axes[0]));
    }
    const int64_t length = scanned(0).extent(axes[0]);
    const auto inputs = [&](const auto& slice_of) {
      Data inputs = carried_;
      for (size_t i = 0; i < axes.size(); ++i)
        inputs.emplace_back(slice_of(i));
      append(inputs, operands_.captured);
      return inputs;
    };
    for (int64_t iteration = 0; iteration < length; ++iteration)
      take(region_("body").run(inputs([&](size_t i) {
                                 return slice(scanned(i), axes[i],
                                              control_.reversed[i] != 0 ? length - 1 - iteration : iteration);
                               }),
                               options_));
    for (size_t i = 0; i < collected_.size(); ++i)
      if (control_.output_reversed[i] != 0)
        std::ranges::reverse(collected_[i]);
    const auto axis = [&](size_t i, int64_t rank) { return new_axis(control_.output_axes[i], rank); };
    const auto empty_slice = [&](size_t i) {
      Extents extents = scanned(i).extents();
      extents.erase(extents.begin() + axes[i]);
      return Tensor(scanned(i).dtype(), extents);
    };
    // The sizes of slices say those of what is collected in no iteration.
    stack_collected(length == 0 ? inputs(empty_slice) : Data(), axis);
  }

  void take(Data outputs) {
    const size_t first = control_.leading();
    for (size_t i = 0; i < carried_.size(); ++i)
      carried_[i] = std::move(outputs[first + i]);
    for (size_t i = 0; i < collected_.size(); ++i)
      collected_[i].push_back(outputs[first + carried_.size() + i].tensor());
  }

  // Appended to what is carried. `inputs` are those of a first iteration, where there was none.
  void stack_collected(const Data& inputs, const auto& axis) {
    const size_t first = control_.leading() + carried_.size();
    for (size_t i = 0; i < collected_.size(); ++i) {
      if (collected_[i].empty()) {
        Tensor part = empty_part(first + i, inputs);
        Extents extents = part.extents();
        extents.insert(extents.begin() + axis(i, part.rank()), 0);
        carried_.emplace_back(Tensor(part.dtype(), extents));
      } else {
        carried_.emplace_back(stack(control_.name(), collected_[i], axis(i, collected_[i].front().rank())));
      }
    }
  }

  // As large as what an iteration with these inputs would give, as far as that is known without it.
  Tensor empty_part(size_t output, const Data& inputs) const {
    const Program& body = region_("body").program();
    Bindings sizes;
    for (size_t i = 0; i < inputs.size(); ++i)
      fits(inputs[i], body.inputs[i].type, sizes);
    const TensorType& type = body.slots[body.outputs[output]].type.as_tensor();
    Extents extents;
    if (type.shape.ranked())
      for (const Dim& dim : type.shape.dims())
        extents.push_back(dim.evaluate(sizes).value_or(0));
    return {type.dtype, extents};
  }

  const ControlFlow& control_;
  const ControlOperands operands_;
  const FindRegion& region_;
  const RunOptions options_;
  Data carried_;
  std::vector<std::vector<Tensor>> collected_;
};

}  // namespace

std::string_view ControlFlow::name() const {
  return kind == Kind::If ? "if" : kind == Kind::While ? "while" : "scan";
}

ControlOperands::ControlOperands(const ControlFlow& control, std::span<const Datum> operands) {
  CHECK(operands.size() == control.operand_count(), "{} got {} operands", control.name(), operands.size());
  const auto take = [&](uint64_t count) {
    const std::span<const Datum> taken = operands.first(count);
    operands = operands.subspan(count);
    return taken;
  };
  if (control.has_trip_count)
    trip_count = &take(1).front().tensor();
  if (control.has_condition)
    condition = &take(1).front().tensor();
  carried = take(control.carried);
  scanned = take(control.scanned);
  captured = take(control.captured);
}

Data run_control(const ControlFlow& control, std::span<const Datum> operands, const FindRegion& region,
                 const RunOptions& options) {
  return ControlRun(control, operands, region, options).run();
}

}  // namespace tenon::runtime
