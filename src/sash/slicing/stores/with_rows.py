"""Slices with their rows: for edges that are known in advance and sessions, with aggregates of flat fields that do not commute.

Rows are pending until the horizon passes them, and are then added to their slices in order. If a row arrives later than that, and still
belongs to an open window, its slice is computed again from its rows (figure 4: the one case of context free windows in which rows are
retained).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import validation
from sash.slicing.ingest.slices import Slices, joined
from sash.slicing.rows.keys import span_of
from sash.slicing.rows.pending import PendingRows
from sash.slicing.rows.timed import KeyedRows
from sash.slicing.stores.closing_marks import horizon_of_rows
from sash.slicing.stores.partials_only import PartialsOnly
from sash.slicing.stores.slice_store import Commit, Step, StepSlices, StoreState, StoreStats
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]
Run = tuple[pa.Table, Array, Array]
"""Rows, their ticks, and their keys' numbers."""

MOST_RUNS = 32
CODE = "@sash:code"
NUMBER = "@sash:number"


class SlicesWithRows(PartialsOnly):
    """The slice store and slice manager where order matters."""

    kind: ClassVar[str] = "slices and rows"
    retains_rows: ClassVar[bool] = True
    row_number: ClassVar[str | None] = NUMBER

    def __init__(self, plan: Plan, since: int = FAR_BACK, *, store: str = "auto", ordered: bool = False) -> None:
        super().__init__(plan, since, store=store, ordered=ordered)
        self.rows: dict[int, list[Run]] = {}
        """The rows of each chunk, in the order of their arrival."""
        self.pending = PendingRows()
        self.recomputed = 0

    # Rows in.

    def prepare(self, rows: KeyedRows, *, at_once: bool = False) -> Commit:
        rows = rows.since(self.since)
        table = rows.table.select(list(self.plan.reads)).append_column(NUMBER, pa.array(rows.ids))

        def commit() -> None:
            if len(rows):
                self.pending.add(table, np.ascontiguousarray(rows.ticks), rows.codes, rows.codes)

        return commit

    def prepare_slices(self, slices: Slices, *, only: bool) -> Commit:
        raise NotImplementedError("slices that were computed elsewhere have no rows to retain")

    def _place_pending(self, horizon: int) -> None:
        """Put the pending rows before ``horizon`` into slices."""
        ready = self.pending.before(horizon)
        if ready is not None:
            self._add_rows(*_in_time(ready[:3]))

    def _add_rows(self, table: pa.Table, ticks: Array, codes: Array) -> None:
        new = self.slicer.slices(table, ticks, codes, span_of(ticks))
        before = {number: list(runs) for number, runs in self.rows.items()}
        self._retain(table, ticks, codes)
        try:
            changes = [(number, self._with_rows(number, part)) for number, part in self.chunks.split(new)]
        except BaseException:  # a user's function raised: the rows are not added
            self.rows = before
            raise
        self._session_ends.note_slices(new.first_begin)
        for number, change in changes:
            self.chunks.put(number, change())

    def _with_rows(self, number: int, part: Slices) -> Callable[[], Slices]:
        """A function that returns a chunk's slices with new ones added."""
        old = self.chunks.get(number)
        if old is not None:
            return self._inserted(number, old, part)
        whole = self._manager.coalesced(part)
        return lambda: whole

    def _retain(self, table: pa.Table, ticks: Array, codes: Array) -> None:
        """Store rows with the chunks that their times lie in."""
        length = self.chunks.length
        numbers = np.zeros(len(ticks), np.int64) if length is None else (ticks - self.chunks.origin) // length
        for number in np.unique(numbers).tolist():
            part = np.flatnonzero(numbers == number)
            run = (table, ticks, codes) if len(part) == len(ticks) else (table.take(pa.array(part)), ticks[part], codes[part])
            runs = self.rows.setdefault(number, [])
            runs.append(run)
            if len(runs) > MOST_RUNS:
                self.rows[number] = [_in_time(_together(runs))]

    def _inserted(self, number: int, old: Slices, new: Slices) -> Callable[[], Slices]:
        """A function that returns a chunk's slices with new ones added, whose rows may lie between older ones."""
        pair, last = _pairs(old, new)
        of_old, of_new = pair[: len(old)], pair[len(old) :]
        ties = bool(self.plan.order_by)  # rows of one time are then in an order of their own
        late = new.first <= last[of_new] if ties else new.first < last[of_new]
        if not late.any():
            return self._manager.merged(old, new)
        self._manager.is_tree_stale = True
        dirty = np.unique(of_new[late])
        self.recomputed += len(dirty)
        again = self._from_rows(number, new.take(np.flatnonzero(np.isin(of_new, dirty))))
        unchanged = [old.take(np.flatnonzero(~np.isin(of_old, dirty))), new.take(np.flatnonzero(~np.isin(of_new, dirty)))]
        whole = self._manager.coalesced(joined([*unchanged, again]))
        return lambda: whole

    def _from_rows(self, number: int, wanted_slices: Slices) -> Slices:
        """The slices with the keys and cells of ``wanted_slices``, computed from their rows."""
        table, ticks, codes = _together(self.rows[number])
        keys, cells = np.unique(wanted_slices.key), np.unique(wanted_slices.cell)
        of_rows = self.slicer.edges.cells(ticks)
        key_place, cell_place = (np.minimum(np.searchsorted(a, b), len(a) - 1) for a, b in ((keys, codes), (cells, of_rows)))
        wanted = np.zeros((len(keys), len(cells)), bool)
        wanted[np.searchsorted(keys, wanted_slices.key), np.searchsorted(cells, wanted_slices.cell)] = True
        some = wanted[key_place, cell_place] & (keys[key_place] == codes) & (cells[cell_place] == of_rows)
        at = np.flatnonzero(some)
        return self.slicer.slices(table.take(pa.array(at)), ticks[at], codes[at], span_of(ticks[at]))

    # A step.

    def next_due(self, after: int) -> int:
        """As for slices; a session may also end with a pending row."""
        return min([super().next_due(after), *(self.pending.first + gap + 1 for gap in self.plan.session_gaps)])

    def step(self, step: Step, keys: int) -> StepSlices | None:
        self._place_pending(horizon_of_rows(step))
        return super().step(step, keys)

    def evict(self, step: Step, keys: int) -> None:
        before = self.chunks.get(0)
        super().evict(step, keys)
        if self.chunks.length is not None:
            oldest = self.slicer.edges.oldest_open(step.closed_now)
            border = self.chunks.number(oldest)
            for number in [n for n in self.rows if n <= border]:
                runs = [_since(run, oldest) for run in self.rows[number]] if self.chunks.get(number) is not None else []
                self.rows[number] = [run for run in runs if len(run[1])]
                if not self.rows[number]:
                    del self.rows[number]
        elif self.chunks.get(0) is not before:
            self._drop_rows(self.chunks.get(0))

    def _drop_rows(self, chunk: Slices | None) -> None:
        """Drop the rows before each key's first slice: sessions are dropped key by key."""
        if chunk is None or 0 not in self.rows:
            self.rows = {}
            return
        table, ticks, codes = _together(self.rows[0])
        first = np.full(max(int(codes.max()), int(chunk.key.max())) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, chunk.key, chunk.first)
        retained = ticks >= first[codes]
        self.rows[0] = [(table.filter(pa.array(retained)), ticks[retained], codes[retained])]

    def _store_again(self, slices: Slices, keys: int) -> None:
        super()._store_again(slices, keys)
        runs = [run for group in self.rows.values() for run in group]
        self.rows = {}
        for run in runs:
            self._retain(*run)

    # Queries and keys are added and removed.

    def with_queries(self, plan: Plan) -> None:
        names = [*plan.reads, NUMBER]
        self.rows = {n: [(table.select(names), t, c) for table, t, c in runs] for n, runs in self.rows.items()}
        self.pending.select(names)
        super().with_queries(plan)

    def live_keys(self) -> Array:
        return np.concatenate([super().live_keys(), *self.pending.codes()])

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        super().renumber(new_id_of, retained)
        self.pending.renumber(new_id_of)
        self.rows = {n: [(table, ticks, new_id_of[codes]) for table, ticks, codes in runs] for n, runs in self.rows.items()}

    # Statistics, export and import.

    def export(self) -> StoreState:
        """The rows: slices are computed from them again by an import."""
        self._place_pending(FAR_AHEAD)
        runs = [run for number in self.chunks.numbers for run in self.rows[number]]
        empty = self.plan.schema.empty_table().select(list(self.plan.reads)).append_column(NUMBER, pa.array([], pa.int64()))
        table, _, codes = _together(runs) if runs else (empty, None, np.empty(0, np.int64))
        facts = {"keeps_rows": False, "since": self.since, "merges": self._manager.merges, "splits": 0, "kind": self.kind}
        return StoreState(self.kind, facts, table.append_column(CODE, pa.array(codes, pa.int64())))

    def _import_table(self, table: pa.Table, keys: int) -> None:
        what = "the state's rows"
        table = table.combine_chunks()
        whole, _ = validation.rows(table.drop_columns([CODE, NUMBER]), self.plan, what)
        for name in (NUMBER, CODE):
            whole = whole.append_column(name, table.column(name))
        table = whole
        numbers = validation.column(table, NUMBER, what, low=0, high=FAR_AHEAD)
        validation.column(table, CODE, what, low=0, high=keys)
        if np.any(numbers[1:] < numbers[:-1]):  # by arrival: that is the order of ties
            table = table.take(pa.array(np.argsort(numbers)))
        codes = table.column(CODE).to_numpy().copy()
        self.chunks = self._measured(int(codes.max(initial=0)) + 1)
        if len(codes):
            rows = table.drop([CODE])
            ticks = self.plan.measure.column(arrow_column(rows.column(self.plan.time))).copy()
            self._add_rows(*_in_time((rows, ticks, codes)))

    def _runs(self) -> list[Run]:
        """All rows, including pending ones."""
        return [run for group in self.rows.values() for run in group] + [run[:3] for run in self.pending.runs]

    def stats(self) -> StoreStats:
        return replace(super().stats(), retained_rows=sum(len(ticks) for _, ticks, _ in self._runs()))

    def nbytes(self) -> int:
        return super().nbytes() + sum(int(table.nbytes + ticks.nbytes + codes.nbytes) for table, ticks, codes in self._runs())


