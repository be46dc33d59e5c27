"""What ``sash demo`` shows: cluster monitoring on Spark, as a batch and as a stream, or rolling statistics in one process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

MODULES = {"spark": "monitoring", "stream": "streaming", "rolling": "rolling"}
NAMES = tuple(MODULES)


def demo(name: str) -> Callable[..., None]:
    """The function that runs a demo."""
    function: Callable[..., None] = import_module(f"sash.demo.{MODULES[name]}").run
    return function
