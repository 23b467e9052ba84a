#include "runtime/execution_plan.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/byte_count.h"

namespace tenon::runtime {
namespace {

UserError unknown_size(const Dim& size) {
  return user_error("size {} is unbound: it does not follow from the inputs", size);
}

// Of a size whose symbols are all known.
UserError uncountable_size(const Dim& size) {
  if (size.is_unknown())  // it became so when it was made of others
    return user_error("a size overflows 64 bits");
  return user_error("size {} overflows 64 bits or divides by zero", size);
}

// The sizes that the inputs have by themselves.
std::vector<std::string> symbols_of_inputs(const std::vector<InputPort>& inputs) {
  std::set<std::string> symbols;
  for (const InputPort& input : inputs)
    if (input.is_read && input.type.is_tensor() && input.type.as_tensor().shape.ranked())
      for (const Dim& dim : input.type.as_tensor().shape.dims())
        if (dim.is_symbol())
          symbols.insert(dim.symbols().front());
  return {symbols.begin(), symbols.end()};
}

std::vector<Dim> dims_of(const KernelStep& step) {
  std::vector<Dim> dims = step.sizes;
  for (const KernelRegion& region : step.regions) {
    dims.push_back(region.iterations);
    dims.push_back(region.scratch);
  }
  dims.push_back(step.work);
  return dims;
}

}  // namespace

int64_t evaluate_size(const Dim& size, const Bindings& bindings) {
  const std::optional<int64_t> value = size.evaluate(bindings);
  if (value)
    return *value;
  const std::vector<std::string> symbols = size.symbols();
  const bool is_known = std::all_of(symbols.begin(), symbols.end(),
                                    [&](const std::string& symbol) { return bindings.contains(symbol); });
  throw is_known ? uncountable_size(size) : unknown_size(size);
}

void check_view(const AliasStep& step, DType dtype, const Extents& extents, int64_t bytes) {
  const int64_t each = info(dtype).bytes;
  if (element_count(extents) * each != bytes)
    throw user_error("{}: {}: {} elements do not fit into [{}]", step.described, step.op, bytes / each,
                     fmt::join(extents, ","));
}

std::vector<int64_t> launch_numbers(const KernelStep& step, const Bindings& bindings) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : dims_of(step))
    numbers.push_back(evaluate_size(dim, bindings));
  return numbers;
}

std::vector<std::optional<Lifetime>> lifetimes_of(const std::vector<Slot>& slots,
                                                  const std::vector<Step>& steps,
                                                  const std::vector<size_t>& outputs) {
  std::vector<std::optional<Lifetime>> lifetimes(slots.size());
  const auto use = [&](size_t first_slot, size_t step) {
    const auto at = static_cast<int64_t>(step);
    for (std::optional<size_t> slot = first_slot; slot; slot = slots[*slot].alias) {
      const Lifetime before = lifetimes[*slot].value_or(Lifetime{at, at});
      lifetimes[*slot] = {std::min(before.first, at), std::max(before.last, at)};
    }
  };
  for (size_t i = 0; i < steps.size(); ++i)
    for_each_slot(steps[i], [&](size_t slot) { use(slot, i); });
  for (size_t slot : outputs)
    use(slot, steps.size());
  return lifetimes;
}

ExecutionPlan::ExecutionPlan(const Program& program)
    : slots_(program.slots), steps_(program.steps), dims_(symbols_of_inputs(program.inputs)) {
  add_slots(lifetimes_of(program.slots, program.steps, program.outputs));
  for (const Step& step : steps_) {
    launches_.emplace_back();
    if (const auto* kernel = std::get_if<KernelStep>(&step))
      add_launch(*kernel);
    else if (const auto* alias = std::get_if<AliasStep>(&step); alias != nullptr && extents_[alias->to])
      views_.push_back(alias);
  }
}

