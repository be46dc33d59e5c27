"""Users' own context aware windows: rows are shown to them in the order of time.

For every key a window's context and edges are stored twice: before the first retained row, and after the last row that was shown. New rows
are shown from the latter on, removed rows from the former; when a row is inserted between others, all retained rows of its key are shown
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.errors import InvalidArgument
from sash.slicing import validation
from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, RetainedRows, SortedRows, View, places_in_keys, runs
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.own import ContextAwareWindow, Edges, is_json

Array = npt.NDArray[Any]
ContextWindows = tuple[Array, Array, Array, Array]
"""Windows: their keys, starts, ends, and whether the end is known."""


@dataclass
class Noticed:
    """A window's context and edges of a key at some row."""

    context: Any
    edges: Edges

    def copy(self) -> Noticed:
        return Noticed(deepcopy(self.context), Edges(list(self.edges.starts), list(self.edges.ends)))

    def pruned(self, before: int) -> Noticed:
        """A copy without the edges that no window after a tick has."""
        starts, ends = (([e for e in self.edges.starts if e >= before]), [e for e in self.edges.ends if e > before])
        return Noticed(self.context, Edges(starts, ends))


class Notices:
    """One window's contexts and edges of all keys."""

    def __init__(self, window: ContextAwareWindow) -> None:
        self._window = window
        self._base: dict[int, Noticed] = {}
        """Before each key's first retained row; a key that is missing has the initial context."""
        self._now: dict[int, Noticed] = {}
        self._pairs: dict[int, list[tuple[int, int | None]]] = {}
        self._shown = np.empty(0, np.int64)
        """For each key how many of its retained rows were shown."""

    def windows(self, rows: SortedRows) -> ContextWindows:
        """The window's windows, by key and start, after the new rows were shown."""
        counts = np.diff(rows.key_offsets)
        self._shown = np.concatenate([self._shown, np.zeros(max(0, len(counts) - len(self._shown)), np.int64)])
        fresh = np.flatnonzero(counts > self._shown[: len(counts)])
        try:
            noticed = self._show(rows, fresh, self._shown[fresh], counts[fresh], self._now)
        except BaseException:
            self._shown[fresh] = counts[fresh]  # some were shown, and it is not known which
            self.show_again(fresh.tolist())
            raise
        for key, known in zip(fresh.tolist(), noticed, strict=True):
            self._now[key], self._pairs[key] = known, paired(known.edges)
        self._shown[fresh] = counts[fresh]
        windows = [(key, s, 0 if e is None else e, e is not None) for key in sorted(self._pairs) for s, e in self._pairs[key]]
        table = np.array(windows, np.int64).reshape(-1, 4)
        return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), table[:, 3].astype(bool)

    def _show(self, rows: SortedRows, keys: Array, start: Array, stop: Array, known: dict[int, Noticed]) -> list[Noticed]:
        """Show the rows of some keys, from one number to another, going on from the contexts in ``known``."""
        places, _ = runs(rows.key_offsets[keys] + start, rows.key_offsets[keys] + stop)
        ends = np.cumsum(stop - start)
        read = [v.tolist() if isinstance(v := rows.values(text, places), np.ndarray) else v for text in self._window.reads]
        ticks, window, shown = rows.ticks[places].tolist(), self._window, []
        for key, first, last in zip(keys.tolist(), (ends - (stop - start)).tolist(), ends.tolist(), strict=True):
            noticed = known[key] if key in known else self._nothing()
            for i in range(first, last):
                noticed.context = window.notify(noticed.context, ticks[i], *[values[i] for values in read], edges=noticed.edges)
            shown.append(noticed)
        return shown

    def _nothing(self) -> Noticed:
        return Noticed(self._window.begin(), Edges())

    def show_again(self, keys: Iterable[int]) -> None:
        """Show these keys' rows again at the next look, since rows were inserted between others."""
        for key in keys:
            if key < len(self._shown) and self._shown[key]:
                self._shown[key] = 0
                self._pairs.pop(key, None)
                self._now[key] = self._base[key].copy() if key in self._base else self._nothing()

    def after(self, rows: SortedRows, gone: Array) -> list[Noticed]:
        """For each key whose first rows are about to be dropped the context and edges after these."""
        keys = np.flatnonzero(gone)
        base = {key: self._base[key].copy() for key in keys.tolist() if key in self._base}
        return self._show(rows, keys, np.zeros(len(keys), np.int64), gone[keys], base)

    def drop(self, rows: SortedRows, gone: Array, after: list[Noticed], closed: Array) -> None:
        """Drop each key's first rows, all of which were shown; its windows up to a tick are closed."""
        keys = np.flatnonzero(gone)
        left = gone < np.diff(rows.key_offsets)
        first = np.append(rows.ticks, 0)[np.where(left, rows.key_offsets[:-1] + gone, -1)]
        # Rows that are retained for others may be shown again, and their windows need all the ends they had.
        closed_until = np.where(left, np.minimum(closed[: len(gone)], first), closed[: len(gone)])
        for key, noticed in zip(keys.tolist(), after, strict=True):
            tick = int(closed_until[key])
            self._base[key], self._now[key] = noticed.pruned(tick), self._now.get(key, noticed).pruned(tick)
            self._pairs[key] = paired(self._now[key].edges)
        self._shown[keys] -= gone[keys]
        self.forget(key for key in keys[self._shown[keys] == 0].tolist() if self._base[key] == self._nothing())

    def forget(self, keys: Iterable[int]) -> None:
        """Drop these keys, which were idle and have no rows: their next row is their first."""
        for key in keys:
            self._base.pop(key, None)
            self._now.pop(key, None)
            self._pairs.pop(key, None)

    def final_before(self, rows: SortedRows, horizon: int) -> Array:
        """For each key the tick before which its windows are final: the start of its first window that has not ended by the horizon, but
        not behind its last row."""
        border = np.full(len(rows.key_offsets) - 1, horizon, np.int64)
        filled = np.flatnonzero(np.diff(rows.key_offsets))
        border[filled] = np.minimum(border[filled], rows.ticks[rows.key_offsets[filled + 1] - 1] + 1)
        keys, start, end, known = self.windows(rows)
        still = ~known | (end > horizon)
        np.minimum.at(border, keys[still], start[still])
        return border

    def live_keys(self) -> Array:
        """The keys with a context from dropped rows."""
        return np.array(list(self._base), np.int64)

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Replace key numbers by their new ones; only the keys at ``retained`` are left."""
        self._base = {int(new_id_of[key]): noticed for key, noticed in self._base.items()}
        self._now = {int(new_id_of[key]): noticed for key, noticed in self._now.items()}
        self._pairs = {int(new_id_of[key]): pairs for key, pairs in self._pairs.items()}
        self._shown = self._shown[retained[retained < len(self._shown)]]

    def save(self) -> dict[str, Any]:
        """The contexts and edges before the retained rows, as values that JSON can represent."""
        return {str(key): [self._checked(n.context), n.edges.starts, n.edges.ends] for key, n in self._base.items()}

    def _checked(self, context: Any) -> Any:
        if not is_json(context):
            raise InvalidArgument(
                f"the context of {self._window!r} must be a value that JSON can hold, because state carries it: numbers, text, lists and "
                f"dictionaries with text as keys; not {context!r}"
            )
        return context

    def load(self, saved: dict[str, Any], keys: int) -> None:
        """Go on from saved contexts and edges, with so many keys."""
        for key, (_, starts, ends) in saved.items():
            validation.whole(int(key), "the state's contexts", 0, keys - 1)
            for edges in (starts, ends):
                validation.numbers(edges, "the state's contexts", most=1 << 20)
        self._base = {int(key): Noticed(context, Edges(starts, ends)) for key, (context, starts, ends) in saved.items()}
        self._now = {key: noticed.copy() for key, noticed in self._base.items()}


def paired(edges: Edges) -> list[tuple[int, int | None]]:
    """Windows from each start to the first end after it; an open one has none."""
    starts, ends = sorted(set(edges.starts)), sorted(set(edges.ends))
    places = np.searchsorted(ends, starts, side="right").tolist() if ends else [0] * len(starts)
    return [(s, ends[p] if p < len(ends) else None) for s, p in zip(starts, places, strict=True)]


class OfContextAware(Handler[ContextAwareWindow], shape=ContextAwareWindow):
    """Users' own windows: a notice per row, in the order of time."""

    ends_in_the_past = True

    def _windows(self, shape: ContextAwareWindow, rows: SortedRows) -> ContextWindows:
        notices: Notices = rows.notices.setdefault(id(shape), Notices(shape))
        return notices.windows(rows)

    def cuts(self, shape: ContextAwareWindow, rows: SortedRows) -> Array:
        keys, start, end, known = self._windows(shape, rows)
        keys, edges = np.concatenate([keys, keys[known]]), np.concatenate([start, end[known]])
        return places_in_keys(rows.key_offsets, rows.ticks, keys, edges)

    def bounds(self, shape: ContextAwareWindow, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        assert view.rows is not None
        keys, start, end, known = self._windows(shape, view.rows)
        lo = places_in_keys(view.key_offsets, view.first, keys, start)
        hi = np.where(known, places_in_keys(view.key_offsets, view.first, keys, end), view.key_offsets[keys + 1])
        full = np.flatnonzero(lo < hi)
        return Bounds(keys[full], lo[full], hi[full], start[full], end[full], end_known=known[full])

    def contexts(self, shape: ContextAwareWindow) -> Notices:
        return Notices(shape)

    def advanced_marks(self, shape: ContextAwareWindow, rows: SortedRows, marks: Array, horizon: int) -> Array:
        """No row before the first window that has not ended matters any more, for keys that have such rows."""
        border = rows.notices[id(shape)].final_before(rows, horizon)
        offsets = rows.key_offsets
        filled = np.flatnonzero(np.diff(offsets))
        passed = filled[rows.ticks[offsets[filled]] < border[filled]]
        marks = marks.copy()
        marks[passed] = np.maximum(marks[passed], border[passed])
        return marks

    def late(self, shape: ContextAwareWindow, retained: RetainedRows, marks: Array, ticks: Array, codes: Array, horizon: int) -> Array:
        return ticks < marks

    def first_needed(self, shape: ContextAwareWindow, retained: RetainedRows, marks: Array, horizon: int) -> Array:
        rows = retained.rows
        return places_in_keys(rows.key_offsets, rows.ticks, np.arange(len(marks)), marks)
