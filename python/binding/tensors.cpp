#include "binding/tensors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "api/strided_copy.h"
#include "base/error.h"
#include "ir/type.h"
#include "tensor/byte_count.h"

namespace tenon::python {
namespace {

// --- dtypes ---

struct KnownDType {
  DType dtype;
  DLDataType dlpack;
  const char* numpy;  // the name of its dtype; those with an underscore, and bfloat16, are of ml_dtypes
};

constexpr std::array<KnownDType, 25> kDTypes = {{
    {DType::F64, {kDLFloat, 64, 1}, "float64"},
    {DType::F32, {kDLFloat, 32, 1}, "float32"},
    {DType::F16, {kDLFloat, 16, 1}, "float16"},
    {DType::BF16, {kDLBfloat, 16, 1}, "bfloat16"},
    {DType::F8E4M3FN, {kDLFloat8E4M3Fn, 8, 1}, "float8_e4m3fn"},
    {DType::F8E4M3FNUZ, {kDLFloat8E4M3Fnuz, 8, 1}, "float8_e4m3fnuz"},
    {DType::F8E5M2, {kDLFloat8E5M2, 8, 1}, "float8_e5m2"},
    {DType::F8E5M2FNUZ, {kDLFloat8E5M2Fnuz, 8, 1}, "float8_e5m2fnuz"},
    {DType::F8E8M0, {kDLFloat8E8M0, 8, 1}, "float8_e8m0fnu"},
    {DType::F4E2M1, {kDLFloat4E2M1, 4, 1}, "float4_e2m1fn"},
    {DType::I64, {kDLInt, 64, 1}, "int64"},
    {DType::I32, {kDLInt, 32, 1}, "int32"},
    {DType::I16, {kDLInt, 16, 1}, "int16"},
    {DType::I8, {kDLInt, 8, 1}, "int8"},
    {DType::I4, {kDLInt, 4, 1}, "int4"},
    {DType::I2, {kDLInt, 2, 1}, "int2"},
    {DType::U64, {kDLUInt, 64, 1}, "uint64"},
    {DType::U32, {kDLUInt, 32, 1}, "uint32"},
    {DType::U16, {kDLUInt, 16, 1}, "uint16"},
    {DType::U8, {kDLUInt, 8, 1}, "uint8"},
    {DType::U4, {kDLUInt, 4, 1}, "uint4"},
    {DType::U2, {kDLUInt, 2, 1}, "uint2"},
    {DType::Bool, {kDLBool, 8, 1}, "bool"},
    {DType::C64, {kDLComplex, 64, 1}, "complex64"},
    {DType::C128, {kDLComplex, 128, 1}, "complex128"},
}};

const KnownDType& known(DType dtype) {
  for (const KnownDType& each : kDTypes)
    if (each.dtype == dtype)
      return each;
  throw user_error("tensors of {} cannot be passed", name(dtype));
}

DType dtype_of(const DLDataType& dtype) {
  for (const KnownDType& each : kDTypes)
    if (each.dlpack.code == dtype.code && each.dlpack.bits == dtype.bits && dtype.lanes == 1)
      return each.dtype;
  throw unsupported("a tensor has elements of DLPack's type {} of {} bits, which Tenon does not have",
                    dtype.code, dtype.bits);
}

// Of the buffer protocol; nothing where it is none of ours.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t bytes) {
  if (format == nullptr)
    return DType::U8;
  if (*format == '@' || *format == '=' || *format == '<' || *format == '|')
    ++format;
  const auto sized = [bytes](DType one, DType two, DType four, DType eight) -> std::optional<DType> {
    return bytes == 1 ? one : bytes == 2 ? two : bytes == 4 ? four : eight;
  };
  if (format[0] == 'Z')
    return format[1] == 'f'   ? std::optional(DType::C64)
           : format[1] == 'd' ? std::optional(DType::C128)
                              : std::nullopt;
  if (format[0] == '\0' || format[1] != '\0')
    return std::nullopt;
  switch (format[0]) {
    case '?':
      return DType::Bool;
    case 'e':
      return DType::F16;
    case 'f':
      return DType::F32;
    case 'd':
      return DType::F64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return sized(DType::I8, DType::I16, DType::I32, DType::I64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return sized(DType::U8, DType::U16, DType::U32, DType::U64);
    default:
      return std::nullopt;
  }
}

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return "d";
    case DType::F32:
      return "f";
    case DType::F16:
      return "e";
    case DType::I64:
      return "q";
    case DType::I32:
      return "i";
    case DType::I16:
      return "h";
    case DType::I8:
    case DType::I4:
    case DType::I2:
      return "b";
    case DType::U64:
      return "Q";
    case DType::U32:
      return "I";
    case DType::U16:
    case DType::BF16:
      return "H";
    case DType::Bool:
      return "?";
    case DType::C64:
      return "Zf";
    case DType::C128:
      return "Zd";
    default:
      return "B";
  }
}