void ExecutionPlan::add_slots(const std::vector<std::optional<Lifetime>>& lifetimes) {
  extents_.resize(slots_.size());
  std::vector<Lifetime> planned;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!lifetimes[i] || slot.home == Home::Own || !slot.type.is_tensor() ||
        !slot.type.as_tensor().shape.ranked())
      continue;
    const std::vector<Dim>& dims = slot.type.as_tensor().shape.dims();
    if (!std::all_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dims_.covers(dim); }))
      continue;
    Registers& registers = extents_[i].emplace();
    for (const Dim& dim : dims)
      registers.push_back(dims_.add(dim));
    if (slot.home == Home::Arena && !slot.alias) {
      planned_.push_back(i);
      planned.push_back(*lifetimes[i]);
    }
  }
  memory_ = MemoryPlanner(std::move(planned));
}

void ExecutionPlan::add_launch(const KernelStep& step) {
  const std::vector<Dim> dims = dims_of(step);
  if (!std::all_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dims_.covers(dim); }))
    return;
  launches_.back() = numbers_.size();
  for (const Dim& dim : dims)
    numbers_.push_back(dims_.add(dim));
}

int64_t ExecutionPlan::value_of(size_t number, const Layout& layout) const {
  const int64_t value = layout.registers[number];
  if (value == DimList::kNothing)
    throw uncountable_size(dims_.dim(number));
  return value;
}

Extents ExecutionPlan::extents_of(size_t slot, const Layout& layout) const {
  const std::optional<Registers>& registers = extents_[slot];
  CHECK(registers, "the sizes of slot {} do not follow from the inputs", slots_[slot].name);
  Extents extents;
  for (size_t number : *registers)
    extents.push_back(value_of(number, layout));
  return extents;
}

int64_t ExecutionPlan::count_of(size_t slot, const Layout& layout) const {
  int64_t count = 1;
  for (size_t number : *extents_[slot]) {
    const int64_t extent = layout.registers[number];
    if (extent <= 0 || __builtin_mul_overflow(count, extent, &count))
      return element_count(extents_of(slot, layout));  // which says what is wrong with them
  }
  return count;
}

int64_t ExecutionPlan::bytes_of(size_t slot, const Layout& layout) const {
  const DType dtype = slots_[slot].type.as_tensor().dtype;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count_of(slot, layout), info(dtype).bytes, &bytes))
    return byte_count(dtype, extents_of(slot, layout));  // which says what is wrong with them
  return bytes;
}

std::optional<Launch> ExecutionPlan::launch_of(size_t step, const Layout& layout) const {
  if (!launches_[step])
    return std::nullopt;
  return Launch(std::get<KernelStep>(steps_[step]), layout.numbers.data() + *launches_[step]);
}

std::shared_ptr<const Layout> ExecutionPlan::plan(const Bindings& sizes) const {
  std::vector<int64_t> symbols;
  for (const std::string& symbol : dims_.symbols()) {
    const auto found = sizes.find(symbol);
    if (found == sizes.end())
      throw unknown_size(Dim::symbol(symbol));
    symbols.push_back(found->second);
  }
  auto layout = std::make_shared<Layout>();
  layout->registers = dims_.evaluate(symbols);
  layout->numbers.reserve(numbers_.size());
  for (size_t number : numbers_)
    layout->numbers.push_back(value_of(number, *layout));
  for (const AliasStep* view : views_)
    if (const int64_t bytes = bytes_of(view->from, *layout); bytes != bytes_of(view->to, *layout))
      check_view(*view, slots_[view->to].type.as_tensor().dtype, extents_of(view->to, *layout), bytes);
  std::vector<int64_t> bytes;
  for (size_t slot : planned_)
    bytes.push_back(bytes_of(slot, *layout));
  const MemoryPlan plan = memory_.plan(bytes);
  layout->memory = {.offsets = std::vector<int64_t>(slots_.size(), -1),
                    .bytes = plan.bytes,
                    .lower_bound = plan.lower_bound};
  for (size_t i = 0; i < planned_.size(); ++i)
    layout->memory.offsets[planned_[i]] = plan.offsets[i];
  return layout;
}

MemoryPlan plan_memory(const Program& program, const Bindings& sizes) {
  if (program.size_checks && !sizes.empty())
    program.size_checks->check(sizes);
  return ExecutionPlan(program).plan(sizes)->memory;
}

}  // namespace tenon::runtime
