"""Window specs: what users write, immutable and in durations.

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
    """SQL expressions over the row that determine where its windows are."""
    counts_rows: ClassVar[bool] = False
    """Whether it is measured in rows, so that a late row moves all that come after it."""
    is_session: ClassVar[bool] = False
    """Whether a late row can only extend or merge windows, so that no rows need to be retained."""
    is_trailing: ClassVar[bool] = False
    """Whether each row has its own window (for ``sash.over``)."""
    is_shown_rows: ClassVar[bool] = False
    """Whether a user's code is called for every row."""
    never_ends: ClassVar[bool] = False
    """Whether a key's state is dropped only when the key is idle."""

    @property
    def is_by_time(self) -> bool:
        """Whether the times of rows alone determine its windows: its edges are known in advance, or it is a session."""
        return self.context == "context free" or self.is_session

    @abstractmethod
    def bind(self, measure: Measure) -> Shape:
        """The spec's shape, in ticks of a time column."""

    def check_type(self, text: str, t: pa.DataType) -> None:
        """Raise if an expression among ``reads`` has a type that the window cannot use; by default any will do."""
        return


def built_in() -> dict[str, type[Window]]:
    """The window types that come with Sash, by their names in snapshots and checkpoints."""
    types: dict[str, type[Window]] = {}
    waiting = Window.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("sash.windows.") and is_dataclass(kind):
            types[kind.__name__] = kind
    return types


def positive(value: Any, argument: str) -> Duration:
    """A positive duration that a user wrote; an error names the ``argument``."""
    duration = Duration.of(value, argument)
    if duration.sign <= 0:
        raise InvalidWindow(f"{argument} must be positive, not {value!r}")
    return duration


def row_count(value: Any, argument: str) -> int:
    """A number of rows that a user passed; an error names the ``argument``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidWindow(f"{argument} must be a number of rows, not {value!r}")
    if value < 1:
        raise InvalidWindow(f"{argument} must be at least 1 row, not {value}")
    if value >= FAR_AHEAD:
        raise InvalidWindow(f"{argument} is too large: {value}")
    return int(value)
