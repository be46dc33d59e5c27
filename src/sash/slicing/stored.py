"""The operator behind a store: taken out for a step, and put back after it.

What a step reads and writes is the book (a small page that says what there is), the keys, and the chunks that its rows and its windows
touch. The book carries a fingerprint of the query: state of another one is refused, and the difference is named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sash._version import __version__
from sash.errors import InvalidSnapshot
from sash.plan.logical import Plan
from sash.slicing import encoding, validation
from sash.slicing.descriptions import canonical
from sash.slicing.differences import differences
from sash.slicing.operator import Operator, Stats
from sash.slicing.slice_state import Home, SliceState
from sash.slicing.slices import Slices
from sash.slicing.storage import Shelf, Storage, StoredChunks, StoredKeys, StoredRows
from sash.types import FAR_BACK

QUERY, SEEN, GIVEN = "query", "seen", "given"


@dataclass(frozen=True)
class Progress:
    """What a step did, and what is there after it."""

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
    """Windows that can still change and that follow a key's rows."""
    without_time: int = 0
    """Rows that came without a time, for whoever counts them before."""
    reached: int | None = None
    """The watermark, in ticks; None before there is one."""


def opened_book(shelf: Shelf, described: dict[str, Any]) -> dict[str, Any] | None:
    """The book that the last step wrote, if there was one; one of another query is refused, and the difference is named."""
    data = shelf.book()
    if data is None:
        if shelf.has(QUERY):
            raise InvalidSnapshot("the state is damaged: its book is missing, though there was one")
        return None
    book: dict[str, Any] = encoding.to_json(data, "the state's book")
    described = json.loads(json.dumps(described))
    if not isinstance(book, dict) or "fingerprint" not in book:
        raise InvalidSnapshot("the state's book is damaged: it holds something else")
    if book["fingerprint"] != _fingerprint(described):
        problem = other_query(encoding.to_json(shelf.get(QUERY), "the state's query"), described)
        if problem is not None:  # otherwise it was written before spellings were left out of fingerprints
            raise InvalidSnapshot(problem)
    return book


def other_query(old: dict[str, Any], described: dict[str, Any]) -> str | None:
    """What is wrong with going on from the state of another query; None if it means the same."""
    if canonical(old) == canonical(described):
        return None
    found = differences(old, described)
    return f"{'; '.join(found)}: the checkpoint is of another query. Start it with a new checkpoint, or with what it was started with"


def write_book(shelf: Shelf, described: dict[str, Any], book: dict[str, Any], *, new: bool) -> None:
    """Write the book for the next step, and with it all that has changed."""
    if new:
        shelf.put(QUERY, lambda: encoding.of_json(described))
    shelf.put_book(encoding.of_json({"fingerprint": _fingerprint(described), "sash": __version__, **book}))


def _fingerprint(described: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(canonical(described), sort_keys=True).encode()).hexdigest()


