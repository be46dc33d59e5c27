"""The stream engine behind a state store: read for a step, and written after it.

A step reads and writes the manifest (a small list of what is stored), the keys, and the chunks that its rows and its windows
touch. The manifest has a fingerprint of the query: state of another query is refused, and the difference is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sash.plan.logical import Plan
from sash.plan.options import StreamOptions
from sash.slicing import validation
from sash.slicing.ingest.slices import Slices
from sash.slicing.persistence import encoding
from sash.slicing.persistence.engine_state import Counts, EngineState, Position
from sash.slicing.persistence.manifests import read_manifest, write_manifest
from sash.slicing.persistence.transactions import Storage, StoredChunks, StoredKeys, StoredRows, Transaction
from sash.slicing.stores.kinds import Home
from sash.slicing.stores.slice_store import SliceStore, StoreState
from sash.slicing.stream.engine import Engine
from sash.types import FAR_AHEAD, FAR_BACK

SEEN, EMITTED = "seen", "given"
"""The names of stored values, since the first version."""


@dataclass(frozen=True)
class StepMetrics:
    """What a step did, and the size of the state after it."""

    rows: int
    late_rows: int
    slices: int
    kept_rows: int
    keys: int
    bytes_read: int
    bytes_written: int
    open_windows: int = 0
    """Windows that can still change and whose edges are known: keys are not counted."""
    own_windows: int = 0
    """Windows that can still change and that depend on a key's rows."""
    without_time: int = 0
    """Rows without a time, if the caller counts them."""
    reached: int | None = None
    """The watermark, in ticks; None before there is one."""
    oldest: int | None = None
    newest: int | None = None
    """The span of the step's times, if the caller knows it."""
    next_end: int | None = None
    """The end of the first open window, as far as it is known."""
    tick_nanos: int | None = None
    emitted: int = 0
    """The results, if the caller counts them."""


