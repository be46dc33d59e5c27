"""A query as values that JSON can represent: for snapshots, and to compare queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sash.aggregates import registry
from sash.errors import InvalidSnapshot
from sash.functions.call import Call, resolve
from sash.functions.udaf import UserAggregate
from sash.kernels import sources
from sash.plan.clock import ProcessingTime
from sash.plan.options import StreamOptions
from sash.plan.request import WINDOW, Request
from sash.slicing.persistence.code_digest import ADDRESS, digest
from sash.types import Duration
from sash.windows.base import Window, built_in

DURATIONS = ("lateness", "idle", "max_ahead", "watermark")
ONCE_OWN = ("TrailingWindow", "TrailingRowWindow")
"""Windows that older state describes as it does users' own: by a digest of their code, and their settings as text."""


def of_request(request: Request, options: StreamOptions) -> dict[str, Any]:
    """The description of a query."""
    durations = {n: getattr(options, n) for n in DURATIONS}
    return {
        "windows": {name: of_window(w) for name, w in request.windows.items()},
        "aggs": [of_call(c) for c in request.aggs],
        **{n: _listed(getattr(request, n)) for n in ("by", "order_by")},
        "time": {"clock": request.time.name} if isinstance(request.time, ProcessingTime) else request.time,
        **{n: getattr(options, n) for n in ("ordered", "store", "emit", "late")},
        **{n: None if d is None else vars(d) for n, d in durations.items()},
    }


def to_arguments(query: dict[str, Any], windows: Any, aggs: Any) -> dict[str, Any]:
    """The arguments of an operator with the described query.

    Users' own windows and aggregates are code: they come from ``windows`` and ``aggs``, and must be the same.
    """
    passed = dict(windows) if isinstance(windows, Mapping) else {} if windows is None else {WINDOW: windows}
    strange = sorted(set(passed) - set(query["windows"]))
    if strange:
        raise InvalidSnapshot(f"windows has {strange[0]!r}; the snapshot has {', '.join(query['windows'])}")
    specs: dict[str, Window] = {}
    for name, description in query["windows"].items():
        if name in passed and (not isinstance(passed[name], Window) or canonical(of_window(passed[name])) != canonical(description)):
            raise InvalidSnapshot(f"window {name!r} is {passed[name]!r}; the snapshot has {description}")
        spec = passed.get(name) or to_window(description)
        if spec is None:
            raise InvalidSnapshot(f"window {name!r} is a user's own ({description['own']}): restore(bytes, windows=...)")
        specs[name] = spec
    time = ProcessingTime(query["time"]["clock"]) if isinstance(query["time"], dict) else query["time"]
    durations = {n: None if query.get(n) is None else Duration(**query[n]) for n in DURATIONS}
    options = {n: query[n] for n in ("by", "order_by", "ordered", "store", "emit", "late")}
    return {"windows": specs, "aggs": _calls(query["aggs"], aggs), "time": time, **options, **durations}


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
    """The description of a window; a user's own has only its name, its settings, and a digest of its code."""
    kind = type(window).__name__
    if built_in().get(kind) is type(window):
        return {"window": kind, **{f.name: _as_json(getattr(window, f.name)) for f in fields(window)}}  # type: ignore[arg-type]
    name = f"{type(window).__module__}.{type(window).__qualname__}"
    return {"own": name, "settings": _settings(window), "text": digest(type(window), vars(window))}


def _listed(names: Any) -> Any:
    return list(names) if isinstance(names, tuple) else names


def _settings(window: Window) -> str:
    """A window's attributes as text, for people to read."""
    return ADDRESS.sub("", repr(sorted(vars(window).items())))


def canonical(description: Any) -> Any:
    """A description in a normal form: those of the same query are equal, however it was spelled."""
    if isinstance(description, list):
        return [canonical(d) for d in description]
    if not isinstance(description, dict):
        return description
    if "nanos" in description:
        return {n: v for n, v in description.items() if n != "text"}
    if "own" in description:  # settings are for people to read; the digest has them
        return {n: v for n, v in description.items() if n != "settings"}
    meant = {n: canonical(v) for n, v in description.items()}
    for name in ("by", "order_by"):
        if name in meant:
            names = meant[name]
            if not isinstance(names, dict):
                meant[name] = [] if names is None else [names] if isinstance(names, str) else list(names)
    if isinstance(meant.get("lateness"), dict) and not any(meant["lateness"].values()):
        meant["lateness"] = None
    return meant


def upgraded(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """An older description, with the windows that it describes in an older form replaced by those of ``new``, if they are the same."""

    def is_same(before: Any, after: Any) -> bool:
        if not isinstance(before, dict) or not isinstance(after, dict) or after.get("window") not in ONCE_OWN:
            return False
        window = to_window(after)
        return window is not None and str(before.get("own")).endswith(f".{after['window']}") and before.get("settings") == _settings(window)

    windows, now = old.get("windows"), new.get("windows")
    if not isinstance(windows, dict) or not isinstance(now, dict):
        return old
    return {**old, "windows": {name: now[name] if is_same(w, now.get(name)) else w for name, w in windows.items()}}


def to_window(description: dict[str, Any]) -> Window | None:
    """The described window; None for a user's own, which has to be passed again."""
    if "own" in description:
        return None
    kind = built_in().get(str(description.get("window")))
    if kind is None:
        raise InvalidSnapshot(f"the snapshot has a window of the unknown type {description.get('window')!r}")
    return kind(**{n: _restored(v) for n, v in description.items() if n != "window"})


def of_call(call: Call) -> dict[str, Any]:
    """The description of an aggregate's call; a user's own has its name and a digest of its functions."""
    rest = {"inputs": list(call.inputs), "alias": call.alias_name, "condition": call.condition}
    aggregate = call.aggregate
    if isinstance(aggregate, UserAggregate):
        functions = [aggregate.lift, aggregate.combine, aggregate.lower, *([aggregate.invert] if aggregate.invert else [])]
        # As in kernels: helper functions are included, constants folded in.
        read = [sources.read(f, f.__name__) for f in functions]
        text = "\n".join(part.text for source in read for part in (*source.all_helpers(), source))
        rules = (aggregate.state, aggregate.identity, aggregate.commutative, aggregate.output)
        return {"own": aggregate.title, "text": digest(text, rules), **rest}
    return {"aggregate": aggregate.name, "settings": {f.name: getattr(aggregate, f.name) for f in fields(aggregate)}, **rest}


def to_call(description: dict[str, Any]) -> Call | None:
    """The described call; None for a user's own aggregate, which has to be passed again."""
    if "own" in description:
        return None
    kind = registry().get(str(description.get("aggregate")))
    if kind is None:
        raise InvalidSnapshot(f"the snapshot has the unknown aggregate {description.get('aggregate')!r}")
    return Call(kind(**description["settings"]), tuple(description["inputs"]), description["alias"], description["condition"])


def _as_json(value: Any) -> Any:
    if isinstance(value, Duration):
        return {"months": value.months, "nanos": value.nanos, "plain": value.plain, "text": value.text}
    return value if value is None or isinstance(value, int | float | str | bool) else {"repr": repr(value)}


def _restored(value: Any) -> Any:
    if isinstance(value, dict) and "nanos" in value:
        return Duration(**value)
    if isinstance(value, dict) and "repr" in value:
        raise InvalidSnapshot(f"the snapshot holds {value['repr']}, which has to be passed again: restore(bytes, windows=...)")
    return value
