"""The first rows of a stream, until every column has had a value to tell its type by."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.request import Request
from sash.slicing.rows.intake import in_schema, to_batches


class UndecidedRows:
    """Rows that came before the types of all columns were known."""

    def __init__(self, request: Request, *, ordered: bool) -> None:
        self._request, self._ordered = request, ordered
        self._batches: list[pa.RecordBatch] = []

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, rows: Any) -> pa.Table | None:
        """All rows so far, if every column has a type now; None if they have to wait."""
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
        """All rows, and ``batches`` behind them; columns that have had no value count as doubles, if aggregates read them."""
        schema = self._batches[0].schema if schema is None else schema
        schema = pa.schema([f.with_type(pa.float64()) if self._is_number(f) else f for f in schema])
        return pa.Table.from_batches([in_schema(b, schema) for b in [*self._batches, *(batches or [])]])

    def clear(self) -> None:
        """The rows are taken in."""
        self._batches = []

    def _is_number(self, field: pa.Field) -> bool:
        """Whether a column that has had no value is taken for numbers: aggregates read it, and nothing else does."""
        read = [text for call in self._request.aggs for text in call.inputs]
        return bool(pa.types.is_null(field.type)) and field.name in read and field.name not in self._request.column_names