// --- libraries ---

// Modules are asked for only where one of their objects is there already, so that importing costs nothing.
nb::object numpy(const char* what) { return nb::module_::import_("numpy").attr(what); }

bool is_numpy_array(nb::handle object) {
  static nb::object type;  // kept for ever, as the module is
  if (!type.is_valid()) {
    PyObject* const modules = PyImport_GetModuleDict();
    if (PyDict_GetItemString(modules, "numpy") == nullptr)
      return false;
    type = numpy("ndarray");
    type.inc_ref();
  }
  return PyObject_IsInstance(object.ptr(), type.ptr()) == 1;
}

// What the type of an object says of its tensors.
struct TensorClass {
  const DLExchange* exchange = nullptr;  // null where it has none
  bool is_numpy = false;
  // Methods of torch's that tell what it leaves to be done when elements are read; null where there are none.
  PyObject *is_conj = nullptr, *is_neg = nullptr;
};

PyObject* method_of(nb::handle type, const char* name) {
  return nb::object(nb::getattr(type, name, nb::none())).release().ptr();
}

TensorClass make_class(nb::handle object) {
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  TensorClass made;
  const nb::object table = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(table.ptr(), "dlpack_exchange_api") != 0) {
    made.exchange = static_cast<const DLExchange*>(PyCapsule_GetPointer(table.ptr(), "dlpack_exchange_api"));
    while (made.exchange != nullptr && made.exchange->header.version.major != 1)
      made.exchange = reinterpret_cast<const DLExchange*>(made.exchange->header.previous);
    if (nb::hasattr(type, "is_conj"))
      made.is_conj = method_of(type, "is_conj");
    if (nb::hasattr(type, "is_neg"))
      made.is_neg = method_of(type, "is_neg");
  }
  made.is_numpy = is_numpy_array(object);
  return made;
}

const TensorClass& class_of(nb::handle object) {
  static std::unordered_map<PyTypeObject*, TensorClass> classes;
  static PyTypeObject* last_type = nullptr;  // most tensors of a call are of one type
  static const TensorClass* last = nullptr;
  PyTypeObject* const type = Py_TYPE(object.ptr());
  if (type == last_type)
    return *last;
  auto found = classes.find(type);
  if (found == classes.end()) {
    found = classes.emplace(type, make_class(object)).first;
    // Types are kept, so that one made later is not taken for one that is gone.
    nb::handle(reinterpret_cast<PyObject*>(type)).inc_ref();
  }
  last_type = type;
  last = &found->second;
  return *last;
}

bool is_true(PyObject* method, nb::handle object) {
  if (method == nullptr)
    return false;
  PyObject* const arguments[] = {object.ptr()};
  const nb::object answer = nb::steal(PyObject_Vectorcall(method, arguments, 1, nullptr));
  if (!answer.is_valid())
    throw nb::python_error();
  return answer.ptr() == Py_True;
}

nb::object numpy_dtype(DType dtype) {
  static std::array<nb::object*, 32> dtypes{};
  nb::object*& kept = dtypes[static_cast<size_t>(dtype)];
  if (kept == nullptr) {
    const KnownDType& wanted = known(dtype);
    nb::object type;
    try {
      type = numpy("dtype")(wanted.numpy);
    } catch (nb::python_error&) {
      try {
        type = numpy("dtype")(nb::module_::import_("ml_dtypes").attr(wanted.numpy));
      } catch (nb::python_error&) {
        throw user_error("numpy has no {}: install ml_dtypes, which adds it", wanted.numpy);
      }
    }
    kept = new nb::object(std::move(type));
  }
  return *kept;
}

bool is_contiguous(const int64_t* sizes, const int64_t* strides, size_t rank) {
  int64_t expected = 1;
  for (size_t i = rank; i-- > 0;) {
    if (sizes[i] == 0)
      return true;
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}

int64_t count_of(const DLTensor& tensor) {
  return std::accumulate(tensor.sizes, tensor.sizes + tensor.rank, int64_t{1}, std::multiplies<>());
}

}  // namespace

