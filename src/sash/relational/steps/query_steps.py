"""A query over streams, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.queries.flows import check_flow, is_immediate, is_periodic, sliced, windowed
from sash.plan.queries.relations import Grouped, Inner, Query, Relation, Stream, StreamOf, Windowed, children
from sash.relational.ending import EndingRun
from sash.relational.members import Members, Results
from sash.relational.query_run import Loaded, QueryRun
from sash.relational.selection import Output, select
from sash.relational.steps.retained_rows import Reach, RetainedRows
from sash.relational.steps.sliced_windows import SlicedWindows
from sash.relational.steps.window_before import WindowBefore
from sash.relational.windows_of_rows import in_time_order
from sash.slicing import validation
from sash.slicing.persistence.manifests import read_manifest, write_manifest
from sash.slicing.persistence.transactions import Storage, Transaction
from sash.slicing.stream.stored_engine import StepMetrics
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Part:
    """The state of one stream's rows: who reads them, and which columns."""

    origin: Stream | StreamOf
    sources: tuple[Windowed, ...]
    leaves: bool


class QuerySteps:
    """One query's state in a storage: one :meth:`step`, then :meth:`commit`. A step that fails leaves the storage as it was."""

    def __init__(self, query: Query, storage: Storage, described: dict[str, Any], order_by: tuple[str, ...] = ()) -> None:
        """``described`` is the description of the query, which must stay the same from step to step."""
        check_flow(query)
        self.query, self.order_by = query, order_by
        self._transaction = Transaction(storage)
        self._described = described
        self._manifest = read_manifest(self._transaction, described)
        manifest = self._manifest or {"watermark": FAR_BACK, "rows": {}, "before": {}, "notes": {}}
        self._nodes = _Nodes(query)
        with validation.reading("the state"):
            self.watermark: int = validation.tick(manifest["watermark"], "the state's manifest")
            self.notes: dict[str, Any] = dict(manifest["notes"])
            homes = [_Prefixed(storage, f"s{k}:") for k in range(len(self._nodes.sliced))]
            self.sliced = [SlicedWindows(node, home, described, order_by) for node, home in zip(self._nodes.sliced, homes, strict=True)]
            self.retained = [self._rows(k, part, manifest["rows"].get(str(k))) for k, part in enumerate(self._nodes.parts)]
            self.before = [
                WindowBefore(self._transaction, f"w{k}", manifest["before"].get(str(k))) for k, _ in enumerate(self._nodes.compared)
            ]
        self._added = 0

    def _rows(self, number: int, part: _Part, entry: Any) -> RetainedRows:
        names = {n for s in part.sources for n in s.names} | {n for n in self.order_by if n in part.origin.schema.names}
        names |= {part.origin.time}
        schema = pa.schema([f for f in part.origin.schema if f.name in names])
        reaches = {Reach.of(s, leaves=part.leaves) for s in part.sources}
        return RetainedRows(self._transaction, f"r{number}", schema, part.origin.time, reaches, entry)

    def step(self, rows: Mapping[str, pa.Table], watermark: int) -> Output:
        """Add rows of the streams, which all have a time, then apply a watermark: the results that are final now."""
        self._upto = max(watermark, self.watermark)
        self._added = sum(table.num_rows for table in rows.values())
        run = _StepRun(self, self._nodes, rows, self.watermark, self._upto)
        return run.output(self.query)

    def next_end(self, oldest: int) -> int | None:
        """The end of the first window that is open, as far as it is known; ``oldest`` is the oldest row of the step."""
        after = max(self._upto, oldest) if oldest < FAR_AHEAD else self._upto
        if after <= FAR_BACK:
            return None
        reaches = [Reach.of(source, leaves=False) for part in self._nodes.parts for source in part.sources]
        ends = [reach.next_edge(after) for reach in reaches] + [windows.next_end(oldest) for windows in self.sliced]
        return min((end for end in ends if end is not None), default=None)

    def commit(self) -> StepMetrics:
        """Write what has changed."""
        metrics = [windows.commit() for windows in self.sliced]
        entries = {str(k): rows.commit(self._upto) for k, rows in enumerate(self.retained)}
        before = {str(k): window.commit() for k, window in enumerate(self.before)}
        manifest = {"watermark": self._upto, "rows": entries, "before": before, "notes": self.notes}
        write_manifest(self._transaction, self._described, manifest, new=self._manifest is None)
        transaction, reached = self._transaction, self._upto if self._upto > FAR_BACK else None
        return StepMetrics(
            self._added,
            sum(m.late_rows for m in metrics) + sum(rows.late for rows in self.retained),
            sum(m.slices for m in metrics),
            sum(m.kept_rows for m in metrics) + sum(rows.count for rows in self.retained),
            sum(m.keys for m in metrics),
            transaction.bytes_read + sum(m.bytes_read for m in metrics),
            transaction.bytes_written + sum(m.bytes_written for m in metrics),
            sum(m.open_windows for m in metrics), sum(m.own_windows for m in metrics), reached=reached,
        )  # fmt: skip


