"""An aggregate's inputs as its kernels read them: values, validity bitmaps, and the bitmap of the rows that it includes."""

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
    included: Array | None
    """For each row whether the aggregate includes it; None if it includes all."""
    ranked: pa.Array | None
    """The values that ranks stand for, where the results are ranks."""


def evaluated(column: Column, table: pa.Table) -> tuple[list[pa.Array], Array | None]:
    """The inputs' values, and for each row whether the aggregate includes it (None: all)."""
    null_aware = column.call.aggregate.null_aware_inputs
    included: Array | None = None
    if column.condition is not None:
        included = column.condition.evaluate(table).fill_null(False).to_numpy(zero_copy_only=False)
    values = [_decoded(_where(e, table, included)) for e in column.inputs]
    if isinstance(column.call.aggregate, UserAggregate):
        values = [columns.in_type(v, t) for v, t in zip(values, column.types, strict=True)]
    for k, v in enumerate(values):
        if k not in null_aware and v.null_count:
            known = v.is_valid().to_numpy(zero_copy_only=False)
            included = known if included is None else included & known
    return values, included


def _where(expression: Expression, table: pa.Table, included: Array | None) -> pa.Array:
    """An expression's values, null where the condition does not hold: it is not evaluated there, since it may fail."""
    if included is None or expression.text in table.column_names or included.all():
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
    """The inputs for a form that was chosen before; columns of machine types without nulls are used as they are."""
    if column.condition is None and not form.null_aware_inputs:
        simple = [_numbers(table, e.text, m) for e, m in zip(column.inputs, form.inputs, strict=False)]
        if all(s is not None for s in simple) and len(simple) == len(column.inputs):
            parts = [s for s in simple if s is not None] if form.inputs else []
            return Fields(form, [*parts, all_rows(table.num_rows)], True, None, None)
    return replace(fields(column, table, always_masked=True), form=form)


def _numbers(table: pa.Table, name: str, machine: str) -> Array | None:
    """A column's own memory, if it has the machine type and no nulls; otherwise None."""
    place = table.schema.get_field_index(name)
    if place < 0 or machine in (POSITION, "bool"):  # Arrow's booleans are bits
        return None
    column = table.column(place)
    if column.num_chunks != 1 or column.null_count or column.type != pa.from_numpy_dtype(dtype(machine)):
        return None
    values: Array = column.chunk(0).to_numpy()
    return values


def fields(column: Column, table: pa.Table, *, always_masked: bool = False) -> Fields:
    """The inputs of an aggregate of flat fields; with ``always_masked`` for kernels that do not depend on whether the batch has nulls."""
    values, included = evaluated(column, table)
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
    masked = included is not None or always_masked
    mask = [] if not masked else [all_rows(table.num_rows) if included is None else packed(included)]
    return Fields(form, [*parts, *validity, *mask], masked, included, ranked)


def packed(flags: Array) -> Array:
    """Flags as a bitmap, padded for kernels."""
    bits = np.packbits(flags, bitorder="little")
    padded = np.zeros(len(bits) + WORD // 8, np.uint8)
    padded[: len(bits)] = bits
    return padded


def _all_or(values: pa.Array, count: int) -> Array:
    bitmap = columns.bitmap(values)
    return all_rows(count) if bitmap is None else bitmap


def all_rows(count: int) -> Array:
    """A bitmap in which all rows are included; bits behind the last row may be set."""
    size = (count + 7) // 8 + WORD // 8
    return EVERY[:size] if size <= len(EVERY) else np.full(size, 255, np.uint8)
