"""A Reactive Aggregator for each key (section 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sash.errors import EmptyWindow

if TYPE_CHECKING:
    from sash.algorithms.reactive_aggregator import ReactiveAggregator


class PerKey:
    """A window for each key.

    >>> from sash.algorithms import ReactiveAggregator
    >>> w = ReactiveAggregator.per_key("sum")
    >>> for key, v in (("a", 1), ("b", 5), ("a", 2)): _ = w.insert(key, v)
    >>> w.query("a"), w.query("b"), w.keys()
    (3, 5, ['a', 'b'])
    """

    def __init__(self, new_window: Callable[[], ReactiveAggregator]) -> None:
        self._new_window = new_window
        self._windows: dict[Any, ReactiveAggregator] = {}

    def insert(self, key: Any, value: Any) -> int:
        """Add a row to a key's window; returns its handle."""
        if key not in self._windows:
            self._windows[key] = self._new_window()
        return self._windows[key].insert(value)

    def evict(self, key: Any, handle: int | None = None) -> None:
        """Drop a row of a key; a key without rows is forgotten."""
        if key not in self._windows:
            raise EmptyWindow(f"no row with the key {key!r} is in the window")
        self._windows[key].evict(handle)
        if len(self._windows[key]) == 0:
            del self._windows[key]

    def query(self, key: Any) -> Any:
        """The aggregate of a key's rows; None for a key without rows."""
        return self._windows[key].query() if key in self._windows else None

    def keys(self) -> list[Any]:
        """The keys that have rows."""
        return list(self._windows)
