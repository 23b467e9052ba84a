"""Tenon as a backend of onnx.backend.base: prepare, run_model, run_node, supports_device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from tenon import _model
from tenon.onnx import to_numpy


class TenonRep(BackendRep):
    def __init__(self, model: onnx.ModelProto, device: str):
        loaded = _model.load(model)
        self._names = [port.name for port in loaded.outputs]
        self._inputs = [port.name for port in loaded.inputs]
        self._program = loaded.compile(device=device)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        if isinstance(inputs, dict):
            inputs = [inputs[name] for name in self._inputs]
        elif not isinstance(inputs, (list, tuple)):
            inputs = [inputs]
        results = self._program(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        return namedtupledict("Outputs", self._names)(*[to_numpy(each) for each in results])


class TenonBackend(Backend):
    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TenonRep:
        super().prepare(model, device, **kwargs)
        return TenonRep(model, _device(device))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        import numpy

        arrays = [numpy.asarray(each) for each in inputs]
        given = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip([name for name in node.input if name], arrays)
        ]
        graph = onnx.helper.make_graph([node], "node", given, [])
        model = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph, **kwargs))
        model.graph.output.extend(model.graph.value_info)
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0].upper() in ("CPU", "CUDA")


def _device(device: str) -> str:
    return device.lower()


prepare = TenonBackend.prepare
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
