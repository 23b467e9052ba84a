"""Training: the loss of a model, its gradients and the update of its weights as one compiled step."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tenon import _tenon
from tenon._model import Model, _is_torch_module, load
from tenon.errors import UserError


_KEYWORDS = {"dim": "sizes"}  # by options of the command line, where these have other names


class _StateValue(NamedTuple):
    name: str
    weight: str  # which it is, or belongs to; "" of the number of the step
    is_weight: bool
    input: int
    output: int
    initial: _tenon.Array


class TrainStep:
    """A training step, which keeps the weights and what the optimizer has for each: call it with a batch and its target.

    step(x, y) computes the loss of the batch, updates the weights in place, and returns the loss as it was before.
    """

    def __init__(self, model: Model, module: Any, options: list[str], how: dict[str, Any], seed: int):
        self._model = model
        self._options = options
        self._fixed = _fixed(module, {port.name for port in model.outputs})
        self._how = how
        self._seed = seed
        self._programs: dict[tuple[Any, ...], _tenon.Program] = {}  # by the sizes of a batch
        step = self._make(model, describes=True)
        self._text: str = step.text
        self._parts: int = step.parts
        self._classes: int | None = step.classes
        self._inputs = [port.name for port in model.inputs]
        self._target: str = Model(step.graph, model.name).inputs[step.target].name
        self._state = [_StateValue(*each) for each in step.state]
        #: The module whose parameters are trained, where this was made of one.
        self.module = module
        # The submodules with the parameters that are trained, and their names there; others are kept here.
        own = _places(module)
        self._places = [own.get(each.weight) if each.is_weight else None for each in self._state]
        self._values = [self._copy(each.initial) if place is None else None for each, place in zip(self._state, self._places)]
        #: The learning rate of the step before; None before the first.
        self.learning_rate: float | None = None

    def _make(self, model: Model, *, describes: bool = False) -> Any:
        try:
            return _tenon.training_step(model._graph, self._options, self._fixed, describes)
        except UserError as error:  # which names options as the command line does
            message = re.sub(r"--([a-z][a-z0-9-]*)", lambda found: _KEYWORDS.get(found[1], found[1].replace("-", "_")), str(error))
            raise type(error)(message) from None

    def __call__(self, *args: Any, **kwargs: Any) -> float:
        """One step. The arguments are the inputs of the model, then the target, or go by name."""
        batch = self._batch(args, kwargs)
        arguments = [*batch, *[self._tensor(number) for number in range(len(self._state))]]
        results = self._program(batch).run(*arguments, seed=((self._seed << 32) + self.steps) % 2**64)
        for number, value in enumerate(self._state):
            if results[value.output] is not arguments[value.input]:
                self._replace(number, results[value.output])
        self.learning_rate = _number(results[1])
        return _number(results[0])

    def _batch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = [*self._inputs, self._target]
        if len(args) + len(kwargs) != len(names) or not {*kwargs} <= {*names[len(args) :]}:
            got = ", ".join([f"{len(args)} tensors", *kwargs])
            raise UserError(f"the step takes {', '.join(names)}, but got {got}")
        batch = [*args, *(kwargs[name] for name in names[len(args) :])]
        return [*batch[:-1], self._labels(batch[-1]) if self._takes_labels else batch[-1]]

    @property
    def _takes_labels(self) -> bool:
        return "--loss=cross_entropy" in self._options

    def _labels(self, target: Any) -> Any:
        """Labels of any integer type as i64, once they are known to be classes."""
        is_torch = hasattr(target, "is_floating_point")
        if not is_torch:
            import numpy

            target = numpy.asarray(target)
        if target.is_floating_point() if is_torch else target.dtype.kind not in "iu":
            raise UserError(f"cross_entropy takes labels, which are integers, but the target is of {target.dtype}")
        labels = target.long() if is_torch else target.astype("int64", copy=False)
        ignored = next((int(each.split("=")[1]) for each in self._options if each.startswith("--ignore-label=")), None)
        counted = labels if ignored is None else labels[labels != ignored]
        for label in (int(counted.min()), int(counted.max())) if len(counted.reshape(-1)) else ():
            if label < 0 or (self._classes is not None and label >= self._classes):
                known = "no classes below 0" if self._classes is None else f"{self._classes} classes"
                hint = f"\n  hint: ignore_label={label} leaves it out" if label < 0 else ""
                raise UserError(f"the target has the label {label}, but the model has {known}{hint}")
        return labels

    def _program(self, batch: list[Any]) -> _tenon.Program:
        """The one for batches of these sizes."""
        sizes = tuple(tuple(each.shape) for each in batch[:-1])
        if sizes not in self._programs:
            bound: dict[str, int] = {}
            for port, extents in zip(self._model.inputs, sizes):
                if port.shape is None or len(port.shape) != len(extents):
                    continue
                if extents and extents[0] % self._parts != 0:
                    raise UserError(f"{extents[0]} examples cannot be split into {self._parts} batches of one size")
                extents = (extents[0] // self._parts, *extents[1:]) if extents else extents
                bound.update({name: int(size) for name, size in zip(port.shape, extents) if name in self._model.dimensions})
            graph = self._make(self._model.bind(bound) if bound else self._model).graph
            program = Model(graph, self._model.name).compile(device="cpu", **self._how)
            program.overwrite([(value.output, value.input) for value in self._state])
            self._programs[sizes] = program
        return self._programs[sizes]

    # --- the state ---

    def _tensor(self, number: int) -> Any:
        place = self._places[number]
        return self._values[number] if place is None else getattr(*place).detach()

    def _replace(self, number: int, by: Any) -> None:
        if self._places[number] is None:
            self._values[number] = by
        else:
            self._tensor(number).copy_(self._copy(by))

    def _copy(self, tensor: Any) -> Any:
        """One of torch where a module is trained, else of numpy."""
        if hasattr(tensor, "detach"):
            tensor = tensor.detach()
        if self.module is not None:
            import torch

            return torch.from_dlpack(tensor).clone()
        import numpy

        array = numpy.asarray(tensor)
        return numpy.array(array.view(tensor.numpy_dtype) if isinstance(tensor, _tenon.Array) else array)

    @property
    def steps(self) -> int:
        """How many steps it has taken."""
        return int(self._tensor(len(self._state) - 1))

    def state_dict(self) -> dict[str, Any]:
        """The weights by name: all that the module has, or copies of those that are trained."""
        if self.module is not None:
            return dict(self.module.state_dict())
        return {value.weight: self._copy(self._tensor(number)) for number, value in enumerate(self._state) if value.is_weight}

    def state(self) -> dict[str, Any]:
        """Copies of all that steps change, by name: weights, what the optimizer keeps for each, the number of the step."""
        return {value.name: self._copy(self._tensor(number)) for number, value in enumerate(self._state)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resumes from what state() gave."""
        names = [value.name for value in self._state]
        if {*names} != {*state}:
            different = sorted({*names} ^ {*state})
            raise UserError(f"it is the state of another model or optimizer: {', '.join(different[:5])} is in one of them alone")
        copies = []
        for number, (name, value) in enumerate(zip(names, self._state)):
            if tuple(state[name].shape) != value.initial.shape:
                sizes, wanted = [*state[name].shape], [*value.initial.shape]
                raise UserError(f'"{name}" has the sizes {sizes}, but that of the model has {wanted}')
            copies.append(self._copy(state[name]))
            own, wanted = copies[-1].dtype, self._tensor(number).dtype
            if own != wanted:
                raise UserError(f'"{name}" is of {own}, but that of the model is of {wanted}')
        for number, each in enumerate(copies):
            self._replace(number, each)

    @property
    def model(self) -> Model:
        """The model with the weights as they are now."""
        weights = {value.weight: self._tensor(number) for number, value in enumerate(self._state) if value.is_weight}
        return Model(_tenon.replace_weights(self._model._graph, weights), self._model.name)

    def save(self, path: str | os.PathLike[str], *, opset: int | None = None) -> None:
        """Writes the model with its weights, as ONNX or in the text form, as the name ends in .onnx or .tenon."""
        self.model.save(path, opset=opset)

    def __repr__(self) -> str:
        return f"<tenon.TrainStep of {self._model.name}: {self._text.splitlines()[0]}>"


