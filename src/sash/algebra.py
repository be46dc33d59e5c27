"""What an aggregate is: ``identity``, ``lift``, ``combine``, ``lower``, perhaps ``invert``, and the laws it keeps.

The Reactive Aggregator's section 3 is the source of the interface: ``lift`` turns a row into a *partial* (a flat tuple of
scalars), ``combine`` joins two neighbouring partials and is associative, ``lower`` turns a partial into a result.
``combine(a, b)`` is only ever called with ``a`` earlier than ``b``.

Two records matter. An :class:`Aggregate` knows names, laws and types; a :class:`Form` is an aggregate bound to the machine
types of its inputs, which is all that the kernel generator needs to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import pyarrow as pa

from sash.errors import InvalidType

Value = Any
"""A scalar inside an aggregate's function: a Python number in the oracle, a register in a kernel."""
Partial = Any
"""A tuple of :data:`Value`, one for each field of the state."""
Function = Callable[..., Any]

Kind = Literal["fields", "runs", "items", "sketch"]
"""How partials are held: flat fields (compiled), sorted runs, rows in order, or a sketch."""

Reading = Literal["order", "limbs", "double"]
"""What an aggregate reads of a type without a machine type of its own: ranks that keep the order, the digits of a decimal in
limbs of 62 bits, or a double."""

POSITION = "position"
"""The machine type of an input that is the row's own number, counted from 0."""


def smaller(a: Value, b: Value) -> Value:
    """The smaller of two values, the first of equals; NaN is larger than any number.

    Kernels have an instruction for it, so aggregates say ``smaller`` and not what it means.
    """
    return a if b != b else a if a <= b else b


def larger(a: Value, b: Value) -> Value:
    """The larger of two values, the first of equals; NaN is larger than any number."""
    return a if a != a or a >= b else b


PRIMITIVES = {"smaller": smaller, "larger": larger}


@dataclass(frozen=True)
class Form:
    """An aggregate bound to machine types: the one definition that every kernel is generated from.

    ``inputs`` and ``state`` are machine types. For each input in ``kept`` the row's null is not skipped; ``lift`` gets a
    boolean after its values that says whether the value is known. ``identity`` may be None: the generator then adds an
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
    kept: tuple[int, ...] = ()
    counted: bool = False
    commutative: bool = False
    selective: bool = False
    constants: tuple[tuple[str, float | int], ...] = ()

    @property
    def invertible(self) -> bool:
        """Whether ``invert`` undoes ``combine`` exactly, so that results may be had by subtraction."""
        return self.invert is not None and self.exact

    @property
    def laws(self) -> frozenset[str]:
        """The names of the laws that hold, associativity aside."""
        held = {"commutative": self.commutative, "invertible": self.invertible, "selective": self.selective}
        return frozenset(name for name, holds in held.items() if holds)

    def forced_invertible(self) -> Form:
        """The same form with an inexact inverse declared good enough, for benchmarks that redraw the papers."""
        return replace(self, exact=True)


@dataclass(frozen=True)
class Aggregate(ABC):
    """A named aggregate with its parameters. Subclasses live in :mod:`sash.aggregates`, one file each."""

    name: ClassVar[str]
    kind: ClassVar[Kind] = "fields"
    arity: ClassVar[int] = 1
    kept: ClassVar[tuple[int, ...]] = ()
    """Which inputs' nulls are values (``first``, ``last``, the value of ``max_by``)."""
    counts_rows: ClassVar[bool] = False
    """Whether the aggregate over no rows is a number, not null (counts)."""
    reads: ClassVar[Reading] = "order"

    @property
    def label(self) -> str:
        """The name to show: a user's own aggregate has its class's."""
        return self.name

    @property
    def kept_inputs(self) -> tuple[int, ...]:
        """The inputs whose nulls are kept, with this aggregate's parameters."""
        return self.kept

    @abstractmethod
    def returns(self, *types: pa.DataType) -> pa.DataType:
        """The result's type for these input types; raises :class:`InvalidType` where they are not supported."""

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        """The aggregate over inputs of these types, compiled fields and all.

        ``nullable`` says which inputs may hold nulls; ``rows`` bounds the number of rows that one partial can cover.
        """
        raise InvalidType(f"{self.name} keeps {self.kind} as its partials: there are no compiled fields to ask for")

    def lower_logical(self, raw: list[pa.Array], *types: pa.DataType) -> pa.Array:
        """Give a kernel's output columns their logical type."""
        return columns_of(raw, self.returns(*types))

    def objects(self) -> Objects:
        """The aggregate over partials that are Python objects, for kinds other than ``fields``."""
        raise InvalidType(f"{self.name} has compiled fields: ask for its form")

    def supports(self, *types: pa.DataType) -> bool:
        """Whether :meth:`returns` accepts these types."""
        try:
            self.returns(*types)
        except InvalidType:
            return False
        return True

    def refuse(self, *types: pa.DataType, wants: str) -> InvalidType:
        """The error for an unsupported input type."""
        given = ", ".join(str(t) for t in types)
        return InvalidType(f"{self.name} does not take {given}; it takes {wants}")


def columns_of(raw: list[pa.Array], logical: pa.DataType) -> pa.Array:
    """Kernel output columns as one array of a logical type: a cast, or a struct of casts."""
    if pa.types.is_struct(logical):
        children = [columns_of([column], f.type) for column, f in zip(raw, logical, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(logical))
    (column,) = raw
    if column.type == logical:
        return column
    if pa.types.is_decimal(logical) or pa.types.is_temporal(logical):
        return reinterpreted(column, logical)
    return column.cast(logical)


def reinterpreted(column: pa.Array, logical: pa.DataType) -> pa.Array:
    """Integers as the dates, times or decimals that they stand for."""
    if pa.types.is_decimal(logical):
        whole = column.cast(pa.decimal128(19, 0)) if column.type != pa.decimal128(19, 0) else column
        buffers = whole.buffers()
        return pa.Array.from_buffers(logical, len(whole), buffers, offset=whole.offset)
    bits = pa.int32() if logical.bit_width == 32 else pa.int64()
    return column.cast(bits).view(logical)


@dataclass(frozen=True)
class Law:
    """One checkable statement about a form; used by the law checker and by the docs."""

    name: str
    statement: str
    needs: str = field(default="")


LAWS = (
    Law("identity", "combine(identity, a) == a == combine(a, identity)"),
    Law("associative", "combine(combine(a, b), c) == combine(a, combine(b, c))"),
    Law("commutative", "combine(a, b) == combine(b, a)", needs="commutative"),
    Law("invertible", "invert(combine(a, b), a) == b, lifts only", needs="invertible"),
    Law("selective", "combine(a, b) is a or b", needs="selective"),
)


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


def plain_objects(form: Form) -> Objects:
    """A form's own functions over plain Python values: what its kernels must agree with."""

    def lift(value: Any) -> Any:
        values = value if len(form.inputs) > 1 else () if not form.inputs else (value,)
        if any(v is None for k, v in enumerate(values) if k not in form.kept) or (not form.inputs and value is None):
            return NOTHING
        known = [values[k] is not None for k in form.kept]
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
