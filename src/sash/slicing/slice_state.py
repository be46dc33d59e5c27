"""Slices that are kept without their rows: for edges known in advance and sessions, with aggregates of flat fields.

A slice is a run of a key's rows with no edge between them and no gap longer than the shortest session's. First and last time say
which session it is in, so sessions need no edges of their own, and a late row that bridges a gap merges two slices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algorithms import tables
from sash.columns import arrow_column
from sash.kernels.addresses import flat
from sash.plan.logical import Plan
from sash.plan.stores import choose_store
from sash.slicing import order, validation
from sash.slicing.chunks import Chunks, ChunkStore, InMemory
from sash.slicing.inputs import Fields, fields, stored_fields, stored_form
from sash.slicing.keys import span_of
from sash.slicing.partials import Partials
from sash.slicing.shapes import handler
from sash.slicing.slice_kernels import Kernels, StoredPartials, gathered, grouped
from sash.slicing.slicer import MOST_EDGES, Locator, Slicer
from sash.slicing.slices import Slices, by_key
from sash.slicing.tree import SliceTree
from sash.slicing.view import View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.base import Everything, Gaps

Array = npt.NDArray[Any]

CHUNKS_IN_WINDOW = 8
MORE_KEYS = 8
"""When there are so many times the keys that chunks were measured for, they are measured again."""
ONE_KEY = np.zeros(1, np.int64)
Home = Callable[[Slices], ChunkStore]
"""Where the chunks of slices of some shape live."""
MOST_ON_DESK = 1 << 16
"""A desk for more rows or edges than this is not kept."""
SETTLED = FAR_BACK
"""The cell of what is older than every edge that is needed."""


def forever_asked(plan: Plan) -> bool:
    """Whether a query wants everything so far."""
    return any(isinstance(q.shape, Everything) for q in plan.queries)


class Desk:
    """Arrays that :func:`~sash.algorithms.tables.put_in_place` works with."""

    def __init__(self, kernels: Kernels, rows: int, edges: int) -> None:
        self.rows, self.edges = rows, edges
        self.first, self.last, self.count, self.cell, self.places, kept = (np.empty(edges, np.int64) for _ in range(6))
        """Of each slice that rows make: its first and last time, its rows, its cell, and where it went."""
        self.states = kernels.empty(edges)
        self.found = np.empty(1, np.int64)
        """How many slices there are."""
        self._arrays = [np.empty(rows, np.int64), self.first, self.last, self.count, kept, *self.states, self.cell, self.places]
        self.addresses = flat(self._arrays)
        """All arrays but ``found``, as the kernel takes them."""

    def slices(self, codes: Array, made: int) -> Slices:
        """The slices that rows have made here, in memory of their own."""
        key, cell, first, last, count = (a[:made].copy() for a in (codes, self.cell, self.first, self.last, self.count))
        return Slices(key, cell, first, last, count, [count.copy()], [[a[:made].copy() for a in self.states]])


class SliceState:
    """The slice store and slice manager for workloads that keep no rows."""

    keeps_rows = False

    def __init__(self, plan: Plan, since: int = FAR_BACK, store: str = "auto", home: Home | None = None) -> None:
        self.plan = plan
        self.since = since
        self.store = store
        empty = plan.schema.empty_table()
        self.forms = [stored_form(c, plan.schema) or fields(c, empty, always_masked=True).form for c in plan.columns]
        self.kernels = [Kernels(f) for f in self.forms]
        self.commute = all(f.commutative for f in self.forms)
        self._settle()
        none = np.empty(0, np.int64)
        self._none = Slices(none, none, none, none, none, [none for _ in self.forms], [k.empty(0) for k in self.kernels])
        self._home = InMemory() if home is None else home(self._none)
        self._measured_for = 0
        self.chunks = Chunks(self._home, None, 0, self._whole) if home is not None else self._measured(1)
        self._desk = Desk(self.kernels[0], 0, 0)
        self._seen: Slices | None = None
        """The slices that the last view was over."""
        self.merges = 0
        self.splits = 0
        self.shifts = 0

    def _settle(self) -> None:
        """What follows from the queries."""
        self.slicer = Slicer(self.plan.queries)
        self.choice = choose_store(self.store, self.plan.queries, self.forms)
        self.trees = [SliceTree(f) for f in self.forms] if self.choice.algorithm == "eager" else None
        self._grown = True
        """Whether slices came, went or merged since the trees were made."""
        self.gap = min((q.shape.gap for q in self.plan.queries if isinstance(q.shape, Gaps)), default=FAR_AHEAD)
        """The shortest session gap; slices are cut where rows are further apart."""
        self._earliest_ends: dict[int, int] = {}
        """For a session gap, a time before which no open session has its last row."""
        self._gaps_within = False
        """Whether the last batch had slices that a session may have ended in: then rows have to be put in order."""

    # The slice store: chunks.

    def _measured(self, keys: int) -> Chunks:
        """A store with chunks of a length that suits so many keys; edges that are not all periodic share one chunk."""
        self._measured_for = max(1, keys)
        self._home.clear()
        length = self._length(keys)
        origin = 0 if length is None else int(self.slicer.offset[self.slicer.finest])
        return Chunks(self._home, length, origin, self._whole)

    def _length(self, keys: int) -> int | None:
        """How many ticks a chunk spans, with so many keys; None if all slices share one."""
        slicer = self.slicer
        if slicer.others or self.trees is not None or not len(slicer.every):
            return None
        edges = max(self._home.fewest_edges, self._home.slices_in_chunk // max(1, keys))
        every = int(slicer.every[slicer.finest])
        if not self._home.trims:  # a chunk that goes as a whole must not be much of the longest window
            edges = min(edges, max(self._home.fewest_edges, int(slicer.size.max() * slicer.density) // CHUNKS_IN_WINDOW))
        steps = max(1, min(int(edges / slicer.density / every), (FAR_AHEAD >> 2) // every))  # a chunk ends at an edge, so it cuts no slice
        return steps * every

    def _stored_again(self, slices: Slices, keys: int) -> None:
        """All slices into chunks that are measured now."""
        self.chunks = self._measured(keys)
        for number, part in self.chunks.split(slices) if len(slices) else []:
            self.chunks.put(number, part)

    @property
    def slices(self) -> Slices:
        """All slices, in order."""
        parts = self.chunks.all()
        return by_key(parts) if parts else self._none

    def _whole(self, slices: Slices) -> Slices:
        """Each key's slices as one."""
        at = np.flatnonzero(np.append(True, slices.key[1:] != slices.key[:-1]))
        return grouped(self.kernels, slices, np.append(at, len(slices)).astype(np.int64))

    # The slicer: rows to slices.

    def prepare(
        self, table: pa.Table, ticks: Array, codes: Array, ids: Array, span: tuple[int, int], *, at_once: bool = False
    ) -> Callable[[], None]:
        """Make slices of rows; the call that comes back puts them among the others. Until then nothing has changed, so that functions of
        users may raise; with ``at_once`` rows may already be where they belong.

        ``codes`` are numbers of keys that stay, ``span`` is the first and the last time.
        """
        if self.since > span[0]:
            seen = ticks >= self.since
            table, ticks, codes = table.filter(pa.array(seen)), ticks[seen], codes[seen]
            span = span_of(ticks)
        if not len(ticks):
            return nothing
        ticks, inputs = np.ascontiguousarray(ticks), self._inputs(table)
        if at_once and self._put_in_place(ticks, codes, inputs, span):
            return nothing
        return self._merging(self.sliced(table, ticks, codes, span, inputs))

    def _inputs(self, table: pa.Table) -> list[Fields]:
        return [stored_fields(c, table, form) for c, form in zip(self.plan.columns, self.forms, strict=True)]

    def sliced(self, table: pa.Table, ticks: Array, codes: Array, span: tuple[int, int], inputs: list[Fields] | None = None) -> Slices:
        """Rows as slices, on their own."""
        inputs = self._inputs(table) if inputs is None else inputs
        if self.commute:
            found = self._scattered(ticks, codes, inputs, span)
            if found is not None:
                return found
        places = order.sorted_order(codes, int(codes.max()) + 1, ticks, [arrow_column(table.column(n)) for n in self.plan.order_by])
        if places is not None:
            ticks, codes, table = ticks[places], codes[places], table.take(pa.array(places))
            inputs = self._inputs(table)
        cell = self.slicer.cells(ticks)
        cut = np.ones(len(ticks), bool)
        cut[1:] = (codes[1:] != codes[:-1]) | (cell[1:] != cell[:-1]) | (np.diff(ticks) > self.gap)
        offsets = np.append(np.flatnonzero(cut), len(ticks)).astype(np.int64)
        at = offsets[:-1]
        return Slices(codes[at], cell[at], ticks[at], ticks[offsets[1:] - 1], np.diff(offsets), *gathered(self.kernels, inputs, offsets))

    def _scattered(self, ticks: Array, codes: Array, inputs: list[Fields], span: tuple[int, int]) -> Slices | None:
        """Rows in any order, straight to their slices."""
        keys = np.unique(codes) if self.plan.by else ONE_KEY
        local = np.searchsorted(keys, codes) if self.plan.by else codes
        locator = self._locator(span, len(ticks), len(keys))
        if locator is None:
            return None
        edges = locator.edges
        total = len(keys) * len(edges)
        firsts, lasts, counts, kept = [np.empty(total, np.int64) for _ in range(4)]
        places = np.empty(len(ticks), np.int64)
        wide = [kernels.nothing(total) if k else kernels.empty(total) for k, kernels in enumerate(self.kernels)]
        rows = (ticks, local, len(keys), len(ticks))
        # The first aggregate goes along with finding the places, the others follow.
        filled = self.kernels[0].locate(*inputs[0].rows, *rows, *locator, places, firsts, lasts, counts, kept, *wide[0])
        first, last, count, kept = firsts[:filled], lasts[:filled], counts[:filled], kept[:filled]
        self._gaps_within = self.gap < FAR_AHEAD and bool(np.any(last - first > self.gap))
        if self._gaps_within:
            return None
        for f, kernels, group in zip(inputs[1:], self.kernels[1:], wide[1:], strict=True):
            kernels.scatter(*f.rows, places, 0, len(ticks), *group)
        states = [[a[kept] if k else a[:filled] for a in group] for k, group in enumerate(wide)]
        held = [count.copy() if f.held is None else np.bincount(places[f.held], minlength=total)[kept] for f in inputs]
        key, cell = (keys[kept // len(edges)], edges[kept % len(edges)]) if len(keys) > 1 else (keys.repeat(filled), edges[kept])
        made = Slices(key, cell, first, last, count, held, states)
        return made if 2 * filled >= total else made.copy()  # what stays holds no more memory than it needs

    def _locator(self, span: tuple[int, int], rows: int, keys: int) -> Locator | None:
        """The edges that rows may lie behind, if they are not many more than the rows."""
        return self.slicer.locator(*span, min(MOST_EDGES, max(4 * rows, 64) // keys))

    def _put_in_place(self, ticks: Array, codes: Array, inputs: list[Fields], span: tuple[int, int]) -> bool:
        """Rows of a single key straight into the chunk that they fall into: the rule for streams without keys and with one aggregate.
        False if they are not for this, and nothing has changed."""
        if self.plan.by or len(inputs) > 1 or not self.commute or inputs[0].held is not None or not self._measured_for or self._gaps_within:
            return False
        number = self.chunks.number(span[0])
        old = self.chunks.get(number) if number == self.chunks.number(span[1]) else None
        locator = self._locator(span, len(ticks), 1) if old is not None and len(old) else None
        if locator is None or old is None:
            return False
        old, desk = old.with_room(min(len(ticks), locator.edge_count)), self._desk_for(len(ticks), locator.edge_count)
        room = old.room
        assert room is not None
        joined = self.kernels[0].put_in_place(
            *inputs[0].rows, ticks, codes, len(ticks), *locator, *desk.addresses,
            room.key, room.cell, room.first, room.last, room.count, room.held[0], *room.states[0], len(old), self.gap, desk.found,
        )  # fmt: skip
        if joined == tables.WITH_GAPS:
            return False
        made = int(desk.found[0])
        if joined == tables.ELSEWHERE:
            self.chunks.put(number, old)  # which has room now
            self._merging(desk.slices(codes, made))()
        else:
            self._note(span[0])
            self.chunks.put(number, self._joined(old, desk.places[:made], joined, made))
        return True

    def _desk_for(self, rows: int, edges: int) -> Desk:
        """Space to work in; a small one is kept."""
        kept = self._desk
        if rows <= kept.rows and edges <= kept.edges:
            return kept
        if rows > MOST_ON_DESK or edges > MOST_ON_DESK:
            return Desk(self.kernels[0], rows, edges)
        self._desk = Desk(self.kernels[0], max(kept.rows, 2 * rows), max(kept.edges, 2 * edges))
        return self._desk

    # The slice manager: update and merge.

    def prepare_slices(self, new: Slices, *, only: bool) -> Callable[[], None]:
        """As :meth:`prepare`, for slices that were made elsewhere; unless this is the only state, they are cut at other states' edges as
        well."""
        if not only:
            new = new.with_cells(self.slicer.cells(new.first))
        return self._merging(self.coalesced(new))

    def _merging(self, new: Slices) -> Callable[[], None]:
        """The call that puts slices among those that are there; those of one key with nothing between them become one."""
        if not len(new):
            return nothing
        if not self._measured_for:  # as many keys as come first
            self.chunks = self._measured(len(np.unique(new.key)))
        changes: list[tuple[int, Callable[[], Slices]]] = []
        for number, part in self.chunks.split(new):
            old = self.chunks.get(number)
            changes.append((number, self._merged(self._none if old is None else old, part)))

        def commit() -> None:
            self._note(new.first_begin)
            for number, change in changes:
                self.chunks.put(number, change())

        return commit

    def _merged(self, old: Slices, new: Slices) -> Callable[[], Slices]:
        """The call that gives a chunk's slices with new ones."""
        updated = self._updated(old, new) if len(old) else None
        if updated is not None:
            return updated
        merged = self._with_others(old, new)
        return lambda: merged

    def _with_others(self, old: Slices, new: Slices) -> Slices:
        """A chunk's slices with new ones, in memory of their own."""
        self._grown = True
        if not len(old):
            return new
        # Of a single key, what comes before the new slices stays as it is.
        settled = 0
        if old.key[0] == old.key[-1] and new.key[0] == new.key[-1] == old.key[0]:
            settled = max(0, int(np.searchsorted(old.first, new.first.min())) - 1)
        columns = [np.concatenate([a[settled:], b]) for a, b in zip(old.columns(), new.columns(), strict=True)]
        merged = self.coalesced(old.rebuilt(columns), len(old) - settled)
        if settled:
            merged = old.rebuilt([np.concatenate([a[:settled], b]) for a, b in zip(old.columns(), merged.columns(), strict=True)])
        return merged

    def _updated(self, old: Slices, new: Slices) -> Callable[[], Slices] | None:
        """Add to slices that are there, and put newer ones behind them: the rule for small batches of a single key."""
        if not old.key[0] == old.key[-1] == new.key[0] == new.key[-1]:
            return None
        old = old.with_room(len(new))
        room, count, places = old.room, len(new), np.empty(len(new), np.int64)
        assert room is not None
        joined = tables.plain(tables.find_slices)(
            room.cell, room.first, room.last, len(old), new.cell, new.first, new.last, count, self.gap, int(self.commute), places,
        )  # fmt: skip
        if joined == tables.ELSEWHERE:
            return None
        for kernels, states, more in zip(self.kernels, room.states, new.states, strict=True):
            kernels.join_slices(*states, *more, joined, places)

        def write() -> Slices:
            tables.plain(tables.place_slices)(
                room.key, room.cell, room.first, room.last, room.count, new.cell, new.first, new.last, new.count, count, joined, places,
            )  # fmt: skip
            for kernels, states, held, more, more_held in zip(self.kernels, room.states, room.held, new.states, new.held, strict=True):
                kernels.write_slices(*states, held, *more, more_held, joined, count, places)
            return self._joined(old, places, joined, count)

        return write

    def _joined(self, old: Slices, places: Array, joined: int, count: int) -> Slices:
        """A chunk, of which so many more have just been written at ``places``: the first few joined slices that were there."""
        if joined < count:
            self._grown = True
            assert old.room is not None
            return old.room.beginning(len(old) + count - joined)
        if self.trees is not None and not self._grown:
            for tree, states in zip(self.trees, old.states, strict=True):
                tree.update(states, places)
        return old

    def coalesced(self, slices: Slices, old: int = 0) -> Slices:
        """Slices in order, those of one key with nothing between them as one; the first ``old`` were there before."""
        places = order.of_keys_and_times(slices.key, slices.first)
        slices = slices.take(places)
        offsets = np.empty(len(slices) + 1, np.int64)
        group = tables.plain(tables.group_slices)
        groups = group(slices.key, slices.cell, slices.first, slices.last, len(slices), self.gap, SETTLED, offsets)
        if groups == len(slices):
            return slices
        offsets = offsets[: groups + 1]
        if old:
            was_old = np.concatenate([[0], np.cumsum(places < old)])
            self.merges += int(np.maximum(was_old[offsets[1:]] - was_old[offsets[:-1]] - 1, 0).sum())
        return grouped(self.kernels, slices, offsets)

    # What the window manager sees.

    def ending(self, after: int, until: int) -> tuple[Array, list[int]]:
        """Which queries may have a window that cannot change any more once the watermark moves from ``after`` to ``until``: of the periodic
        ones their numbers among those, and the others."""
        slicer = self.slicer
        if not self.chunks.numbers:
            return self._none.key, []
        shapes = [(k, slicer.queries[k].shape) for k in slicer.others]
        others = [k for k, s in shapes if not isinstance(s, Gaps) or self._has_ended_session(s.gap, after, until)]
        return slicer.ending(after, until), others

    def next_due(self, after: int) -> int:
        """A horizon before which nothing can be due, if that is ``after`` now and no rows come; sessions are as of the last step."""
        found = []
        for shape in (q.shape for q in self.plan.queries):
            due = self._earliest_ends.get(shape.gap, FAR_BACK) + shape.gap + 1 if isinstance(shape, Gaps) else shape.next_end(after)
            found.append(FAR_BACK if due is None else due)
        return min(found, default=FAR_BACK)

    def _has_ended_session(self, gap: int, after: int, until: int) -> bool:
        """Whether a session became final between two horizons."""
        if self._earliest_ends.get(gap, FAR_BACK) + gap >= until:
            return False
        ends, _ = self._session_ends(gap)
        ends = ends[ends + gap >= after]
        earliest = int(ends.min(initial=FAR_AHEAD))
        self._earliest_ends[gap] = earliest
        return earliest + gap < until

    def _note(self, oldest: int) -> None:
        """Slices come: a session may now end with the oldest of them, but none ends earlier than it did."""
        if self._earliest_ends:
            self._earliest_ends = {gap: min(end, oldest) for gap, end in self._earliest_ends.items()}

    def _session_ends(self, gap: int) -> tuple[Array, Array]:
        """The last row of each session, and how many slices it has."""
        s = self.slices
        if not len(s):
            return s.last, s.count
        ends = np.flatnonzero(np.append((s.first[1:] - s.last[:-1] > gap) | (s.key[1:] != s.key[:-1]), True))
        return s.last[ends], np.diff(ends, prepend=-1)

    def view(self, keys: int, periodic: Array | None = None, after: int = FAR_BACK, until: int = FAR_AHEAD) -> tuple[View, Array | None]:
        """The slices in order; no more than the windows of some queries need that end after ``after`` and not after ``until``."""
        covered = None
        if self.chunks.length is not None and periodic is not None and len(self.chunks.numbers) > FEW_CHUNKS:
            stretch = (self.chunks.begin, self.chunks.end)
            points = self.slicer.points(periodic, (after, until), stretch, len(self.chunks.numbers))
            covered = None if points is None else self.chunks.cover(points)
        self._seen = self.slices if covered is None else by_key(covered) if covered else self._none
        return view_of(self._seen, keys), None

    def partials(self, view: View) -> list[Partials]:
        """Each aggregate over the slices of the last view."""
        seen = self.slices if self._seen is None else self._seen
        if self.trees is not None and self._grown:
            for tree, states in zip(self.trees, seen.states, strict=True):
                tree.rebuild(states)
            self._grown = False
        return self.partials_over(seen)

    def partials_over(self, slices: Slices) -> list[Partials]:
        """Each aggregate over some slices."""
        trees: list[SliceTree | None] = list(self.trees) if self.trees is not None else [None] * len(self.forms)
        return [StoredPartials(*parts) for parts in zip(self.plan.columns, self.kernels, slices.states, slices.held, trees, strict=True)]

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """Rows whose windows are all closed."""
        return self.slicer.late(ticks, horizon) | (ticks < self.since)

    def evict(self, horizon: int, keys: int, idle: Array) -> None:
        """Drop what no window needs that ends after ``horizon``, and the keys that are idle."""
        if not self.chunks.numbers:
            return
        oldest = self.slicer.oldest_open(horizon)
        if self.chunks.length is not None:
            self._drop_before(oldest)
            if keys > MORE_KEYS * self._measured_for:
                self._measured_for = keys
                if self._length(keys) != self.chunks.length:
                    self._stored_again(self.slices, keys)
            return
        s = self.slices
        needed = s.first >= oldest
        if not (len(idle) and forever_asked(self.plan)) and needed.all():
            return
        self._grown = True
        forever = False
        for query in (self.slicer.queries[k] for k in self.slicer.others):
            if isinstance(query.shape, Everything):
                forever = True
            elif isinstance(query.shape, Gaps):
                ends, slices = self._session_ends(query.shape.gap)
                needed |= np.repeat(ends + query.shape.gap + 1 > horizon, slices)
            else:
                needed |= ~handler(query.shape).closed(query.shape, s.first, horizon)
        if forever:
            # Only the whole matters of what is older than every edge that is needed.
            if not needed.all():
                s = self.coalesced(s.with_cells(np.where(needed, s.cell, SETTLED)))
            # Of an idle key the whole goes; an older snapshot may have other queries here, and what they need stays.
            self.chunks.put(0, s.take(np.flatnonzero(~np.isin(s.key, idle) | (s.cell != SETTLED))) if len(idle) else s)
            return
        if not needed.all():
            self.chunks.put(0, s.take(np.flatnonzero(needed)))

    def merge_at_ends(self, after: int, until: int) -> None:
        """In an in-order stream slices are cut at starts only: at ends no longer than until the windows are given that end there (section
        5.3, step 1)."""
        if not self.slicer.pass_ends(after, until):
            return
        begin = self.chunks.number(max(after, FAR_BACK >> 1))
        for number in [n for n in self.chunks.numbers if n >= begin]:
            chunk = self.chunks.get(number)
            assert chunk is not None
            cut = self._cut_again(chunk)
            if np.any(cut.cell != chunk.cell):
                self._grown = True
                self.chunks.put(number, self.coalesced(cut, len(chunk)))

    def _cut_again(self, slices: Slices) -> Slices:
        """Slices with the cells that they have by the edges of now."""
        return slices.with_cells(np.where(slices.cell == SETTLED, SETTLED, self.slicer.cells(slices.first)))

    def _drop_before(self, oldest: int) -> None:
        """Whole chunks go; of the one that the oldest open window starts in, what lies before it."""
        border = self.chunks.drop_before(oldest)
        chunk = self.chunks.get(border) if self._home.trims else None
        if chunk is not None and chunk.first_begin < oldest:
            self.chunks.put(border, chunk.take(np.flatnonzero(chunk.first >= oldest)))

    def with_queries(self, plan: Plan) -> None:
        """Other queries from now on; slices that no edge keeps apart any more are merged."""
        slices = self.slices
        self.plan = plan
        self._settle()
        if len(slices):
            slices = self.coalesced(self._cut_again(slices), len(slices))
        self._stored_again(slices, self._measured_for)

    def live_keys(self) -> Array:
        """The keys that have something here."""
        return np.unique(np.concatenate([np.unique(chunk.key) for chunk in self.chunks.all()] or [self._none.key]))

    def renumber(self, went: Array, kept: Array) -> None:
        """Keys have new numbers, in the same order."""
        for number in list(self.chunks.numbers):
            chunk = self.chunks.get(number)
            assert chunk is not None
            self.chunks.put(number, replace(chunk, key=went[chunk.key]))

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """The state as data."""
        columns = self.slices.columns()
        facts = {"keeps_rows": False, "since": self.since, "merges": self.merges, "splits": self.splits}
        return facts, pa.table({f"c{k}": pa.array(c) for k, c in enumerate(columns)})

    def load(self, facts: dict[str, Any], table: pa.Table, keys: int) -> None:
        """Take over what was saved, of so many keys."""
        what = "the state's slices"
        if any(c.null_count for c in table.columns):
            raise validation.damaged(what, "a value is missing")
        slices = validation.slices([c.to_numpy().copy() for c in table.columns], self._none, keys, what)
        self._stored_again(slices, int(slices.key.max(initial=0)) + 1)
        self._grown = True
        self._count(facts)

    def _count(self, facts: dict[str, Any]) -> None:
        """Go on counting."""
        self.merges, self.splits = (validation.whole(facts[name], "the state") for name in ("merges", "splits"))

    def how_many_open(self, horizon: int, newest: int) -> tuple[int, int]:
        """How many windows are not closed: those whose edges are known, keys not counted; and those of each key."""
        slicer = self.slicer
        known = (newest - slicer.offset) // slicer.every - (horizon - slicer.offset - slicer.size) // slicer.every
        own = 0
        for shape in (slicer.queries[k].shape for k in slicer.others):
            own += len(self._session_ends(shape.gap)[0]) if isinstance(shape, Gaps) else len(self.live_keys())
        return (int(np.maximum(known, 0).sum()) if self.chunks.numbers else 0), own

    @property
    def kept(self) -> int:
        """How many rows are held."""
        return 0

    # Behind a store.

    def put_away(self) -> dict[str, Any]:
        """What the next step has to know, besides the chunks."""
        return {
            "length": self.chunks.length, "origin": self.chunks.origin, "measured": self._measured_for,
            "merges": self.merges, "splits": self.splits,
        }  # fmt: skip

    def take_out(self, facts: dict[str, Any]) -> None:
        """Go on where the last step ended."""
        what = "the state"
        self._measured_for = validation.whole(facts["measured"], what)
        length = None if facts["length"] is None else validation.whole(facts["length"], what, 1, FAR_AHEAD)
        self.chunks = Chunks(self._home, length, validation.tick(facts["origin"], what), self._whole)
        self._count(facts)

    @property
    def stats(self) -> dict[str, int]:
        trees = sum(t.nbytes for t in self.trees or [])
        return {"slices": self.chunks.count, "kept_rows": 0, "bytes": self.chunks.nbytes + trees}


FEW_CHUNKS = 2


def nothing() -> None:
    """What there is to do where no rows came."""


def view_of(slices: Slices, keys: int) -> View:
    """Slices as window bounds see them."""
    offsets = np.searchsorted(slices.key, np.arange(keys + 1)).astype(np.int64) if keys > 1 else np.array([0, len(slices)])
    return View(offsets, slices.first, slices.first, slices.last, slices.count)
