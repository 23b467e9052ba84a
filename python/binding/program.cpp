#include "binding/program.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "compiler/describe.h"
#include "compiler/print_program.h"
#include "runtime/cpu/thread_pool.h"

namespace tenon::python {

using runtime::Executor;

namespace {

tenon_device device_of(const compiler::CompileContext& context) {
  return {.type = context.target.gpu ? TENON_DEVICE_CUDA : TENON_DEVICE_CPU, .index = context.device};
}

bool is_passable(const Type& type) { return type.is_tensor() && type.as_tensor().dtype != DType::String; }

bool is_passable(const runtime::Program& program) {
  return std::ranges::all_of(program.inputs,
                             [](const InputPort& input) { return is_passable(input.type); }) &&
         std::ranges::all_of(program.outputs,
                             [&](size_t slot) { return is_passable(program.slots[slot].type); });
}

// Memory of no use but for the sizes of a tensor.
Tensor of_sizes(const tenon_tensor& tensor) {
  const Extents sizes(tensor.sizes, tensor.sizes + tensor.rank);
  const auto dtype = static_cast<DType>(tensor.dtype);
  return {dtype,
          sizes,
          nullptr,
          {reinterpret_cast<const std::byte*>(64),
           static_cast<size_t>(element_count(sizes)) * static_cast<size_t>(info(dtype).bytes)}};
}

nb::handle item_of(nb::handle tuple, size_t number) {
  return PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(number));
}

size_t count_of(nb::handle tuple) { return static_cast<size_t>(PyTuple_Size(tuple.ptr())); }

nb::object one_or_tuple(const std::vector<nb::object>& results) {
  if (results.size() == 1)
    return results.front();
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
  for (size_t i = 0; i < results.size(); ++i)
    PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), nb::object(results[i]).release().ptr());
  return nb::steal(tuple);
}

}  // namespace

Program::Program(std::unique_ptr<Executor> executor, const compiler::CompileContext& context)
    : context_(context) {
  if (is_passable(executor->program()))
    passable_ = std::make_unique<tenon_program>(std::move(executor), device_of(context));
  else
    executor_ = std::move(executor);
}

Program::~Program() = default;

namespace {

std::optional<nb::python_error>& kept_error() {
  static thread_local std::optional<nb::python_error> kept;
  return kept;
}

// Whether this thread runs a program, which ends where it would catch what is kept.
thread_local bool is_running = false;

class Running {
 public:
  Running() { is_running = true; }
  ~Running() { is_running = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  bool before_ = is_running;  // a function of Python's may run a program itself
};

// Of a run that failed.
void throw_kept_error() {
  if (!kept_error())
    return;
  const nb::python_error error = *kept_error();
  kept_error().reset();
  throw error;
}

}  // namespace

void keep_python_error(const nb::python_error& error) {
  if (is_running)
    kept_error().emplace(error);
}

void Program::overwrite(const std::vector<std::pair<size_t, size_t>>& pairs) {
  const runtime::Program& program = executor().program();
  overwritten_.assign(program.outputs.size(), std::nullopt);
  if (!passable_ || !executor().has_fixed_sizes())
    return;
  for (const auto& [output, input] : pairs) {
    if (output >= program.overwritable.size() || input >= program.inputs.size())
      continue;
    const Type &written = program.slots[program.outputs[output]].type, &read = program.inputs[input].type;
    if (std::ranges::count(program.overwritable[output], input) > 0 && written == read)
      overwritten_[output] = input;
  }
}

void Program::renew_constants() {
  const nb::gil_scoped_release released;
  const std::unique_lock lock(constants_);
  (passable_ ? *passable_->program : *executor_).renew_constants();
}

// One call, all of whose tensors are numbers. Its memory is kept for later calls, so that these allocate
// none.
class Program::Call {
 public:
  explicit Call(const Program& program)
      : program_(*program.passable_),
        constants_(program.constants_),
        overwritten_(program.overwritten_),
        inputs_(program_.inputs.size()),
        outputs_(program_.outputs.size()),
        arguments_(inputs_.size()),
        destinations_(outputs_.size()),
        sizes_(outputs_.size()) {}

