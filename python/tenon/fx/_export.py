"""Modules of PyTorch as models of Tenon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tenon import _tenon
from tenon import torch as frontend
from tenon._model import Model
from tenon.errors import UserError


def model_of(module: torch.nn.Module, args: Sequence[Any] | None, dynamic: Any = None) -> Model:
    """The model that torch.export traces with these inputs."""
    if args is None:
        raise UserError("a torch.nn.Module is traced with example inputs: pass them as a tuple, tenon.load(net, (x,))")
    if isinstance(args, torch.Tensor):
        args = (args,)
    model = frontend.load_exported(frontend.export(module, args, dynamic))
    name = type(module).__name__
    if names := frontend._names(model, module, dynamic):
        return Model(_tenon.rename_dimensions(model._graph, names), name)
    return Model(model._graph, name)
