"""A stream engine's state as one value, which snapshots and state stores write, and from which an engine continues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.slicing import validation
from sash.slicing.stores.slice_store import StoreState
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]

FEWEST_KEYS = 1 << 10
"""Up to so many keys are retained whether they have state or not."""


@dataclass
class Position:
    """How far a stream has advanced. The fields' names are stored."""

    watermark: int = FAR_BACK
    stepped: int = FAR_BACK
    """The watermark of the last step; while nothing is due, the watermark advances without one."""
    newest: int = FAR_BACK
    dirty: int = FAR_AHEAD
    """The time of the oldest row that arrived since the last step."""
    next_id: int = 0
    """The number of the next row, where rows are retained."""
    keys_to_check: int = FEWEST_KEYS
    """With more keys than this, those without state are dropped."""

    @staticmethod
    def of(facts: dict[str, Any]) -> Position:
        """The position in stored facts; in older ones, each watermark was a step."""
        ticks = {name: validation.tick(facts[name], "the state") for name in vars(Position()) if name in facts}
        position = Position(**{"stepped": ticks.get("watermark", FAR_BACK), **ticks})
        if position.stepped > position.watermark:
            raise validation.damaged("the state", "its last step lies after its watermark")
        return position


@dataclass
class Counts:
    """Counts of the rows that an engine was passed. The fields' names are stored."""

    rows: int = 0
    late: int = 0
    ahead: int = 0
    without_time: int = 0

    @staticmethod
    def of(stored: dict[str, Any], what: str) -> Counts:
        """Stored counts; those of older versions may lack some or have others."""
        checked = {name: validation.whole(count, what) for name, count in stored.items()}
        return Counts(**{name: checked.get(name, 0) for name in vars(Counts())})


@dataclass
class EngineState:
    """All that an engine needs to continue, besides its query."""

    position: Position
    counts: Counts
    stores: list[StoreState]
    queries: list[list[str]] | None
    """The names of each store's queries; None where queries are never added or removed, so that they follow from the plan."""
    keys: list[pa.Array]
    """The keys' columns, in the order of their numbers."""
    are_keys_renumbered: bool = False
    """Whether keys have other numbers than in the state that the engine continued from."""
    since: dict[str, int] = field(default_factory=dict)
    """For queries that were added after rows the time from which on they see rows."""
    last_seen: Array = field(default_factory=lambda: np.empty(0, np.int64))
    """For each key the time of its last row, where idle keys are dropped."""
    emitted: dict[str, list[Array]] = field(default_factory=dict)
    """For each query the emitted windows that may still change, as arrays."""
    late_rows: pa.Table | None = None
    """Rows that were too late and not fetched yet."""