  void use_inputs(nb::handle arguments) {
    const size_t count = count_of(arguments);
    if (count != inputs_.size())
      throw user_error("the program takes {} inputs, but {} were given", inputs_.size(), count);
    given_ = arguments;
    for (size_t i = 0; i < count; ++i) {
      const nb::handle object = item_of(arguments, i);
      if (!arguments_[i].borrow(object))
        throw user_error(
            "{} is a {}, and no tensor of numbers: pass a torch.Tensor, a numpy.ndarray, or another with "
            "__dlpack__ or "
            "the buffer protocol",
            program_.inputs[i].title(), describe_type(object));
      inputs_[i] = arguments_[i].tensor();
    }
    if (!arguments_.empty())
      library_ = arguments_.front().library();
  }

  // Sizes of outputs that the program alone, or those of the inputs, tell; false where they depend on
  // elements.
  bool find_sizes() {
    if (program_.program->has_fixed_sizes()) {
      for (size_t i = 0; i < outputs_.size(); ++i)
        sizes_[i] = &program_.outputs[i].sizes();
      return true;
    }
    for (size_t i = 0; i < inputs_.size(); ++i)
      program_.inputs[i].check_input(inputs_[i], program_.device);
    Data shapes;
    for (const tenon_tensor& input : inputs_)
      shapes.emplace_back(of_sizes(input));
    known_ = program_.program->output_extents(shapes);
    if (!known_)
      return false;
    for (size_t i = 0; i < outputs_.size(); ++i)
      sizes_[i] = &(*known_)[i];
    return true;
  }

  void make_outputs() {
    // Where the arguments are: on the GPU, if one of torch's is.
    const bool is_there =
        library_.kind == Library::Exchange && std::ranges::any_of(inputs_, [](const tenon_tensor& input) {
          return input.device.type != TENON_DEVICE_CPU;
        });
    const tenon_device device = is_there ? program_.device : tenon_device{};
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (is_overwriting(i)) {
        outputs_[i] = inputs_[*overwritten_[i]];
        if (outputs_[i].strides == nullptr)
          outputs_[i].sizes = nullptr;
        results_.push_back(nb::borrow(item_of(given_, *overwritten_[i])));
        continue;
      }
      Made made =
          make_tensor(library_, program_.outputs[i].dtype(), sizes_[i]->data(), sizes_[i]->size(), device);
      outputs_[i] = {.struct_size = sizeof(tenon_tensor),
                     .data = made.data,
                     .bytes = std::numeric_limits<size_t>::max(),
                     .dtype = static_cast<int32_t>(program_.outputs[i].dtype()),
                     .rank = static_cast<int32_t>(sizes_[i]->size()),
                     .sizes = nullptr,
                     .strides = nullptr,
                     .device = device};
      results_.push_back(std::move(made.object));
    }
  }

  void use_outputs(nb::handle out) {
    if (PyTuple_Check(out.ptr()) == 0 && PyList_Check(out.ptr()) == 0) {
      check_output_count(1);
      use_output(0, out);
      return;
    }
    const nb::object all = nb::steal(PySequence_Tuple(out.ptr()));
    check_output_count(count_of(all));
    for (size_t i = 0; i < outputs_.size(); ++i)
      use_output(i, item_of(all, i));
  }

  void run(const runtime::RunOptions& options) {
    tenon_run_options how{.struct_size = sizeof how,
                          .threads = options.threads,
                          .seed = options.seed,
                          .stream = program_.device.type == TENON_DEVICE_CUDA && !arguments_.empty()
                                        ? arguments_.front().stream()
                                        : nullptr};
    tenon_status status = TENON_OK;
    {
      const nb::gil_scoped_release released;
      const std::shared_lock lock(constants_);
      const Running running;
      status = tenon_run(&program_, inputs_.data(), inputs_.size(), outputs_.data(), outputs_.size(), &how);
    }
    if (status != TENON_OK)
      throw_error(status);
  }

