"""Slices without their rows: for edges that are known in advance and sessions, with aggregates of flat fields that commute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algorithms.pipe import kernel, window_bounds
from sash.plan.choices.store_choice import choose_store
from sash.plan.logical import Plan, Query
from sash.slicing import validation
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import Bounds, View
from sash.slicing.ingest.fold import Fold
from sash.slicing.ingest.row_slicer import RowSlicer
from sash.slicing.ingest.slices import UNDIVIDED, Slices, by_key, validated, view_of
from sash.slicing.partials.column_partials import Partials
from sash.slicing.partials.stored import StoredPartials
from sash.slicing.partials.tree import SliceTree
from sash.slicing.rows.timed import KeyedRows
from sash.slicing.stores.chunks import Chunks, ChunkStore, InMemory
from sash.slicing.stores.slice_manager import SessionEnds, SliceManager
from sash.slicing.stores.slice_store import Commit, Step, StepSlices, StoreState, StoreStats
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]

CHUNKS_IN_WINDOW = 8
MORE_KEYS = 8
"""Chunks get another length once there are so many times the keys that their length was chosen for."""
FEW_CHUNKS = 2
MOST_TOGETHER = 1 << 12
"""Keys × queries up to which all windows of a step are located by one call of a kernel."""
FEW_WINDOWS = 64
Home = Callable[[Slices], ChunkStore]
"""Returns the chunk store for slices like these."""


class PartialsOnly:
    """The slice store and slice manager for workloads that retain no rows."""

    kind: ClassVar[str] = "slices"
    retains_rows: ClassVar[bool] = False
    marks_windows: ClassVar[bool] = False
    row_number: ClassVar[str | None] = None

    def __init__(self, plan: Plan, since: int = FAR_BACK, *, store: str = "auto", ordered: bool = False, home: Home | None = None) -> None:
        self.plan = plan
        self.since = since
        self._store = store
        self._ordered = ordered
        self.slicer = RowSlicer(plan)
        self._fold = Fold(self.slicer)
        self._derive_from_queries()
        self._is_external = home is not None
        self._home = InMemory() if home is None else home(self.slicer.nothing)
        self._measured_for = 0
        """How many keys the chunks' length was chosen for; 0 before there are slices."""
        self.chunks = Chunks(self._home, None, 0, self.slicer.whole) if home is not None else self._measured(1)

    def _derive_from_queries(self) -> None:
        self.decision = choose_store(self._store, self.plan.queries, self.slicer.forms)
        self._wants_everything = any(q.shape.is_whole for q in self.plan.queries)
        trees = [SliceTree(f) for f in self.slicer.forms] if self.decision.choice == "eager" else None
        self._manager = SliceManager(self.slicer, trees)
        self._session_ends = SessionEnds()

    # The slice store: chunks.

    def _measured(self, keys: int) -> Chunks:
        """Empty chunks of a length that suits so many keys; where not all edges are periodic, there is only one chunk."""
        self._measured_for = max(1, keys)
        self._home.clear()
        length = self._length(keys)
        edges = self.slicer.edges
        origin = 0 if length is None else int(edges.offset[edges.finest])
        return Chunks(self._home, length, origin, self.slicer.whole)

    def _length(self, keys: int) -> int | None:
        """How many ticks a chunk spans, with so many keys; None if all slices are in one chunk."""
        edges = self.slicer.edges
        if edges.others or self._manager.trees is not None or not len(edges.every):
            return None
        most = max(self._home.fewest_edges, self._home.slices_in_chunk // max(1, keys))
        every = int(edges.every[edges.finest])
        if not self._home.trims:  # a chunk that is only dropped as a whole must not be much of the longest window
            most = min(most, max(self._home.fewest_edges, int(edges.size.max() * edges.density) // CHUNKS_IN_WINDOW))
        steps = max(1, min(int(most / edges.density / every), (FAR_AHEAD >> 2) // every))  # a chunk ends at an edge, so it cuts no slice
        return steps * every

    def _store_again(self, slices: Slices, keys: int) -> None:
        """Put all slices into chunks of a new length."""
        self.chunks = self._measured(keys)
        for number, part in self.chunks.split(slices) if len(slices) else []:
            self.chunks.put(number, part)

    @property
    def slices(self) -> Slices:
        """All slices, in order."""
        parts = self.chunks.all()
        return by_key(parts) if parts else self.slicer.nothing

    # Rows in.

    def prepare(self, rows: KeyedRows, *, at_once: bool = False) -> Commit:
        rows = rows.since(self.since)
        if not len(rows):
            return nothing_to_do
        ticks, inputs, span = np.ascontiguousarray(rows.ticks), self.slicer.inputs(rows.table), (rows.first, rows.last)
        if at_once and self._measured_for and self._fold.takes(inputs):
            number = self.chunks.number(span[0])
            old = self.chunks.get(number) if number == self.chunks.number(span[1]) else None
            folded = None if old is None or not len(old) else self._fold.fold(old, ticks, rows.codes, inputs, span)
            if folded is not None:
                if folded.elsewhere is not None:
                    self.chunks.put(number, folded.slices)  # which has spare capacity now
                    return self._merging(folded.elsewhere)
                self._session_ends.note_slices(span[0])
                self.chunks.put(number, self._manager.written(folded.slices, folded.places, folded.joined, len(folded.places)))
                return nothing_to_do
        return self._merging(self.slicer.slices(rows.table, ticks, rows.codes, span, inputs))

    def prepare_slices(self, slices: Slices, *, only: bool) -> Commit:
        if not only:
            slices = slices.with_cells(self.slicer.edges.cells(slices.first))
        return self._merging(self._manager.coalesced(slices))

    def _merging(self, new: Slices) -> Commit:
        """The commit that adds slices; those of one key that no edge or gap separates are joined."""
        if not len(new):
            return nothing_to_do
        if not self._measured_for:  # by the keys of the first batch
            self.chunks = self._measured(len(np.unique(new.key)))
        changes: list[tuple[int, Callable[[], Slices]]] = []
        for number, part in self.chunks.split(new):
            old = self.chunks.get(number)
            changes.append((number, self._manager.merged(self.slicer.nothing if old is None else old, part)))

        def commit() -> None:
            self._session_ends.note_slices(new.first_begin)
            for number, change in changes:
                self.chunks.put(number, change())

        return commit

    # A step.

    def next_due(self, after: int) -> int:
        """The next window end; for sessions, which depend on the rows, as of the last step."""
        ends = []
        for shape in (q.shape for q in self.plan.queries):
            gap = shape.session_gap
            due = shape.next_end(after) if gap is None else self._session_ends.next_due(gap)
            ends.append(FAR_BACK if due is None else due)
        return min(ends, default=FAR_BACK)

    def step(self, step: Step, keys: int) -> StepSlices | None:
        edges = self.slicer.edges
        periodic, others = self._ending(step.closed_before, step.closed_now) if step.only_ends else (edges.all, edges.others)
        if not len(periodic) and not others:
            return None
        slices = self._slices_for(periodic, step)
        view = view_of(slices, keys)
        after = step.previous if step.only_changes else step.closed_before
        until = FAR_AHEAD if step.emit == "running" else step.reported
        ended = self._ended(periodic, step, view)
        queries = others if ended is not None else sorted([*edges.places[periodic].tolist(), *others])
        return StepSlices(
            view, lambda: self._partials_over(slices), queries, ended, after=after, until=until, complete=not step.only_changes
        )

    def _ending(self, after: int, until: int) -> tuple[Array, list[int]]:
        """The queries that may have a window that becomes final as the horizon moves from ``after`` to ``until``: the periodic ones, by
        their numbers among the periodic queries, and the others."""
        edges = self.slicer.edges
        if not self.chunks.numbers:
            return self.slicer.nothing.key, []
        gaps = [(k, edges.queries[k].shape.session_gap) for k in edges.others]
        others = [k for k, gap in gaps if gap is None or self._session_ends.any_between(gap, after, until, lambda: self.slices)]
        return edges.ending(after, until), others

    def _slices_for(self, periodic: Array, step: Step) -> Slices:
        """All slices, or only those that are needed by windows of periodic queries that end in a step."""
        limited = not step.closing and not len(step.idle) and (step.emit == "final" or step.only_changes)
        if limited and self.chunks.length is not None and len(self.chunks.numbers) > FEW_CHUNKS:
            ended = (step.previous if step.only_changes else step.closed_before, step.reported)
            stretch = (self.chunks.begin, self.chunks.end)
            points = self.slicer.edges.points(periodic, ended, stretch, len(self.chunks.numbers))
            covered = None if points is None else self.chunks.cover(points)
            if covered is not None:
                return by_key(covered) if covered else self.slicer.nothing
        return self.slices

    def _ended(self, which: Array, step: Step, view: View) -> tuple[Array, Bounds] | None:
        """The windows of periodic queries that end in a step, located by one kernel, with their queries' places; None if there are too
        many."""
        if step.emit != "final" or len(step.idle) or not view.count or not 0 < view.keys * len(which) <= MOST_TOGETHER:
            return None
        edges = self.slicer.edges
        ending, most = kernel(window_bounds.ending_windows), FEW_WINDOWS
        while True:
            columns = np.empty((6, most), np.int64)
            count = ending(
                which, len(which), edges.size, edges.every, edges.offset, edges.since, step.closed_before, step.closed_now,
                view.first, view.last, view.key_offsets, view.keys, 4 * MOST_TOGETHER, most, columns,
            )  # fmt: skip
            if count <= most:
                break
            most = count
        if count < 0:
            return None
        number, keys, lo, hi, start, end = (column[:count] for column in columns)
        return edges.places[number], Bounds(keys, lo, hi, start, end)

    def _partials_over(self, slices: Slices) -> list[Partials]:
        """Each aggregate's partials over slices; where there are trees, these are all slices."""
        parts = zip(
            self.plan.columns, self.slicer.kernels, slices.states, slices.included_counts, self._manager.trees_over(slices), strict=True
        )
        return [StoredPartials(*part) for part in parts]

    def open_windows(self, query: Query, bounds: Bounds, due: Array, step: Step) -> Array:
        still: Array = due > (step.previous if step.only_changes else step.closed_before)
        return still

    def close_windows(self, query: Query, bounds: Bounds, due: Array) -> None:
        """Nothing to do: the horizon decides which windows are closed."""

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        return self.slicer.edges.late(ticks, horizon) | (ticks < self.since)

    # Eviction.

    def evict(self, step: Step, keys: int) -> None:
        self._evict(step.closed_now, keys, step.idle)
        if self._ordered:
            self._merge_at_ends(step.closed_before, step.closed_now)

    def _evict(self, horizon: int, keys: int, idle: Array) -> None:
        if not self.chunks.numbers:
            return
        oldest = self.slicer.edges.oldest_open(horizon)
        if self.chunks.length is not None:
            self._drop_before(oldest)
            if keys > MORE_KEYS * self._measured_for:
                self._measured_for = keys
                if self._length(keys) != self.chunks.length:
                    self._store_again(self.slices, keys)
            return
        wants_everything = self._wants_everything
        s = self.slices
        needed = s.first >= oldest
        if not (len(idle) and wants_everything) and needed.all():
            return
        self._manager.is_tree_stale = True
        for shape in (self.slicer.edges.queries[k].shape for k in self.slicer.edges.others):
            if not shape.is_whole:
                needed |= handler(shape).needed(shape, s.key, s.first, s.last, horizon)
        if wants_everything:
            # Of slices older than every edge that is still needed, only their total matters.
            if not needed.all():
                s = self._manager.coalesced(s.with_cells(np.where(needed, s.cell, UNDIVIDED)))
            # The total of an idle key is dropped; older snapshots may have other queries in this store, and their slices stay.
            self.chunks.put(0, s.take(np.flatnonzero(~np.isin(s.key, idle) | (s.cell != UNDIVIDED))) if len(idle) else s)
            return
        if not needed.all():
            self.chunks.put(0, s.take(np.flatnonzero(needed)))

    def _drop_before(self, oldest: int) -> None:
        """Drop whole chunks, and the first slices of the chunk that the oldest open window starts in."""
        border = self.chunks.drop_before(oldest)
        chunk = self.chunks.get(border) if self._home.trims else None
        if chunk is not None and chunk.first_begin < oldest:
            self.chunks.put(border, chunk.take(np.flatnonzero(chunk.first >= oldest)))

    def _merge_at_ends(self, after: int, until: int) -> None:
        """Join slices at window ends that have passed: in an in-order stream, slices are cut at an end only until its windows are emitted
        (section 5.3, step 1)."""
        if not self.slicer.edges.pass_ends(after, until):
            return
        begin = self.chunks.number(max(after, FAR_BACK >> 1))
        for number in [n for n in self.chunks.numbers if n >= begin]:
            chunk = self.chunks.get(number)
            assert chunk is not None
            cut = self.slicer.cut_again(chunk)
            if np.any(cut.cell != chunk.cell):
                self._manager.is_tree_stale = True
                self.chunks.put(number, self._manager.coalesced(cut, len(chunk)))

    # Queries and keys are added and removed.

    def with_queries(self, plan: Plan) -> None:
        """Serve other queries from now on; slices that no edge separates any more are joined."""
        slices = self.slices
        self.plan, merges = plan, self._manager.merges
        self.slicer.with_queries(plan)
        self._derive_from_queries()
        self._manager.merges = merges
        if len(slices):
            slices = self._manager.coalesced(self.slicer.cut_again(slices), len(slices))
        self._store_again(slices, self._measured_for)

    def live_keys(self) -> Array:
        return np.unique(np.concatenate([np.unique(chunk.key) for chunk in self.chunks.all()] or [self.slicer.nothing.key]))

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        for number in list(self.chunks.numbers):
            chunk = self.chunks.get(number)
            assert chunk is not None
            self.chunks.put(number, replace(chunk, key=new_id_of[chunk.key]))

    # Statistics, export and import.

    def open_counts(self, horizon: int, newest: int) -> tuple[int, int]:
        edges = self.slicer.edges
        known = (newest - edges.offset) // edges.every - (horizon - edges.offset - edges.size) // edges.every
        own = 0
        if edges.others:
            s = self.slices
            shapes = [edges.queries[k].shape for k in edges.others]
            own = sum(handler(shape).open_count(shape, s.key, s.first, s.last) for shape in shapes)
        return (int(np.maximum(known, 0).sum()) if self.chunks.numbers else 0), own

    def stats(self) -> StoreStats:
        return StoreStats(self.chunks.count, 0, self._manager.merges, 0, 0)

    def nbytes(self) -> int:
        return self.chunks.nbytes + sum(t.nbytes for t in self._manager.trees or [])

    def explain(self) -> list[str]:
        return [f"slices: {self.decision.choice} ({'; '.join(self.decision.reasons)})"]

    def export(self) -> StoreState:
        """All slices; where chunks are stored elsewhere, only what the next step needs besides them."""
        counts = {"merges": self._manager.merges, "splits": 0}
        if self._is_external:
            measured = {"length": self.chunks.length, "origin": self.chunks.origin, "measured": self._measured_for}
            return StoreState(self.kind, {**measured, **counts})
        table = pa.table({f"c{k}": pa.array(c) for k, c in enumerate(self.slices.columns())})
        return StoreState(self.kind, {"keeps_rows": False, "since": self.since, **counts}, table)

    def import_(self, state: StoreState, keys: int) -> None:
        facts, table, what = state.facts, state.table, "the state"
        if table is None:
            self._measured_for = validation.whole(facts["measured"], what)
            length = None if facts["length"] is None else validation.whole(facts["length"], what, 1, FAR_AHEAD)
            self.chunks = Chunks(self._home, length, validation.tick(facts["origin"], what), self.slicer.whole)
        else:
            self._import_table(table, keys)
        self._manager.merges = validation.whole(facts["merges"], what)

    def _import_table(self, table: pa.Table, keys: int) -> None:
        what = "the state's slices"
        if any(c.null_count for c in table.columns):
            raise validation.damaged(what, "a value is missing")
        slices = validated([c.to_numpy().copy() for c in table.columns], self.slicer.nothing, keys, what)
        self._store_again(slices, int(slices.key.max(initial=0)) + 1)
        self._manager.is_tree_stale = True


def nothing_to_do() -> None:
    """The commit of no rows."""
