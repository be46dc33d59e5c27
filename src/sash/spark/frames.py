"""Telling Spark's objects apart without asking for more than their class."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sash.spark.sql import quoted

TIME_WINDOW = {"spark.timeWindow": True}
"""Tells Spark's own ``window`` and ``window_time`` that a column is a window."""


def is_connect(thing: Any) -> bool:
    """Whether a session or a frame is Spark Connect's."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(thing).__mro__)


def functions_for(frame: Any) -> Any:
    """``pyspark.sql.functions`` of the frame's own kind: a process may have both."""
    return import_module("pyspark.sql.connect.functions" if is_connect(frame) else "pyspark.sql.functions")


def marked(frame: Any, name: str, metadata: dict[str, Any]) -> Any:
    """A frame whose column of this name has metadata for Spark."""
    F = functions_for(frame)

    def column(n: str) -> Any:
        return F.col(quoted(n))

    return frame.select(*[column(n).alias(n, metadata=metadata) if n == name else column(n) for n in frame.columns])
