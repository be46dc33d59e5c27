"""What ``sash demo`` shows: cluster monitoring on Spark, or rolling statistics in one process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

NAMES = ("spark", "rolling")


def demo(name: str) -> Callable[..., None]:
    """The function that runs a demo."""
    function: Callable[..., None] = import_module({"spark": "sash.demo.monitoring"}.get(name, f"sash.demo.{name}")).run
    return function