tenon_tensor view_of(const DLTensor& tensor) {
  const bool is_cuda = tensor.device.type == kDLCuda || tensor.device.type == kDLCudaManaged;
  if (!is_cuda && tensor.device.type != kDLCpu && tensor.device.type != kDLCudaHost)
    throw user_error("a tensor is on a device that Tenon does not know (DLPack's number {})",
                     tensor.device.type);
  const bool is_strided = tensor.strides != nullptr &&
                          !is_contiguous(tensor.sizes, tensor.strides, static_cast<size_t>(tensor.rank));
  return {.struct_size = sizeof(tenon_tensor),
          .data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
          .bytes = std::numeric_limits<size_t>::max(),
          .dtype = static_cast<int32_t>(dtype_of(tensor.dtype)),
          .rank = tensor.rank,
          .sizes = tensor.sizes,
          .strides = is_strided ? tensor.strides : nullptr,
          .device = {.type = is_cuda ? TENON_DEVICE_CUDA : TENON_DEVICE_CPU,
                     .index = is_cuda ? tensor.device.index : 0}};
}

Tensor host_tensor(const tenon_tensor& tensor) {
  if (tensor.device.type != TENON_DEVICE_CPU)
    throw user_error("a tensor is on a GPU, but is needed on the CPU: pass x.cpu()");
  const Extents sizes(tensor.sizes, tensor.sizes + tensor.rank);
  const auto dtype = static_cast<DType>(tensor.dtype);
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  if (tensor.strides == nullptr)
    return {dtype, sizes, nullptr, {data, static_cast<size_t>(byte_count(dtype, sizes))}};
  Tensor contiguous(dtype, sizes);
  const api::StridedElements strided{.sizes = sizes,
                                     .strides = {tensor.strides, static_cast<size_t>(tensor.rank)},
                                     .element_bytes = static_cast<size_t>(info(dtype).bytes)};
  strided.gather(data, contiguous.mutable_bytes().data());
  return contiguous;
}

std::string describe_type(nb::handle object) {
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  const std::string module = nb::cast<std::string>(type.attr("__module__")),
                    name = nb::cast<std::string>(type.attr("__qualname__"));
  return module == "builtins" ? name : module + "." + name;
}

// --- arguments ---

void Argument::release() {
  if (has_buffer_)
    PyBuffer_Release(&buffer_);
  has_buffer_ = is_copy_ = false;
  capsule_.reset();
  view_.reset();
}

bool Argument::borrow(nb::handle object) {
  const TensorClass& type = class_of(object);
  if (type.exchange != nullptr) {
    library_ = {Library::Exchange, type.exchange};
    DLTensor tensor;
    if (type.exchange->borrow_from_object(object.ptr(), &tensor) != 0)
      throw nb::python_error();
    use(tensor, object);
    const auto dtype = static_cast<DType>(tensor_.dtype);
    // Negative views are of the imaginary parts of complex numbers, which lie apart.
    const bool may_be_neg = tensor_.strides != nullptr || count_of(tensor) <= 1;
    if ((may_be_neg && is_true(type.is_neg, object)) ||
        (kind(dtype) == DTypeKind::Complex && is_true(type.is_conj, object)))
      return use_resolved(object);
    return true;
  }
  library_ = {type.is_numpy ? Library::Numpy : Library::Own, nullptr};
  return use_buffer(object) || (!type.is_numpy && use_method(object));
}

// As numbers that lie in memory as they are meant.
bool Argument::use_resolved(nb::handle view) {
  view_ = view.attr("resolve_conj")().attr("resolve_neg")();
  is_copy_ = true;
  return borrow(view_);
}

void Argument::use(const DLTensor& tensor, nb::handle object) {
  const std::span sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  if (tensor.data == nullptr && std::ranges::find(sizes, 0) == sizes.end())
    throw user_error("a {} has no memory for its elements", describe_type(object));
  tensor_ = view_of(tensor);
}