def _together(runs: list[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    tables = pa.concat_tables([table for table, _, _ in runs]).combine_chunks()
    return tables, np.concatenate([ticks for _, ticks, _ in runs]), np.concatenate([codes for _, _, codes in runs])


def _in_time(run: Run) -> Run:
    """The rows by time; those of one time by arrival."""
    table, ticks, codes = run
    if not np.any(ticks[1:] < ticks[:-1]):
        return run
    places = np.argsort(ticks, kind="stable")
    return table.take(pa.array(places)), ticks[places], codes[places]


def _since(run: Run, oldest: int) -> Run:
    """The rows of a run, which is in the order of time, from ``oldest`` on."""
    table, ticks, codes = run
    at = int(np.searchsorted(ticks, oldest))
    return (table.slice(at), ticks[at:], codes[at:]) if at else run


def _pairs(old: Slices, new: Slices) -> tuple[Array, Array]:
    """For each slice a number of its key and cell, and for each number the time of the last row in the old slices."""
    keys, cells = np.concatenate([old.key, new.key]), np.concatenate([old.cell, new.cell])
    order = np.lexsort((cells, keys))
    fresh = np.append(True, (keys[order][1:] != keys[order][:-1]) | (cells[order][1:] != cells[order][:-1]))
    pair = np.empty(len(keys), np.int64)
    pair[order] = np.cumsum(fresh) - 1
    last = np.full(int(fresh.sum()), np.iinfo(np.int64).min)
    np.maximum.at(last, pair[: len(old)], old.last)
    return pair, last