  // What make_outputs made, as its library has such numbers.
  void finish_outputs() const {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!is_overwriting(i))
        finish_tensor(library_, program_.outputs[i].dtype(), outputs_[i].data, element_count(*sizes_[i]));
  }

  nb::object results() const { return one_or_tuple(results_); }

  // Lets go of all that belongs to the caller.
  void release() {
    for (std::vector<Argument>* tensors : {&arguments_, &destinations_})
      for (Argument& each : *tensors)
        each.release();
    results_.clear();
  }

 private:
  // Where the argument is not one that can be read alone.
  bool is_overwriting(size_t output) const {
    return output < overwritten_.size() && overwritten_[output] &&
           !arguments_[*overwritten_[output]].is_copy() &&
           inputs_[*overwritten_[output]].device.type == TENON_DEVICE_CPU;
  }

  [[noreturn]] static void throw_error(tenon_status status) {
    throw_kept_error();
    if (status == TENON_USER_ERROR)
      throw UserError(tenon_error_message());
    throw InternalError(tenon_error_message());
  }

  void check_output_count(size_t count) const {
    if (count != outputs_.size())
      throw user_error("the program has {} outputs, but out has {}", outputs_.size(), count);
  }

  void use_output(size_t number, nb::handle object) {
    Argument& destination = destinations_[number];
    if (!destination.borrow(object))
      throw user_error("out for {} is a {}, and no tensor", program_.outputs[number].title(),
                       describe_type(object));
    if (destination.is_copy())
      throw user_error(
          "out for {} is of a dtype, or a conjugate or negative view, that can be read alone: leave out to "
          "get such an array",
          program_.outputs[number].title());
    outputs_[number] = destination.tensor();
    check_sizes(number);
    results_.push_back(nb::borrow(object));
  }

  // tenon_run writes sizes; memory of the caller's has its own, which must be these.
  void check_sizes(size_t number) {
    tenon_tensor& output = outputs_[number];
    const std::span<const int64_t> given(output.sizes, static_cast<size_t>(output.rank));
    if (!std::ranges::equal(given, *sizes_[number]))
      throw user_error("{} has the sizes [{}], but out has [{}]", program_.outputs[number].title(),
                       fmt::join(*sizes_[number], ","), fmt::join(given, ","));
    output.sizes = nullptr;
    if (output.strides != nullptr)
      output.sizes = const_cast<int64_t*>(given.data());
  }

  const tenon_program& program_;
  std::shared_mutex& constants_;
  const std::vector<std::optional<size_t>>& overwritten_;
  nb::handle given_;  // the arguments
  std::vector<tenon_tensor> inputs_, outputs_;
  std::vector<Argument> arguments_, destinations_;
  std::vector<const Extents*> sizes_;  // of outputs
  std::optional<std::vector<Extents>> known_;
  Library library_;
  std::vector<nb::object> results_;
};

nb::object Program::by_name(const nb::args& arguments, const nb::kwargs& named) const {
  if (named.size() == 0)
    return nb::borrow(arguments);
  const std::vector<InputPort>& inputs = executor().program().inputs;
  nb::list all;
  for (nb::handle each : arguments)
    all.append(each);
  size_t used = 0;
  for (size_t i = arguments.size(); i < inputs.size(); ++i) {
    const nb::str key(inputs[i].name.c_str());
    if (!named.contains(key))
      throw user_error("input {} is missing", inputs[i].name);
    all.append(named[key]);
    ++used;
  }
  if (used != named.size())
    for (const auto& [name, value] : named) {
      const std::string word = nb::cast<std::string>(name);
      for (size_t i = 0; i <= inputs.size(); ++i) {
        if (i == inputs.size())
          throw user_error("there is no input {}", word);
        if (inputs[i].name != word)
          continue;
        if (i < arguments.size())
          throw user_error("input {} is given twice", word);
        break;
      }
    }
  return nb::steal(PySequence_Tuple(all.ptr()));
}

