"""What an operator was made with, as plain data: for snapshots, and to tell whether two are of the same query."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from sash.aggregates import registry
from sash.errors import InvalidSnapshot
from sash.functions.call import Call, resolve
from sash.functions.udaf import UserAggregate
from sash.kernels import sources
from sash.plan.clock import ProcessingTime
from sash.plan.options import OperatorOptions
from sash.slicing.persistence.code_digest import ADDRESS, digest
from sash.types import Duration
from sash.windows.band import Band
from sash.windows.base import Window
from sash.windows.last_rows import LastRows
from sash.windows.punctuation import Punctuation
from sash.windows.rows import RowWindow
from sash.windows.session import Session
from sash.windows.sliding import Sliding
from sash.windows.unbounded import Unbounded

DURATIONS = ("lateness", "idle", "max_ahead", "watermark")
SPECS: dict[str, type[Window]] = {c.__name__: c for c in (Sliding, Session, RowWindow, Punctuation, LastRows, Band, Unbounded)}


@dataclass
class OperatorSpec:
    """What the operator was made with, before a schema is known."""

    windows: dict[str, Window]
    aggs: Any
    by: Any
    time: Any
    order_by: Any
    options: OperatorOptions = field(default_factory=OperatorOptions)


def of_request(spec: OperatorSpec) -> dict[str, Any]:
    """What an operator was made with, as data."""
    options = spec.options
    calls = [resolve(a, "aggs") for a in (spec.aggs if isinstance(spec.aggs, list | tuple) else [spec.aggs])]
    durations = {n: getattr(options, n) for n in DURATIONS}
    return {
        "windows": {name: of_window(w) for name, w in spec.windows.items()},
        "aggs": [of_call(c) for c in calls],
        **{n: getattr(spec, n) for n in ("by", "order_by")},
        "time": {"clock": spec.time.name} if isinstance(spec.time, ProcessingTime) else spec.time,
        **{n: getattr(options, n) for n in ("ordered", "store", "emit", "late")},
        **{n: None if d is None else vars(d) for n, d in durations.items()},
    }


def to_request(query: dict[str, Any], windows: Any, aggs: Any) -> dict[str, Any]:
    """The arguments again. Users' own windows and aggregates are code: they come from what is given, and must be the same."""
    given = dict(windows) if isinstance(windows, dict) else {} if windows is None else {"window": windows}
    strange = sorted(set(given) - set(query["windows"]))
    if strange:
        raise InvalidSnapshot(f"windows has {strange[0]!r}; the snapshot has {', '.join(query['windows'])}")
    specs: dict[str, Window] = {}
    for name, description in query["windows"].items():
        if name in given and (not isinstance(given[name], Window) or canonical(of_window(given[name])) != canonical(description)):
            raise InvalidSnapshot(f"window {name!r} is {given[name]!r}; the snapshot has {description}")
        spec = given.get(name) or to_window(description)
        if spec is None:
            raise InvalidSnapshot(f"window {name!r} is a user's own ({description['own']}): restore(bytes, windows=...)")
        specs[name] = spec
    settings = {n: query[n] for n in ("by", "time", "order_by", "ordered", "store", "emit", "late")}
    durations = {n: None if query.get(n) is None else Duration(**query[n]) for n in DURATIONS}
    if isinstance(query["time"], dict):
        settings["time"] = ProcessingTime(query["time"]["clock"])
    return {"windows": specs, "aggs": _calls(query["aggs"], aggs), **settings, **durations}


def _calls(descriptions: list[dict[str, Any]], aggs: Any) -> list[Call]:
    own = [resolve(a, "aggs") for a in (aggs if isinstance(aggs, list | tuple) else [] if aggs is None else [aggs])]
    if aggs is not None and all("own" not in d for d in descriptions) and [of_call(o) for o in own] != descriptions:
        raise InvalidSnapshot(f"aggs are {own}; the snapshot has {[d['aggregate'] for d in descriptions]}")
    calls = []
    for description in descriptions:
        call = to_call(description) or next((o for o in own if of_call(o) == description), None)
        if call is None:
            raise InvalidSnapshot(f"aggs lacks the user's own aggregate {description['own']!r} of the snapshot, or it has changed")
        calls.append(call)
    return calls


def of_window(window: Window) -> dict[str, Any]:
    """A window spec as data; a user's own only by its name and settings."""
    kind = type(window).__name__
    if SPECS.get(kind) is type(window) and is_dataclass(window):
        return {"window": kind, **{f.name: _plain(getattr(window, f.name)) for f in fields(window)}}
    settings = ADDRESS.sub("", repr(sorted(vars(window).items())))
    return {
        "own": f"{type(window).__module__}.{type(window).__qualname__}", "settings": settings, "text": digest(type(window), vars(window)),
    }  # fmt: skip


def canonical(description: Any) -> Any:
    """What a description means, however it was spelled: two of the same query are equal."""
    if isinstance(description, list):
        return [canonical(d) for d in description]
    if not isinstance(description, dict):
        return description
    if "nanos" in description:
        return {n: v for n, v in description.items() if n != "text"}
    if "own" in description:  # settings are for people to read; the digest has them
        return {n: v for n, v in description.items() if n != "settings"}
    meant = {n: canonical(v) for n, v in description.items()}
    if meant.get("window") == "TrailingRowWindow":
        meant.setdefault("closed", "both")  # older descriptions had no other
    for name in ("by", "order_by"):
        if name in meant:
            given = meant[name]
            if not isinstance(given, dict):
                meant[name] = [] if given is None else [given] if isinstance(given, str) else list(given)
    if isinstance(meant.get("lateness"), dict) and not any(meant["lateness"].values()):
        meant["lateness"] = None
    return meant


def to_window(description: dict[str, Any]) -> Window | None:
    """The spec again; None for a user's own, which has to be given."""
    if "own" in description:
        return None
    kind = SPECS.get(str(description.get("window")))
    if kind is None:
        raise InvalidSnapshot(f"the snapshot has a window of the unknown type {description.get('window')!r}")
    return kind(**{n: _restored(v) for n, v in description.items() if n != "window"})


def of_call(call: Call) -> dict[str, Any]:
    """An aggregate's call as data; a user's own by its name and a digest of what its functions mean."""
    rest = {"inputs": list(call.inputs), "alias": call.given_alias, "condition": call.condition}
    aggregate = call.aggregate
    if isinstance(aggregate, UserAggregate):
        functions = [aggregate.lift, aggregate.combine, aggregate.lower, *([aggregate.invert] if aggregate.invert else [])]
        # As kernels have it: helpers are brought along, constants folded in.
        read = [sources.read(f, f.__name__) for f in functions]
        text = "\n".join(part.text for source in read for part in (*source.all_helpers(), source))
        rules = (aggregate.state, aggregate.identity, aggregate.commutative, aggregate.output)
        return {"own": aggregate.title, "text": digest(text, rules), **rest}
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
