"""Pages: tables that are allocated once and emitted in parts, as results are written into their rows.

Most steps of a stream emit a window or two, and to make arrays and a table for each takes far longer than the windows do. A page is a
table whose rows are not written yet; a step writes the next few and emits that part of the table. What was emitted is never written
again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.choices.range_choice import FEW_RANGES
from sash.plan.logical import REVISION, Plan, output_type
from sash.slicing.partials.ranges import look_at
from sash.slicing.rows.inputs import stored_form
from sash.slicing.stream.window_manager import Part
from sash.types import dtype

Array = npt.NDArray[Any]

ROWS = 256
"""How many rows a page has; whoever holds on to one row holds on to the page's memory."""


def fit_on_pages(plan: Plan, schema: pa.Schema) -> bool:
    """Whether results consist of a query, a window and numbers that need no conversion: those of streams without keys."""
    ticks_are_values = pa.types.is_timestamp(plan.measure.type) or plan.measure.type == pa.int64()
    if plan.by or plan.has_rows or REVISION in schema.names or not ticks_are_values:
        return False
    forms = [stored_form(c, plan.schema) for c in plan.columns]
    return all(form is not None and _is_number(form.outputs, output_type(c)) for form, c in zip(forms, plan.columns, strict=True))


def _is_number(outputs: tuple[str, ...], t: pa.DataType) -> bool:
    return len(outputs) == 1 and outputs[0] != "bool" and pa.from_numpy_dtype(dtype(outputs[0])) == t


class Page:
    """A table whose rows are written one after the other."""

    def __init__(self, schema: pa.Schema, longest_name: int) -> None:
        _, window, *numbers = schema
        self.written = 0
        names, name_ends = np.zeros(max(1, ROWS * longest_name), np.uint8), np.zeros(ROWS + 1, np.int32)
        self.start, self.end = np.zeros(ROWS, np.int64), np.zeros(ROWS, np.int64)
        self.numbers = [np.zeros(ROWS, f.type.to_pandas_dtype()) for f in numbers]
        self.names, self.name_ends = names.data, name_ends.data
        windows = [_over(self.start, window.type.field(0).type), _over(self.end, window.type.field(1).type)]
        self.table = pa.Table.from_arrays(
            [
                pa.StringArray.from_buffers(ROWS, pa.py_buffer(name_ends), pa.py_buffer(names)),
                pa.StructArray.from_arrays(windows, fields=list(window.type)),
                *[_over(a, f.type) for a, f in zip(self.numbers, numbers, strict=True)],
            ],
            schema=schema,
        )

    def put_name(self, at: int, name: bytes) -> None:
        """A row's query; rows are written one after the other."""
        begin = self.name_ends[at]
        self.name_ends[at + 1] = end = begin + len(name)
        self.names[begin:end] = name


def _over(memory: Array, t: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(t, len(memory), [None, pa.py_buffer(memory)])


class Pages:
    """Writes the results of steps that emit few windows."""

    def __init__(self, plan: Plan, schema: pa.Schema) -> None:
        self._schema = schema
        self._names = {q.name: q.name.encode() for q in plan.queries}
        self._longest_name = max(map(len, self._names.values()))
        self._page: Page | None = None

    def part(self, parts: list[Part]) -> pa.Table | None:
        """A step's results as a part of a page; None if they are too many, or not all numbers."""
        bounds_of = [report.bounds for _, _, reports in parts for report in reports]
        total = sum(map(len, bounds_of))
        if total > ROWS or any(len(b) > FEW_RANGES or b.start_known is not None or b.end_known is not None for b in bounds_of):
            return None
        page = self._page
        if page is None or page.written + total > ROWS:
            page = self._page = Page(self._schema, self._longest_name)
        at = first = page.written
        for store, slices, reports in parts:
            partials, queries = slices.partials(), store.plan.queries
            for report in reports:
                bounds = report.bounds
                ranges = look_at(bounds.lo, bounds.hi)
                behind = at + len(bounds)
                for p, numbers in zip(partials, page.numbers, strict=True):
                    if not p.put(ranges, numbers[at:behind]):
                        return None
                page.start[at:behind], page.end[at:behind] = bounds.start, bounds.end
                for k in report.queries.tolist():
                    page.put_name(at, self._names[queries[k].name])
                    at += 1
        page.written = at
        return page.table.slice(first, total)
