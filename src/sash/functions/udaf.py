"""``@sash.udaf``: a user's own aggregate, as three small Python functions.

It becomes a :class:`~sash.algebra.Form`, as a built-in one does, and is compiled in the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from sash.algebra import Aggregate, Form, Function
from sash.errors import InvalidArgument, InvalidType
from sash.functions.call import Call, call
from sash.types import MACHINE_TYPES, machine_type

_MEMBERS = ("lift", "combine", "lower", "invert", "identity", "commutative", "returns")


@dataclass(frozen=True)
class UserAggregate(Aggregate):
    """An aggregate that a user wrote."""

    name: ClassVar[str] = "udaf"
    title: str
    lift: Function = field(repr=False)
    combine: Function = field(repr=False)
    lower: Function = field(repr=False)
    state: tuple[str, ...]
    identity: tuple[Any, ...]
    invert: Function | None = field(default=None, repr=False)
    commutative: bool = False
    output: str | None = None

    @property
    def label(self) -> str:
        return self.title

    @property
    def inputs(self) -> int:
        """How many columns ``lift`` takes."""
        return len(inspect.signature(self.lift).parameters)

    def __call__(self, *columns: str) -> Call:
        """The aggregate over columns or SQL expressions."""
        if columns and len(columns) != self.inputs:
            raise InvalidArgument(f"{self.title} takes {self.inputs} columns, as its lift does; {len(columns)} were given")
        return call(self, *columns) if columns else Call(self)

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return self.form_with(self.machines(*types), self.output)

    def form_with(self, machines: tuple[str, ...], output: str | None) -> Form:
        """The form over these machine types; ``output`` is what ``lower`` returns."""
        return Form(
            name=self.title,
            inputs=machines,
            state=self.state,
            outputs=(output or "float64",),
            identity=self.identity,
            lift=self.lift,
            combine=self.combine,
            invert=self.invert,
            lower=self.lower,
            commutative=self.commutative,
        )

    def machines(self, *types: pa.DataType) -> tuple[str, ...]:
        """The machine types of the inputs."""
        if len(types) != self.inputs:
            raise InvalidArgument(f"{self.title} takes {self.inputs} inputs, as its lift does; {len(types)} were given")
        machines = []
        for t in types:
            machine = machine_type(t)
            if machine is None or pa.types.is_decimal(t):
                raise InvalidType(f"{self.title} does not take {t}; a user's own aggregate takes numbers, booleans, dates and times")
            machines.append(machine)
        return tuple(machines)

    def returns(self, *types: pa.DataType) -> pa.DataType:
        if self.output is None:
            raise InvalidType(f"the result type of {self.title} is known once its lower is compiled")
        self.machines(*types)
        return pa.bool_() if self.output == "bool" else pa.from_numpy_dtype(self.output)


def user_type(t: pa.DataType) -> pa.DataType:
    """The type in which a column reaches users' functions: times in microseconds and dates in days, whatever the column's own unit."""
    if pa.types.is_timestamp(t):
        return pa.timestamp("us", t.tz)
    if pa.types.is_duration(t):
        return pa.duration("us")
    if pa.types.is_time(t):
        return pa.time64("us")
    return pa.date32() if pa.types.is_date(t) else t


def udaf(state: Sequence[str]) -> Callable[[type], UserAggregate]:
    """Turn a class of small functions into an aggregate of your own, which is compiled.

    The class has these members; its functions take no `self`:

    - `identity`: the partial of no rows.
    - `lift(v)`: the partial of one row; with several columns `lift(a, b)`. Times come as integers, whatever the unit of their column:
      timestamps in microseconds since the epoch, durations in microseconds, times of day in microseconds since midnight, dates in days.
    - `combine(a, b)`: the partial of two neighbouring runs of rows, `a` the earlier one. It must be associative.
    - `lower(s)`: the result; None where there is none.
    - `invert(a, b)`, optional: takes `b` out of `a`. Only where that is exact.
    - `commutative = True`, optional: partials may be combined in any order.
    - `returns`, optional: the type of the result, which is otherwise the compiled type of `lower`.

    `sash.testing.check_laws` searches for values on which an aggregate breaks a law that it claims. A type checker that does not follow
    class decorators (mypy) takes the name for the class: there, write `spread = sash.udaf(state=...)(Spread)`.

    Args:
        state: The types of the partial's fields.

    Returns:
        A decorator. What it makes is called with columns, as the functions of `sash.functions` are.

    Examples:
        >>> import numpy as np, sash
        >>> @sash.udaf(state=("float64", "float64"))
        ... class spread:
        ...     identity = (float("inf"), float("-inf"))
        ...     commutative = True
        ...     returns = "float64"
        ...     def lift(v): return (v, v)
        ...     def combine(a, b): return (min(a[0], b[0]), max(a[1], b[1]))
        ...     def lower(s): return s[1] - s[0]
        >>> sash.rolling(np.array([1.0, 5.0, 2.0, 2.0]), 2, agg=spread)
        array([4., 3., 0.])
    """
    if isinstance(state, type) or callable(state):
        raise InvalidArgument('write @sash.udaf(state=("float64", ...)) with the types of the partial\'s fields')
    fields = tuple(str(t) for t in ([state] if isinstance(state, str) else state))
    for t in fields:
        if t not in MACHINE_TYPES:
            raise InvalidArgument(f"state of a udaf has a field of type {t!r}; known types: {', '.join(MACHINE_TYPES)}")
    if not fields:
        raise InvalidArgument("state of a udaf needs at least one field")

    def decorate(definition: type) -> UserAggregate:
        title = definition.__name__
        members = vars(definition)
        for name in ("identity", "lift", "combine", "lower"):
            if name not in members:
                raise InvalidArgument(f"{title} has no {name}; a udaf has identity, lift, combine and lower")
        strange = [n for n in members if not n.startswith("__") and n not in _MEMBERS and callable(members[n])]
        if strange:
            raise InvalidArgument(f"{title}.{strange[0]} is not part of a udaf; its functions are lift, combine, lower and invert")
        identity = members["identity"]
        identity = tuple(identity) if isinstance(identity, tuple | list) else (identity,)
        if len(identity) != len(fields):
            raise InvalidArgument(f"{title}.identity has {len(identity)} fields, state has {len(fields)}")
        output = members.get("returns")
        if output is not None and output not in MACHINE_TYPES:
            raise InvalidArgument(f"{title}.returns is {output!r}; known types: {', '.join(MACHINE_TYPES)}")
        functions = {}
        for name, count in (("lift", None), ("combine", 2), ("lower", 1), ("invert", 2)):
            function = members.get(name)
            function = function.__func__ if isinstance(function, staticmethod) else function
            if function is None:
                continue
            if not inspect.isfunction(function):
                raise InvalidArgument(f"{title}.{name} must be a function defined with `def`")
            arguments = len(inspect.signature(function).parameters)
            if count is not None and arguments != count:
                raise InvalidArgument(f"{title}.{name} must take {count} argument{'s' * (count > 1)} (and no self), it takes {arguments}")
            functions[name] = function
        return UserAggregate(
            title=title,
            lift=functions["lift"],
            combine=functions["combine"],
            lower=functions["lower"],
            invert=functions.get("invert"),
            state=fields,
            identity=identity,
            commutative=bool(members.get("commutative", False)),
            output=output,
        )

    return decorate
