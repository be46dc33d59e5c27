"""When something is due next: while nothing is, rows that come one by one are only buffered, and a step costs nothing."""

from __future__ import annotations

from collections.abc import Callable

from sash.types import FAR_AHEAD, FAR_BACK


class NextDue:
    """The horizon before which a step would emit nothing, as far as that can be known without a look at rows."""

    def __init__(self, session_gap: int | None) -> None:
        self.follow(session_gap)
        self.newest = FAR_BACK
        """The newest buffered row, or one before it."""

    def follow(self, session_gap: int | None) -> None:
        """There are other queries, with this shortest session gap: the next step looks at all of them."""
        self._gap = session_gap
        self._sessions = FAR_AHEAD
        """No session of the rows that came since the last step is due before this time."""
        self.look()

    def look(self) -> None:
        """Something may be due at once."""
        self._stores: int | None = FAR_BACK

    def stepped(self) -> None:
        """A step was taken: what is due next is asked of the stores when somebody needs to know."""
        self._stores, self._sessions = None, FAR_AHEAD

    def rows_came(self, first: int, last: int) -> None:
        """Rows were buffered: a session may end with the oldest of them."""
        self.newest = max(self.newest, last)
        if self._gap is not None:
            self._sessions = min(self._sessions, first + self._gap + 1)

    def horizon(self, of_stores: Callable[[], int]) -> int:
        """The horizon; ``of_stores`` says when something of what was there at the last step is due."""
        if self._stores is None:
            self._stores = of_stores()
        return min(self._stores, self._sessions)
