"""``check_laws``: searches for values on which an aggregate breaks a law, and shows the simplest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.algebra import Form, as_objects
from sash.algebra.laws import LAWS, check_shape, counterexample, same_partial, same_value
from sash.algorithms import Recalculate
from sash.errors import BrokenLaw, InvalidArgument, SashError
from sash.functions.call import Agg, resolve
from sash.functions.udaf import UserAggregate
from sash.testing.window_laws import check_window
from sash.types import FLOATS, MACHINE_TYPES
from sash.windows.base import Window

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def check_laws(
    aggregate: Agg | Window,
    *,
    inputs: str | Sequence[str] | None = None,
    values: SearchStrategy[Any] | None = None,
    examples: int = 200,
    tolerance: float = 1e-6,
) -> None:
    """Raise `sash.errors.BrokenLaw` with the simplest counterexample if an aggregate or a window breaks a law that it claims.

    Of an aggregate it checks that `lift` returns a partial of the declared shape, that the identity is neutral, that `combine` is
    associative, that it commutes and that `invert` undoes it where that is claimed, that `lower` returns a number, and that the compiled
    kernel agrees with the Python functions. Of a window it checks that its methods agree with each other.

    Args:
        aggregate: An aggregate of flat fields: a user's own, or a function of `sash.functions`. Or a window of a user's own.
        inputs: The types of an aggregate's inputs; by default 64-bit integers if the state has no floats, doubles otherwise.
        values: A Hypothesis strategy for one row, where not every number makes sense, or for a list of rows in the order of time
            (`st.lists(times).map(sorted)`), where rows must follow each other: partials are then computed from neighbouring rows.
        examples: How many cases to try for each law.
        tolerance: Up to which relative difference floats are the same.

    Examples:
        >>> from sash import functions as S
        >>> check_laws(S.max, examples=20)
    """
    try:
        import hypothesis
        from hypothesis import strategies
    except ImportError as error:
        raise SashError("check_laws needs Hypothesis: pip install 'sash[testing]'") from error
    if isinstance(aggregate, Window):
        check_window(aggregate, values=values, examples=examples)
        return
    bound = resolve(aggregate, "aggregate").aggregate
    if bound.kind != "fields":
        raise InvalidArgument(f"check_laws is for aggregates of flat fields; {bound.label} keeps {bound.kind}")
    count = bound.inputs if isinstance(bound, UserAggregate) else max(1, bound.arity)
    machines = _machines(bound, inputs, count)
    types = [pa.bool_() if m == "bool" else pa.from_numpy_dtype(np.dtype(m)) for m in machines]
    form = bound.form(*types)
    row = values if values is not None else strategies.tuples(*(_strategy(m, strategies) for m in machines))
    rows_of = strategies.lists(row, min_size=1, max_size=8)
    if values is not None:
        is_sequence = isinstance(hypothesis.find(values, lambda _: True), list)
        rows_of = values.filter(bool) if is_sequence else rows_of
    if values is not None and count == 1:
        rows_of = rows_of.map(lambda rows: [r if isinstance(r, tuple) else (r,) for r in rows])
    settings = hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck), print_blob=False,
        report_multiple_bugs=False,
    )  # fmt: skip

    def search(check: Callable[..., None], *drawn: Any) -> None:
        """Run a check on many values; Hypothesis shrinks what fails, and what it tried last is the simplest."""
        last: list[BrokenLaw] = []

        def run(arguments: tuple[Any, ...]) -> None:
            try:
                check(*arguments)
            except BrokenLaw as error:
                last[:] = [error]
                raise

        try:
            settings(hypothesis.given(strategies.tuples(*drawn))(run))()
        except BrokenLaw:
            raise BrokenLaw(str(last[0])) from None  # a new error, without the notes that Hypothesis adds

    def equal(a: Any, b: Any) -> bool:
        return same_partial(a, b, tolerance)

    def pieces(number: int) -> Any:
        """A strategy for this many partials of neighbouring rows."""
        places = strategies.lists(strategies.floats(0, 1), min_size=number - 1, max_size=number - 1)
        enough = rows_of.filter(lambda rows: len(rows) >= number) if number > 1 else rows_of
        return strategies.tuples(enough, places).map(lambda drawn: [_partial(form, part) for part in _cut(*drawn)])

    def shapes(rows: list[tuple[Any, ...]]) -> None:
        for r in rows:
            check_shape(form, form.lift(*r), f"lift{r}")

    search(shapes, rows_of)
    for law in LAWS:
        if law.claimed(form):

            def holds(partials: list[Any], law: Any = law) -> None:
                if not law.holds(form, equal, *partials):
                    raise counterexample(form, law, tuple(partials))

            search(holds, pieces(law.partials))
    search(lambda partials: _check_lower(form, partials[0]), pieces(1))
    if count == 1:
        search(lambda rows: _check_compiled(bound, form, types[0], [r[0] for r in rows], tolerance), rows_of)


def _cut(rows: list[Any], places: list[float]) -> list[list[Any]]:
    """Rows cut into neighbouring pieces, none of them empty."""
    pieces, rest = [], rows
    for left, place in zip(range(len(places), 0, -1), places, strict=True):
        size = 1 + int(place * (len(rest) - left - 1))
        pieces.append(rest[:size])
        rest = rest[size:]
    return [*pieces, rest]


def _machines(bound: Any, inputs: Any, count: int) -> tuple[str, ...]:
    if inputs is None:
        state = bound.state if isinstance(bound, UserAggregate) else ("float64",)
        return ("float64" if any(s in FLOATS for s in state) else "int64",) * count
    types = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    for machine in types:
        if machine not in MACHINE_TYPES:
            raise InvalidArgument(f"inputs has the type {machine!r}; known types: {', '.join(MACHINE_TYPES)}")
    if len(types) != count:
        raise InvalidArgument(f"{bound.label} takes {count} inputs, not {len(types)}")
    return types


def _strategy(machine: str, strategies: Any) -> Any:
    if machine == "bool":
        return strategies.booleans()
    if machine in FLOATS:
        return strategies.floats(-1e6, 1e6, width=32)
    limits = np.iinfo(machine)
    return strategies.integers(max(int(limits.min), -(2**31)), min(int(limits.max), 2**31 - 1))


def _partial(form: Form, rows: list[tuple[Any, ...]]) -> Any:
    partial = form.lift(*rows[0])
    for r in rows[1:]:
        partial = form.combine(partial, form.lift(*r))
        check_shape(form, partial, "combine")
    return partial


def _check_lower(form: Form, partial: Any) -> None:
    result = form.lower(partial, 1) if form.counted else form.lower(partial)
    if result is not None and not isinstance(result, bool | int | float | np.generic | tuple):
        raise BrokenLaw(f"{form.name}: lower({partial!r}) returned {result!r}; it must return a number, a boolean or None")


def _check_compiled(bound: Any, form: Form, t: pa.DataType, rows: list[Any], tolerance: float) -> None:
    """Raise unless the kernel's result for one window is that of the Python functions."""
    objects = as_objects(form)
    partial = objects.lift(rows[0])
    for r in rows[1:]:
        partial = objects.combine(partial, objects.lift(r))
    expected = objects.lower(partial)
    window = Recalculate(bound, dtype=t)
    for r in rows:
        window.insert(r)
    ours = window.query()
    same = ours is expected if expected is None or ours is None else same_value(ours, expected, tolerance)
    if not same and not isinstance(ours, tuple):
        raise BrokenLaw(f"{form.name}: for the rows {rows!r} the compiled kernel returns {ours!r}, the Python functions {expected!r}")
