"""Rows that are kept: for windows that a late row may shift or split, and aggregates whose partials need their rows.

Slices are cut from the rows when windows are asked for, by the same code as a table's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import order
from sash.slicing.batch import cut, gather, what_windows_read
from sash.slicing.partials import Partials
from sash.slicing.shapes import handler
from sash.slicing.view import SortedRows, View
from sash.slicing.waiting import Waiting
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.base import ContextAwareWindow, Everything, Gaps, Marks, Periodic, Ranks, RowsBefore

Array = npt.NDArray[Any]


MOST_CHUNKS = 16


class RowState:
    """Rows in order, and what of each key's windows is closed."""

    keeps_rows = True
    numbers = "\0ids"
    """The column of what is saved that tells rows apart."""

    def __init__(self, plan: Plan, since: int = FAR_BACK) -> None:
        self.plan = plan
        self.since = since
        self.table = plan.schema.empty_table().select(list(plan.reads))
        self.ticks = np.empty(0, np.int64)
        self.codes = np.empty(0, np.int64)
        self.ids = np.empty(0, np.int64)
        self.waiting = Waiting()
        self.bases = np.empty(0, np.int64)
        """For each key how many of its rows are gone, because row windows count from the first."""
        self.gone_until = np.empty(0, np.int64)
        """For each key the time of the last row that is gone."""
        self.closed: dict[str, Array] = {q.name: np.empty(0, np.int64) for q in plan.queries}
        """For each query and key the time up to which its windows are closed; for row windows, the number of closed ones."""
        self.merges = 0
        self.splits = 0

    def add(self, table: pa.Table, ticks: Array, codes: Array, ids: Array, span: tuple[int, int]) -> None:
        """Take rows in; they wait, in the order of their own batch, until :meth:`settle` asks for them."""
        table = table.select(self.table.column_names)
        seen = ticks >= self.since
        if not seen.all():
            table, ticks, codes, ids = table.filter(pa.array(seen)), ticks[seen], codes[seen], ids[seen]
        if not len(ticks):
            return
        self.waiting.add(table, ticks, codes, ids)

    def settle(self, horizon: int) -> None:
        """Put the waiting rows before ``horizon`` into their place among all: nothing that comes later goes before them."""
        ready = self.waiting.before(horizon)
        if ready is not None:
            # Ties in time go by arrival, so runs are joined in the order in which they came.
            self._place(*ready)

    def _place(self, table: pa.Table, ticks: Array, codes: Array, ids: Array) -> None:
        """Add rows, each to its place in the order."""
        # With one key, the rows before the oldest new one stay where they are.
        settled = 0 if self.plan.by else int(np.searchsorted(self.ticks, ticks.min()))
        tail = pa.concat_tables([self.table.slice(settled), table]).combine_chunks()
        tail_ticks = np.concatenate([self.ticks[settled:], ticks])
        tail_codes = np.concatenate([self.codes[settled:], codes])
        tail_ids = np.concatenate([self.ids[settled:], ids])
        ties = [arrow_column(tail.column(name)) for name in self.plan.order_by]
        places = order.sorted_order(tail_codes, int(tail_codes.max()) + 1, tail_ticks, ties)
        if places is not None:
            tail, tail_ticks = tail.take(pa.array(places)), tail_ticks[places]
            tail_codes, tail_ids = tail_codes[places], tail_ids[places]
        if settled:
            tail = pa.concat_tables([self.table.slice(0, settled), tail])
            tail_ticks = np.concatenate([self.ticks[:settled], tail_ticks])
            tail_codes = np.concatenate([self.codes[:settled], tail_codes])
            tail_ids = np.concatenate([self.ids[:settled], tail_ids])
        self.table = tail if tail.num_columns == 0 or tail.column(0).num_chunks <= MOST_CHUNKS else tail.combine_chunks()
        self.ticks, self.codes, self.ids = tail_ticks, tail_codes, tail_ids

    def _grown(self, keys: int) -> None:
        missing = keys - len(self.bases)
        if missing > 0:
            self.bases = np.concatenate([self.bases, np.zeros(missing, np.int64)])
            self.gone_until = np.concatenate([self.gone_until, np.full(missing, FAR_BACK, np.int64)])
            for query in self.plan.queries:
                nothing = 0 if isinstance(query.shape, Ranks) else FAR_BACK
                self.closed[query.name] = np.concatenate([self.closed[query.name], np.full(missing, nothing, np.int64)])

    def view(self, keys: int, queries: list[int] | None = None) -> tuple[View, Array | None]:
        """The slices, cut now for some of the queries, and the numbers of the rows."""
        self._grown(keys)
        plan = self.plan if queries is None else self.plan.with_queries(tuple(self.plan.queries[k] for k in queries))
        self.table = self.table.combine_chunks()
        offsets = np.searchsorted(self.codes, np.arange(keys + 1)).astype(np.int64)
        return cut(plan, SortedRows(self.ticks, offsets, what_windows_read(plan, self.table), self.bases)), self.ids

    def ending(self, after: int, until: int, keys: int) -> list[int]:
        """Which queries may have a window that cannot change any more once the watermark moves from ``after`` to ``until``."""
        self._grown(keys)
        before: Array | None = None
        found = []
        for k, query in enumerate(self.plan.queries):
            shape = query.shape
            if isinstance(shape, Ranks):
                if before is None:
                    before = np.bincount(self.codes[self.ticks < until], minlength=keys) + self.bases
                if not np.any(before >= self.closed[query.name] * shape.every + shape.size):
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
        return gather(self.plan, self.table, view.row_offsets)

    def open_windows(self, query: Any, keys: Array, due: Array, ranks: Array | None) -> Array:
        """Which windows are not closed."""
        marks = self.closed[query.name][keys]
        if isinstance(query.shape, Ranks):
            assert ranks is not None
            still: Array = ranks // query.shape.every >= marks
        else:
            still = due > marks
        return still

    def close_windows(self, query: Any, keys: Array, due: Array, ranks: Array | None) -> None:
        """These windows will not be given again."""
        marks = self.closed[query.name]
        if isinstance(query.shape, Ranks):
            assert ranks is not None or not len(keys)
            if ranks is not None:
                np.maximum.at(marks, keys, ranks // query.shape.every + 1)
        else:
            np.maximum.at(marks, keys, due)

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
        if len(idle):
            # An idle key's ranks start again; rows that other windows still need have ranks before the first.
            kept = np.bincount(self.codes, minlength=keys)
            self.bases[idle] = -kept[idle]
            self.gone_until[idle] = FAR_BACK
            for query in self.plan.queries:
                if isinstance(query.shape, Ranks):
                    self.closed[query.name][idle] = 0

    def _drop(self, horizon: int, keys: int, idle: Array) -> None:
        offsets = np.searchsorted(self.codes, np.arange(keys + 1)).astype(np.int64)
        # A row may still come before one at or after the horizon, and take its rank.
        needed = self.ticks >= horizon
        quiet = np.isin(self.codes, idle) if len(idle) else None
        for query in self.plan.queries:
            wanted = self._needed(query, offsets, horizon)
            needed |= wanted if quiet is None or not query.window.never_ends else wanted & ~quiet
        # Rows go from the front only, so that ranks and contexts stay whole.
        first = offsets[1:].copy()
        at = np.flatnonzero(needed)
        np.minimum.at(first, self.codes[at], at)
        keep = np.arange(len(self.ticks)) >= first[self.codes]
        if keep.all():
            return
        self.bases += np.bincount(self.codes[~keep], minlength=len(self.bases))
        np.maximum.at(self.gone_until, self.codes[~keep], self.ticks[~keep])
        self.table = self.table.filter(pa.array(keep)).combine_chunks()
        self.ticks, self.codes, self.ids = self.ticks[keep], self.codes[keep], self.ids[keep]

    def _needed(self, query: Any, offsets: Array, horizon: int) -> Array:
        """Which rows a window that is not closed may hold."""
        shape = query.shape
        marks = self.closed[query.name][self.codes]
        if isinstance(shape, Everything | ContextAwareWindow):
            return np.ones(len(self.ticks), bool)
        if isinstance(shape, Marks):
            return self.ticks >= marks
        rank = np.arange(len(self.ticks)) - offsets[self.codes]
        if isinstance(shape, Ranks):
            return rank + self.bases[self.codes] >= marks * shape.every
        if isinstance(shape, RowsBefore):
            after = np.add.reduceat(np.append(self.ticks < horizon, False), np.minimum(offsets[:-1], len(self.ticks)))
            return rank >= after[self.codes] - shape.count
        if isinstance(shape, Gaps):
            fresh = np.ones(len(self.ticks), bool)
            fresh[1:] = (np.diff(self.ticks) > shape.gap) | (np.diff(self.codes) != 0)
            last = np.append(np.flatnonzero(fresh)[1:], len(self.ticks)) - 1
            still = self.ticks[last] + shape.gap + 1 > horizon
            open_rows: Array = still[np.cumsum(fresh) - 1]
            return open_rows
        return ~handler(shape).closed(shape, self.ticks, horizon)

    def with_queries(self, plan: Plan) -> None:
        """Other queries from now on."""
        self.plan = plan
        names = list(plan.reads)
        self.table = self.table.select(names)
        self.waiting.select(names)
        self.closed = {q.name: self.closed[q.name] for q in plan.queries}

    def live_keys(self) -> Array:
        """The keys that have something here; row windows count on, so theirs stay until they are idle."""
        counted = [self.closed[q.name] for q in self.plan.queries if isinstance(q.shape, Ranks)]
        begun = np.flatnonzero(np.any([self.bases != 0, *(c != 0 for c in counted)], axis=0)) if counted else np.empty(0, np.int64)
        return np.concatenate([self.codes, begun, *(codes for _, _, codes, _ in self.waiting.runs)])

    def renumber(self, went: Array, kept: Array) -> None:
        """Keys have new numbers, in the same order."""
        self._grown(len(went))
        self.codes = went[self.codes]
        self.waiting.renumber(went)
        self.bases, self.gone_until = self.bases[kept], self.gone_until[kept]
        self.closed = {name: marks[kept] for name, marks in self.closed.items()}

    def how_many_open(self, horizon: int, newest: int) -> tuple[int, int]:
        """How many windows are not closed, as far as that shows without cutting them: one of each query for each key that has rows."""
        return 0, len(np.unique(self.codes)) * len(self.plan.queries)

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """The state as data."""
        self.settle(FAR_AHEAD)
        facts = {
            "keeps_rows": True, "since": self.since, "merges": self.merges, "splits": self.splits,
            "bases": self.bases.tolist(), "gone_until": self.gone_until.tolist(),
            "closed": {name: marks.tolist() for name, marks in self.closed.items()},
        }  # fmt: skip
        extra = {"\0ticks": self.ticks, "\0codes": self.codes, "\0ids": self.ids}
        table = self.table
        for name, values in extra.items():
            table = table.append_column(name, pa.array(values, pa.int64()))
        return facts, table

    def load(self, facts: dict[str, Any], table: pa.Table) -> None:
        """Take over what was saved."""
        table = table.combine_chunks()
        ids = table.column("\0ids").to_numpy()
        if np.any(ids[1:] < ids[:-1]):  # by arrival first: that is the order of ties
            table = table.take(pa.array(np.argsort(ids)))
        ticks, codes, ids = (table.column(f"\0{n}").to_numpy().copy() for n in ("ticks", "codes", "ids"))
        if len(ids):
            self._place(table.drop_columns(["\0ticks", "\0codes", "\0ids"]), ticks, codes, ids)
        self.bases = np.array(facts["bases"], np.int64)
        self.gone_until = np.array(facts["gone_until"], np.int64)
        self.closed = {name: np.array(marks, np.int64) for name, marks in facts["closed"].items()}
        self.merges, self.splits = facts["merges"], facts["splits"]

    @property
    def kept(self) -> int:
        """How many rows are held."""
        return len(self.ticks) + sum(len(ticks) for _, ticks, _, _ in self.waiting.runs)

    @property
    def stats(self) -> dict[str, int]:
        held = self.table.nbytes + sum(table.nbytes for table, _, _, _ in self.waiting.runs)
        return {"slices": 0, "kept_rows": self.kept, "bytes": held + 24 * self.kept}
