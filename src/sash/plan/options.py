"""The options of streams, checked in one place."""

from __future__ import annotations

from typing import Any

from sash.errors import InvalidArgument
from sash.types import Duration

EMITS = ("final", "update", "running")
LATES = ("drop", "output")


def check_duration_option(name: str, value: Any) -> Duration | None:
    """A length of time that is not negative, or None."""
    if value is None:
        return None
    duration = Duration.of(value, name)
    if duration.sign < 0:
        raise InvalidArgument(f"{name} must not be negative, not {value!r}")
    return duration
