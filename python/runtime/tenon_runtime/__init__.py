"""Runs models that `tenon compile` has saved, by libtenonrt, with arrays of numpy. Nothing is compiled here."""

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

import numpy

__all__ = ["Port", "Program", "TenonError", "open", "version"]


class TenonError(Exception):
    """What was given is at fault, or the file is."""


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("device", _Device)]


class _Port(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_char_p),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("dimensions", ctypes.POINTER(ctypes.c_char_p))]


class _OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("check_weights", ctypes.c_int64)]


class _RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int64), ("seed", ctypes.c_uint64),
                ("stream", ctypes.c_void_p)]


def _load():
    library = ctypes.CDLL(str(Path(__file__).parent / "libtenonrt.so.0"))
    handle, count = ctypes.c_void_p, ctypes.c_size_t
    for name, result, *parameters in [
            ("version", ctypes.c_char_p),
            ("error_message", ctypes.c_char_p),
            ("dtype_name", ctypes.c_char_p, ctypes.c_int32),
            ("open", ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_OpenOptions), ctypes.POINTER(handle)),
            ("open_memory", ctypes.c_int, ctypes.c_char_p, count, ctypes.POINTER(_OpenOptions), ctypes.POINTER(handle)),
            ("free_program", None, handle),
            ("program_count_inputs", count, handle),
            ("program_count_outputs", count, handle),
            ("program_input", ctypes.POINTER(_Port), handle, count),
            ("program_output", ctypes.POINTER(_Port), handle, count),
            ("run", ctypes.c_int, handle, ctypes.POINTER(_Tensor), count, ctypes.POINTER(_Tensor), count,
             ctypes.POINTER(_RunOptions))]:
        function = getattr(library, "tenon_" + name)
        function.restype, function.argtypes = result, parameters
    return library


_library = _load()

# Of numpy, by Tenon's names; those of ml_dtypes where that is installed.
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
           "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool", "c64": "complex64", "c128": "complex128"}
_OTHER_DTYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
                 "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "i4": "int4",
                 "i2": "int2", "u4": "uint4", "u2": "uint2"}


def _dtype(port):
    name = _library.tenon_dtype_name(port.dtype).decode()
    if name in _DTYPES:
        return numpy.dtype(_DTYPES[name])
    try:
        import ml_dtypes
    except ImportError:
        raise TenonError(f"{port.name.decode()} is {port.type.decode()}, which numpy lacks: install ml_dtypes") from None
    return numpy.dtype(getattr(ml_dtypes, _OTHER_DTYPES[name]))


def _check(status):
    if status == 3:
        raise RuntimeError(_library.tenon_error_message().decode(errors="replace"))
    if status != 0:
        raise TenonError(_library.tenon_error_message().decode(errors="replace"))


class Port(NamedTuple):
    """An input or output. Of its shape, what is not fixed is None; all of it where even the rank is dynamic."""
    name: str
    type: str
    dtype: numpy.dtype
    shape: tuple | None


def _describe(port):
    shape = None if port.rank < 0 else tuple(None if port.sizes[i] < 0 else port.sizes[i] for i in range(port.rank))
    return Port(port.name.decode(), port.type.decode(), _dtype(port), shape)


_MOST_AXES = 64  # that arrays of numpy have


class _Output:
    """Memory for an output; of none at first where its sizes are known only when it has run."""

    def __init__(self, port, number):
        self.port, self.number = port, number
        self.sizes = (ctypes.c_int64 * (_MOST_AXES if port.shape is None else len(port.shape)))()
        known = port.shape is not None and None not in port.shape
        self.array = numpy.empty(port.shape if known else (0,), port.dtype)

    def describe(self):
        for i in range(len(self.sizes)):
            self.sizes[i] = -1
        return _Tensor(ctypes.sizeof(_Tensor), self.array.ctypes.data, self.array.nbytes, self.number, len(self.sizes), self.sizes)

    def grow(self, rank):
        """Whether it needs memory of other sizes than it has, which it has then."""
        shape = tuple(self.sizes[:rank])
        if min(shape, default=0) < 0 or shape == self.array.shape:
            return False
        self.array = numpy.empty(shape, self.port.dtype)
        return True


