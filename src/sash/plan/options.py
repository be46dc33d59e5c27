"""The options of streams, in one process and on Spark, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sash.errors import InvalidArgument
from sash.types import Duration

Emit = Literal["final", "update", "running"]
Late = Literal["drop", "output"]
Store = Literal["auto", "lazy", "eager"]
EMITS: tuple[Emit, ...] = ("final", "update", "running")
LATES: tuple[Late, ...] = ("drop", "output")
STORES: tuple[Store, ...] = ("auto", "lazy", "eager")
MOST_BUCKETS = 1 << 14


@dataclass(frozen=True)
class StreamOptions:
    """The options of a stream: when windows are emitted, which rows are late, what is stored."""

    ordered: bool = False
    """Whether rows are declared to be in the order of time."""
    store: Store = "auto"
    lateness: Duration | None = None
    emit: Emit = "final"
    late: Late = "drop"
    idle: Duration | None = None
    max_ahead: Duration | None = None
    watermark: Duration | None = None
    """How far the watermark trails the newest row; None if it is advanced explicitly."""
    buckets: int | None = None
    plan: str = "auto"

    @staticmethod
    def of(
        *,
        ordered: Any = False,
        store: Any = "auto",
        emit: Any = "final",
        late: Any = "drop",
        buckets: Any = None,
        plan: Any = "auto",
        watermark: Any = None,
        lateness: Any = None,
        idle: Any = None,
        max_ahead: Any = None,
    ) -> StreamOptions:
        """Options, or an error that names what is wrong with one."""
        check_choice("emit", emit, EMITS)
        check_choice("late", late, LATES)
        check_choice("store", store, STORES)
        if not isinstance(ordered, bool):
            raise InvalidArgument(f"ordered must be True or False, not {ordered!r}")
        if ordered and watermark is not None:
            raise InvalidArgument("watermark is for streams that may be out of order; with ordered=True every row is a watermark")
        if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= MOST_BUCKETS):
            raise InvalidArgument(f"buckets must be an integer from 1 to {MOST_BUCKETS:,}, not {buckets!r}")
        return StreamOptions(
            ordered, store, checked_duration("lateness", lateness), emit, late, checked_duration("idle", idle),
            checked_duration("max_ahead", max_ahead), checked_duration("watermark", watermark), buckets, plan,
        )  # fmt: skip


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless a value is one of the choices."""
    if value not in choices:
        raise InvalidArgument(f"{name} must be one of {', '.join(choices)}; not {value!r}")


def checked_duration(name: str, value: Any) -> Duration | None:
    """A length of time that is not negative, or None."""
    if value is None:
        return None
    duration = Duration.of(value, name)
    if duration.sign < 0:
        raise InvalidArgument(f"{name} must not be negative, not {value!r}")
    return duration
