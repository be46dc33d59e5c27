"""An aggregate's inputs as its kernels read them: values, validity bitmaps, and the bitmap of the rows that it includes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce

import numpy as np
import pyarrow as pa

from sash import columns
from sash.algebra import POSITION, Form
from sash.algorithms.binding import form_of
from sash.columns import WORD, Array
from sash.expressions import Expression
from sash.functions.udaf import UserAggregate
from sash.plan.logical import Column
from sash.types import dtype, is_ranked

EVERY = np.full(1 << 16, 255, np.uint8)


@dataclass(frozen=True)
class Fields:
    """The inputs of an aggregate of flat fields, over some rows."""

    form: Form
    rows: list[Array]
    masked: bool
    bits: Array | None
    """The bitmap of the rows that the aggregate includes; None if it includes all."""
    count: int
    """How many rows there are."""
    ranked: pa.Array | None
    """The values that ranks stand for, where the results are ranks."""

    @cached_property
    def included(self) -> Array | None:
        """For each row whether the aggregate includes it; None if it includes all."""
        return None if self.bits is None else unpacked(self.bits, self.count)


def evaluated(column: Column, table: pa.Table) -> tuple[list[pa.Array], Array | None]:
    """The inputs' values, and the bitmap of the rows that the aggregate includes (None: all)."""
    null_aware = column.call.aggregate.null_aware_inputs
    bits: Array | None = None
    if column.condition is not None:
        bits = columns.true_bits(columns.arrow_column(column.condition.evaluate(table)))
    values = [_decoded(_where(e, table, bits)) for e in column.inputs]
    if isinstance(column.call.aggregate, UserAggregate):
        values = [columns.in_type(v, t) for v, t in zip(values, column.types, strict=True)]
    for k, v in enumerate(values):
        if k not in null_aware and (known := columns.bitmap(v)) is not None:
            bits = known if bits is None else bits & known
    return values, bits


def _where(expression: Expression, table: pa.Table, bits: Array | None) -> pa.Array:
    """An expression's values, null where the condition does not hold: it is not evaluated there, since it may fail."""
    if bits is None or table.schema.get_field_index(expression.text) >= 0:
        return expression.evaluate(table)
    included = unpacked(bits, table.num_rows)
    if included.all():
        return expression.evaluate(table)
    some = expression.evaluate(table.filter(pa.array(included)))
    return some.take(pa.array(np.cumsum(included) - 1, mask=~included))


def _decoded(values: pa.Array) -> pa.Array:
    return columns.in_kernel_layout(columns.arrow_column(values))


@lru_cache(maxsize=256)
def stored_form(column: Column, schema: pa.Schema) -> Form | None:
    """The form of the partials that are stored from batch to batch; None if they have no fixed size."""
    if column.call.aggregate.kind != "fields" or any(is_ranked(t) for t in column.types):
        return None
    return fields(column, schema.empty_table(), always_masked=True).form


def stored_fields(column: Column, table: pa.Table, form: Form) -> Fields:
    """The inputs for a form that was chosen before; columns of machine types are used as they are."""
    if not form.null_aware_inputs:
        simple = [_numbers(table, e.text, m) for e, m in zip(column.inputs, form.inputs, strict=False)]
        if all(s is not None for s in simple) and len(simple) == len(column.inputs):
            parts = [s[0] for s in simple if s is not None] if form.inputs else []
            condition = None if column.condition is None else column.condition.evaluate(table)
            masks = [] if condition is None else [columns.true_bits(condition)]
            masks += [s[1] for s in simple if s is not None and s[1] is not None]
            bits = reduce(np.bitwise_and, masks) if masks else None
            return Fields(form, [*parts, all_rows(table.num_rows) if bits is None else bits], True, bits, table.num_rows, None)
    return replace(fields(column, table, always_masked=True), form=form)


def _numbers(table: pa.Table, name: str, machine: str) -> tuple[Array, Array | None] | None:
    """A column's own memory, and the bitmap of its values if some are null; None if it has another type."""
    place = table.schema.get_field_index(name)
    if place < 0 or machine in (POSITION, "bool"):  # Arrow's booleans are bits
        return None
    column = table.column(place)
    if column.num_chunks != 1 or column.type != pa.from_numpy_dtype(dtype(machine)):
        return None
    values = column.chunk(0)
    numbers = np.frombuffer(values.buffers()[1], dtype(machine), len(values), values.offset * dtype(machine).itemsize)
    return numbers, columns.bitmap(values)


def fields(column: Column, table: pa.Table, *, always_masked: bool = False) -> Fields:
    """The inputs of an aggregate of flat fields; with ``always_masked`` for kernels that do not depend on whether the batch has nulls."""
    values, bits = evaluated(column, table)
    aggregate = column.call.aggregate
    if aggregate.arity == 0:  # a count depends on which rows there are, not on their values
        form, parts, ranked = aggregate.form(), [], None
        validity: list[Array] = []
    else:
        crossed = [columns.to_column(v, aggregate.reads) for v in values]
        nullable = tuple(always_masked or v.null_count > 0 for v in values)
        own = isinstance(aggregate, UserAggregate)
        form = form_of(
            aggregate, *[v.type for v in values], nullable=() if own else nullable, rows=None if always_masked else table.num_rows
        )
        parts = [part for c in crossed for part in c.parts]
        ranked = crossed[0].ranked
        validity = [_all_or(values[k], table.num_rows) for k in form.null_aware_inputs]
    masked = bits is not None or always_masked
    mask = [] if not masked else [all_rows(table.num_rows) if bits is None else bits]
    return Fields(form, [*parts, *validity, *mask], masked, bits, table.num_rows, ranked)


def unpacked(bits: Array, count: int) -> Array:
    """A bitmap as a flag for each of ``count`` rows."""
    return np.unpackbits(bits, count=count, bitorder="little").view(bool)


def _all_or(values: pa.Array, count: int) -> Array:
    bitmap = columns.bitmap(values)
    return all_rows(count) if bitmap is None else bitmap


def all_rows(count: int) -> Array:
    """A bitmap in which all rows are included; bits behind the last row may be set."""
    size = (count + 7) // 8 + WORD // 8
    return EVERY[:size] if size <= len(EVERY) else np.full(size, 255, np.uint8)
