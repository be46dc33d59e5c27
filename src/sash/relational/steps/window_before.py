"""The results of the last window of a step, which the first of the next step is compared with (istream and dstream of results)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.relational.edges import PeriodicEdges
from sash.relational.members import Results
from sash.slicing import validation
from sash.slicing.persistence import encoding
from sash.slicing.persistence.transactions import Transaction
from sash.types import FAR_BACK

Array = npt.NDArray[Any]


class WindowBefore:
    """The last window's results, in a transaction."""

    def __init__(self, transaction: Transaction, name: str, number: Any) -> None:
        """``number`` is the window's, from the manifest; None before the first step."""
        self._transaction, self._name = transaction, name
        self._is_new = number is None
        self._number: int | None = None if number is None else validation.tick(number, "the state's manifest")
        self._rows: pa.Table | None = None
        self._upto = FAR_BACK

    def until(self, upto: int) -> WindowBefore:
        """Itself, for a step that ends at a watermark."""
        self._upto = upto
        return self

    def extended(self, rows: Results) -> Results:
        """The results of a step with those of the window before; from now on the last window of the step is the one before."""
        edges = rows.edges
        assert isinstance(edges, PeriodicEdges)
        if self._number is not None:
            stored = encoding.to_table(self._transaction.get(self._name), "the state's last window")
            stored = validation.like(stored, rows.table.schema, "the state's last window")
            numbers = np.concatenate([np.full(stored.num_rows, self._number), rows.numbers])
            rows = Results(pa.concat_tables([stored, rows.table]), edges, numbers, rows.measure)
        if self._upto > FAR_BACK:
            self._number = int(edges.numbers(np.array([self._upto + 1]))[0]) - 1
        last = rows.numbers == self._number if self._number is not None else np.zeros(len(rows.numbers), bool)
        self._rows = rows.table.filter(pa.array(last))
        return rows

    def commit(self) -> int | None:
        """Write the last window's results; returns its number."""
        if self._rows is not None and self._number is not None:
            rows = self._rows.combine_chunks()
            self._transaction.put(self._name, lambda: encoding.of_table(rows), new=self._is_new)
        return self._number
