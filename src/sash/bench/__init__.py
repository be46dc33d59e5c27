"""Benchmarks: each checks its results, measures the peers in the same run, and reports which bounds were missed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = ("rolling", "hammer", "reactive", "table", "slicing", "spark", "stream", "cql", "slider")


def benchmark(name: str) -> Callable[..., Any]:
    """The function that measures a benchmark and returns its report."""
    function: Callable[..., Any] = import_module(f"sash.bench.{name}").measure
    return function


def run(name: str, *, quick: bool, folder: Path, docs: Path | None, data: Path | None) -> Any:
    """Measure, print and write a benchmark."""
    from sash.bench.harness import finish

    report = benchmark(name)(quick=quick, data=data)
    finish(report, folder, docs)
    return report
