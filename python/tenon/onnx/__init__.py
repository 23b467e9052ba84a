"""For those who come from onnxruntime and onnxsim: InferenceSession and simplify."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tenon import _model, _tenon
from tenon._records import Port
from tenon.errors import UserError

_NUMPY_TYPES = {
    "f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
    "c64": "complex64", "c128": "complex128",
}


class NodeArg:
    """An input or output, with the names that onnxruntime has."""

    def __init__(self, port: Port):
        self.name = port.name
        self.shape = None if port.shape is None else list(port.shape)
        self.type = f"tensor({_NUMPY_TYPES.get(port.dtype or '', port.dtype)})" if port.dtype else port.type

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


def to_numpy(result: Any) -> Any:
    """The result of a model that was called without any array of numpy, as one."""
    if not isinstance(result, _tenon.Array):
        return result
    import numpy

    array = numpy.asarray(result)
    return array.view(result.numpy_dtype)


class InferenceSession:
    """Runs an ONNX model as onnxruntime.InferenceSession does.

    Of its options, those have a meaning here that say how many threads run and on which device; others are ignored.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        **_: Any,
    ):
        names = [each if isinstance(each, str) else each[0] for each in providers or ["CPUExecutionProvider"]]
        known = {"CPUExecutionProvider": "cpu", "CUDAExecutionProvider": "cuda"}
        devices = [known[name] for name in names if name in known]
        if not devices:
            raise UserError(f"none of the providers {names} is one of {sorted(known)}")
        name = None if isinstance(path_or_bytes, (str, os.PathLike)) else "model.onnx"
        self._model = _model.load(path_or_bytes, name=name)
        self._threads = getattr(sess_options, "intra_op_num_threads", 0) or 0
        self._program = self._model.compile(threads=self._threads, device=devices[0])
        self._providers = [names[0]]

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._model.outputs]

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[Any]:
        """The outputs of these names, or all of them, in this order."""
        ports = self._model.outputs
        results = self._program(**input_feed)
        results = [to_numpy(each) for each in (results if isinstance(results, tuple) else [results])]
        if output_names is None:
            return results
        by_name = {port.name: result for port, result in zip(ports, results)}
        missing = [name for name in output_names if name not in by_name]
        if missing:
            raise UserError(f"the model has no output {missing[0]!r}: it has {sorted(by_name)}")
        return [by_name[name] for name in output_names]


def simplify(model: Any, *, numerics: str = "default", check_n: int = 0, **_: Any) -> tuple[Any, bool]:
    """A simpler ONNX model that computes the same, and whether that was checked: as onnxsim.simplify.

    check_n says on how many random inputs it is compared with what was given; 0: not at all.
    """
    import onnx

    loaded = _model.load(model)
    simple = loaded.optimize(numerics)
    checked = check_n == 0 or bool(loaded.verify_against(simple, samples=check_n))
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "simple.onnx")
        simple.save(path)
        return onnx.load(path), checked