class StoredEngine:
    """An engine whose state is in a storage: one step, and then :meth:`commit`. A step that fails leaves the storage as it was."""

    def __init__(self, plan: Plan, options: StreamOptions, storage: Storage, described: dict[str, Any], key_slack: float = 2.0) -> None:
        """``described`` is the description of the query, which must stay the same from step to step."""
        self._transaction = Transaction(storage)
        self._chunks: dict[int, StoredChunks] = {}
        self._rows: dict[int, StoredRows] = {}
        self._described = described
        self._manifest = read_manifest(self._transaction, described)
        self._keys = StoredKeys(self._transaction)
        self.notes: dict[str, Any] = {}
        """JSON values that the caller wants stored from step to step."""
        self._before = Counts()
        if self._manifest is None:
            self._engine = Engine(plan, options, self._homes, key_slack)
            return
        with validation.reading("the state"):
            self._engine = Engine(plan, options, self._homes, key_slack)
            self._import(self._manifest)

    def _homes(self, place: int) -> Home:
        known = () if self._manifest is None else self._manifest["states"][place]["chunks"]

        def home(like: Slices) -> StoredChunks:
            self._chunks[place] = StoredChunks(self._transaction, f"{place}:", like, lambda: self._engine.keys.count, known)
            return self._chunks[place]

        return home

    def _import(self, manifest: dict[str, Any]) -> None:
        what, engine = "the state's manifest", self._engine
        self.notes = dict(manifest["notes"])
        self._keys = StoredKeys(self._transaction, [validation.whole(n, what) for n in manifest["keys"]])
        counts = Counts.of(manifest["stats"], what)
        self._before = replace(counts)
        last_seen = np.empty(0, np.int64)
        if engine.options.idle is not None:
            (last_seen,) = encoding.to_arrays(self._transaction.get(SEEN), "the state's times of last rows")
        emitted: dict[str, list[Any]] = {}
        if engine.options.emit != "final":
            names = manifest["given"]
            emitted = {n: encoding.to_arrays(self._transaction.get(f"{EMITTED}:{n}"), "the state's emitted windows") for n in names}
        stores = [
            self._stored(place, store, facts) for place, (store, facts) in enumerate(zip(engine.stores, manifest["states"], strict=True))
        ]
        keys = self._keys.read() or engine.keys.values
        engine.import_(EngineState(Position.of(manifest), counts, stores, None, keys, last_seen=last_seen, emitted=emitted))

    def _stored(self, place: int, store: SliceStore, facts: dict[str, Any]) -> StoreState:
        """A store's state, from the manifest or from values of its own."""
        if place in self._chunks:
            return StoreState(store.kind, facts)
        whole = encoding.to_json(self._transaction.get(f"{place}:facts"), "the state's facts")
        return StoreState(store.kind, whole, self._rows_of(place, store, facts["rows"]).read() or store.export().table)

    def _rows_of(self, place: int, store: SliceStore, segments: Iterable[list[Any]]) -> StoredRows:
        assert store.row_number is not None
        self._rows[place] = StoredRows(self._transaction, f"{place}:rows:", store.row_number, segments)
        return self._rows[place]

    @property
    def watermark(self) -> int:
        """The watermark of the last step."""
        return self._engine.position.watermark

    def next_end(self, oldest: int) -> int | None:
        """The end of the first window that is open, as far as it is known; ``oldest`` is the oldest row of the step."""
        after = max(self.watermark, oldest) if oldest < FAR_AHEAD else self.watermark
        if after <= FAR_BACK:
            return None
        shapes = [q.shape for q in self._engine.plan.queries]
        ends = [s.next_end(after) if s.session_gap is None else self._engine.position.newest + s.session_gap for s in shapes]
        return min((end for end in ends if end is not None and FAR_BACK < end < FAR_AHEAD), default=None)

    def step(self, watermark: int, fragments: Iterable[pa.Table] = (), rows: Iterable[pa.Table] = ()) -> pa.Table:
        """Add rows, or slices that were computed elsewhere, and then apply a watermark."""
        engine = self._engine
        parts = [table for table in fragments if table.num_rows]
        if parts:
            engine.add_slices(pa.concat_tables(parts))
        for table in rows:
            engine.add(table)
        return engine.step(max(watermark, self.watermark))

    def commit(self) -> StepMetrics:
        """Write what has changed."""
        transaction, engine, state = self._transaction, self._engine, self._engine.export()
        is_new = self._manifest is None
        if state.keys:
            self._keys.write(state.keys, again=state.are_keys_renumbered)
        stores = [self._written(place, state) for place in range(len(state.stores))]
        if engine.options.idle is not None:
            transaction.put(SEEN, lambda: encoding.of_arrays([state.last_seen]), new=is_new)
        for name, columns in state.emitted.items():
            known = self._manifest is not None and name in self._manifest["given"]
            transaction.put(f"{EMITTED}:{name}", partial(encoding.of_arrays, columns), new=not known)
        manifest = {
            **vars(state.position), "stats": vars(state.counts), "keys": self._keys.segments,
            "states": stores, "notes": self.notes, "given": list(state.emitted),
        }  # fmt: skip
        write_manifest(transaction, self._described, manifest, new=is_new)
        stats = [store.stats() for store in engine.stores]
        open_windows, own_windows = engine.open_counts()
        return StepMetrics(
            state.counts.rows - self._before.rows, state.counts.late - self._before.late,
            sum(s.slices for s in stats), sum(s.retained_rows for s in stats),
            engine.keys.count, transaction.bytes_read, transaction.bytes_written, open_windows, own_windows,
            reached=self.watermark if self.watermark > FAR_BACK else None,
        )  # fmt: skip

    def _written(self, place: int, state: EngineState) -> dict[str, Any]:
        """Write a store's state, and return its entry in the manifest."""
        stored, store = state.stores[place], self._engine.stores[place]
        if place in self._chunks:
            return {**stored.facts, "chunks": self._chunks[place].manifest()}
        self._transaction.put(f"{place}:facts", partial(encoding.of_json, stored.facts), new=self._manifest is None)
        rows = self._rows.get(place) or self._rows_of(place, store, ())
        assert stored.table is not None
        rows.write(stored.table, again=state.are_keys_renumbered)
        return {"rows": rows.manifest()}
