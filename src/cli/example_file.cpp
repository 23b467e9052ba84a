#include "cli/example_file.h"

#include <cmath>

#include "cli/training_arguments.h"
#include "cli/training_data.h"
#include "ir/fit.h"
#include "tensor/wide.h"

namespace tenon::cli {
namespace {

// The first example with one.
std::optional<int64_t> row_with_nan(const Tensor& array) {
  if (!is_float(array.dtype()) || array.rank() == 0 || array.count() == 0)
    return std::nullopt;
  const auto find_in = [&](const auto& numbers) -> std::optional<int64_t> {
    const auto at = std::ranges::find_if(numbers, [](auto number) { return std::isnan(number); });
    if (at == numbers.end())
      return std::nullopt;
    return (at - numbers.begin()) / (array.count() / array.extent(0));
  };
  if (array.dtype() == DType::F32)
    return find_in(array.data<float>());
  return find_in(widen<double>(array));
}

// Labels of any integer dtype are i64 to the loss.
Tensor in_dtype_of(const Tensor& target, const Type& type) {
  const DType wanted = type.as_tensor().dtype;
  if (is_float(wanted) || is_float(target.dtype()) || target.dtype() == wanted)
    return target;
  return narrow<int64_t>(wanted, target.extents(), widen<int64_t>(target));
}

}  // namespace

void ExampleFile::check_rows(const std::string& name, const Tensor& array, int64_t count) const {
  if (array.dtype() == DType::String)
    throw user_error("{}: \"{}\" holds strings, but training takes numbers", path_, name);
  if (const std::optional<int64_t> row = row_with_nan(array))
    throw user_error("{}: \"{}\" has a NaN in example {}", path_, name, *row);
  if (array.rank() == 0)
    throw user_error("{}: \"{}\" is one number: its first dimension must be that of the examples", path_,
                     name);
  if (array.extent(0) != count)
    throw user_error("{}: \"{}\" has {} examples, but others have {}", path_, name, array.extent(0), count);
}

void ExampleFile::check_labels(const Tensor& target, const Loss& loss, std::optional<int64_t> classes) const {
  const std::vector<int64_t> labels = widen<int64_t>(target);
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != loss.ignored && (labels[i] < 0 || (classes && labels[i] >= *classes))) {
      const int64_t per_example = target.count() / target.extent(0);
      throw user_error(
          "{}: \"{}\" has the label {} in example {}, but the model has {}{}", path_, target_, labels[i],
          static_cast<int64_t>(i) / per_example,
          classes ? fmt::format("{} classes", *classes) : "no classes below 0",
          labels[i] < 0 ? fmt::format("\n  hint: --ignore-label {} leaves it out", labels[i]) : "");
    }
}

std::vector<Tensor> ExampleFile::inputs(const Graph& model) {
  const Data inputs = *file_.inputs_for(model);
  std::vector<Tensor> arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& array = inputs[i].tensor();
    const Tensor& first = inputs.front().tensor();
    check_rows(model.input(static_cast<int64_t>(i)).name(), array, first.rank() == 0 ? 0 : first.extent(0));
    arrays.push_back(array);
  }
  return arrays;
}

Tensor ExampleFile::target(const Type& wanted, const Graph& model, const Loss& loss, int64_t examples) {
  const Tensor* found = file_.take_array(target_);
  if (found == nullptr)
    throw user_error("{}: there is no \"{}\" with what the model should give\n  hint: --target names it",
                     path_, target_);
  check_rows(target_, *found, examples);
  const Tensor target = in_dtype_of(*found, wanted);
  const Type got = type_of(Datum(first_rows(target, *wanted.as_tensor().shape[0].constant())));
  if (got != wanted)
    throw user_error("{}: batches of \"{}\" are {}, but {} of the model's output takes {}", path_, target_,
                     got, name_of(loss.kind), wanted);
  if (loss.kind == Loss::Kind::CrossEntropy)
    check_labels(target, loss, class_count(model, loss));
  return target;
}

std::unique_ptr<Graph> bind_to_batch(const Graph& model, const std::vector<Tensor>& inputs, int64_t batch) {
  Data sample;
  for (const Tensor& array : inputs)
    sample.emplace_back(first_rows(array, batch));
  std::map<std::string, Dim> sizes;
  for (const auto& [name, size] : bind_inputs(model, sample))
    sizes.emplace(name, size);
  return model.bind(sizes);
}

}  // namespace tenon::cli
