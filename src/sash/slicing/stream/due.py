"""When a window is due next: before that, rows that arrive one by one are only buffered, and a watermark costs nothing."""

from __future__ import annotations

from collections.abc import Callable

from sash.types import FAR_AHEAD, FAR_BACK


class NextDue:
    """The horizon before which a step would emit nothing, as far as that is known without placing buffered rows."""

    def __init__(self, session_gap: int | None) -> None:
        self.follow(session_gap)
        self.newest = FAR_BACK
        """The time of the newest row that was buffered; rows before it may have been flushed."""

    def follow(self, session_gap: int | None) -> None:
        """Follow other queries, with this shortest session gap; something may be due at once."""
        self._gap = session_gap
        self._sessions = FAR_AHEAD
        """No session of the rows that arrived since the last step is due before this time."""
        self.look()

    def look(self) -> None:
        """Something may be due at once."""
        self._stores: int | None = FAR_BACK

    def stepped(self) -> None:
        """Take note of a step: the stores are queried for what is due next when that is needed."""
        self._stores, self._sessions = None, FAR_AHEAD

    def note_rows(self, first: int, last: int) -> None:
        """Take note of buffered rows: a session may end with the oldest of them."""
        self.newest = max(self.newest, last)
        if self._gap is not None:
            self._sessions = min(self._sessions, first + self._gap + 1)

    def horizon(self, of_stores: Callable[[], int]) -> int:
        """The horizon; ``of_stores`` returns when something is due of the slices of the last step."""
        if self._stores is None:
            self._stores = of_stores()
        return min(self._stores, self._sessions)
