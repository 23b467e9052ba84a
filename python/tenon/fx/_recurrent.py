"""Recurrent layers as Tenon's ops have them, by PyTorch's: one layer, whose directions are an axis, and whose gates come in the order
of ONNX."""

from __future__ import annotations

from typing import Any

import torch


def gru(x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, bias: torch.Tensor | None = None, initial_h: torch.Tensor | None = None, *,
        direction: str = "forward", reset_after: bool = True) -> tuple[torch.Tensor, ...]:
    return _layer(torch.gru, (1, 0, 2), x, w, r, bias, [initial_h], direction)


def lstm(x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, bias: torch.Tensor | None = None, initial_h: torch.Tensor | None = None,
         initial_c: torch.Tensor | None = None, *, direction: str = "forward") -> tuple[torch.Tensor, ...]:
    return _layer(torch.lstm, (0, 2, 3, 1), x, w, r, bias, [initial_h, initial_c], direction)


def rnn(x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, bias: torch.Tensor | None = None, initial_h: torch.Tensor | None = None, *,
        direction: str = "forward", activations: list[str] | None = None) -> tuple[torch.Tensor, ...]:
    function = torch.rnn_relu if activations and activations[0] == "relu" else torch.rnn_tanh
    return _layer(function, (0,), x, w, r, bias, [initial_h], direction)


FUNCTIONS = {"tenon.gru": gru, "tenon.lstm": lstm, "tenon.rnn": rnn}

_USUAL = {"tenon.gru": [["sigmoid", "tanh"]], "tenon.lstm": [["sigmoid", "tanh", "tanh"]], "tenon.rnn": [["tanh"], ["relu"]]}


def lacks(row: dict[str, Any]) -> bool:
    """Whether it is a layer that PyTorch does not have: for sequences of several lengths, with peepholes or other activations, or a GRU
    that resets the state before it is multiplied."""
    target, named = row["target"], row["kwargs"]
    if target not in FUNCTIONS:
        return False
    is_known = named.keys() <= {"bias", "initial_h", "initial_c", "direction", "activations", "reset_after"} and len(row["args"]) <= 4
    _, activations = named.get("activations", ("constant", _USUAL[target][0]))
    has_usual = any(activations in (each, each * 2) for each in _USUAL[target])
    return not (is_known and has_usual and (target != "tenon.gru" or "reset_after" in named))


def _layer(function: Any, gates: tuple[int, ...], x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, bias: torch.Tensor | None,
           states: list[torch.Tensor | None], direction: str) -> tuple[torch.Tensor, ...]:
    directions, hidden = w.shape[0], r.shape[2]

    def in_order(weights: torch.Tensor) -> torch.Tensor:
        parts = weights.split(hidden, 1)
        return torch.cat([parts[gate] for gate in gates], 1)

    of_each = [in_order(w), in_order(r)]
    if bias is not None:
        of_each += [in_order(each) for each in bias.chunk(2, 1)]
    weights = [each[d] for d in range(directions) for each in of_each]
    first = [x.new_zeros((directions, x.shape[1], hidden)) if each is None else each for each in states]
    is_reversed = direction == "reverse"
    y, *last = function(x.flip(0) if is_reversed else x, first if len(first) > 1 else first[0], weights, bias is not None, 1, 0.0, False,
                        directions == 2, False)
    y = (y.flip(0) if is_reversed else y).unflatten(2, (directions, hidden)).transpose(1, 2)
    return y, *last
