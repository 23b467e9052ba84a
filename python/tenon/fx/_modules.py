"""Layers as modules again: a call of torch.conv2d that has the weights under one path to itself becomes a Conv2d there."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch import nn

F = nn.functional

_CONV = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_TRANSPOSED = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
_ARGUMENTS = {
    **{function: _CONV for function in (torch.conv1d, torch.conv2d, torch.conv3d)},
    **{function: _TRANSPOSED for function in (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)},
    F.linear: ("input", "weight", "bias"),
    F.batch_norm: ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    F.layer_norm: ("input", "normalized_shape", "weight", "bias", "eps"),
    F.group_norm: ("input", "num_groups", "weight", "bias", "eps"),
    F.embedding: ("input", "weight"),
}
_CONVS = {torch.conv1d: nn.Conv1d, torch.conv2d: nn.Conv2d, torch.conv3d: nn.Conv3d}
_TRANSPOSED_CONVS = {
    torch.conv_transpose1d: nn.ConvTranspose1d, torch.conv_transpose2d: nn.ConvTranspose2d,
    torch.conv_transpose3d: nn.ConvTranspose3d,
}
_NORMS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


class _Layer(NamedTuple):
    """A call, or a convolution and the bias that is added to it."""

    call: torch.fx.Node
    last: torch.fx.Node
    given: dict[str, Any]
    rank: int | None  # of what comes out

    @property
    def weights(self) -> dict[str, torch.fx.Node]:
        names = ("weight", "bias", "running_mean", "running_var")
        return {name: self.given[name] for name in names if isinstance(self.given.get(name), torch.fx.Node)}


def restore_modules(gm: torch.fx.GraphModule) -> None:
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and node.target in _ARGUMENTS:
            _restore(gm, _layer_of(node))
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()


def _layer_of(call: torch.fx.Node) -> _Layer:
    given = dict(zip(_ARGUMENTS[call.target], call.args)) | dict(call.kwargs)
    last = call
    if call.target in _CONVS or call.target in _TRANSPOSED_CONVS:
        bias = _added_bias(call)
        if bias is not None and given.get("bias") is None:
            (last,) = call.users
            given["bias"] = bias
    return _Layer(call, last, given, call.meta.get("rank"))


def _added_bias(conv: torch.fx.Node) -> torch.fx.Node | None:
    """A bias of one number for each channel that is added to the result."""
    if len(conv.users) != 1:
        return None
    (add,) = conv.users
    if add.target is not operator.add:
        return None
    (reshape,) = (each for each in add.all_input_nodes if each is not conv) if len(add.all_input_nodes) == 2 else (None,)
    if reshape is None or reshape.target is not torch.reshape or len(reshape.users) != 1:
        return None
    bias = reshape.args[0]
    shape = reshape.kwargs.get("shape", reshape.args[1] if len(reshape.args) > 1 else None)
    dims = 1 + int(conv.target.__name__[-2])
    is_channels = isinstance(shape, (list, tuple)) and len(shape) == dims and all(size == 1 for size in shape[1:])
    return bias if is_channels else None


def _restore(gm: torch.fx.GraphModule, layer: _Layer) -> None:
    weights = layer.weights
    paths = {node.target.rpartition(".")[0] for node in weights.values() if node.op == "get_attr"}
    if any(node.op != "get_attr" or len(node.users) != 1 for node in weights.values()) or len(paths) != 1:
        return
    (path,) = paths
    if not path:
        return
    held = gm.get_submodule(path)
    tensors = {name: _tensor(gm, node) for name, node in weights.items()}
    if sum(1 for _ in held.parameters()) + sum(1 for _ in held.buffers()) != len(tensors):
        return  # others have a part in it
    module = _module_of(layer, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    if module is None:
        return
    for name, tensor in tensors.items():
        if name in module._buffers:
            module._buffers[name] = tensor.detach()
        else:
            module._parameters[name] = tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor, requires_grad=False)
    parent, _, name = path.rpartition(".")
    setattr(gm.get_submodule(parent), name, module.eval())
    with gm.graph.inserting_before(layer.last):
        call = gm.graph.call_module(path, (layer.given["input"],))
    call.meta.update(layer.last.meta)
    layer.last.replace_all_uses_with(call)
    bias = weights.get("bias")
    reshapes = [user for user in bias.users if user.target is torch.reshape] if bias is not None else []
    for node in (layer.last, *reshapes, *([layer.call] if layer.call is not layer.last else []), *weights.values()):
        gm.graph.erase_node(node)


def _tensor(gm: torch.fx.GraphModule, node: torch.fx.Node) -> torch.Tensor:
    path, _, name = node.target.rpartition(".")
    return getattr(gm.get_submodule(path), name)


def _module_of(layer: _Layer, shapes: dict[str, tuple[int, ...]]) -> nn.Module | None:
    """With any weights; None where torch has no module for such a call."""
    given, target = layer.given, layer.call.target
    weight, has_bias = shapes.get("weight"), "bias" in shapes
    if weight is None:
        return None
    if kind := _CONVS.get(target) or _TRANSPOSED_CONVS.get(target):
        names = ("stride", "padding", "dilation", "groups", "output_padding")
        options = {name: given[name] for name in names if name in given}
        options = {name: tuple(each) if isinstance(each, (list, tuple)) else each for name, each in options.items()}
        groups = options.get("groups", 1)
        is_transposed = target in _TRANSPOSED_CONVS
        channels = (weight[0], weight[1] * groups) if is_transposed else (weight[1] * groups, weight[0])
        return kind(*channels, tuple(weight[2:]), bias=has_bias, **options)
    if target is F.linear:
        return nn.Linear(weight[1], weight[0], bias=has_bias)
    if target is F.embedding:
        return nn.Embedding(*weight)
    if target is F.layer_norm:
        return nn.LayerNorm(given["normalized_shape"], given.get("eps", 1e-5), bias=has_bias)
    if target is F.group_norm and has_bias:
        return nn.GroupNorm(given["num_groups"], weight[0], given.get("eps", 1e-5))
    if target is F.batch_norm and has_bias and layer.rank in _NORMS and {"running_mean", "running_var"} <= shapes.keys():
        return _NORMS[layer.rank](weight[0], given.get("eps", 1e-5), given.get("momentum", 0.1))
    return None
