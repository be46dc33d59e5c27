"""An aggregate bound to machine types: the one definition that kernels, oracles and law checks are derived from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sash.algebra.primitives import Function

POSITION = "position"
"""The machine type of an input that is the row's own number, counted from 0."""


@dataclass(frozen=True)
class Form:
    """An aggregate bound to machine types: the one definition that every kernel is generated from.

    ``inputs`` and ``state`` are machine types. The nulls of ``null_aware_inputs`` are not skipped; for each of them
    ``lift`` gets a boolean after its values that says whether the value is known. ``identity`` may be None: the generator then adds an
    emptiness flag where an identity is needed. ``fits`` says whether the exact result has a representation.
    ``exact`` is False where ``invert`` only undoes ``combine`` up to rounding. Where ``counted``, ``lower`` also gets the number
    of rows that were lifted; the framework counts them, or knows the count beforehand.
    """

    name: str
    inputs: tuple[str, ...]
    state: tuple[str, ...]
    outputs: tuple[str, ...]
    lift: Function
    combine: Function
    lower: Function
    identity: tuple[float | int | bool, ...] | None = None
    invert: Function | None = None
    exact: bool = True
    fits: Function | None = None
    null_aware_inputs: tuple[int, ...] = ()
    counted: bool = False
    commutative: bool = False
    selective: bool = False
    constants: tuple[tuple[str, float | int], ...] = ()

    @property
    def invertible(self) -> bool:
        """Whether ``invert`` undoes ``combine`` exactly, so that rows can be subtracted from a result."""
        return self.invert is not None and self.exact

    @property
    def laws(self) -> frozenset[str]:
        """The names of the laws that hold, associativity aside."""
        claims = {"commutative": self.commutative, "invertible": self.invertible, "selective": self.selective}
        return frozenset(name for name, holds in claims.items() if holds)

    def forced_invertible(self) -> Form:
        """The same form with an inexact inverse declared good enough, for benchmarks that redraw the papers."""
        return replace(self, exact=True)


@dataclass(frozen=True)
class Objects:
    """An aggregate whose partials are Python objects; ``lift`` takes one value, or a tuple of them for several inputs."""

    lift: Function
    combine: Function
    lower: Function
    identity: Function


class Nothing:
    """The partial of no rows, where an aggregate has no identity of its own."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def as_objects(form: Form) -> Objects:
    """A form's own functions, run by Python over Python values: what its kernels must agree with."""

    def lift(value: Any) -> Any:
        values = value if len(form.inputs) > 1 else () if not form.inputs else (value,)
        if any(v is None for k, v in enumerate(values) if k not in form.null_aware_inputs) or (not form.inputs and value is None):
            return NOTHING
        known = [values[k] is not None for k in form.null_aware_inputs]
        return (form.lift(*values, *known), 1)

    def combine(a: Any, b: Any) -> Any:
        if a is NOTHING or b is NOTHING:
            return b if a is NOTHING else a
        return (form.combine(a[0], b[0]), a[1] + b[1])

    def lower(s: Any) -> Any:
        if s is NOTHING:
            return None
        return form.lower(s[0], s[1]) if form.counted else form.lower(s[0])

    return Objects(lift, combine, lower, lambda: NOTHING)
