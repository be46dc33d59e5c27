"""What is kept of an aggregate for slices of rows: its partials, changed with the rows that come and go (figure 6)."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algebra import Form
from sash.algorithms.pipe import scattering
from sash.kernels.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.logical import Column
from sash.slicing.bounds.view import some_rows
from sash.slicing.partials.changes import Change
from sash.slicing.partials.column_partials import ObjectPartials, Partials, partials_of
from sash.slicing.partials.stored import Kernels, StoredPartials
from sash.slicing.rows.inputs import stored_fields, stored_form

Array = npt.NDArray[Any]


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


def segments(table: pa.Table, places: Array, owner: Array, groups: int) -> Segments:
    """Some rows in groups."""
    offsets = np.searchsorted(owner, np.arange(groups + 1)).astype(np.int64)
    return Segments(some_rows(table, places).combine_chunks(), offsets)


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
        return compiled(generate(scattering.take_away, self.form, masked=True, partials=True))

    @cached_property
    def _are_same(self) -> Kernel:
        return compiled(generate(scattering.are_same, self.form, masked=True, partials=True))

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
        return (states, held), StoredPartials(self.column, self.kernels, states, held, None)

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

    def __init__(self, column: Column) -> None:
        self.column = column
        self.states: list[Any] = []
        self.held = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.held.nbytes + sum(getattr(s, "nbytes", None) or sys.getsizeof(s) for s in self.states)

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
