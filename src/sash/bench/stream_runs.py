"""The runs of a stream that ``sash bench stream`` compares: seconds, bytes, and what a micro-batch's time is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

PHASES: dict[str, tuple[str, ...]] = {
    "in all": ("triggerExecution",),
    "offsets and logs": ("latestOffset", "getBatch", "walCommit", "commitOffsets"),
    "planning": ("queryPlanning",),
    "running": ("addBatch",),
    "of it, commit of the state": (),
    "without rows": (),
}
"""What a micro-batch's time is made of, and Spark's names for it; the last is a whole micro-batch without rows."""


@dataclass
class Run:
    """The measurements of one run of a stream."""

    seconds: list[float]
    """Of each measured micro-batch."""
    answer: list[float]
    read: float
    written: float
    checkpoint: int
    state: int
    phases: dict[str, float]
    """Median milliseconds of a micro-batch's parts, as Spark reports them."""
    worst: list[float] = field(default_factory=list)
    """For each run, the longest micro-batch over the median."""

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


def together(runs: list[Run]) -> Run:
    """Several runs of one stream as one."""
    seconds = [taken for run in runs for taken in run.seconds]
    parts = {name: float(np.median([run.phases[name] for run in runs])) for name in runs[0].phases}
    return replace(runs[0], seconds=seconds, phases=parts, worst=[max(run.seconds) / run.median for run in runs])


def phases(entries: list[Any], every: list[Any]) -> dict[str, float]:
    """The parts of micro-batches, and what one without rows takes."""

    def median(values: list[float]) -> float:
        return float(np.median(values)) if values else float("nan")

    def of(entry: Any, *names: str) -> float:
        return float(sum(entry.durationMs.get(n, 0) for n in names))

    parts = {name: median([of(p, *spark) for p in entries]) for name, spark in PHASES.items() if spark}
    parts["of it, commit of the state"] = median([max((s.commitTimeMs for s in p.stateOperators), default=0) for p in entries])
    parts["without rows"] = median([float(p.batchDuration) for p in every if not p.numInputRows and p.durationMs.get("addBatch")])
    return parts


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
