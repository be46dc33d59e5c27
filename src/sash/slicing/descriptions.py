"""Windows and aggregates as plain data, for snapshots and fingerprints."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import fields, is_dataclass
from typing import Any

from sash.aggregates import registry
from sash.errors import InvalidSnapshot
from sash.functions.call import Call
from sash.functions.udaf import UserAggregate
from sash.types import Duration
from sash.windows.band import Band
from sash.windows.base import Window
from sash.windows.last_rows import LastRows
from sash.windows.punctuation import Punctuation
from sash.windows.rows import RowWindow
from sash.windows.session import Session
from sash.windows.sliding import Sliding
from sash.windows.unbounded import Unbounded

SPECS: dict[str, type[Window]] = {c.__name__: c for c in (Sliding, Session, RowWindow, Punctuation, LastRows, Band, Unbounded)}


def of_window(window: Window) -> dict[str, Any]:
    """A window spec as data; a user's own only by its name and settings."""
    kind = type(window).__name__
    if SPECS.get(kind) is type(window) and is_dataclass(window):
        return {"window": kind, **{f.name: _plain(getattr(window, f.name)) for f in fields(window)}}
    return {"own": f"{type(window).__module__}.{type(window).__qualname__}", "settings": repr(sorted(vars(window).items()))}


def to_window(description: dict[str, Any]) -> Window | None:
    """The spec again; None for a user's own, which has to be given."""
    if "own" in description:
        return None
    kind = SPECS.get(str(description.get("window")))
    if kind is None:
        raise InvalidSnapshot(f"the snapshot has a window of the unknown type {description.get('window')!r}")
    return kind(**{n: _restored(v) for n, v in description.items() if n != "window"})


def of_call(call: Call) -> dict[str, Any]:
    """An aggregate's call as data; a user's own by its name and a digest of its functions' text."""
    rest = {"inputs": list(call.inputs), "alias": call.given_alias, "condition": call.condition}
    aggregate = call.aggregate
    if isinstance(aggregate, UserAggregate):
        functions = [aggregate.lift, aggregate.combine, aggregate.lower, *([aggregate.invert] if aggregate.invert else [])]
        text = "\n".join(inspect.getsource(f) for f in functions)
        digest = hashlib.sha256(f"{text} {aggregate.state} {aggregate.identity} {aggregate.commutative}".encode()).hexdigest()[:16]
        return {"own": aggregate.title, "text": digest, **rest}
    return {"aggregate": aggregate.name, "settings": {f.name: getattr(aggregate, f.name) for f in fields(aggregate)}, **rest}


def to_call(description: dict[str, Any]) -> Call | None:
    """The call again; None for a user's own aggregate, which has to be given."""
    if "own" in description:
        return None
    kind = registry().get(str(description.get("aggregate")))
    if kind is None:
        raise InvalidSnapshot(f"the snapshot has the unknown aggregate {description.get('aggregate')!r}")
    return Call(kind(**description["settings"]), tuple(description["inputs"]), description["alias"], description["condition"])


def _plain(value: Any) -> Any:
    if isinstance(value, Duration):
        return {"months": value.months, "nanos": value.nanos, "plain": value.plain, "text": value.text}
    return value if value is None or isinstance(value, int | float | str | bool) else {"repr": repr(value)}


def _restored(value: Any) -> Any:
    if isinstance(value, dict) and "nanos" in value:
        return Duration(**value)
    if isinstance(value, dict) and "repr" in value:
        raise InvalidSnapshot(f"the snapshot holds {value['repr']}, which has to be given again: restore(bytes, windows=...)")
    return value