class StoredOperator:
    """An operator whose state is in a storage. One step, and then :meth:`put_back`; a step that fails leaves the storage as it was."""

    def __init__(self, operator: Operator, plan: Plan, storage: Storage, described: dict[str, Any], slack: float = 2.0) -> None:
        """``operator`` is new; ``described`` is what must stay the same from step to step, as plain data."""
        self._shelf = Shelf(storage)
        self._operator = operator
        self._stores: dict[int, StoredChunks] = {}
        self._rows: dict[int, StoredRows] = {}
        self._described = described
        self._book = opened_book(self._shelf, described)
        operator._key_slack = slack
        self._keys = StoredKeys(self._shelf)
        self.notes: dict[str, Any] = {}
        """What whoever holds the operator wants to remember."""
        self._before = Stats()
        if self._book is None:
            operator._start(plan.schema, self._homes, plan)
            return
        with validation.reading("the state"):
            operator._start(plan.schema, self._homes, plan)
            self._keys = StoredKeys(self._shelf, [validation.whole(n, "the state's book") for n in self._book["keys"]])
            self.notes = dict(self._book["notes"])
            self._before = Stats(**{name: validation.whole(n, "the state's book") for name, n in self._book["stats"].items()})
            self._take_out(self._book)

    def _homes(self, place: int) -> Home:
        known = () if self._book is None else self._book["states"][place]["chunks"]

        def home(like: Slices) -> StoredChunks:
            self._stores[place] = StoredChunks(self._shelf, f"{place}:", like, lambda: self._operator._keys.count, known)
            return self._stores[place]

        return home

    def _take_out(self, book: dict[str, Any]) -> None:
        op = self._operator
        assert op._plan is not None
        columns = self._keys.read()
        if columns is not None:
            op.restore_keys(columns)
        op._recall(book)
        op._stats = replace(self._before)
        if op._idle is not None:
            (seen,) = encoding.to_arrays(self._shelf.get(SEEN), "the state's times of last rows")
            if len(seen) > op._keys.count or seen.dtype != np.int64:
                raise validation.damaged("the state", "it has seen rows of keys that do not exist")
            op._last_seen = seen
        if op._asked.options.emit != "final":
            names = book["given"]
            given = {n: encoding.to_arrays(self._shelf.get(f"{GIVEN}:{n}"), "the state's given windows") for n in names}
            op._manager.load(given, op._keys.count)
        for place, (state, facts) in enumerate(zip(op._states, book["states"], strict=True)):
            if place in self._stores:
                assert isinstance(state, SliceState)
                state.take_out(facts)
            else:
                whole = encoding.to_json(self._shelf.get(f"{place}:facts"), "the state's facts")
                state.load(whole, self._rows_of(place, state, facts["rows"]).read() or state.save()[1], op._keys.count)

    def _rows_of(self, place: int, state: Any, segments: Iterable[list[Any]]) -> StoredRows:
        self._rows[place] = StoredRows(self._shelf, f"{place}:rows:", state.numbers, segments)
        return self._rows[place]

    @property
    def watermark(self) -> int:
        """Where the last step ended."""
        return self._operator._watermark

    def step(self, watermark: int, fragments: Iterable[pa.Table] = (), rows: Iterable[pa.Table] = ()) -> pa.Table:
        """Add rows, or what was made of them elsewhere, and then advance."""
        op = self._operator
        parts = [table for table in fragments if table.num_rows]
        if parts:
            op.add_fragments(pa.concat_tables(parts))
        for table in rows:
            op.add(table)
        return op._step(max(watermark, op._watermark))

    def put_back(self) -> Progress:
        """Write what has changed."""
        op, shelf = self._operator, self._shelf
        if op._plan is not None and op._plan.by:
            self._keys.write(op._keys.values, again=op._keys.renumbered)
        states = []
        for place, state in enumerate(op._states):
            if place in self._stores:
                assert isinstance(state, SliceState)
                states.append({**state.put_away(), "chunks": self._stores[place].book()})
                continue
            facts, table = state.save()
            shelf.put(f"{place}:facts", partial(encoding.of_json, facts), new=self._book is None)
            rows = self._rows.get(place) or self._rows_of(place, state, ())
            rows.write(table, again=op._keys.renumbered)
            states.append({"rows": rows.book()})
        if op._idle is not None:
            shelf.put(SEEN, lambda: encoding.of_arrays([op._last_seen]), new=self._book is None)
        given = op._manager.save()
        for name, columns in given.items():
            known = self._book is not None and name in self._book["given"]
            shelf.put(f"{GIVEN}:{name}", partial(encoding.of_arrays, columns), new=not known)
        book = {
            **op._facts(), "stats": vars(op._stats), "keys": self._keys.segments,
            "states": states, "notes": self.notes, "given": list(given),
        }  # fmt: skip
        write_book(shelf, self._described, book, new=self._book is None)
        now, before = op._stats, self._before
        horizon = max(op._watermark - op._lateness, FAR_BACK)
        open_now = [state.how_many_open(horizon, op._newest) for state in op._states] if horizon > FAR_BACK else []
        return Progress(
            now.rows - before.rows, now.late - before.late,
            sum(s.chunks.count for s in op._states if isinstance(s, SliceState)), sum(s.kept for s in op._states),
            op._keys.count, shelf.bytes_read, shelf.bytes_written, sum(known for known, _ in open_now), sum(own for _, own in open_now),
            reached=op._watermark if op._watermark > FAR_BACK else None,
        )  # fmt: skip
