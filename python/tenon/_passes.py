"""Rules and passes written in Python."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence

from tenon import _tenon

TYPE_CHECKING = False  # for those who check types it is true; importing typing takes as long as all of Tenon
if TYPE_CHECKING:
    from typing import Any

    from tenon._model import Model

_active: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("tenon_passes", default=())

_DEFAULT_PLACE = "freeze-parameters"


def active() -> list[Any]:
    return list(_active.get())


@contextlib.contextmanager
def using(*added: Rule | Pass) -> Iterator[None]:
    """Within the block, these rules and passes are part of all that Tenon does: compile, verify, bisect and the rest."""
    token = _active.set(_active.get() + tuple(each._added for each in added))
    try:
        yield
    finally:
        _active.reset(token)


def _with_note(function: Callable[..., Any], note: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            error.add_note(note)
            raise

    return call


class RuleCounterexample:
    """Where a rule makes something else: the models before and after (None where the replacement does not fit), the
    inputs, and what both give for them."""

    def __init__(self, verified: _tenon.VerifiedRule):
        from tenon._model import Model  # which needs this module

        self.problem: str = verified.problem
        self.before: Model = Model(verified.before, "before")
        self.after: Model | None = None if verified.after is None else Model(verified.after, "after")
        self.inputs: list[_tenon.Array] = verified.inputs
        self.expected: list[_tenon.Array] = verified.expected
        self.actual: list[_tenon.Array] = verified.actual


class RuleVerification:
    """Whether a rule keeps what its pattern computes: true where it was compared and nothing failed."""

    def __init__(self, verified: _tenon.VerifiedRule):
        self._text = verified.text
        self.verdict: str = verified.verdict  # ok, FAILED or unknown
        self.detail: str = verified.detail  # why it is not known
        self.graphs: int = verified.graphs  # that the rule rewrites, and samples of inputs for them
        self.samples: int = verified.samples
        self.dtypes: list[str] = verified.dtypes
        self.holds_as: str | None = verified.holds_as  # the class of numerics that a rule that failed may promise
        self.counterexample = RuleCounterexample(verified) if verified.verdict == "FAILED" else None

    def __bool__(self) -> bool:
        return self.verdict == "ok"

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self._text)}</pre>"


class Rule:
    """A rewrite written as two functions: what computes the pattern computes the replacement instead.

    numerics says how exact it is, which verifying and bisecting hold it to: "bit-exact", "reassociates" (the same but
    for rounding), "assumes-finite" or "changes-precision". The pattern is called with values that stand for any
    tensors; where it asks for a rank, types says what it is traced with, such as ["f32[n,8]"]. A replacement that
    returns None leaves its place alone.
    """

    def __init__(
        self,
        name: str,
        *,
        pattern: Callable[..., Any],
        replacement: Callable[..., Any],
        numerics: str = "reassociates",
        types: Sequence[str] | None = None,
        before: str = _DEFAULT_PLACE,
    ):
        import inspect

        self.name = name
        self.numerics = numerics
        count = len(inspect.signature(pattern).parameters)
        self._added = _tenon.make_rule(
            name,
            _with_note(pattern, f"in the pattern of the rule {name}"),
            _with_note(replacement, f"in the replacement of the rule {name}"),
            count,
            None if types is None else list(types),
            numerics,
            before,
        )

    @property
    def formula(self) -> str:
        """Such as (exp(x0) * exp(x1)) => exp((x0 + x1))."""
        return self._added.formula

    def verify(self, *, tolerance: float = 1e-4, seed: int = 0) -> RuleVerification:
        """Whether the replacement computes what the pattern does, as numerics promises: on graphs that the pattern is traced
        to with drawn dtypes, ranks and sizes (those that types leaves open), the reference evaluator runs both on drawn
        inputs, zeros of both signs among them, and, for bit-exact rules, NaN and infinities."""
        return RuleVerification(_tenon.verify_rule(self._added, tolerance, seed))

    def __str__(self) -> str:
        return f"{self.name}: {self.formula} ({self.numerics})"

    def __repr__(self) -> str:
        return f"<tenon.Rule {self.name}>"


class Pass:
    """A function of a graph and a journal that edits the graph: see graph_pass."""

    def __init__(self, function: Callable[[_tenon.Graph, _tenon.Journal], Any], name: str, before: str):
        import inspect

        self.name = name
        self._function = function
        self.__doc__ = inspect.getdoc(function) or "a pass of this program"
        self._added = _tenon.make_pass(name, self.__doc__.splitlines()[0], _with_note(function, f"in the pass {name}"), before)

    def __call__(self, graph: _tenon.Graph, journal: _tenon.Journal) -> Any:
        return self._function(graph, journal)

    def __repr__(self) -> str:
        return f"<tenon.Pass {self.name}>"


def graph_pass(function: Callable[..., Any] | None = None, *, name: str | None = None, before: str = _DEFAULT_PLACE) -> Any:
    """Makes a pass of a function: @tenon.graph_pass, or @tenon.graph_pass(name=..., before=...).

    The function is called with the graph and a journal. It says journal.applied(rule, nodes) before each change, and
    changes nothing where journal.is_open is False; so that verifying sees what it did, and bisecting can stop at any
    change.
    """

    def make(given: Callable[..., Any]) -> Pass:
        return Pass(given, name or given.__name__.replace("_", "-"), before)

    return make if function is None else make(function)