class Program:
    """A saved program, as `open` gives it. Several threads may call it at once."""

    def __init__(self, source, target=None, check_weights=False):
        self._handle, self._bytes = ctypes.c_void_p(), None
        options = _OpenOptions(ctypes.sizeof(_OpenOptions), None if target is None else target.encode(), int(check_weights))
        if isinstance(source, bytes):
            self._bytes = source  # which the program reads as long as it lives
            _check(_library.tenon_open_memory(source, len(source), options, self._handle))
        else:
            _check(_library.tenon_open(os.fsencode(source), options, self._handle))
        count_in, count_out = (getattr(_library, "tenon_program_count_" + kind)(self._handle) for kind in ("inputs", "outputs"))
        ports = [_library.tenon_program_input(self._handle, i).contents for i in range(count_in)]
        self._output_ports = [_library.tenon_program_output(self._handle, i).contents for i in range(count_out)]
        self._numbers = [port.dtype for port in ports]
        self.inputs = [_describe(port) for port in ports]
        self.outputs = [_describe(port) for port in self._output_ports]

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.tenon_free_program(self._handle)

    def __repr__(self):
        inputs, outputs = (", ".join(f"{port.name}: {port.type}" for port in ports) for ports in (self.inputs, self.outputs))
        return f"<tenon_runtime.Program: ({inputs}) -> ({outputs})>"

    def _arrays(self, arguments, named):
        names = [port.name for port in self.inputs]
        if unknown := sorted(named.keys() - names):
            raise TenonError(f"there is no input {unknown[0]}; there are {', '.join(names)}")
        if len(arguments) > len(names):
            raise TenonError(f"{len(arguments)} inputs are given, but the program takes {len(names)}")
        values = dict(zip(names, arguments))
        if twice := sorted(values.keys() & named.keys()):
            raise TenonError(f"the input {twice[0]} is given twice")
        values.update(named)
        if missing := [name for name in names if name not in values]:
            raise TenonError(f"the input {missing[0]} is missing")
        arrays = []
        for port in self.inputs:
            array = numpy.asarray(values[port.name])
            if array.dtype != port.dtype:
                raise TenonError(f"{port.name} must be of {port.dtype}, but is of {array.dtype}")
            arrays.append(numpy.require(array, requirements=["C", "A"]))
        return arrays

    def run(self, inputs=(), *, threads=0, seed=0):
        """The outputs, as a list. Inputs are arrays in order, or a dict of them by name."""
        arrays = self._arrays((), inputs) if isinstance(inputs, dict) else self._arrays(inputs, {})
        given = (_Tensor * len(arrays))()
        for i, array in enumerate(arrays):
            given[i] = _Tensor(ctypes.sizeof(_Tensor), array.ctypes.data, array.nbytes, self._numbers[i], array.ndim,
                               (ctypes.c_int64 * array.ndim)(*array.shape))
        outputs = [_Output(port, raw.dtype) for port, raw in zip(self.outputs, self._output_ports)]
        options = _RunOptions(ctypes.sizeof(_RunOptions), threads, seed)
        while True:
            tensors = (_Tensor * len(outputs))(*(output.describe() for output in outputs))
            status = _library.tenon_run(self._handle, given, len(arrays), tensors, len(outputs), options)
            grown = [output.grow(tensor.rank) for output, tensor in zip(outputs, tensors)]
            if status != 2 or not any(grown):  # else sizes are known now that were not
                _check(status)
                return [output.array for output in outputs]

    def __call__(self, *inputs, **named):
        """The output, or a tuple of them where there are several."""
        results = self.run(dict(zip((port.name for port in self.inputs), self._arrays(inputs, named))))
        return results[0] if len(results) == 1 else tuple(results)


def open(source, *, target=None, check_weights=False):
    """A saved program: the path of a .tnp, or its bytes. `target` takes the code of the target of this name, else the best that
    this machine runs; `check_weights` reads all weights first, to find out whether they are damaged."""
    return Program(source, target, check_weights)


def version():
    """Such as "0.1.0"."""
    return _library.tenon_version().decode()
