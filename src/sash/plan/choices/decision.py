"""A decision: what will be done, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """The name of what was chosen, and the reasons for it, as ``sash.explain`` prints them."""

    choice: str
    reasons: tuple[str, ...]