bool Argument::use_buffer(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0)
    return false;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // numpy has no format for what ml_dtypes adds
    if (library_.kind != Library::Numpy)
      return false;
    use_extended(object);
    return true;
  }
  has_buffer_ = true;
  const std::optional<DType> dtype = dtype_of_format(buffer_.format, buffer_.itemsize);
  if (!dtype) {
    const std::string format = buffer_.format;
    release();
    if (format.find_first_of("OwsU") != std::string::npos)
      return false;  // strings
    throw user_error("a {} has elements that Tenon does not know, of the buffer format {}",
                     describe_type(object), format);
  }
  tensor_ = {.struct_size = sizeof tensor_,
             .data = buffer_.buf,
             .bytes = std::numeric_limits<size_t>::max(),
             .dtype = static_cast<int32_t>(*dtype),
             .rank = buffer_.ndim,
             .sizes = reinterpret_cast<int64_t*>(buffer_.shape),
             .strides = nullptr,
             .device = {}};
  if (PyBuffer_IsContiguous(&buffer_, 'C') == 0) {
    strides_.resize(static_cast<size_t>(buffer_.ndim));
    for (size_t i = 0; i < strides_.size(); ++i) {
      if (buffer_.strides[i] % buffer_.itemsize != 0)
        throw user_error("the elements of a {} are not a whole number of elements apart: pass a copy of it",
                         describe_type(object));
      strides_[i] = buffer_.strides[i] / buffer_.itemsize;
    }
    tensor_.strides = strides_.data();
  }
  return true;
}

// As numbers of the same width, under the dtype that numpy's has the name of.
void Argument::use_extended(nb::handle array) {
  const nb::object dtype = array.attr("dtype");
  const std::string name = nb::cast<std::string>(dtype.attr("name"));
  for (const KnownDType& each : kDTypes)
    if (name == each.numpy) {
      view_ = array.attr("view")(nb::cast<int>(dtype.attr("itemsize")) == 1 ? "uint8" : "uint16");
      // Narrow integers have their sign in their own bits alone there, and in all of the byte here.
      is_copy_ = is_signed(each.dtype);
      if (is_copy_) {
        const int unused = 8 - info(each.dtype).bits;
        view_ = view_.attr("view")("int8").attr("__lshift__")(unused).attr("__rshift__")(unused);
      }
      if (use_buffer(view_)) {
        tensor_.dtype = static_cast<int32_t>(each.dtype);
        return;
      }
    }
  throw user_error("a numpy.ndarray has elements of {}, which Tenon does not have", name);
}

bool Argument::use_method(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__"))
    return false;
  capsule_ = object.attr("__dlpack__")();
  if (PyCapsule_IsValid(capsule_.ptr(), "dltensor") != 0)
    use(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor"))->tensor, object);
  else if (PyCapsule_IsValid(capsule_.ptr(), "dltensor_versioned") != 0)
    use(static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor_versioned"))
            ->tensor,
        object);
  else
    throw user_error("__dlpack__ of a {} gives no tensor", describe_type(object));
  return true;
}

void* Argument::stream() const {
  if (tensor_.device.type != TENON_DEVICE_CUDA || library_.exchange == nullptr)
    return nullptr;
  void* stream = nullptr;
  if (library_.exchange->current_stream(kDLCuda, tensor_.device.index, &stream) != 0)
    throw nb::python_error();
  return stream == nullptr ? reinterpret_cast<void*>(1) : stream;  // CUDA's default stream
}

// --- results ---

namespace {

struct AllocationError {
  std::string message;
};

nb::object to_tuple(const int64_t* sizes, size_t rank) {
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(rank));
  for (size_t i = 0; i < rank; ++i)
    PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  return nb::steal(tuple);
}

Made make_by_exchange(const DLExchange& exchange, DType dtype, const int64_t* sizes, size_t rank,
                      const tenon_device& device) {
  const bool is_cuda = device.type == TENON_DEVICE_CUDA;
  DLTensor prototype{.data = nullptr,
                     .device = {is_cuda ? kDLCuda : kDLCpu, device.index},
                     .rank = static_cast<int32_t>(rank),
                     .dtype = known(dtype).dlpack,
                     .sizes = const_cast<int64_t*>(sizes),
                     .strides = nullptr,
                     .byte_offset = 0};
  DLManagedTensorVersioned* made = nullptr;
  AllocationError error;
  if (exchange.allocate(&prototype, &made, &error, [](void* context, const char*, const char* message) {
        static_cast<AllocationError*>(context)->message = message;
      }) != 0)
    throw user_error("no memory for a result: {}", error.message);
  void* const data = static_cast<std::byte*>(made->tensor.data) + made->tensor.byte_offset;
  void* object = nullptr;
  if (exchange.object_from_managed(made, &object) != 0)
    throw nb::python_error();
  return {nb::steal(static_cast<PyObject*>(object)), data};
}

Made make_by_numpy(DType dtype, const int64_t* sizes, size_t rank) {
  static nb::object* const empty = new nb::object(numpy("empty"));
  // What numpy has by ml_dtypes has no buffer: it is a view of numbers of the same width.
  const bool has_buffer = dtype_of_format(format_of(dtype), info(dtype).bytes) == dtype;
  const DType held = has_buffer ? dtype : info(dtype).bytes == 1 ? DType::U8 : DType::U16;
  nb::object array = (*empty)(to_tuple(sizes, rank), numpy_dtype(held));
  Argument memory;
  memory.borrow(array);
  void* const data = memory.tensor().data;
  return {has_buffer ? std::move(array) : array.attr("view")(numpy_dtype(dtype)), data};
}

Made make_own(DType dtype, const int64_t* sizes, size_t rank) {
  Tensor tensor(dtype, Extents(sizes, sizes + rank));
  void* const data = tensor.mutable_bytes().data();
  return {nb::cast(std::move(tensor)), data};
}

}  // namespace

