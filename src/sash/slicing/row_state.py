"""Rows that are kept: for windows that a late row may shift or split, and aggregates whose partials need their rows.

Rows lie by key, then time. Slices are cut from them when windows are asked for, and stay from step to step
(:class:`~sash.slicing.row_slices.RowSlices`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import order, validation
from sash.slicing.key_windows import KeyWindows, lengthened
from sash.slicing.lineage import GrowingColumns, Lineage
from sash.slicing.notices import Notices
from sash.slicing.partials import Partials
from sash.slicing.row_slices import RowSlices
from sash.slicing.shapes import handler, places_in_keys
from sash.slicing.view import SortedRows, View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.base import ContextAwareWindow, Everything, Gaps, Marks, Periodic, Ranks, RowsBefore

Array = npt.NDArray[Any]


MOST_CHUNKS = 16
MANY_TIMES = 2
"""Rows are put among so many times as many; among fewer, all are sorted."""


class RowState(KeyWindows):
    """Rows in order, and what of each key's windows is closed."""

    keeps_rows = True
    numbers = "\0ids"
    """The column of what is saved that tells rows apart."""

    def __init__(self, plan: Plan, since: int = FAR_BACK) -> None:
        super().__init__(plan, since)
        self.table = plan.schema.empty_table().select(list(plan.reads))
        self.numbers_of_rows = GrowingColumns(3)
        """Ticks, codes and ids."""
        self.lineage = Lineage()
        """Where rows were when slices were last cut."""
        self.slices = RowSlices(plan)
        self._seen: list[Partials] = []
        self.bases = np.empty(0, np.int64)
        """For each key how many of its rows are gone, because row windows count from the first."""
        self.gone_until = np.empty(0, np.int64)
        """For each key the time of the last row that is gone."""
        self.notices = {id(q.shape): Notices(q.shape) for q in plan.queries if isinstance(q.shape, ContextAwareWindow)}

    @property
    def ticks(self) -> Array:
        """The rows' times."""
        return self.numbers_of_rows.column(0)

    @property
    def codes(self) -> Array:
        """The numbers of the rows' keys."""
        return self.numbers_of_rows.column(1)

    @property
    def ids(self) -> Array:
        """The rows' own numbers."""
        return self.numbers_of_rows.column(2)

    def settle(self, horizon: int) -> None:
        """Put the waiting rows before ``horizon`` into their place among all: nothing that comes later goes before them."""
        ready = self.waiting.before(horizon)
        if ready is not None:
            # Ties in time go by arrival, so runs are joined in the order in which they came.
            self._place(*ready)

    def _place(self, table: pa.Table, ticks: Array, codes: Array, ids: Array) -> None:
        """Add rows, each to its place in the order."""
        self._notice(ticks, codes)
        # With one key, the rows before the oldest new one stay where they are.
        settled = 0 if self.plan.by else int(np.searchsorted(self.ticks, ticks.min()))
        tail = pa.concat_tables([self.table.slice(settled), table]).combine_chunks()
        numbers = np.concatenate([self.numbers_of_rows.since(settled), np.stack([ticks, codes, ids])], axis=1)
        origin = np.concatenate([self.lineage.of(settled), np.full(len(ids), -1, np.int64)])
        places = self._order(tail, numbers, len(ids))
        if places is not None:
            tail, numbers, origin = tail.take(pa.array(places)), numbers.take(places, axis=1), origin[places]
        if settled:
            tail = pa.concat_tables([self.table.slice(0, settled), tail])
        self.table = tail if tail.num_columns == 0 or tail.column(0).num_chunks <= MOST_CHUNKS else tail.combine_chunks()
        self.numbers_of_rows.put(settled, numbers)
        self.lineage.put(settled, origin)

    def _order(self, table: pa.Table, numbers: Array, new: int) -> Array | None:
        """The order of rows of which all but the last, which are new, are in order; None if all are."""
        ticks, codes, _ = numbers
        old, keys = len(ticks) - new, int(codes.max()) + 1
        if self.plan.order_by or not self.plan.by or MANY_TIMES * new > old:
            return order.sorted_order(codes, keys, ticks, [arrow_column(table.column(name)) for name in self.plan.order_by])
        among = order.sorted_order(codes[old:], keys, ticks[old:], [])
        among = np.arange(old, old + new) if among is None else among + old
        offsets = np.searchsorted(codes[:old], np.arange(keys + 1)).astype(np.int64)
        before = places_in_keys(offsets, ticks[:old], codes[among], ticks[among] + 1)  # of one time, those that came before go before
        return np.insert(np.arange(old), before, among)

    def _notice(self, ticks: Array, codes: Array) -> None:
        """Users' own windows see a key's rows again if some come between others."""
        if self.notices:
            offsets = np.searchsorted(self.codes, np.arange(int(codes.max()) + 2))
            filled = offsets[codes + 1] > offsets[codes]
            last = self.ticks[offsets[codes[filled] + 1] - 1]
            between = ticks[filled] <= last if self.plan.order_by else ticks[filled] < last
            for notices in self.notices.values():
                notices.again(np.unique(codes[filled][between]).tolist())

    def _grown(self, keys: int) -> None:
        super()._grown(keys)
        self.bases = lengthened(self.bases, keys, 0)
        self.gone_until = lengthened(self.gone_until, keys, FAR_BACK)

    def view(self, keys: int) -> tuple[View, Array | None]:
        """The slices of now, and the numbers of the rows."""
        self._grown(keys)
        view, self._seen = self.slices.cut(self.plan, self._rows(keys), self.lineage)
        self.lineage.look(len(self.ticks))
        return view, self.ids

    def _rows(self, keys: int) -> SortedRows:
        offsets = np.searchsorted(self.codes, np.arange(keys + 1)).astype(np.int64)
        return SortedRows(self.ticks, offsets, self.table, self.bases, self.notices)

    def ending(self, after: int, until: int, keys: int) -> list[int]:
        """Which queries may have a window that cannot change any more once the watermark moves from ``after`` to ``until``."""
        self._grown(keys)
        rows = self._rows(keys)
        before = self._before(rows, until) - rows.key_offsets[:-1] + self.bases[:keys]
        found = []
        for k, query in enumerate(self.plan.queries):
            shape = query.shape
            if isinstance(shape, Ranks):
                if not np.any(before >= self.closed[query.name][:keys] * shape.every + shape.size):
                    continue
            elif isinstance(shape, RowsBefore):
                if until // shape.every == after // shape.every:
                    continue
            elif isinstance(shape, Periodic):
                phase = shape.offset + shape.size
                if (until - phase) // shape.every == (after - phase) // shape.every:
                    continue
            found.append(k)
        return found

    def partials(self, view: View) -> list[Partials]:
        """Each aggregate over them."""
        return self._seen

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """Rows whose windows are all closed."""
        self._grown(int(codes.max(initial=-1)) + 1)
        late = np.ones(len(ticks), bool)
        for query in self.plan.queries:
            late &= self._late_for(query, ticks, codes, horizon)
        return late | (ticks < self.since)

    def _late_for(self, query: Any, ticks: Array, codes: Array, horizon: int) -> Array:
        shape = query.shape
        marks = self.closed[query.name][codes]
        if isinstance(shape, Everything):
            return np.zeros(len(ticks), bool)
        if isinstance(shape, Marks | ContextAwareWindow):
            return ticks < marks
        if isinstance(shape, RowsBefore | Ranks):
            late = np.zeros(len(ticks), bool)
            for i in np.flatnonzero(ticks < (marks if isinstance(shape, RowsBefore) else horizon)).tolist():
                if isinstance(shape, RowsBefore):
                    # The next edge is the one that the fewest rows lie before.
                    edge = shape.offset + ((horizon - shape.offset) // shape.every + 1) * shape.every
                    late[i] = self._between(codes[i], ticks[i], edge) >= shape.count
                else:
                    before = self._between(codes[i], FAR_BACK, int(ticks[i]) + 1) + self.bases[codes[i]]
                    late[i] = ticks[i] < self.gone_until[codes[i]] or before // shape.every < marks[i]
            return late
        return handler(shape).closed(shape, ticks, horizon)

    def _between(self, code: int, after: int, before: int) -> int:
        """How many of a key's rows lie after one time and before another."""
        first, last = np.searchsorted(self.codes, [code, code + 1])
        low, high = np.searchsorted(self.ticks[first:last], [after + 1, before])
        waiting = sum(int(((c == code) & (t > after) & (t < before)).sum()) for _, t, c, _ in self.waiting.runs)
        return int(high - low) + waiting

    def evict(self, horizon: int, keys: int, idle: Array) -> None:
        """Drop each key's rows before the first that an open window may need."""
        self._grown(keys)
        if len(self.ticks):
            self._drop(horizon, keys, idle)
        if len(idle) and self._starts_again:
            self.bases[idle] = 0
            self.gone_until[idle] = FAR_BACK
            self._begin_again(idle)
            for notices in self.notices.values():
                notices.forget(idle.tolist())

    def _drop(self, horizon: int, keys: int, idle: Array) -> None:
        rows = self._rows(keys)
        offsets = rows.key_offsets
        filled = np.flatnonzero(np.diff(offsets))
        for query in self.plan.queries:
            if isinstance(query.shape, ContextAwareWindow):
                border = self.notices[id(query.shape)].settled(rows, horizon)
                passed = filled[self.ticks[offsets[filled]] < border[filled]]  # there are rows to go
                marks = self.closed[query.name]
                marks[passed] = np.maximum(marks[passed], border[passed])
        # Rows go from the front only, so that ranks and contexts stay whole. One may still come before one at or after the horizon, and
        # take its rank.
        first = self._before(rows, horizon)
        for query in self.plan.queries:
            first = np.minimum(first, self._first_needed(query, rows, horizon))
        first = np.clip(first, offsets[:-1], offsets[1:])
        if self._starts_again:
            first[idle] = offsets[idle + 1]
        gone = first - offsets[:-1]
        if not gone.any():
            return
        own = {id(q.shape): self.closed[q.name] for q in self.plan.queries if id(q.shape) in self.notices}
        after = {window: self.notices[window].after(rows, gone) for window in own}
        for window, closed in own.items():
            self.notices[window].drop(rows, gone, after[window], closed)
        self.bases[:keys] += gone
        some = np.flatnonzero(gone)
        self.gone_until[some] = np.maximum(self.gone_until[some], self.ticks[first[some] - 1])
        if len(filled) == 1:
            count = int(gone.sum())
            self.table = self.table.slice(count)
            self.numbers_of_rows.drop(count)
            self.lineage.drop(count)
        else:
            kept = np.flatnonzero(np.arange(len(self.ticks)) >= np.repeat(first, np.diff(offsets)))
            self.table = self.table.take(pa.array(kept)).combine_chunks()
            self.numbers_of_rows.put(0, self.numbers_of_rows.since(0).take(kept, axis=1))
            self.lineage.put(0, self.lineage.of(0)[kept])
        self.slices.dropped(self._rows(keys))

    @property
    def _starts_again(self) -> bool:
        """Whether all that is here of a key goes when it is idle: where there are such keys, such queries have a state of their own."""
        return all(query.window.never_ends for query in self.plan.queries)

    def _before(self, rows: SortedRows, tick: int) -> Array:
        """For each key its first row that is not before a tick."""
        keys = np.arange(len(rows.key_offsets) - 1)
        return places_in_keys(rows.key_offsets, rows.ticks, keys, np.full(len(keys), tick, np.int64))

    def _first_needed(self, query: Any, rows: SortedRows, horizon: int) -> Array:
        """For each key the first row that a window which is not closed may hold."""
        shape, offsets = query.shape, rows.key_offsets
        keys = len(offsets) - 1
        marks = self.closed[query.name][:keys]
        if isinstance(shape, Everything):
            return offsets[:-1].copy()
        if isinstance(shape, Marks | ContextAwareWindow):
            return places_in_keys(offsets, rows.ticks, np.arange(keys), marks)
        if isinstance(shape, Ranks):
            first: Array = offsets[:-1] + np.maximum(0, marks * shape.every - self.bases[:keys])
            return first
        if isinstance(shape, RowsBefore):
            return self._before(rows, horizon) - shape.count
        if isinstance(shape, Gaps):
            fresh = np.ones(len(self.ticks), bool)
            fresh[1:] = (np.diff(self.ticks) > shape.gap) | (np.diff(self.codes) != 0)
            last = np.append(np.flatnonzero(fresh)[1:], len(self.ticks)) - 1
            still = self.ticks[last] + shape.gap + 1 > horizon
            needed: Array = still[np.cumsum(fresh) - 1]
        else:
            needed = ~handler(shape).closed(shape, self.ticks, horizon)
        at = np.flatnonzero(needed)
        found = offsets[1:].copy()
        np.minimum.at(found, self.codes[at], at)
        return found

    def with_queries(self, plan: Plan) -> None:
        """Other queries from now on."""
        self._ask(plan)
        self.table = self.table.select(list(plan.reads))
        self.notices = {id(q.shape): self.notices[id(q.shape)] for q in plan.queries if id(q.shape) in self.notices}

    def live_keys(self) -> Array:
        """The keys that have something here; row windows count on, so theirs stay until they are idle."""
        counted = [self.closed[q.name] for q in self.plan.queries if isinstance(q.shape, Ranks)]
        begun = np.flatnonzero(np.any([self.bases != 0, *(c != 0 for c in counted)], axis=0)) if counted else np.empty(0, np.int64)
        noticed = [np.flatnonzero(self.closed[q.name] > FAR_BACK) for q in self.plan.queries if id(q.shape) in self.notices]
        noticed += [notices.live_keys() for notices in self.notices.values()]
        return np.concatenate([self.codes, begun, *noticed, *(codes for _, _, codes, _ in self.waiting.runs)])

    def renumber(self, went: Array, kept: Array) -> None:
        """Keys have new numbers, in the same order."""
        self._grown(len(went))
        self.codes[:] = went[self.codes]
        self.waiting.renumber(went)
        self.slices.renumber(went, kept)
        self.bases, self.gone_until = self.bases[kept], self.gone_until[kept]
        self.closed = {name: marks[kept] for name, marks in self.closed.items()}
        for notices in self.notices.values():
            notices.renumber(went, kept)

    def how_many_open(self, horizon: int, newest: int) -> tuple[int, int]:
        """How many windows are not closed, as far as that shows without cutting them: one of each query for each key that has rows."""
        return 0, len(np.unique(self.codes)) * len(self.plan.queries)

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """The state as data."""
        self.settle(FAR_AHEAD)
        facts = {
            "keeps_rows": True, "since": self.since, "merges": self.slices.merges, "splits": self.slices.splits,
            "shifts": self.slices.shifts,
            "bases": self.bases.tolist(), "gone_until": self.gone_until.tolist(),
            "closed": {name: marks.tolist() for name, marks in self.closed.items()},
            "notices": {q.name: self.notices[id(q.shape)].save() for q in self.plan.queries if id(q.shape) in self.notices},
        }  # fmt: skip
        extra = {"\0ticks": self.ticks, "\0codes": self.codes, "\0ids": self.ids}
        table = self.table
        for name, values in extra.items():
            table = table.append_column(name, pa.array(values, pa.int64()))
        return facts, table

    def load(self, facts: dict[str, Any], table: pa.Table, keys: int) -> None:
        """Take over what was saved, of so many keys."""
        what = "the state's rows"
        table = table.combine_chunks()
        numbers = ["\0ticks", "\0codes", "\0ids"]
        whole, times = validation.rows(table.drop_columns(numbers), self.plan, what)
        for name in numbers:
            whole = whole.append_column(name, table.column(name))
        table = whole
        if not np.array_equal(times, validation.column(table, "\0ticks", what, low=FAR_BACK, high=FAR_AHEAD)):
            raise validation.damaged(what, "the times of rows are not those that it says")
        validation.column(table, "\0codes", what, low=0, high=keys)
        ids = validation.column(table, "\0ids", what, low=0, high=FAR_AHEAD)
        if len(np.unique(ids)) < len(ids):
            raise validation.damaged(what, "a row is there twice")
        if np.any(ids[1:] < ids[:-1]):  # by arrival first: that is the order of ties
            table = table.take(pa.array(np.argsort(ids)))
        ticks, codes, ids = (table.column(f"\0{n}").to_numpy().copy() for n in ("ticks", "codes", "ids"))
        if len(ids):
            self._place(table.drop_columns(["\0ticks", "\0codes", "\0ids"]), ticks, codes, ids)
        for query in self.plan.queries:
            if query.name in facts.get("notices", {}):
                self.notices[id(query.shape)].load(facts["notices"][query.name], keys)
        self.bases = validation.numbers(facts["bases"], what, most=keys, low=0)
        self.gone_until = validation.numbers(facts["gone_until"], what, most=keys)
        self.closed = self.checked_marks(facts["closed"], keys)
        first = lengthened(self.bases, keys, 0)
        self.check_ranks(first, first + np.bincount(self.codes, minlength=keys))
        counts = [validation.whole(n, what) for n in (facts["merges"], facts["splits"], facts.get("shifts", 0))]
        self.slices.merges, self.slices.splits, self.slices.shifts = counts

    @property
    def kept(self) -> int:
        """How many rows are held."""
        return len(self.ticks) + sum(len(ticks) for _, ticks, _, _ in self.waiting.runs)

    @property
    def stats(self) -> dict[str, int]:
        rows = self.table.nbytes + self.numbers_of_rows.nbytes + self.lineage.nbytes
        waiting = sum(part.nbytes for run in self.waiting.runs for part in run)
        return {"slices": len(self.slices), "kept_rows": self.kept, "bytes": rows + waiting + self.slices.nbytes}

    @property
    def merges(self) -> int:
        """How many slices became one with another."""
        return self.slices.merges

    @property
    def splits(self) -> int:
        """How many slices were cut in two."""
        return self.slices.splits

    @property
    def shifts(self) -> int:
        """How many slices gave their last rows on to the next."""
        return self.slices.shifts
