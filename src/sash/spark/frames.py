"""Telling Spark's objects apart without asking for more than their class."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def is_connect(thing: Any) -> bool:
    """Whether a session or a frame is Spark Connect's."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(thing).__mro__)


def functions_for(frame: Any) -> Any:
    """``pyspark.sql.functions`` of the frame's own kind: a process may have both."""
    return import_module("pyspark.sql.connect.functions" if is_connect(frame) else "pyspark.sql.functions")