class _Nodes:
    """The parts of a plan that have state, in an order that is the same in every process."""

    def __init__(self, query: Query) -> None:
        self.sliced: list[Grouped] = []
        self.compared: list[Query] = []
        self._parts: dict[tuple[Any, ...], _Part] = {}
        self._seen: set[int] = set()
        self._query(query)

    @cached_property
    def parts(self) -> list[_Part]:
        """The streams whose rows are retained."""
        return list(self._parts.values())

    def part(self, origin: Stream | StreamOf) -> int:
        """The number of a stream's rows among ``parts``."""
        return list(self._parts).index(_key(origin))

    def _query(self, query: Query) -> None:
        if id(query) in self._seen:
            return None
        self._seen.add(id(query))
        if is_immediate(query):
            return self._origins(query.relation)
        if query.kind != "rstream" and not (query.is_rows and query.kind == "dstream"):
            self.compared.append(query)
        return self._relation(query.relation, leaves=query.is_rows and query.kind == "dstream")

    def _origins(self, relation: Relation) -> None:
        for source in windowed(relation):
            if isinstance(source.origin, StreamOf):
                self._query(source.origin.query)

    def _relation(self, relation: Relation, *, leaves: bool = False) -> None:
        if is_sliced_here(relation):
            assert isinstance(relation, Grouped)
            self.sliced.append(relation)
            return self._origins(relation)
        if isinstance(relation, Windowed):
            key = _key(relation.origin)
            known = self._parts.get(key)
            sources = (*(known.sources if known else ()), relation)
            self._parts[key] = _Part(relation.origin, sources, leaves or bool(known and known.leaves))
            return self._origins(relation)
        if isinstance(relation, Inner):
            if id(relation.query) not in self._seen:
                self._seen.add(id(relation.query))
                self._relation(relation.query.relation, leaves=leaves)
            return None
        for child in children(relation):
            self._relation(child, leaves=leaves)
        return None


def is_sliced_here(relation: Relation) -> bool:
    """Whether the stream engine computes a relation."""
    return isinstance(relation, Grouped) and is_periodic(sliced(relation))


def _key(origin: Stream | StreamOf) -> tuple[Any, ...]:
    return (id(origin.query), origin.name) if isinstance(origin, StreamOf) else (origin.name, origin.time)


class _NewRows(QueryRun):
    """Queries whose results are rows as they come, over the rows that a step adds."""

    def __init__(self, step: _StepRun) -> None:
        super().__init__({}, step.order_by)
        self._step = step

    def load(self, relation: Windowed) -> Loaded:
        return Loaded(*in_time_order(self._step.new(relation.origin), relation.origin.time, self.order_by))

    def output(self, query: Query) -> Output:
        return super().output(query) if is_immediate(query) else self._step.output(query)


class _StepRun(EndingRun):
    """The relations whose windows end in one step."""

    def __init__(self, steps: QuerySteps, nodes: _Nodes, rows: Mapping[str, pa.Table], after: int, upto: int) -> None:
        super().__init__(rows, steps.order_by, after, upto)
        self._steps, self._nodes = steps, nodes
        self._fresh = _NewRows(self)
        self._new: dict[tuple[Any, ...], pa.Table] = {}
        self._sliced: dict[int, Results] = {}

    def new(self, origin: Stream | StreamOf) -> pa.Table:
        """The rows that a stream has more than before the step."""
        if not isinstance(origin, StreamOf):
            return self.tables[origin.name]
        key = _key(origin)
        if key not in self._new:
            self._new[key] = self.output(origin.query).with_time(origin.time)
        return self._new[key]

    def output(self, query: Query) -> Output:
        """The results of a query that are final with this step."""
        known = self._outputs.get(id(query))
        if known is None:
            known = self._outputs[id(query)] = self._fresh.output(query) if is_immediate(query) else self._ended(query)
        return known

    def _ended(self, query: Query) -> Output:
        """The results of the windows that end in this step."""
        rows = self.relation(query.relation)
        if query.kind == "rstream" or query.is_rows:
            return self.within(select(query, rows))
        before = self._steps.before[next(k for k, q in enumerate(self._nodes.compared) if q is query)]
        return self.within(select(query, rows, before.until(self.upto)))

    # Relations.

    def relation(self, relation: Relation) -> Members | Results:
        """The rows of a relation in the windows that end in this step."""
        if is_sliced_here(relation):
            assert isinstance(relation, Grouped)
            return self._by_slices(relation)
        return super().relation(relation)

    def _by_slices(self, relation: Grouped) -> Results:
        place = next(k for k, node in enumerate(self._nodes.sliced) if node is relation)
        if place not in self._sliced:
            windows = self._steps.sliced[place]
            self._sliced[place] = windows.step(_with_time(self.new(windows.source.origin), windows.source.origin.time), self.upto)
        return self._sliced[place]

    def leaves(self, relation: Windowed) -> bool:
        return self._nodes.parts[self._nodes.part(relation.origin)].leaves

    def load(self, relation: Windowed) -> Loaded:
        """The rows that windows ending in this step can have."""
        origin = relation.origin
        key = _key(origin)
        if key not in self._loaded:
            retained = self._steps.retained[self._nodes.part(origin)]
            retained.add(_with_time(self.new(origin), origin.time), self.after)
            table, ticks = in_time_order(retained.rows(), origin.time, self.order_by)
            come = int(np.searchsorted(ticks, self.upto))
            self._loaded[key] = Loaded(table.slice(0, come), ticks[:come])
        return self._loaded[key]


def _with_time(table: pa.Table, time: str) -> pa.Table:
    """The rows that have a time."""
    column = table.column(time)
    return table.filter(column.is_valid()) if column.null_count else table


class _Prefixed:
    """A part of a storage: names with a prefix."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._storage, self._prefix = storage, prefix

    def get(self, name: str) -> bytes | None:
        return self._storage.get(self._prefix + name)

    def put(self, name: str, value: bytes) -> None:
        self._storage.put(self._prefix + name, value)

    def remove(self, name: str) -> None:
        self._storage.remove(self._prefix + name)
