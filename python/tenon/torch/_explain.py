"""What torch.compile(…, backend="tenon") does with a function, and what it leaves to PyTorch."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.utils import counters

from tenon.torch._graph import GraphReport
from tenon.torch._backend import backend, listening


class Explanation:
    """The graphs of one call: what is compiled, what PyTorch computes and why, and where Dynamo broke the graph."""

    def __init__(self, graphs: list[GraphReport], breaks: list[str]):
        self.graphs = graphs
        self.breaks = breaks  # why Dynamo begins another graph

    @property
    def external(self) -> list[tuple[str, str, str, str]]:
        """The nodes that PyTorch computes: name, op, line of the source, reason."""
        return [each for graph in self.graphs for each in graph.external]

    def to_dict(self) -> dict[str, Any]:
        return {
            "graphs": [
                {
                    "kind": graph.kind,
                    "nodes": graph.nodes,
                    "external": [dict(zip(("node", "op", "source", "reason"), each)) for each in graph.external],
                    "copies": graph.copies,
                    "fallback": graph.fallback,
                }
                for graph in self.graphs
            ],
            "breaks": self.breaks,
        }

    def __str__(self) -> str:
        lines = [str(each) for each in self.graphs] or ["no graph: nothing in it is traced"]
        return "\n".join(lines + [f"graph break: {each}" for each in self.breaks])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Compiles a module or function for these arguments, calls it once, and tells what became of it."""
    graphs: list[GraphReport] = []
    torch._dynamo.reset()
    counters["graph_break"].clear()
    try:
        with listening(graphs.append):
            torch.compile(function, backend=backend)(*args, **kwargs)
        breaks = [str(reason).splitlines()[0] for reason in counters["graph_break"]]
    finally:
        torch._dynamo.reset()
    return Explanation(graphs, breaks)
