// tensors.h — tensors of Python's libraries as Tenon sees them, and memory of theirs for results. Nothing is
// copied.
#pragma once

#include <nanobind/nanobind.h>
#include <tenon/tenon.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "binding/dlpack.h"
#include "tensor/datum.h"

namespace tenon::python {

namespace nb = nanobind;

// Whose tensors: those of a library with DLPack's table (torch), of numpy, or our own.
struct Library {
  enum Kind : uint8_t { Exchange, Numpy, Own };
  Kind kind = Own;
  const DLExchange* exchange = nullptr;
};

// One tensor argument: memory of a Python object, as long as this lives.
class Argument {
 public:
  Argument() = default;
  ~Argument() { release(); }
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  // False where the object is no tensor, or one of strings. One that Tenon cannot use is a UserError.
  bool borrow(nb::handle object);
  void release();

  const tenon_tensor& tensor() const { return tensor_; }
  const Library& library() const { return library_; }
  bool is_copy() const { return is_copy_; }  // what is written there is lost
  // The stream in which its library works on its device now; null on the CPU.
  void* stream() const;

 private:
  void use(const DLTensor& tensor, nb::handle object);
  bool use_resolved(nb::handle view);
  bool use_buffer(nb::handle object);
  bool use_method(nb::handle object);   // __dlpack__
  void use_extended(nb::handle array);  // of numpy, with a dtype that numpy alone does not have

  tenon_tensor tensor_{};
  Library library_;
  std::vector<int64_t> strides_;
  Py_buffer buffer_{};
  bool has_buffer_ = false, is_copy_ = false;
  nb::object capsule_, view_;  // that keep the memory
};

// Of memory, sizes and strides that stay the tensor's.
tenon_tensor view_of(const DLTensor& tensor);
// The elements of a tensor of the CPU's: a view, or a copy where it is strided.
Tensor host_tensor(const tenon_tensor& tensor);

// A new tensor of a library, and its memory.
struct Made {
  nb::object object;
  void* data = nullptr;
};
Made make_tensor(const Library& library, DType dtype, const int64_t* sizes, size_t rank,
                 const tenon_device& device);

// After elements were written there: narrow integers of numpy's have their sign in their own bits alone.
void finish_tensor(const Library& library, DType dtype, void* data, int64_t count);

// Elements that Tenon holds, as a tensor of the library: a copy, as they may be a constant of a program.
nb::object to_library(const Library& library, const Tensor& tensor);

// What Python gives for any kind of value, and the other way round: tensors, strings (numpy's arrays of str
// or object), lists for sequences, None for an optional without an element.
Datum to_datum(nb::handle object, const std::string& title);
nb::object to_python(const Library& library, const Datum& datum);
// Of the first tensor among them; our own where there is none.
Library library_of(nb::handle object);

std::string describe_type(nb::handle object);  // such as numpy.ndarray

// tenon.Array: elements that Tenon holds, where no library is asked for. It has the buffer protocol and
// DLPack's methods.
void bind_array(nb::module_& module);

}  // namespace tenon::python
