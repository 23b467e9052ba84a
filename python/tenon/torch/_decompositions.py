"""What ops are made of that PyTorch has no decompositions for: those over lists of tensors, by which optimisers take their
steps, and the kernels of its transformer encoders."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

# --- lists of tensors: what each op does with one of them ---

_PREFIX = "_foreach_"
# Those that are not called as the op over single tensors is.
_OF_ONE: dict[str, Callable[..., Any]] = {
    "maximum": torch.clamp_min,
    "minimum": torch.clamp_max,
    "norm": lambda self, ord, dtype: torch.linalg.vector_norm(self, ord, dtype=dtype),
    "zero": torch.zeros_like,
    "copy": torch.ops.aten.copy.default,
}


def _function_of(name: str) -> Callable[..., Any] | None:
    return _OF_ONE.get(name) or getattr(torch, name, None)


def _decomposition_of(op: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    schema = op._schema
    is_list = [isinstance(each.type, torch.ListType) for each in schema.arguments]
    # What scales the product or quotient is a keyword of the op over single tensors.
    keywords = {i for i, each in enumerate(schema.arguments) if each.kwarg_only or (each.name in ("value", "scalars") and i == 3)}

    def decomposed(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
        values = [
            args[i] if i < len(args) else kwargs.get(each.name, each.default_value) for i, each in enumerate(schema.arguments)
        ]
        count = next(len(value) for value, has_each in zip(values, is_list) if has_each)

        def of(number: int) -> torch.Tensor:
            own = [value[number] if has_each else value for value, has_each in zip(values, is_list)]
            named = {
                "value" if schema.arguments[i].name == "scalars" else schema.arguments[i].name: own[i] for i in keywords
            }
            return function(*(each for i, each in enumerate(own) if i not in keywords), **named)

        return [of(number) for number in range(count)]

    return decomposed


@functools.cache
def _foreach_decompositions() -> dict[Any, Callable[..., Any]]:
    found = {}
    for name in torch._C._dispatch_get_all_op_names():
        name, _, overload = name.removeprefix("aten::").partition(".")
        if not name.startswith(_PREFIX) or name.endswith("_") or overload.endswith("out"):
            continue
        # The scalars of these are read from a tensor.
        if name in ("_foreach_addcdiv", "_foreach_addcmul") and overload == "Tensor":
            continue
        if function := _function_of(name.removeprefix(_PREFIX)):
            op = getattr(getattr(torch.ops.aten, name), overload or "default")
            found[op] = _decomposition_of(op, function)
    return found


# --- transformer encoders ---


def _masked(scores: torch.Tensor, mask: torch.Tensor, kind: int) -> torch.Tensor:
    """`kind`: 0, by queries and keys; 1, by examples and keys; 2, by all of them."""
    if kind == 1:
        mask = mask[:, None, None, :]
    return scores.masked_fill(mask.to(torch.bool), float("-inf"))


def _attention(
    query, key, value, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None, need_weights=True,
    average_attn_weights=True, mask_type=None,
):  # fmt: skip
    if not (query is key and key is value):
        return NotImplemented
    batch, length, _ = query.shape
    projected = functional.linear(query, qkv_weight, qkv_bias).view(batch, length, 3, heads, embed_dim // heads)
    q, k, v = projected.permute(2, 0, 3, 1, 4).unbind(0)
    if mask is None and not need_weights:
        weights, attended = None, functional.scaled_dot_product_attention(q, k, v)
    else:
        scores = (q * (embed_dim // heads) ** -0.5) @ k.transpose(-1, -2)
        weights = (scores if mask is None else _masked(scores, mask, mask_type)).softmax(-1)
        attended = weights @ v
    out = functional.linear(attended.transpose(1, 2).reshape(batch, length, embed_dim), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


def _encoder_layer(
    src, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1,
    norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None,
):  # fmt: skip
    def norm(x, weight, bias):
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    x = src + _attention(
        x, x, x, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
    )[0]
    x = x if norm_first else norm(x, norm_weight_1, norm_bias_1)
    h = functional.linear(norm(x, norm_weight_2, norm_bias_2) if norm_first else x, ffn_weight_1, ffn_bias_1)
    x = x + functional.linear(functional.gelu(h) if use_gelu else functional.relu(h), ffn_weight_2, ffn_bias_2)
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)


def more_decompositions() -> dict[Any, Callable[..., Any]]:
    found = dict(_foreach_decompositions())
    found[torch.ops.aten._native_multi_head_attention.default] = _attention
    found[torch.ops.aten._transformer_encoder_layer_fwd.default] = _encoder_layer
    # Where Dynamo traced an addcmul_ or addcdiv_, this is there.
    if inductor := sys.modules.get("torch._inductor.inductor_prims"):
        found[inductor.fma] = lambda a, b, c: a * b + c
    return found