nb::object Program::run_data(nb::handle arguments, const runtime::RunOptions& options) const {
  const size_t count = count_of(arguments);
  const std::vector<InputPort>& inputs = executor().program().inputs;
  if (count != inputs.size())
    throw user_error("the program takes {} inputs, but {} were given", inputs.size(), count);
  Data data;
  for (size_t i = 0; i < count; ++i) {
    data.push_back(to_datum(item_of(arguments, i), "input " + inputs[i].name));
    if (inputs[i].type.is_optional() && !std::holds_alternative<Optional>(data.back()))
      data.back() = Optional{std::make_shared<Datum>(std::move(data.back()))};
  }
  Data results;
  try {
    const nb::gil_scoped_release released;
    const std::shared_lock lock(constants_);
    const Running running;
    results = executor().run(data, options);
  } catch (...) {
    throw_kept_error();
    throw;
  }
  const Library library = library_of(arguments);
  std::vector<nb::object> objects_out;
  for (const Datum& result : results)
    objects_out.push_back(to_python(library, result));
  return one_or_tuple(objects_out);
}

nb::object Program::run(const nb::args& arguments, nb::handle out, std::optional<int64_t> threads,
                        uint64_t seed, const nb::kwargs& named) const {
  const int64_t count = threads.value_or(context_.threads);
  if (count < 0 || count > runtime::kMostRunThreads)
    throw user_error("a program runs with 1 to {} threads, not with {}", runtime::kMostRunThreads, count);
  const runtime::RunOptions options{.seed = seed,
                                    .threads = count == 0 ? this_machine().cores : static_cast<int>(count)};
  const nb::object all = by_name(arguments, named);
  if (!passable_) {
    if (!out.is_none())
      throw user_error("out is for programs all of whose inputs and outputs are tensors of numbers");
    return run_data(all, options);
  }
  const auto call = take_call();
  call->use_inputs(all);
  if (!call->find_sizes()) {
    if (!out.is_none())
      throw user_error(
          "the sizes of the outputs depend on the elements of the inputs, so that out cannot be given");
    return run_data(all, options);
  }
  if (out.is_none())
    call->make_outputs();
  else
    call->use_outputs(out);
  call->run(options);
  if (out.is_none())
    call->finish_outputs();
  return call->results();
}

std::unique_ptr<Program::Call, Program::GiveBack> Program::take_call() const {
  if (idle_calls_.empty())
    return {new Call(*this), {this}};
  Call* const call = idle_calls_.back().release();
  idle_calls_.pop_back();
  return {call, {this}};
}

void Program::GiveBack::operator()(Call* call) const {
  call->release();
  program->idle_calls_.emplace_back(call);
}

nb::object Program::call(const nb::args& arguments, const nb::kwargs& named) const {
  return run(arguments, nb::none(), std::nullopt, 0, named);
}

void bind_program(nb::module_& module) {
  nb::class_<Program>(module, "Program", nb::dynamic_attr(),
                      "A model compiled for a device of this machine. Several threads may call it at once.")
      .def("__call__", &Program::call)
      .def("run", &Program::run, nb::arg("args"), nb::kw_only(), nb::arg("out") = nb::none(),
           nb::arg("threads") = nb::none(), nb::arg("seed") = 0, nb::arg("kwargs"))
      .def("overwrite", &Program::overwrite, nb::arg("pairs"))
      .def("renew_constants", &Program::renew_constants)
      .def_prop_ro("threads", [](const Program& program) { return program.context().threads; });
}

}  // namespace tenon::python
