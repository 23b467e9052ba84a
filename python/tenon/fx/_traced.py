"""Modules that torch.fx traced, and what Tenon has to say of them."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from tenon._check import Timings, benchmark, inputs_of, model_of, verify_models
from tenon._model import Report, Verification


class TracedModule(torch.fx.GraphModule):
    """A torch.fx.GraphModule that can be verified, measured and reported on."""

    @classmethod
    def of(cls, module: torch.fx.GraphModule) -> TracedModule:
        """The same graph and parameters."""
        if isinstance(module, cls):
            return module
        traced = cls(module, module.graph, type(module).__name__)
        traced.meta = module.meta
        return traced

    def verify_against(
        self, original: torch.nn.Module, inputs: Any, *, samples: int = 3, tolerance: float = 1e-4
    ) -> Verification:
        """Checks that it computes what the original does, for these inputs, as a tuple, and for others of their sizes:
        its numbers, gradients, form and parameters."""
        self.graph.lint()
        return verify_models(original, self, inputs_of(inputs), samples=samples, tolerance=tolerance)

    def bench(self, *inputs: Any, seconds: float = 1) -> Timings:
        """Measures it as PyTorch runs it, and compiled by Tenon."""
        return benchmark(self, None, inputs, seconds=seconds)

    def report(self, *inputs: Any, seconds: float = 1, verify: bool = True) -> Report:
        """Shows it at every stage of Tenon's."""
        return model_of(self, inputs).report(inputs, seconds=seconds, verify=verify)

    def __copy__(self) -> TracedModule:
        return TracedModule.of(super().__copy__())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, super().__reduce__()

    def _repr_html_(self) -> str:
        rows = [
            (node.op, node.name, torch.fx.node._get_qualified_name(node.target) if callable(node.target) else node.target,
             node.args, node.kwargs)
            for node in self.graph.nodes
        ]
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><tr><th>opcode<th>name<th>target<th>args<th>kwargs</tr>{cells}</table>"


def _restore(make: Callable[..., torch.fx.GraphModule], state: Sequence[Any]) -> TracedModule:
    return TracedModule.of(make(*state))


class Transformer(torch.fx.Transformer):
    """torch.fx's, which gives a TracedModule."""

    def transform(self) -> TracedModule:
        return TracedModule.of(super().transform())


def symbolic_trace(root: torch.nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> TracedModule:
    """torch.fx's: a torch.fx.GraphModule of what root calls, which Tenon can verify, measure and report on."""
    return TracedModule.of(torch.fx.symbolic_trace(root, concrete_args))
