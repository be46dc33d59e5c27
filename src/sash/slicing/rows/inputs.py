"""An aggregate's inputs as its kernels read them: values, bitmaps, and which rows count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

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
    held: Array | None
    """Which rows the aggregate takes in, where that is not all of them."""
    ranked: pa.Array | None
    """The values behind the ranks that results are, if they are."""


def evaluated(column: Column, table: pa.Table) -> tuple[list[pa.Array], Array | None]:
    """The inputs' values, and which rows the aggregate takes in (None: all)."""
    kept = column.call.aggregate.kept_inputs
    held: Array | None = None
    if column.condition is not None:
        held = column.condition.evaluate(table).fill_null(False).to_numpy(zero_copy_only=False)
    values = [_plain(_where(e, table, held)) for e in column.inputs]
    if isinstance(column.call.aggregate, UserAggregate):
        values = [columns.in_type(v, t) for v, t in zip(values, column.types, strict=True)]
    for k, v in enumerate(values):
        if k not in kept and v.null_count:
            known = v.is_valid().to_numpy(zero_copy_only=False)
            held = known if held is None else held & known
    return values, held


def _where(expression: Expression, table: pa.Table, held: Array | None) -> pa.Array:
    """An expression's values; where the condition does not hold it is not asked for, since it may have no value there."""
    if held is None or expression.text in table.column_names or held.all():
        return expression.evaluate(table)
    some = expression.evaluate(table.filter(pa.array(held)))
    return some.take(pa.array(np.cumsum(held) - 1, mask=~held))


def _plain(values: pa.Array) -> pa.Array:
    return columns.plain(columns.arrow_column(values))


@lru_cache(maxsize=256)
def stored_form(column: Column, schema: pa.Schema) -> Form | None:
    """The form whose partials are kept from batch to batch; None if they have no fixed size."""
    if column.call.aggregate.kind != "fields" or any(is_ranked(t) for t in column.types):
        return None
    return fields(column, schema.empty_table(), always_masked=True).form


def stored_fields(column: Column, table: pa.Table, form: Form) -> Fields:
    """The inputs for a form that is settled; columns of machine types without nulls cross without a look."""
    if column.condition is None and not form.kept:
        simple = [_numbers(table, e.text, m) for e, m in zip(column.inputs, form.inputs, strict=False)]
        if all(s is not None for s in simple) and len(simple) == len(column.inputs):
            parts = [s for s in simple if s is not None] if form.inputs else []
            return Fields(form, [*parts, all_rows(table.num_rows)], True, None, None)
    return replace(fields(column, table, always_masked=True), form=form)


def _numbers(table: pa.Table, name: str, machine: str) -> Array | None:
    """A column's own memory, if its type is the machine's and nothing is null."""
    place = table.schema.get_field_index(name)
    if place < 0 or machine in (POSITION, "bool"):  # Arrow's booleans are bits
        return None
    column = table.column(place)
    if column.num_chunks != 1 or column.null_count or column.type != pa.from_numpy_dtype(dtype(machine)):
        return None
    values: Array = column.chunk(0).to_numpy()
    return values


def fields(column: Column, table: pa.Table, *, always_masked: bool = False) -> Fields:
    """The inputs of an aggregate of flat fields; ``always_masked`` for kernels that must not depend on the batch."""
    values, held = evaluated(column, table)
    aggregate = column.call.aggregate
    if aggregate.arity == 0:  # a count looks at which rows there are, not at what they hold
        form, parts, ranked = aggregate.form(), [], None
        kept_bitmaps: list[Array] = []
    else:
        crossed = [columns.crossed(v, aggregate.reads) for v in values]
        nullable = tuple(always_masked or v.null_count > 0 for v in values)
        own = isinstance(aggregate, UserAggregate)
        form = form_of(
            aggregate, *[v.type for v in values], nullable=() if own else nullable, rows=None if always_masked else table.num_rows
        )
        parts = [part for c in crossed for part in c.parts]
        ranked = crossed[0].ranked
        kept_bitmaps = [_all_or(values[k], table.num_rows) for k in form.kept]
    masked = held is not None or always_masked
    mask = [] if not masked else [all_rows(table.num_rows) if held is None else packed(held)]
    return Fields(form, [*parts, *kept_bitmaps, *mask], masked, held, ranked)


def packed(flags: Array) -> Array:
    """A bitmap of flags, padded for kernels."""
    bits = np.packbits(flags, bitorder="little")
    padded = np.zeros(len(bits) + WORD // 8, np.uint8)
    padded[: len(bits)] = bits
    return padded


def _all_or(values: pa.Array, count: int) -> Array:
    bitmap = columns.bitmap(values)
    return all_rows(count) if bitmap is None else bitmap


def all_rows(count: int) -> Array:
    """A bitmap of rows that all count; bits behind them may be set."""
    size = (count + 7) // 8 + WORD // 8
    return EVERY[:size] if size <= len(EVERY) else np.full(size, 255, np.uint8)
