"""Tuples whose elements have names: apart from the rest, because `import tenon` needs none, and typing takes its time."""

from __future__ import annotations

from typing import Any, NamedTuple


class Port(NamedTuple):
    """An input or output."""

    name: str
    type: str  # such as f32[batch,128]
    dtype: str | None  # None for strings, sequences and optionals
    shape: tuple[int | str, ...] | None  # names and expressions where a size is not fixed; None: not even the rank is


class MeasureOptions(NamedTuple):
    """How Model.bench and Model.report compile a model and run it, as tenon.compile takes them."""

    threads: int = 0
    numerics: str = "default"
    precision: str = "f32"
    device: str | None = None


class PythonCode(NamedTuple):
    """A function `forward` as text, and what its names stand for."""

    src: str
    globals: dict[str, Any]
