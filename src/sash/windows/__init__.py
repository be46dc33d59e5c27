"""The windows that users write: ``from sash import windows as W``.

Durations are strings as in Spark (``"1 hour"``, ``"1 minute 30 seconds"``), `datetime.timedelta`, or integers in the unit
of an integer time column.
"""

from __future__ import annotations

from sash.windows.base import Window
from sash.windows.own import ContextAwareWindow, ContextFreeWindow, Edges
from sash.windows.specs import (
    band,
    last_rows,
    punctuation,
    rows,
    session,
    sliding,
    trailing,
    trailing_rows,
    tumbling,
    unbounded,
)

__all__ = [
    "ContextAwareWindow",
    "ContextFreeWindow",
    "Edges",
    "Window",
    "band",
    "last_rows",
    "punctuation",
    "rows",
    "session",
    "sliding",
    "trailing",
    "trailing_rows",
    "tumbling",
    "unbounded",
]
