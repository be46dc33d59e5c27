"""The slices of rows that are kept, from step to step (sections 5.2 and 5.3: update, split, merge, and the shift of row windows).

When windows are asked for, the rows are cut at the edges of all queries, and each slice is compared with the one that was there: if it has
the same rows, its partial stays; if few rows came or went, they are added, or taken away where that is exact; if not, it is computed from
its rows. Where rows are read again and again because slices are cut in two or shifted, slices are kept short (section 6.3.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algebra import Form
from sash.algorithms import tables
from sash.kernels.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.logical import Column, Plan
from sash.slicing.batch import cut
from sash.slicing.inputs import stored_fields, stored_form
from sash.slicing.lineage import Lineage
from sash.slicing.partials import ObjectPartials, Partials, partials_of
from sash.slicing.shapes import places_in_keys
from sash.slicing.slice_kernels import Kernels, StoredPartials
from sash.slicing.view import SortedRows, View
from sash.windows.base import Ranks

Array = npt.NDArray[Any]

SHORTEST = 64
"""Slices are not kept shorter than so many rows."""
TOO_MUCH = 4
"""So many rows read again for each new one make slices shorter."""
FADING = 7 / 8
"""What a step counts for at the next."""
CALM = 16
"""After so many looks with few rows read again, slices may be long again."""


@dataclass(frozen=True)
class Segments:
    """Rows of a table in groups: group ``j`` has the rows ``offsets[j]`` to ``offsets[j + 1] - 1``."""

    table: pa.Table
    offsets: Array

    def counted(self, held: Array | None) -> Array:
        """How many rows of each group are held."""
        if held is None:
            return np.diff(self.offsets)
        totals = np.concatenate([[0], np.cumsum(held, dtype=np.int64)])
        found: Array = np.diff(totals[self.offsets])
        return found


class Change:
    """How slices come from those that were there; both as places among the rows of now."""

    def __init__(self, start: Array, stop: Array, old_start: Array, old_stop: Array, fresh: Array) -> None:
        self.start, self.stop, self.fresh = start, stop, fresh
        self.old = np.zeros(len(start), np.int64)
        """For each slice the one that it is compared with."""
        known = np.zeros(len(start), bool)
        self.low, self.high, self.old_start, self.old_stop = start, start, start, start
        if len(old_start):
            at_start = np.searchsorted(old_start, start, side="right") - 1
            in_middle = np.searchsorted(old_start, (start + stop) // 2, side="right") - 1
            self.old = np.maximum(np.where(old_start[at_start] == start, at_start, in_middle), 0)
            self.old_start, self.old_stop = old_start[self.old], old_stop[self.old]
            known = (self.old_start < stop) & (self.old_stop > start)
            self.low, self.high = np.maximum(start, self.old_start), np.minimum(stop, self.old_stop)
        between = self._fresh_in(self.low, self.high)
        came = (self.low - start) + (stop - self.high) + between
        went = self._old_in(self.old_start, self.low) + self._old_in(self.high, self.old_stop)
        few = known & (2 * (came + went) < stop - start)
        self.same = np.flatnonzero(known & (came + went == 0))
        """The slices that have the rows they had."""
        grown = known & (went == 0) & (self.low == start) & (between == 0)
        self.appended = np.flatnonzero(few & grown & (came > 0))
        """Those to which rows came, all after the ones that they had."""
        self.mixed = np.flatnonzero(few & ~grown)
        """Those to and from which rows came and went, anywhere."""
        self.new = np.flatnonzero(~few & (~known | (came + went > 0)))
        """Those to compute."""
        self._read_before = np.where(known & ~grown, np.maximum(0, stop - start - came), 0)

    def read_again(self, slices: Array) -> int:
        """How many rows of slices that are computed were computed with before, besides those of slices that only grow."""
        return int(self._read_before[slices].sum())

    def _fresh_in(self, start: Array, stop: Array) -> Array:
        found: Array = np.searchsorted(self.fresh, stop) - np.searchsorted(self.fresh, start)
        return found

    def _old_in(self, start: Array, stop: Array) -> Array:
        return stop - start - self._fresh_in(start, stop)

    def rows(self, slices: Array) -> tuple[Array, Array]:
        """All rows of some slices."""
        return _runs(self.start[slices], self.stop[slices])

    def came(self, slices: Array) -> tuple[Array, Array]:
        """The rows that came to some slices."""
        first, last = np.searchsorted(self.fresh, self.low[slices]), np.searchsorted(self.fresh, self.high[slices])
        fresh, owner = _runs(first, last)
        parts = [_runs(self.start[slices], self.low[slices]), (self.fresh[fresh], owner), _runs(self.high[slices], self.stop[slices])]
        return _by_owner(parts)

    def went(self, slices: Array) -> tuple[Array, Array]:
        """The rows that went from some slices."""
        places, owner = _by_owner([_runs(self.old_start[slices], self.low[slices]), _runs(self.high[slices], self.old_stop[slices])])
        is_fresh = self.fresh[np.minimum(np.searchsorted(self.fresh, places), len(self.fresh) - 1)] == places if len(self.fresh) else None
        return (places, owner) if is_fresh is None else (places[~is_fresh], owner[~is_fresh])


def _runs(start: Array, stop: Array) -> tuple[Array, Array]:
    """The numbers of runs, one after the other, and which run each is of."""
    lengths = stop - start
    owner = np.repeat(np.arange(len(start)), lengths)
    ends = np.cumsum(lengths)
    return np.arange(len(owner)) + np.repeat(start - (ends - lengths), lengths), owner


def _by_owner(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    places, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((places, owner))
    return places[order], owner[order]


class RowSlices:
    """The slices of the rows that a state keeps."""

    def __init__(self, plan: Plan) -> None:
        self.columns = [kept_column(c, plan.schema) for c in plan.columns]
        self.offsets = np.zeros(1, np.int64)
        """Where each slice began, and the last ended, when windows were last asked for."""
        self.splits = self.merges = self.shifts = 0
        self.largest: int | None = None
        """If that is set, slices that have more than twice as many rows are cut, unless their rows are of one time."""
        self._calm = 0
        self._read_again = self._fresh = 0.0
        """Rows that were read again, and rows that came, those of long ago counting less."""
        self._extra = np.empty((2, 0), np.int64)
        """Keys and ticks of the edges that keep slices short."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def cut(self, plan: Plan, rows: SortedRows, lineage: Lineage) -> tuple[View, list[Partials]]:
        """The slices of now; ``lineage`` says where the rows were when they were cut last."""
        extra = self._extra[:, self._extra[0] < len(rows.key_offsets) - 1]
        view = cut(plan, rows, places_in_keys(rows.key_offsets, rows.ticks, extra[0], extra[1]))
        change, old = self._compared(view, lineage, ranks_only=all(isinstance(q.shape, Ranks) for q in plan.queries))
        results = [column.changed(change, old, rows.table) for column in self.columns]
        for column, (keep, _) in zip(self.columns, results, strict=True):
            column.keep(keep)
        self.offsets, self._extra = view.row_offsets, extra
        self._adapt(max((c.read_again for c in self.columns), default=0), len(change.fresh), view, rows)
        return view, [partials for _, partials in results]

    def _compared(self, view: View, lineage: Lineage, *, ranks_only: bool) -> tuple[Change, Array]:
        """How the slices changed, and the numbers of the old ones that are whole."""
        start, stop = view.row_offsets[:-1], view.row_offsets[1:]
        whole, old_start, old_stop = lineage.runs(self.offsets)
        change = Change(start, stop, old_start, old_stop, lineage.fresh())
        if len(whole):
            at = np.maximum(np.searchsorted(old_start, start, side="right") - 1, 0)
            cut_in_two = int(((start > old_start[at]) & (start < old_stop[at])).sum())
            gone = int((~np.isin(old_start, start)).sum())
            # Ranks only ever shift; of other edges, as many have moved as have come and gone.
            moved = cut_in_two if ranks_only else min(cut_in_two, gone)
            gone = max(gone, moved)
            self.shifts, self.splits, self.merges = self.shifts + moved, self.splits + cut_in_two - moved, self.merges + gone - moved
        return change, whole

    def _adapt(self, read_again: int, fresh: int, view: View, rows: SortedRows) -> None:
        """Where many rows are read again for each that comes, cut long slices; where few are, for long, stop that."""
        self._read_again, self._fresh = self._read_again * FADING + read_again, self._fresh * FADING + fresh
        too_much = self._read_again > TOO_MUCH * self._fresh
        self._calm = 0 if too_much else self._calm + 1
        if self.largest is not None and self._calm >= CALM:
            self.largest, self._calm, self._extra = None, 0, np.empty((2, 0), np.int64)
        counts = np.diff(view.row_offsets)
        if too_much and len(counts):
            self.largest = max(SHORTEST, min(self.largest or int(counts.max()), int(counts.max())) // 2)
        if self.largest is not None:
            long = np.flatnonzero(counts > 2 * self.largest)
            if len(long):
                steps, owner = _runs(np.ones(len(long), np.int64), counts[long] // self.largest)
                places = view.row_offsets[long][owner] + steps * self.largest
                keys = np.searchsorted(rows.key_offsets, places, side="right") - 1
                self._extra = np.unique(np.concatenate([self._extra, [keys, rows.ticks[places]]], axis=1), axis=1)

    def dropped(self, rows: SortedRows) -> None:
        """Rows have gone: so do the extra edges before the first that is left of each key."""
        keys, ticks = self._extra
        if len(keys):
            known = keys < len(rows.key_offsets) - 1
            first = places_in_keys(rows.key_offsets, rows.ticks, keys[known], ticks[known])
            self._extra = self._extra[:, known][:, first > rows.key_offsets[keys[known]]]

    def renumber(self, went: Array, kept: Array) -> None:
        """Keys have new numbers, in the same order."""
        self._extra = self._extra[:, np.isin(self._extra[0], kept)]
        self._extra[0] = went[self._extra[0]]

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + sum(column.nbytes for column in self.columns)


def segments(table: pa.Table, places: Array, owner: Array, groups: int) -> Segments:
    """Some rows in groups."""
    offsets = np.searchsorted(owner, np.arange(groups + 1)).astype(np.int64)
    together = len(places) > 0 and int(places[-1]) - int(places[0]) + 1 == len(places) and bool(np.all(np.diff(places) == 1))
    some = table.slice(int(places[0]), len(places)) if together else table.take(pa.array(places))
    return Segments(some.combine_chunks(), offsets)


def kept_column(column: Column, schema: pa.Schema) -> KeptColumn:
    """What keeps an aggregate's partials."""
    form = stored_form(column, schema)
    if form is not None:
        return KeptFields(column, form)
    return KeptObjects(column) if column.call.aggregate.kind != "fields" else NothingKept(column)


class KeptColumn(ABC):
    """An aggregate's partials of the slices."""

    @abstractmethod
    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        """The partials of now, and as windows read them; ``old`` are the numbers of the slices that are compared with."""

    @abstractmethod
    def keep(self, made: Any) -> None:
        """These are the partials from now on."""

    nbytes: int
    read_again = 0
    """How many rows of slices that had changed were read once more, the last time."""


class KeptFields(KeptColumn):
    """Partials of flat fields."""

    def __init__(self, column: Column, form: Form) -> None:
        self.column, self.form, self.kernels = column, form, Kernels(form)
        self.states = self.kernels.empty(0)
        self.held = np.empty(0, np.int64)

    @cached_property
    def _take_away(self) -> Kernel:
        return compiled(generate(tables.take_away, self.form, masked=True, partials=True))

    @cached_property
    def _are_same(self) -> Kernel:
        return compiled(generate(tables.are_same, self.form, masked=True, partials=True))

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.held.nbytes + sum(s.nbytes for s in self.states)

    def keep(self, made: tuple[list[Array], Array]) -> None:
        self.states, self.held = made

    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        count = len(change.start)
        states, held = self.kernels.empty(count), np.zeros(count, np.int64)
        add = np.union1d(change.appended, change.mixed) if self.form.commutative else change.appended
        stays = np.concatenate([change.same, add])
        for mine, theirs in zip(states, self.states, strict=True):
            mine[stays] = theirs[old[change.old[stays]]]
        held[stays] = self.held[old[change.old[stays]]]
        again = change.new if self.form.commutative else np.union1d(change.new, change.mixed)
        if self.form.commutative and len(change.mixed):
            again = np.union1d(again, self._taken_away(change, table, states, held))
            add = np.setdiff1d(add, again)
        if len(add):
            came, counts = self._of(segments(table, *change.came(add), len(add)))
            self.kernels.add_at(*states, add, *came, len(add))
            held[add] += counts
        self.read_again = change.read_again(again)
        if len(again):
            made, counts = self._of(segments(table, *change.rows(again), len(again)))
            for mine, new in zip(states, made, strict=True):
                mine[again] = new
            held[again] = counts
        return (states, held), StoredPartials(self.column, self.form, states, held, None)

    def _taken_away(self, change: Change, table: pa.Table, states: list[Array], held: Array) -> Array:
        """Take the rows that went out of their slices (figure 6); those slices for which that cannot be done."""
        places, owner = change.went(change.mixed)
        some = np.unique(owner)
        from_them = change.mixed[some]
        exact = self.form.invertible and self.form.identity is not None
        left: Array = from_them
        if not len(some) or not (exact or self.form.selective):
            return left
        went, counts = self._of(segments(table, places, np.searchsorted(some, owner), len(some)))
        if exact:
            self._take_away(*states, from_them, *went, len(some))
            held[from_them] -= counts
            return np.empty(0, np.int64)
        extreme = np.empty(len(some), np.int64)
        self._are_same(*states, from_them, *went, len(some), extreme)
        held[from_them] -= counts
        again: Array = left[extreme != 0]
        return again

    def _of(self, rows: Segments) -> tuple[list[Array], Array]:
        """The partials of groups of rows, and how many rows they hold."""
        fields = stored_fields(self.column, rows.table, self.form)
        groups = len(rows.offsets) - 1
        states = self.kernels.empty(groups)
        self.kernels.gather(*fields.rows, rows.offsets, 0, groups, *states)
        return states, rows.counted(fields.held)


class KeptObjects(KeptColumn):
    """Partials that are Python objects."""

    nbytes = 0

    def __init__(self, column: Column) -> None:
        self.column = column
        self.states: list[Any] = []
        self.held = np.empty(0, np.int64)

    def keep(self, made: tuple[list[Any], Array]) -> None:
        self.states, self.held = made

    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        count = len(change.start)
        states: list[Any] = [None] * count
        held = np.zeros(count, np.int64)
        for j in np.concatenate([change.same, change.appended]).tolist():
            states[j], held[j] = self.states[old[change.old[j]]], self.held[old[change.old[j]]]
        self.read_again = change.read_again(np.union1d(change.new, change.mixed))
        combine = self.column.call.aggregate.objects().combine
        for slices, places in ((change.appended, change.came), (np.union1d(change.new, change.mixed), change.rows)):
            if not len(slices):
                continue
            rows = segments(table, *places(slices), len(slices))
            made = partials_of(self.column, rows.table)
            assert isinstance(made, ObjectPartials)
            made.gather(rows.offsets)
            for j, state in zip(slices.tolist(), made.states, strict=True):
                states[j] = state if slices is not change.appended else combine(states[j], state)
            held[slices] += rows.counted(made.held)
        counts = None if held.all() else np.concatenate([[0], np.cumsum(held)])
        return (states, held), ObjectPartials.of_states(self.column, states, counts)


class NothingKept(KeptColumn):
    """An aggregate whose partials mean something only beside the rows that they were made with, such as ranks of text."""

    nbytes = 0

    def __init__(self, column: Column) -> None:
        self.column = column

    def keep(self, made: None) -> None:
        pass

    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        made = partials_of(self.column, table.combine_chunks())
        made.gather(np.append(change.start, table.num_rows).astype(np.int64))
        return None, made
