"""An aggregate as the rest of Sash knows it: its name, its types, and its form over columns of some types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from sash.algebra.form import Form, Objects
from sash.errors import InvalidType
from sash.types import Reading

Kind = Literal["fields", "runs", "items", "sketch"]
"""How partials are represented: flat fields (compiled), sorted runs, rows in order, or a sketch."""


@dataclass(frozen=True)
class Aggregate(ABC):
    """A named aggregate with its parameters. Subclasses live in :mod:`sash.aggregates`, one file each."""

    name: ClassVar[str]
    kind: ClassVar[Kind] = "fields"
    arity: ClassVar[int] = 1
    null_aware: ClassVar[tuple[int, ...]] = ()
    """The inputs whose nulls are values (the first one of ``max_by``), whatever the parameters; those of other inputs are skipped."""
    counts_rows: ClassVar[bool] = False
    """Whether the aggregate over no rows is a number, not null (counts)."""
    counts_values: ClassVar[bool] = False
    """Whether the result is how many different values there are."""
    reads: ClassVar[Reading] = "order"

    @property
    def label(self) -> str:
        """The name to show: a user's own aggregate has its class's."""
        return self.name

    @property
    def null_aware_inputs(self) -> tuple[int, ...]:
        """The inputs whose nulls are not skipped, with this aggregate's parameters."""
        return self.null_aware

    @abstractmethod
    def returns(self, *types: pa.DataType) -> pa.DataType:
        """The result's type for these input types; raises :class:`InvalidType` where they are not supported."""

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        """The aggregate bound to inputs of these types, with partials of flat fields.

        ``nullable`` says which inputs may have nulls; ``rows`` bounds the number of rows that one partial can cover.
        """
        raise InvalidType(f"{self.name} has no compiled form: its partials are {self.kind}")

    def lower_logical(self, raw: list[pa.Array], *types: pa.DataType) -> pa.Array:
        """A kernel's output columns in their logical type."""
        return columns_of(raw, self.returns(*types))

    def objects(self) -> Objects:
        """The aggregate over partials that are Python objects, for kinds other than ``fields``."""
        raise InvalidType(f"{self.name} has a compiled form, and no partials that are Python objects")

    def supports(self, *types: pa.DataType) -> bool:
        """Whether :meth:`returns` accepts these types."""
        try:
            self.returns(*types)
        except InvalidType:
            return False
        return True

    def refuse(self, *types: pa.DataType, wants: str) -> InvalidType:
        """The error for an unsupported input type."""
        unsupported = ", ".join(str(t) for t in types)
        return InvalidType(f"{self.name} does not take {unsupported}; it takes {wants}")


def columns_of(raw: list[pa.Array], logical: pa.DataType) -> pa.Array:
    """Kernel output columns as one array of a logical type: a cast, or a struct of casts."""
    if pa.types.is_struct(logical):
        children = [columns_of([column], f.type) for column, f in zip(raw, logical, strict=True)]
        return struct_of(children, logical)
    (column,) = raw
    if column.type == logical:
        return column
    if pa.types.is_decimal(logical) or pa.types.is_temporal(logical):
        return reinterpreted(column, logical)
    return column.cast(logical)


def struct_of(children: list[pa.Array], logical: pa.DataType) -> pa.Array:
    """Columns as a struct, null where they are null."""
    return pa.StructArray.from_arrays(children, fields=list(logical), mask=children[0].is_null())


def reinterpreted(column: pa.Array, logical: pa.DataType) -> pa.Array:
    """Integers as the dates, times or decimals that they stand for."""
    if pa.types.is_decimal(logical):
        whole = column.cast(pa.decimal128(19, 0)) if column.type != pa.decimal128(19, 0) else column
        wide = pa.decimal128(logical.precision, logical.scale)  # the layout of the buffers, whatever that of the logical type
        result = pa.Array.from_buffers(wide, len(whole), whole.buffers(), offset=whole.offset)
        return result if logical == wide else result.cast(logical)
    bits = pa.int32() if logical.bit_width == 32 else pa.int64()
    return column.cast(bits).view(logical)
