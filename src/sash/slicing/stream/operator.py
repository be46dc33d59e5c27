"""``sash.Operator``: general stream slicing in one process, batch by batch.

The operator is a thin shell: it holds the requested query, and from the first rows on the :class:`~sash.slicing.stream.engine.Engine` that
does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, unknown
from sash.plan.clock import ProcessingTime
from sash.plan.grouping import Grouping, grouping_of
from sash.plan.logical import make_plan
from sash.plan.options import Emit, Late, Store, StreamOptions
from sash.plan.request import Aggs, By, Request, Windows
from sash.slicing import validation
from sash.slicing.persistence import snapshots
from sash.slicing.persistence.descriptions import of_request, to_arguments
from sash.slicing.persistence.engine_state import Counts
from sash.slicing.rows.intake import in_schema, to_batches
from sash.slicing.stream.engine import Engine
from sash.slicing.stream.undecided import UndecidedRows
from sash.types import DurationLike, PointLike, Rows
from sash.windows.base import Window


@dataclass
class Stats:
    """What an operator has seen and stores."""

    rows: int = 0
    """Rows taken in."""
    late: int = 0
    """Rows that came too late for all of their windows."""
    ahead: int = 0
    """Rows that were set aside because of `max_ahead`."""
    without_time: int = 0
    """Rows whose time is null."""
    slices: int = 0
    """Slices that are stored."""
    splits: int = 0
    """How often a slice was split."""
    merges: int = 0
    """How often slices were merged."""
    shifts: int = 0
    """How often a row moved to the next slice."""
    kept_rows: int = 0
    """Rows that are stored because a query needs them."""
    bytes: int = 0
    """The size of all that is stored."""


class Operator:
    """All windows of all queries over one stream, batch by batch, in one process.

    Args:
        windows: One window of `sash.windows`, or a dictionary of them by name. Results always have the column `query`.
        aggs: One aggregate of `sash.functions`, or several.
        time: The column that windows are measured in, or `sash.processing_time()`.
        by: Columns or SQL expressions over the row to group by.
        order_by: Columns that order rows of the same time.
        ordered: Declares that rows come in the order of time. Then `add` returns the results, and a row out of order is an error.
        store: How partials over slices are kept: `"lazy"` combines them when windows end, `"eager"` keeps a tree over them.
        lateness: How much longer than the watermark a row may still change results.
        emit: `"final"` returns each window once; `"update"` again after every change; `"running"` open windows, too.
        late: `"drop"` counts rows that come too late; `"output"` keeps them for `late_rows`.
        idle: After how much event time without a row the state of a key is dropped, for windows that never all close.
        max_ahead: Rows that are further in front of the clock than this are set aside and counted.
        watermark: How far the watermark stays behind the newest row. Then it advances by itself, and `add` returns the results.

    Examples:
        >>> import sash
        >>> from sash import functions as S, windows as W
        >>> op = sash.Operator(windows={"ten": W.tumbling(10)}, aggs=[S.sum("v").alias("total")], time="t")
        >>> op.add([{"t": 1, "v": 5}, {"t": 12, "v": 1}])
        >>> op.add([{"t": 3, "v": 2}])
        >>> op.advance(10).to_pylist()
        [{'query': 'ten', 'window': {'start': 0, 'end': 10}, 'total': 7}]
        >>> op.close().to_pylist()
        [{'query': 'ten', 'window': {'start': 10, 'end': 20}, 'total': 1}]
    """

    def __init__(
        self,
        *,
        windows: Windows,
        aggs: Aggs,
        time: str | ProcessingTime,
        by: By | None = None,
        order_by: str | Sequence[str] | None = None,
        ordered: bool = False,
        store: Store = "auto",
        lateness: DurationLike | None = None,
        emit: Emit = "final",
        late: Late = "drop",
        idle: DurationLike | None = None,
        max_ahead: DurationLike | None = None,
        watermark: DurationLike | None = None,
    ) -> None:
        self._request = Request.of(windows, aggs, by, time, order_by)
        self._options = StreamOptions.of(
            ordered=ordered, store=store, lateness=lateness, emit=emit, late=late, idle=idle, max_ahead=max_ahead, watermark=watermark
        )
        self._clock = time if isinstance(time, ProcessingTime) else None
        self._engine: Engine | None = None
        self._grouping = Grouping((), {})
        self._own_schema: pa.Schema | None = None
        """The columns of the rows as they are passed, without computed keys."""
        self._undecided = UndecidedRows(self._request, ordered=ordered)
        self._counts = Counts()
        """The counts of a restored snapshot of an operator that had no rows yet."""
        self._is_closed = False

    # Rows in.

    def add(self, batch: Rows) -> pa.Table | None:
        """Take rows in.

        Args:
            batch: Rows as anything that speaks Arrow, or as a list of dictionaries. A batch that is refused leaves nothing behind.

        Returns:
            The results in a stream that is declared in order, or that has `watermark=`; otherwise None.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count().alias("n"), time="t", watermark=0)
            >>> op.add([{"t": 3}, {"t": 15}])["n"].to_pylist()
            [1]
        """
        self._check_open()
        if self._clock is not None:
            batch = self._stamped(batch, self._clock)
        if self._engine is None:
            rows = self._undecided.add(batch)
            if rows is None:
                return None if self._options.watermark is None else pa.table({})
            return self._start(rows)
        if self._grouping.computed:
            batch = self._keyed(to_batches(batch, self._own_schema))
        return self._engine.add(batch)

    def _start(self, rows: pa.Table) -> pa.Table | None:
        """Make the engine, now that the columns are known, and add all rows so far. If they do not fit, the operator is unchanged."""
        grouping = grouping_of(self._request.by, rows.schema)
        keyed = grouping.with_keys(rows)
        engine = self._new_engine(keyed.schema, grouping)
        engine.check(keyed)
        engine.counts = self._counts
        self._grouping, self._own_schema, self._engine = grouping, rows.schema, engine
        self._undecided.clear()
        return engine.add(keyed)

    def _new_engine(self, schema: pa.Schema, grouping: Grouping) -> Engine:
        request = self._request.over_keys(grouping.names)
        if self._clock is not None:
            request = replace(request, time=self._clock.name)
        return Engine(make_plan(schema, request), self._options)

    def _keyed(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """Rows with their computed keys."""
        assert self._own_schema is not None
        return self._grouping.with_keys(pa.Table.from_batches([in_schema(b, self._own_schema) for b in batches]))

    def _stamped(self, rows: Any, clock: ProcessingTime) -> pa.Table:
        """Rows with the current time."""
        schema = None
        if self._own_schema is not None:
            schema = pa.schema([f for f in self._own_schema if f.name != clock.name])
        batches = to_batches(rows, schema)
        if clock.name in batches[0].schema.names:
            raise InvalidArgument(f"the rows have a column named {clock.name!r} already; use time={clock.name!r}, or rename it")
        newest = 0 if self._engine is None else max(self._engine.position.newest, 0)
        return pa.Table.from_batches([clock.stamped(b, newest) for b in batches])

    def _decide(self) -> None:
        """Make the engine, if there are rows: columns that have had no value are doubles from now on."""
        if self._engine is None and self._undecided:
            self._start(self._undecided.decided())

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidArgument("the operator is closed; make a new one")

    # Results out.

    def advance(self, watermark: PointLike) -> pa.Table:
        """Say that no older row is expected, and return the results that are ready.

        Args:
            watermark: A point of time in the type or unit of the time column. It only advances.

        Returns:
            The windows that became ready.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count().alias("n"), time="t")
            >>> op.add([{"t": 3}, {"t": 15}])
            >>> op.advance(12)["n"].to_pylist()
            [1]
        """
        self._check_open()
        self._decide()
        if self._engine is None:
            raise InvalidArgument("advance needs a batch first: the time column's type is not known yet; add one, even an empty one")
        if self._options.ordered:
            raise InvalidArgument("in a declared in-order stream every row is a watermark; add returns the results")
        return self._engine.advance(self._engine.tick(watermark))

    def close(self) -> pa.Table:
        """End the stream.

        Returns:
            All windows that are still open.

        Examples:
            >>> op = Operator(windows=W.session(5), aggs=S.count().alias("n"), time="t")
            >>> op.add([{"t": 3}, {"t": 6}])
            >>> op.close()["n"].to_pylist()
            [2]
        """
        self._check_open()
        self._decide()
        result = pa.table({}) if self._engine is None else self._engine.close()
        self._is_closed = True
        return result

    def late_rows(self) -> pa.Table:
        """The rows that came too late for all of their windows since this was last called.

        Returns:
            The rows, in an operator with `late="output"`; without that they are only counted, and this is an error.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count(), time="t", late="output", watermark=0)
            >>> _ = op.add([{"t": 15}]), op.add([{"t": 3}])
            >>> op.late_rows().to_pylist()
            [{'t': 3}]
        """
        if self._options.late != "output":
            raise InvalidArgument('late rows are only counted (op.stats.late); make the operator with late="output" to have them')
        if self._engine is None:
            return pa.table({})
        self._engine.flush()
        return self._engine.late_rows.fetch(self._engine.plan.schema)

    # Queries are added and removed.

    def add_query(self, name: str, window: Window) -> None:
        """Serve another query, which reports windows that start after the newest row so far.

        Args:
            name: The query's name, for the column `query`.
            window: A window of `sash.windows`.

        Examples:
            >>> op = Operator(windows={"ten": W.tumbling(10)}, aggs=S.count().alias("n"), time="t", watermark=0)
            >>> _ = op.add([{"t": 5}])
            >>> op.add_query("five", W.tumbling(5))
            >>> op.add([{"t": 12}, {"t": 20}])["query"].to_pylist()
            ['ten', 'ten', 'five']
        """
        self._check_open()
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a query's name is text, not {name!r}")
        if not isinstance(window, Window) or window.is_trailing:
            raise InvalidArgument(f"a query needs a window for sash.aggregate, not {window!r}")
        if name in self._request.windows:
            raise InvalidArgument(f"there is a query named {name!r} already")
        if self._engine is not None:
            self._engine.add_query(name, window)
        self._request = replace(self._request, windows={**self._request.windows, name: window})

    def remove_query(self, name: str) -> None:
        """Stop serving a query: it reports nothing more, and what only it needed is dropped.

        Args:
            name: The query's name. The last one cannot be removed.

        Examples:
            >>> op = Operator(windows={"ten": W.tumbling(10), "five": W.tumbling(5)}, aggs=S.count(), time="t", watermark=0)
            >>> op.remove_query("ten")
            >>> op.add([{"t": 2}, {"t": 12}])["query"].to_pylist()
            ['five']
        """
        self._check_open()
        if not isinstance(name, str) or name not in self._request.windows:
            raise unknown("query", name, self._request.windows)
        if len(self._request.windows) == 1:
            raise InvalidArgument("the last query cannot be removed; close the operator instead")
        if self._engine is not None:
            self._engine.remove_query(name)
        self._request = replace(self._request, windows={n: w for n, w in self._request.windows.items() if n != name})

    # Snapshots.

    def snapshot(self) -> bytes:
        """All state as bytes.

        Returns:
            What `restore` takes. It carries a version and a fingerprint of the query.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count().alias("n"), time="t")
            >>> op.add([{"t": 3}])
            >>> Operator.restore(op.snapshot()).close()["n"].to_pylist()
            [1]
        """
        if self._is_closed:
            raise InvalidArgument("the operator is closed; there is nothing left to snapshot")
        self._decide()
        query, engine = of_request(self._request, self._options), self._engine
        if engine is None:
            return snapshots.of_engine(query, None, None, (), self._counts)
        state = engine.export()
        return snapshots.of_engine(query, state, engine.plan.schema, engine.plan.by, engine.counts)

    @classmethod
    def restore(cls, snapshot: bytes, windows: Windows | None = None, aggs: Aggs | None = None) -> Operator:
        """The operator that a snapshot was taken of, which continues where that one was.

        Args:
            snapshot: What `snapshot` returned. Bytes of another version, or damaged ones, are refused.
            windows: Users' own windows, by the names that they had: they are code, which a snapshot does not hold.
            aggs: Users' own aggregates.

        Returns:
            An operator with the state of the snapshot.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count().alias("n"), time="t")
            >>> op.add([{"t": 3}])
            >>> Operator.restore(op.snapshot()).close()["n"].to_pylist()
            [1]
        """
        header, sections = snapshots.unpack(snapshot)
        with validation.reading("the snapshot"):
            op = cls(**to_arguments(header["query"], windows, aggs))
            op._counts = Counts.of(header["stats"], "the snapshot")
            if header["started"]:
                schema = sections["schema"].schema
                grouping = grouping_of(op._request.by, schema, may_exist=True)
                engine = op._new_engine(schema, grouping)
                engine.import_(snapshots.to_engine(header, sections))
                op._grouping, op._engine = grouping, engine
                op._own_schema = pa.schema([f for f in schema if f.name not in grouping.computed])
        return op

    # Statistics.

    @property
    def stats(self) -> Stats:
        """What the operator has seen and stores.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count(), time="t")
            >>> op.add([{"t": 3}, {"t": 15}])
            >>> op.stats.rows, op.stats.slices
            (2, 2)
        """
        if self._engine is None:
            return Stats(**vars(self._counts))
        self._engine.flush()
        total = Stats(**vars(self._engine.counts))
        for store in self._engine.stores:
            stats = store.stats()
            total = replace(
                total, slices=total.slices + stats.slices, kept_rows=total.kept_rows + stats.retained_rows,
                bytes=total.bytes + store.nbytes(),
                merges=total.merges + stats.merges, splits=total.splits + stats.splits, shifts=total.shifts + stats.shifts,
            )  # fmt: skip
        return total

    def explain(self) -> str:
        """The answers of the slicing paper's decision trees for the current queries.

        Returns:
            What is stored for each query, and why, as text.

        Examples:
            >>> op = Operator(windows=W.tumbling(10), aggs=S.count(), time="t")
            >>> op.add([{"t": 3}])
            >>> print(op.explain().splitlines()[2])
              rows kept: no (edges are known in advance and the aggregates commute: a late row is added to its slice)
        """
        if self._engine is None:
            return "the columns are not known yet: add a batch"
        options = self._options
        first = f"stream: {'declared in order' if options.ordered else 'out of order'}, emit {options.emit}, store {options.store}"
        return "\n".join([first, *self._engine.explain()])