def _number(tensor: Any) -> float:
    if not isinstance(tensor, _tenon.Array):
        return float(tensor)
    import numpy

    return float(numpy.asarray(tensor))


def _places(module: Any) -> dict[str, tuple[Any, str]]:
    """Where the parameters and buffers of a module are, by their names."""
    if module is None:
        return {}
    return {
        f"{path}.{name}" if path else name: (each, name)
        for path, each in module.named_modules(remove_duplicate=False)
        for name in (*each._parameters, *each._buffers)
    }


def _fixed(module: Any, computed: set[str]) -> list[str]:
    """What a module has that is not trained: buffers, but for those that the model computes anew, and what needs no gradient."""
    return [
        name
        for name, (each, own) in _places(module).items()
        if name not in computed and (own in each._buffers or getattr(each._parameters[own], "requires_grad", None) is False)
    ]


def train_step(
    model: Any,
    loss: str,
    optimizer: str = "adamw",
    *,
    args: Sequence[Any] | Mapping[str, Any] | None = None,
    dynamic: Any = None,
    sizes: Mapping[str, int] | None = None,
    label_smoothing: float | None = None,
    ignore_label: int | None = None,
    learning_rate: float | None = None,
    momentum: float | None = None,
    dampening: float | None = None,
    nesterov: bool = False,
    beta1: float | None = None,
    beta2: float | None = None,
    epsilon: float | None = None,
    weight_decay: float | None = None,
    clip_norm: float | None = None,
    accumulate: int | None = None,
    schedule: str | None = None,
    steps: int | None = None,
    warmup: int | None = None,
    lowest_rate: float | None = None,
    decay_every: int | None = None,
    decay_factor: float | None = None,
    freeze: str | Iterable[str] = (),
    seed: int = 0,
    numerics: str = "default",
    threads: int = 0,
    cache: str | os.PathLike[str] | None = None,
) -> TrainStep:
    """Makes the training step of a model: step(x, y) trains it on a batch and returns the loss.

    The model is what load takes, or a torch.nn.Module, which args, dynamic and torch.export trace as compile does; its
    own parameters are trained, but for those whose requires_grad is False. The loss is "cross_entropy", "mse", "l1" or "bce_with_logits", of the first output; the
    optimizer "adamw", "adam", "sgd", "lion" or "adagrad". Their options, and freeze, names of weights that stay as they are
    with * for anything, are those of the command tenon train-step; steps is how many a schedule is for. seed is
    that of the model's random ops; sizes, numerics, threads and cache are as for compile.
    """
    if seed < 0:
        raise UserError(f"seed: it must be a whole number from 0 up, but is {seed}")
    options = {
        "loss": loss, "optimizer": optimizer, "label_smoothing": label_smoothing, "ignore_label": ignore_label,
        "learning_rate": learning_rate, "momentum": momentum, "dampening": dampening, "beta1": beta1, "beta2": beta2,
        "epsilon": epsilon, "weight_decay": weight_decay, "clip_norm": clip_norm, "accumulate": accumulate,
        "schedule": schedule, "steps": steps,
        "warmup": warmup, "lowest_rate": lowest_rate, "decay_every": decay_every, "decay_factor": decay_factor,
    }
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    words += ["--nesterov"] * nesterov
    words += [f"--freeze={name}" for name in ([freeze] if isinstance(freeze, str) else freeze)]
    is_module = _is_torch_module(model)
    if is_module:
        from tenon.torch import trace_module

        loaded = trace_module(model, args, dynamic)[1]
    elif isinstance(model, (str, os.PathLike)) and args is None and dynamic is None:
        loaded = Model(_tenon.load_to_train(os.fspath(model)), os.fspath(model))
    else:
        loaded = load(model, args, dynamic=dynamic)
    if sizes:
        loaded = loaded.bind(sizes)
    how = {"numerics": numerics, "threads": threads, "cache": cache}
    return TrainStep(loaded, model if is_module else None, words, how, seed)