Made make_tensor(const Library& library, DType dtype, const int64_t* sizes, size_t rank,
                 const tenon_device& device) {
  switch (library.kind) {
    case Library::Exchange:
      return make_by_exchange(*library.exchange, dtype, sizes, rank, device);
    case Library::Numpy:
      return make_by_numpy(dtype, sizes, rank);
    default:
      return make_own(dtype, sizes, rank);
  }
}

void finish_tensor(const Library& library, DType dtype, void* data, int64_t count) {
  if (library.kind != Library::Numpy || !is_signed(dtype) || info(dtype).bits >= 8)
    return;
  const auto mask = static_cast<uint8_t>((1 << info(dtype).bits) - 1);
  auto* const bytes = static_cast<uint8_t*>(data);
  for (int64_t i = 0; i < count; ++i)
    bytes[i] &= mask;
}

nb::object to_library(const Library& library, const Tensor& tensor) {
  if (tensor.dtype() == DType::String) {
    nb::object array = numpy("empty")(to_tuple(tensor.extents().data(), tensor.extents().size()), "object");
    nb::object flat = array.attr("reshape")(-1);
    for (size_t i = 0; i < tensor.strings().size(); ++i)
      flat[i] = nb::str(tensor.strings()[i].data(), tensor.strings()[i].size());
    return array;
  }
  if (library.kind == Library::Own)
    return nb::cast(tensor);
  Made made = make_tensor(library, tensor.dtype(), tensor.extents().data(), tensor.extents().size(), {});
  if (tensor.count() > 0)
    std::memcpy(made.data, tensor.bytes().data(), tensor.bytes().size());
  finish_tensor(library, tensor.dtype(), made.data, tensor.count());
  return made.object;
}

// --- data of any kind ---

namespace {

Tensor strings_of(nb::handle array, const std::string& title) {
  std::vector<std::string> strings;
  for (nb::handle element : array.attr("reshape")(-1).attr("tolist")()) {
    if (nb::isinstance<nb::bytes>(element)) {
      const auto bytes = nb::cast<nb::bytes>(element);
      strings.emplace_back(bytes.c_str(), bytes.size());
    } else if (nb::isinstance<nb::str>(element)) {
      strings.push_back(nb::cast<std::string>(element));
    } else {
      throw user_error("{} has an element that is no string, but a {}", title, describe_type(element));
    }
  }
  return Tensor::strings(std::move(strings), nb::cast<Extents>(nb::list(array.attr("shape"))));
}

}  // namespace

Datum to_datum(nb::handle object, const std::string& title) {
  if (object.is_none())
    return Optional{};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Sequence sequence;
    for (nb::handle each : object)
      sequence.elements.push_back(to_datum(each, title));
    return sequence;
  }
  Argument argument;
  if (argument.borrow(object)) {
    // Kept alive by the object itself, which the caller holds as long as this is used; copied, as a buffer is
    // released with the argument.
    const Tensor view = host_tensor(argument.tensor());
    Tensor copy(view.dtype(), view.extents());
    if (view.count() > 0)
      std::memcpy(copy.mutable_bytes().data(), view.bytes().data(), view.bytes().size());
    return copy;
  }
  if (class_of(object).is_numpy)
    return strings_of(object, title);
  throw user_error(
      "{} is a {}, and no tensor: pass a torch.Tensor, a numpy.ndarray, or another with __dlpack__ or the "
      "buffer protocol",
      title, describe_type(object));
}

