"""The options of streams, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sash.errors import InvalidArgument
from sash.types import Duration

EMITS = ("final", "update", "running")
LATES = ("drop", "output")
STORES = ("auto", "lazy", "eager")


@dataclass(frozen=True)
class OperatorOptions:
    """The settings of an operator over a stream."""

    ordered: bool = False
    store: str = "auto"
    lateness: Duration | None = None
    emit: str = "final"
    late: str = "drop"
    idle: Duration | None = None
    max_ahead: Duration | None = None
    watermark: Duration | None = None
    """How far the watermark stays behind the newest row, where it advances by itself."""

    @staticmethod
    def checked(*, ordered: Any = False, store: Any = "auto", emit: Any = "final", late: Any = "drop", **durations: Any) -> OperatorOptions:
        """Options, or an error that names what is wrong with one."""
        check_choice("emit", emit, EMITS)
        check_choice("late", late, LATES)
        check_choice("store", store, STORES)
        if not isinstance(ordered, bool):
            raise InvalidArgument(f"ordered must be True or False, not {ordered!r}")
        if ordered and durations.get("watermark") is not None:
            raise InvalidArgument("watermark is for streams that may be out of order; with ordered=True every row is a watermark")
        lengths = {name: check_duration_option(name, value) for name, value in durations.items()}
        return OperatorOptions(ordered, store, emit=emit, late=late, **lengths)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless a value is one of the choices."""
    if value not in choices:
        raise InvalidArgument(f"{name} must be one of {', '.join(choices)}; not {value!r}")


def check_duration_option(name: str, value: Any) -> Duration | None:
    """A length of time that is not negative, or None."""
    if value is None:
        return None
    duration = Duration.of(value, name)
    if duration.sign < 0:
        raise InvalidArgument(f"{name} must not be negative, not {value!r}")
    return duration
