"""The interface of slice stores: what the stream engine, the window manager and persistence know of them.

A store takes rows (or slices made elsewhere) in, says for which rows it is too late, and hands out one value per step: slices, and the
partials over exactly those slices. Which kind of store a query needs is decided by the paper's trees
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
"""Puts prepared rows among the others; until then nothing has changed."""


@dataclass(frozen=True)
class Step:
    """A watermark that moved."""

    previous: int
    watermark: int
    lateness: int
    emit: Emit
    dirty: int
    """The time of the oldest row that came since the last step."""
    closing: bool = False
    """Whether the stream has ended."""
    idle: Array = field(default_factory=lambda: np.empty(0, np.int64))
    """The keys that have been idle for long enough."""

    @property
    def closed_before(self) -> int:
        """Windows due by then were closed before this step."""
        return max(self.previous - self.lateness, FAR_BACK)

    @property
    def closed_now(self) -> int:
        """Windows due by then are closed after it."""
        return FAR_AHEAD - 1 if self.closing else max(self.watermark - self.lateness, FAR_BACK)

    @property
    def reported(self) -> int:
        """Windows due by then are emitted."""
        return FAR_AHEAD - 1 if self.closing else self.closed_now if self.emit == "final" else self.watermark

    @property
    def only_ends(self) -> bool:
        """Whether only queries with a window that ends have something to emit: few of many, most of the time."""
        return self.emit == "final" and not self.closing and not len(self.idle)

    @property
    def only_changes(self) -> bool:
        """Whether no window that was emitted before can have changed."""
        return self.emit == "update" and self.dirty >= self.previous


@dataclass(frozen=True)
class StepSlices:
    """What a store hands out for a step."""

    view: View
    partials: Callable[[], list[Partials]]
    """Each aggregate over exactly the slices of ``view``."""
    queries: list[int]
    """The queries whose windows are to be looked at one by one, by their places in the store's plan."""
    ended: tuple[Array, Bounds] | None = None
    """Windows of other queries that end in the step, already looked up in one go: their queries' places, and bounds."""
    row_ids: Array | None = None
    """The numbers of the rows that the slices were cut from, where rows are retained."""
    after: int = FAR_BACK
    until: int = FAR_AHEAD
    """Windows are looked for that end after the one time and not after the other."""
    complete: bool = True
    """Whether all windows that are open are looked for, so that one that is not there any more is gone."""


@dataclass
class StoreState:
    """A store as plain data."""

    kind: str
    facts: dict[str, Any]
    table: pa.Table | None = None
    """Rows or slices; None where they live in a chunk store of their own."""


@dataclass(frozen=True)
class StoreStats:
    """What a store holds, and what it has done."""

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
    """Whether it keeps for each key how far its windows are closed, and has to be told; otherwise the horizon says it."""
    row_number: ClassVar[str | None]
    """The column of an exported table that tells rows apart, where rows are retained."""
    plan: Plan
    since: int
    """Rows before this time are not for the store: its queries came later."""

    # Rows in.

    def prepare(self, rows: KeyedRows, *, at_once: bool = False) -> Commit:
        """Make slices of rows. Nothing has changed until the commit is called, so functions of users may raise; with ``at_once``, rows may
        already be where they belong."""
        ...

    def prepare_slices(self, slices: Slices, *, only: bool) -> Commit:
        """As :meth:`prepare`, for slices that were made elsewhere; unless this is the ``only`` store, they are cut at other stores' edges
        as well."""
        ...

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """Which rows, given by times and keys, come too late for all windows."""
        ...

    # A step.

    def next_due(self, after: int) -> int:
        """A horizon before which nothing can be due, if that is ``after`` now and no rows come."""
        ...

    def step(self, step: Step, keys: int) -> StepSlices | None:
        """The slices that windows may be emitted from; None if none can be due."""
        ...

    def open_windows(self, query: Query, bounds: Bounds, due: Array, step: Step) -> Array:
        """Which windows were not closed before the step."""
        ...

    def close_windows(self, query: Query, bounds: Bounds, due: Array) -> None:
        """Close windows: they are not emitted again."""
        ...

    def evict(self, step: Step, keys: int) -> None:
        """Drop what no open window needs, and the keys that are idle."""
        ...

    # Queries and keys come and go.

    def with_queries(self, plan: Plan) -> None:
        """Serve other queries from now on."""
        ...

    def live_keys(self) -> Array:
        """The keys that have something here."""
        ...

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Keys have new numbers, in the same order; only those at ``retained`` are left."""
        ...

    # Looking at it, and taking it elsewhere.

    def open_counts(self, horizon: int, newest: int) -> tuple[int, int]:
        """How many windows are not closed: those whose edges are known, keys not counted; and those of each key."""
        ...

    def stats(self) -> StoreStats:
        """What is held, as far as that is known without reading it."""
        ...

    def nbytes(self) -> int:
        """How much memory it takes."""
        ...

    def explain(self) -> list[str]:
        """Lines for ``op.explain()``."""
        ...

    def export(self) -> StoreState:
        """The store as plain data."""
        ...

    def import_(self, state: StoreState, keys: int) -> None:
        """Go on from exported data, with so many keys; raises if it is damaged."""
        ...
