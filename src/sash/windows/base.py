"""Window specs: what users make, immutable and in durations.

``bind(measure)`` turns a spec into a :class:`~sash.windows.shapes.Shape` in ticks of a time column. The base classes for users' own windows
are in :mod:`sash.windows.own`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import is_dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from sash.errors import InvalidWindow
from sash.types import FAR_AHEAD, Duration, Measure
from sash.windows.shapes import Shape

Context = Literal["context free", "forward context free", "forward context aware"]
"""The paper's classes (section 4.4): edges known in advance; known once the rows up to there are; known only with later rows."""


class Window(ABC):
    """A window spec."""

    context: ClassVar[Context] = "context free"
    reads: ClassVar[tuple[str, ...]] = ()
    """SQL expressions over the row that decide where its windows are."""
    counts_rows: ClassVar[bool] = False
    """Whether it is measured in rows, so that a late row moves all that come after it."""
    is_session: ClassVar[bool] = False
    """Whether merging is all that a late row can ask for, so that no row needs to be kept."""
    is_trailing: ClassVar[bool] = False
    """Whether each row has its own window (for ``sash.over``)."""
    is_shown_rows: ClassVar[bool] = False
    """Whether it is a user's code that is shown every row."""
    never_ends: ClassVar[bool] = False
    """Whether a key's state goes only when the key is idle."""

    @property
    def is_by_time(self) -> bool:
        """Whether rows' times alone say where its windows are: its edges are known in advance, or it is a session."""
        return self.context == "context free" or self.is_session

    @abstractmethod
    def bind(self, measure: Measure) -> Shape:
        """The spec in ticks of a measure: a shape."""

    def check_type(self, text: str, t: pa.DataType) -> None:
        """Raise if an expression among ``reads`` has a type that the window cannot use; by default any will do."""
        return


def built_in() -> dict[str, type[Window]]:
    """The window types that come with Sash, by the names that snapshots and checkpoints have for them."""
    found: dict[str, type[Window]] = {}
    waiting = Window.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("sash.windows.") and is_dataclass(kind):
            found[kind.__name__] = kind
    return found


def positive(given: Any, argument: str) -> Duration:
    """A duration that is longer than nothing."""
    duration = Duration.of(given, argument)
    if duration.sign <= 0:
        raise InvalidWindow(f"{argument} must be longer than nothing, not {given!r}")
    return duration


def row_count(given: Any, argument: str) -> int:
    """A number of rows."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise InvalidWindow(f"{argument} must be a number of rows, not {given!r}")
    if given < 1:
        raise InvalidWindow(f"{argument} must be at least 1 row, not {given}")
    if given >= FAR_AHEAD:
        raise InvalidWindow(f"{argument} is too large: {given}")
    return int(given)
