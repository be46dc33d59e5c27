"""The first rows of a stream, until every column has had a value that decides its type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.request import Request
from sash.slicing.rows.intake import in_schema, to_batches


class UndecidedRows:
    """Rows that arrived before the types of all columns were known."""

    def __init__(self, request: Request, *, ordered: bool) -> None:
        self._request, self._ordered = request, ordered
        self._batches: list[pa.RecordBatch] = []

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, rows: Any) -> pa.Table | None:
        """All rows so far, if every column has a type now; otherwise the rows are buffered, and None is returned."""
        batches = to_batches(rows, None)
        schema = batches[0].schema
        if self._batches:
            known = {f.name: f for f in self._batches[0].schema}
            schema = pa.schema([known[f.name] if pa.types.is_null(f.type) and f.name in known else f for f in schema])
            if set(schema.names) != set(known):
                raise InvalidArgument(f"the batch has the columns {', '.join(schema.names)}; the first one had {', '.join(known)}")
        if any(pa.types.is_null(f.type) for f in schema) and not self._ordered:
            self._batches = [in_schema(b, schema) for b in [*self._batches, *batches]]
            return None
        return self.decided(schema, batches)

    def decided(self, schema: pa.Schema | None = None, batches: list[pa.RecordBatch] | None = None) -> pa.Table:
        """All rows, followed by ``batches``; columns that have had no value are doubles, if aggregates read them."""
        schema = self._batches[0].schema if schema is None else schema
        schema = pa.schema([f.with_type(pa.float64()) if self._is_number(f) else f for f in schema])
        return pa.Table.from_batches([in_schema(b, schema) for b in [*self._batches, *(batches or [])]])

    def clear(self) -> None:
        """Drop the rows."""
        self._batches = []

    def _is_number(self, field: pa.Field) -> bool:
        """Whether a column without a value is taken to be of numbers: aggregates read it, and nothing else does."""
        read = [text for call in self._request.aggs for text in call.inputs]
        return bool(pa.types.is_null(field.type)) and field.name in read and field.name not in self._request.column_names
