"""External sort: sorted runs on the local disk, merged into tables in their order.

Runs are Arrow files that are mapped into memory, so a stretch of the order is a slice of each; no row is read before its turn.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.slicing.batch.time_blocks import numbers

Array = npt.NDArray[Any]


class Runs:
    """Tables sorted by a column of numbers; equal numbers stay in their input order."""

    def __init__(self, column: str) -> None:
        self.column = column
        local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        self._folder = tempfile.TemporaryDirectory(prefix="sash-runs-", dir=local or None)
        self._tables: list[pa.Table] = []
        self._orders: list[Array] = []

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._tables, self._orders = [], []
        self._folder.cleanup()

    def add(self, table: pa.Table) -> None:
        """Sort a table and write it as one more run."""
        path = str(Path(self._folder.name) / f"{len(self._tables)}.arrow")
        ordered = table.take(pa.array(np.argsort(numbers(table.column(self.column)), kind="stable"))).combine_chunks()
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, ordered.schema) as writer:
            writer.write_table(ordered)
        mapped = pa.ipc.open_file(pa.memory_map(path)).read_all()
        self._tables.append(mapped)
        self._orders.append(numbers(mapped.column(self.column)))

    def merged(self, most_rows: int) -> Iterator[pa.Table]:
        """All rows in order, about ``most_rows`` at a time; rows with equal numbers are never split."""
        step = max(1, most_rows // (4 * len(self._orders)))
        samples = np.sort(np.concatenate([order[::step] for order in self._orders]))
        bounds = np.unique(samples[max(1, most_rows // step) :: max(1, most_rows // step)])
        starts = [0] * len(self._orders)
        for bound in [*bounds.tolist(), None]:
            ends = [len(o) if bound is None else int(np.searchsorted(o, bound)) for o in self._orders]
            parts = [t.slice(a, b - a) for t, a, b in zip(self._tables, starts, ends, strict=True) if b > a]
            starts = ends
            if parts:
                table = pa.concat_tables(parts)
                yield table.take(pa.array(np.argsort(numbers(table.column(self.column)), kind="stable")))
