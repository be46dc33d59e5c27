"""Incremental partials of slices of rows: updated with the rows that are inserted and removed (figure 6)."""

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
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.logical import Column
from sash.slicing.bounds.view import some_rows
from sash.slicing.partials.changes import Change
from sash.slicing.partials.column_partials import ObjectPartials, Partials
from sash.slicing.partials.kinds_of_partials import partials_of
from sash.slicing.partials.stored import Kernels, StoredPartials
from sash.slicing.rows.inputs import stored_fields, stored_form

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Segments:
    """Rows of a table in groups: group ``j`` has the rows ``offsets[j]`` to ``offsets[j + 1] - 1``."""

    table: pa.Table
    offsets: Array

    def included_counts(self, included: Array | None) -> Array:
        """How many rows of each group the aggregate includes."""
        if included is None:
            return np.diff(self.offsets)
        totals = np.concatenate([[0], np.cumsum(included, dtype=np.int64)])
        counts: Array = np.diff(totals[self.offsets])
        return counts


def segments(table: pa.Table, places: Array, owner: Array, groups: int) -> Segments:
    """The rows at ``places`` in groups; ``owner`` is each row's group."""
    offsets = np.searchsorted(owner, np.arange(groups + 1)).astype(np.int64)
    return Segments(some_rows(table, places).combine_chunks(), offsets)


def incremental_column(column: Column, schema: pa.Schema) -> IncrementalColumn:
    """The incremental partials of an aggregate, of the kind that suits it."""
    form = stored_form(column, schema)
    if form is not None:
        return IncrementalFields(column, form)
    return IncrementalObjects(column) if column.call.aggregate.kind != "fields" else RecomputedColumn(column)


class IncrementalColumn(ABC):
    """An aggregate's partials over slices, retained from step to step."""

    @abstractmethod
    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        """The current partials, as :meth:`retain` takes them and as windows read them; ``old`` are the numbers of the slices to compare
        with."""

    @abstractmethod
    def retain(self, partials: Any) -> None:
        """Replace the retained partials."""

    nbytes: int
    read_again = 0
    """How many rows of changed slices the last step read that earlier steps had read already."""


class IncrementalFields(IncrementalColumn):
    """Partials of flat fields."""

    def __init__(self, column: Column, form: Form) -> None:
        self.column, self.form, self.kernels = column, form, Kernels(form)
        self.states = self.kernels.empty(0)
        self.included_counts = np.empty(0, np.int64)

    @cached_property
    def _take_away(self) -> Kernel:
        return compiled(generate(scattering.take_away, self.form, masked=True, partials=True))

    @cached_property
    def _are_same(self) -> Kernel:
        return compiled(generate(scattering.are_same, self.form, masked=True, partials=True))

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.included_counts.nbytes + sum(s.nbytes for s in self.states)

    def retain(self, partials: tuple[list[Array], Array]) -> None:
        self.states, self.included_counts = partials

    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        count = len(change.start)
        states, included_counts = self.kernels.empty(count), np.zeros(count, np.int64)
        add = np.union1d(change.appended, change.mixed) if self.form.commutative else change.appended
        stays = np.concatenate([change.same, add])
        for new, old_state in zip(states, self.states, strict=True):
            new[stays] = old_state[old[change.old[stays]]]
        included_counts[stays] = self.included_counts[old[change.old[stays]]]
        again = change.new if self.form.commutative else np.union1d(change.new, change.mixed)
        if self.form.commutative and len(change.mixed):
            again = np.union1d(again, self._remove(change, table, states, included_counts))
            add = np.setdiff1d(add, again)
        if len(add):
            inserted, counts = self._of(segments(table, *change.inserted(add), len(add)))
            self.kernels.add_at(*states, add, *inserted, len(add))
            included_counts[add] += counts
        self.read_again = change.read_again(again)
        if len(again):
            recomputed, counts = self._of(segments(table, *change.rows(again), len(again)))
            for state, new in zip(states, recomputed, strict=True):
                state[again] = new
            included_counts[again] = counts
        return (states, included_counts), StoredPartials(self.column, self.kernels, states, included_counts, None)

    def _remove(self, change: Change, table: pa.Table, states: list[Array], included_counts: Array) -> Array:
        """Subtract removed rows from their slices (figure 6); returns the slices for which that cannot be done."""
        places, owner = change.removed(change.mixed)
        at = np.unique(owner)
        shrunk: Array = change.mixed[at]
        exact = self.form.invertible and self.form.identity is not None
        if not len(shrunk) or not (exact or self.form.selective):
            return shrunk
        removed, counts = self._of(segments(table, places, np.searchsorted(at, owner), len(shrunk)))
        if exact:
            self._take_away(*states, shrunk, *removed, len(shrunk))
            included_counts[shrunk] -= counts
            return np.empty(0, np.int64)
        extreme = np.empty(len(shrunk), np.int64)
        self._are_same(*states, shrunk, *removed, len(shrunk), extreme)
        included_counts[shrunk] -= counts
        again: Array = shrunk[extreme != 0]
        return again

    def _of(self, rows: Segments) -> tuple[list[Array], Array]:
        """The partials of groups of rows, and how many rows of each the aggregate includes."""
        fields = stored_fields(self.column, rows.table, self.form)
        groups = len(rows.offsets) - 1
        states = self.kernels.empty(groups)
        self.kernels.gather(*fields.rows, rows.offsets, 0, groups, *states)
        return states, rows.included_counts(fields.included)


class IncrementalObjects(IncrementalColumn):
    """Partials that are Python objects."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.states: list[Any] = []
        self.included_counts = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.included_counts.nbytes + sum(getattr(s, "nbytes", None) or sys.getsizeof(s) for s in self.states)

    def retain(self, partials: tuple[list[Any], Array]) -> None:
        self.states, self.included_counts = partials

    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        count = len(change.start)
        states: list[Any] = [None] * count
        included_counts = np.zeros(count, np.int64)
        for j in np.concatenate([change.same, change.appended]).tolist():
            states[j], included_counts[j] = self.states[old[change.old[j]]], self.included_counts[old[change.old[j]]]
        self.read_again = change.read_again(np.union1d(change.new, change.mixed))
        combine = self.column.call.aggregate.objects().combine
        for slices, places in ((change.appended, change.inserted), (np.union1d(change.new, change.mixed), change.rows)):
            if not len(slices):
                continue
            rows = segments(table, *places(slices), len(slices))
            partials = ObjectPartials(self.column, rows.table)
            partials.gather(rows.offsets)
            for j, state in zip(slices.tolist(), partials.states, strict=True):
                states[j] = state if slices is not change.appended else combine(states[j], state)
            included_counts[slices] += rows.included_counts(partials.included)
        counts = None if included_counts.all() else np.concatenate([[0], np.cumsum(included_counts)])
        return (states, included_counts), ObjectPartials.of_states(self.column, states, counts)


class RecomputedColumn(IncrementalColumn):
    """An aggregate whose partials depend on all rows of the table, such as ranks of text: nothing is retained of it."""

    nbytes = 0

    def __init__(self, column: Column) -> None:
        self.column = column

    def retain(self, partials: None) -> None:
        pass

    def changed(self, change: Change, old: Array, table: pa.Table) -> tuple[Any, Partials]:
        partials = partials_of(self.column, table.combine_chunks())
        partials.gather(np.append(change.start, table.num_rows).astype(np.int64))
        return None, partials
