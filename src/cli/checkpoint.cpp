#include "cli/checkpoint.h"

#include "ir/type.h"
#include "tensor/wide.h"

namespace tenon::cli {
namespace {

// Names that no state has: weights may be called anything else.
constexpr std::string_view kPlan = "tenon:plan", kLoss = "tenon:loss", kBest = "tenon:best";

const Tensor& find(const std::string& path, const NamedTensors& arrays, std::string_view name) {
  const auto it = std::ranges::find(arrays, name, &NamedTensors::value_type::first);
  if (it == arrays.end())
    throw user_error("{}: there is no \"{}\": it is a checkpoint of another model or optimizer", path, name);
  return it->second;
}

// NumPy lacks some dtypes, which are there as f32.
Tensor in_dtype(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype || tensor.dtype() != DType::F32 || !is_float(dtype))
    return tensor;
  return narrow<double>(dtype, tensor.extents(), widen<double>(tensor));
}

}  // namespace

void write_checkpoint(const std::string& path, const TrainingStep& step, const Checkpoint& checkpoint) {
  NamedTensors arrays;
  for (size_t i = 0; i < step.state.size(); ++i)
    arrays.emplace_back(step.state[i].name, checkpoint.state[i]);
  const auto& [seed, batch, examples] = checkpoint.plan;
  arrays.emplace_back(kPlan, Tensor::of<int64_t>({seed, batch, examples}));
  arrays.emplace_back(kLoss, Tensor::of<double>({checkpoint.loss, static_cast<double>(checkpoint.of_steps)}));
  arrays.emplace_back(kBest, Tensor::scalar<double>(checkpoint.best));
  write_npz(path, arrays);
}

Checkpoint read_checkpoint(const std::string& path, const TrainingStep& step) {
  const NamedTensors arrays = read_npz(path);
  Checkpoint checkpoint;
  for (const StateValue& value : step.state) {
    const Tensor tensor = in_dtype(find(path, arrays, value.name), value.initial.dtype());
    const std::string got = describe(tensor.dtype(), tensor.extents()),
                      wanted = describe(value.initial.dtype(), value.initial.extents());
    if (got != wanted)
      throw user_error("{}: \"{}\" is {}, but that of the model is {}", path, value.name, got, wanted);
    checkpoint.state.push_back(tensor);
  }
  const Tensor &plan = find(path, arrays, kPlan), &loss = find(path, arrays, kLoss),
               &best = find(path, arrays, kBest);
  // Of how many steps a mean is counts exactly in f64.
  const auto is_count = [](double number) { return number >= 0 && number <= 0x1p53; };
  if (plan.dtype() != DType::I64 || plan.count() != 3 || loss.dtype() != DType::F64 || loss.count() != 2 ||
      best.dtype() != DType::F64 || best.count() != 1 || !is_count(loss.data<double>()[1]) ||
      as_int(checkpoint.state.back()) < 0)
    throw user_error("{}: it is no checkpoint of tenon train", path);
  const std::span<const int64_t> numbers = plan.data<int64_t>();
  checkpoint.plan = {.seed = numbers[0], .batch = numbers[1], .examples = numbers[2]};
  checkpoint.loss = loss.data<double>()[0];
  checkpoint.of_steps = static_cast<int64_t>(loss.data<double>()[1]);
  checkpoint.best = as_double(best);
  return checkpoint;
}

}  // namespace tenon::cli
