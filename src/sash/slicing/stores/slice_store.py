"""The interface of slice stores: all that the stream engine, the window manager and persistence use of them.

A store takes in rows (or slices computed elsewhere), decides which rows are too late, and returns one value per step: slices, and the
partials over exactly those slices. Which kind of store a query needs is decided by the paper's decision trees
(:mod:`sash.plan.choices.store_choice`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.logical import Plan, Query
from sash.plan.options import Emit
from sash.slicing.bounds.view import Bounds, View
from sash.slicing.ingest.slices import Slices
from sash.slicing.partials.column_partials import Partials
from sash.slicing.rows.timed import KeyedRows
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]
Commit = Callable[[], None]
"""Adds prepared rows to the store; nothing has changed before it is called."""


@dataclass(frozen=True)
class Step:
    """One step: the watermark moved from ``previous`` to ``watermark``."""

    previous: int
    watermark: int
    lateness: int
    emit: Emit
    dirty: int
    """The time of the oldest row that arrived since the last step."""
    closing: bool = False
    """Whether the stream has ended."""
    idle: Array = field(default_factory=lambda: np.empty(0, np.int64))
    """The keys that have been idle for long enough."""

    @property
    def closed_before(self) -> int:
        """The time up to which windows were closed before this step."""
        return max(self.previous - self.lateness, FAR_BACK)

    @property
    def closed_now(self) -> int:
        """The time up to which windows are closed after this step."""
        return FAR_AHEAD - 1 if self.closing else max(self.watermark - self.lateness, FAR_BACK)

    @property
    def reported(self) -> int:
        """The time up to which windows are emitted."""
        return FAR_AHEAD - 1 if self.closing else self.closed_now if self.emit == "final" else self.watermark

    @property
    def only_ends(self) -> bool:
        """Whether only queries with a window that ends in this step emit anything: mostly few of many."""
        return self.emit == "final" and not self.closing and not len(self.idle)

    @property
    def only_changes(self) -> bool:
        """Whether no window that was emitted before can have changed."""
        return self.emit == "update" and self.dirty >= self.previous


@dataclass(frozen=True)
class StepSlices:
    """What a store returns for a step."""

    view: View
    partials: Callable[[], list[Partials]]
    """Each aggregate over exactly the slices of ``view``."""
    queries: list[int]
    """The queries whose windows are still to be located, by their places in the store's plan."""
    ended: tuple[Array, Bounds] | None = None
    """The windows of other queries that end in the step, located all at once: their queries' places, and bounds."""
    row_ids: Array | None = None
    """The numbers of the rows that the slices were cut from, where rows are retained."""
    after: int = FAR_BACK
    until: int = FAR_AHEAD
    """Only windows that end after ``after`` and not after ``until`` are wanted."""
    complete: bool = True
    """Whether all open windows are wanted, so that an emitted one that is missing no longer exists."""


@dataclass
class StoreState:
    """A store's exported state."""

    kind: str
    facts: dict[str, Any]
    table: pa.Table | None = None
    """Rows or slices; None where they live in a chunk store of their own."""


@dataclass(frozen=True)
class StoreStats:
    """The size of a store, and counts of what it has done."""

    slices: int
    retained_rows: int
    merges: int
    splits: int
    shifts: int


class SliceStore(Protocol):
    """Slices of all keys, for some of a stream's queries."""

    kind: ClassVar[str]
    retains_rows: ClassVar[bool]
    marks_windows: ClassVar[bool]
    """Whether it remembers for each key which windows are closed, by calls of ``close_windows``; otherwise the horizon decides."""
    row_number: ClassVar[str | None]
    """The column of an exported table that identifies rows, where rows are retained."""
    plan: Plan
    since: int
    """Rows before this time are ignored: the store's queries were added later."""

    # Rows in.

    def prepare(self, rows: KeyedRows, *, at_once: bool = False) -> Commit:
        """Make slices of rows. Nothing changes until the commit is called, so functions of users may raise; with ``at_once``, rows may be
        added to their slices already."""
        ...

    def prepare_slices(self, slices: Slices, *, only: bool) -> Commit:
        """As :meth:`prepare`, for slices that were computed elsewhere; unless this is the ``only`` store, they are cut at the edges of
        other stores as well."""
        ...

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """For each row, by time and key, whether it is too late for all windows."""
        ...

    # A step.

    def next_due(self, after: int) -> int:
        """A horizon before which nothing can be due, if the horizon is ``after`` now and no rows are added."""
        ...

    def step(self, step: Step, keys: int) -> StepSlices | None:
        """The slices that windows are to be emitted from; None if no window can be due."""
        ...

    def open_windows(self, query: Query, bounds: Bounds, due: Array, step: Step) -> Array:
        """For each window whether it was not closed before the step."""
        ...

    def close_windows(self, query: Query, bounds: Bounds, due: Array) -> None:
        """Close windows: they are not emitted again."""
        ...

    def evict(self, step: Step, keys: int) -> None:
        """Drop everything that no open window needs, and the keys that are idle."""
        ...

    # Queries and keys are added and removed.

    def with_queries(self, plan: Plan) -> None:
        """Serve other queries from now on."""
        ...

    def live_keys(self) -> Array:
        """The keys that have state."""
        ...

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Replace key numbers by their new ones, which are in the same order; only the keys at ``retained`` are left."""
        ...

    # Statistics, export and import.

    def open_counts(self, horizon: int, newest: int) -> tuple[int, int]:
        """How many windows are not closed: those whose edges are known, keys not counted; and those of each key."""
        ...

    def stats(self) -> StoreStats:
        """The store's statistics, as far as they are known without reading slices."""
        ...

    def nbytes(self) -> int:
        """How much memory it takes."""
        ...

    def explain(self) -> list[str]:
        """Lines for ``op.explain()``."""
        ...

    def export(self) -> StoreState:
        """The store's state, for snapshots."""
        ...

    def import_(self, state: StoreState, keys: int) -> None:
        """Continue from exported state, with so many keys; raises if it is damaged."""
        ...