nb::object to_python(const Library& library, const Datum& datum) {
  if (const auto* sequence = std::get_if<Sequence>(&datum)) {
    nb::list list;
    for (const Datum& each : sequence->elements)
      list.append(to_python(library, each));
    return std::move(list);
  }
  if (const auto* optional = std::get_if<Optional>(&datum))
    return optional->element ? to_python(library, *optional->element) : nb::object(nb::none());
  return to_library(library, datum.tensor());
}

Library library_of(nb::handle object) {
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    for (nb::handle each : object)
      if (const Library found = library_of(each); found.kind != Library::Own)
        return found;
    return {};
  }
  const TensorClass& type = class_of(object);
  return {type.exchange != nullptr ? Library::Exchange
          : type.is_numpy          ? Library::Numpy
                                   : Library::Own,
          type.exchange};
}

// --- tenon.Array ---

namespace {

// What a buffer or a DLPack tensor of an Array points to, besides the elements.
struct Shown {
  Tensor tensor;
  Extents sizes, strides;  // strides in bytes for a buffer, else in elements
  DLManagedTensorVersioned managed{};
};

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  Tensor* const tensor = nb::inst_ptr<Tensor>(object);
  auto shown =
      std::make_unique<Shown>(Shown{*tensor, tensor->extents(), row_major_strides(tensor->extents())});
  for (int64_t& stride : shown->strides)
    stride *= tensor->element_size();
  *view = {};
  view->obj = Py_NewRef(object);
  view->buf = const_cast<std::byte*>(tensor->bytes().data());
  view->len = static_cast<Py_ssize_t>(tensor->bytes().size());
  view->itemsize = tensor->element_size();
  view->ndim = static_cast<int>(tensor->rank());
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(tensor->dtype())) : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? reinterpret_cast<Py_ssize_t*>(shown->sizes.data()) : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                      ? reinterpret_cast<Py_ssize_t*>(shown->strides.data())
                      : nullptr;
  view->internal = shown.release();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Shown*>(view->internal); }

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                             {0, nullptr}};

nb::object dlpack_of(const Tensor& tensor) {
  auto* const shown = new Shown{tensor, tensor.extents(), row_major_strides(tensor.extents())};
  shown->managed = {
      .version = {1, 0},
      .context = shown,
      .deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Shown*>(self->context); },
      .flags = info(tensor.dtype()).bits < 8 ? kDLPadded : 0,
      .tensor = {.data = const_cast<std::byte*>(shown->tensor.bytes().data()),
                 .device = {kDLCpu, 0},
                 .rank = static_cast<int32_t>(tensor.rank()),
                 .dtype = known(tensor.dtype()).dlpack,
                 .sizes = shown->sizes.data(),
                 .strides = shown->strides.data(),
                 .byte_offset = 0}};
  return nb::steal(PyCapsule_New(&shown->managed, "dltensor_versioned", [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned") == 0)
      return;  // taken
    auto* const managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    managed->deleter(managed);
  }));
}

}  // namespace

void bind_array(nb::module_& module) {
  nb::class_<Tensor>(
      module, "Array", nb::type_slots(array_slots),
      "Elements that Tenon holds, where no other library's tensors were passed. numpy.asarray and\n"
      "torch.from_dlpack take it without copying.")
      .def_prop_ro(
          "shape",
          [](const Tensor& tensor) { return to_tuple(tensor.extents().data(), tensor.extents().size()); })
      .def_prop_ro(
          "dtype", [](const Tensor& tensor) { return std::string(name(tensor.dtype())); },
          "As the text form names it: f32, i64, bf16.")
      .def("__dlpack__", [](const Tensor& tensor, const nb::kwargs&) { return dlpack_of(tensor); })
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(int{kDLCpu}, 0); })
      .def_prop_ro(
          "numpy_dtype", [](const Tensor& tensor) { return numpy_dtype(tensor.dtype()); },
          "Its dtype in numpy, which a view by numpy.asarray may need: numpy has no bf16 of its own.")
      .def("__repr__", [](const Tensor& tensor) {
        return fmt::format("tenon.Array({})", describe(tensor.dtype(), tensor.extents()));
      });
}

}  // namespace tenon::python
