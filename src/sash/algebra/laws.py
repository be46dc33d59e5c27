"""The laws of aggregates, as statements that can be checked.

:func:`quick_check` tries a form on a handful of values, in Python, before a user's own aggregate is compiled;
:func:`sash.testing.check_laws` searches much harder.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sash.algebra.form import Form
from sash.errors import BrokenLaw

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Law:
    """One statement about partials."""

    name: str
    statement: str
    partials: int
    holds: Callable[..., bool]
    """Takes the form, an equality, and that many partials."""
    claimed: Callable[[Form], bool]


def _identity(form: Form, equal: Callable[[Any, Any], bool], a: Any) -> bool:
    return equal(form.combine(form.identity, a), a) and equal(form.combine(a, form.identity), a)


def _associative(form: Form, equal: Callable[[Any, Any], bool], a: Any, b: Any, c: Any) -> bool:
    return equal(form.combine(form.combine(a, b), c), form.combine(a, form.combine(b, c)))


def _commutative(form: Form, equal: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    return equal(form.combine(a, b), form.combine(b, a))


def _invertible(form: Form, equal: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    assert form.invert is not None
    return equal(form.invert(form.combine(a, b), a), b)


def _selective(form: Form, equal: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    return equal(form.combine(a, b), a) or equal(form.combine(a, b), b)


LAWS = (
    Law("identity", "combine(identity, a) == a == combine(a, identity)", 1, _identity, lambda f: f.identity is not None),
    Law("associative", "combine(combine(a, b), c) == combine(a, combine(b, c))", 3, _associative, lambda f: True),
    Law("commutative", "combine(a, b) == combine(b, a)", 2, _commutative, lambda f: f.commutative),
    Law("invertible", "invert(combine(a, b), a) == b", 2, _invertible, lambda f: f.invertible),
    Law("selective", "combine(a, b) is a or b", 2, _selective, lambda f: f.selective),
)


def same_value(x: Any, y: Any, tolerance: float = TOLERANCE) -> bool:
    """Equality of results or fields: NaN equals NaN, floats up to rounding."""
    if isinstance(x, float) or isinstance(y, float):
        if x is None or y is None:
            return x is y
        if math.isnan(x) or math.isnan(y):
            return math.isnan(x) and math.isnan(y)
        return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)
    return bool(x == y)


def same_partial(a: Sequence[Any], b: Sequence[Any], tolerance: float = TOLERANCE) -> bool:
    """Equality of partials, field by field."""
    return len(a) == len(b) and all(same_value(x, y, tolerance) for x, y in zip(a, b, strict=True))


def check_shape(form: Form, partial: Any, call: str) -> None:
    """Raise unless a partial has as many fields as the state; ``call`` is what returned it."""
    if not isinstance(partial, tuple) or len(partial) != len(form.state):
        actual = f"{len(partial)} fields" if isinstance(partial, tuple) else type(partial).__name__
        raise BrokenLaw(f"{form.name}: {call} returned {actual} where state has {len(form.state)}: {partial!r}")


def counterexample(form: Form, law: Law, partials: Iterable[Any]) -> BrokenLaw:
    """The error that shows how a law is broken."""
    shown = ", ".join(f"{name} = {p!r}" for name, p in zip("abc", partials, strict=False))
    identity = f", identity = {form.identity!r}" if law.name == "identity" else ""
    return BrokenLaw(f"{form.name} is not {_adjective(law)}: {law.statement} fails for {shown}{identity}")


def _adjective(law: Law) -> str:
    return "neutral in its identity" if law.name == "identity" else law.name


SAMPLES: dict[str, tuple[Any, ...]] = {
    "bool": (False, True),
    "int": (0, 1, 2, -1, 3, 7, -5, 100),
    "float": (0.0, 1.0, -1.0, 2.5, -0.75, 3.0, 100.0),
}


def samples(machine: str) -> tuple[Any, ...]:
    """A few values of a machine type, simplest first."""
    values = SAMPLES["bool" if machine == "bool" else "float" if machine.startswith("float") else "int"]
    return tuple(v for v in values if v >= 0) if machine.startswith("u") else values


def quick_check(form: Form) -> None:
    """Raise :class:`BrokenLaw` if one of the claimed laws fails on a few simple values.

    Values on which the functions raise an error of their own are skipped: compiled code has no such errors.
    """
    rows = list(itertools.islice(itertools.product(*(samples(m) for m in form.inputs)), 24))
    lifted = []
    for row in rows:
        try:
            partial = form.lift(*row)
        except (ArithmeticError, ValueError):
            continue
        check_shape(form, partial, f"lift{row}")
        lifted.append(partial)
    partials = list(lifted)
    for a, b in itertools.islice(itertools.product(lifted[:3], lifted[:4]), 8):
        try:
            partial = form.combine(a, b)
        except (ArithmeticError, ValueError):
            continue
        check_shape(form, partial, f"combine({a!r}, {b!r})")
        partials.append(partial)
    for law in LAWS:
        if not law.claimed(form):
            continue
        for chosen in itertools.product(partials[: 24 // law.partials], repeat=law.partials):
            try:
                holds = law.holds(form, same_partial, *chosen)
            except (ArithmeticError, ValueError):
                continue
            if not holds:
                raise counterexample(form, law, chosen)
