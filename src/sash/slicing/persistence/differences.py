"""How a query differs from the one that stored state is of, in the terms of its arguments."""

from __future__ import annotations

from typing import Any

from sash.slicing.persistence.descriptions import canonical, to_call, to_window
from sash.types import Duration


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A line for each argument that differs; empty if both queries are the same."""
    was, now = canonical(old), canonical(new)
    names = [n for n in dict.fromkeys([*was, *now]) if was.get(n) != now.get(n)]
    lines: list[str] = []
    for name in names:
        before, after = old.get(name), new.get(name)
        if name == "windows" and isinstance(before, dict) and isinstance(after, dict):
            lines += _each(before, after, was[name], now[name], "window", _window)
        elif name == "columns" and isinstance(before, dict) and isinstance(after, dict):
            lines += _each(before, after, was[name], now[name], "column", str)
        elif name == "query" and isinstance(before, list) and isinstance(after, list):
            lines.append(_changed("the query", [str(line).strip() for line in before], [str(line).strip() for line in after]))
        elif name == "aggs" and isinstance(before, list) and isinstance(after, list):
            lines.append(_changed("aggs", [_call(c) for c in before], [_call(c) for c in after]))
        else:
            lines.append(_changed(name, _shown(before), _shown(after)))
    return lines


def _changed(name: str, before: Any, after: Any) -> str:
    if isinstance(before, list) and isinstance(after, list):
        removed, added = [b for b in before if b not in after], [a for a in after if a not in before]
        if not removed and not added:
            return f"{name} were in the order {', '.join(before)}, and now are in the order {', '.join(after)}"
        before, after = ", ".join(removed) or "without it", ", ".join(added) or "without it"
        if before == after:  # a user's own, whose text has changed
            return f"{name}: {before} has changed"
    return f"{name} was {before}, and now is {after}"


def _each(before: dict[str, Any], after: dict[str, Any], was: Any, now: Any, kind: str, shown: Any) -> list[str]:
    lines = []
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            lines.append(f"{kind} {name!r} ({shown(before[name])}) is gone")
        elif name not in before:
            lines.append(f"{kind} {name!r} ({shown(after[name])}) is new")
        elif was[name] != now[name]:
            a, b = shown(before[name]), shown(after[name])
            if name.startswith("@sash:x"):  # a column that Spark computes from an expression
                lines.append(f"the type of an expression was {a}, and now is {b}")
                continue
            lines.append(
                f"{kind} {name!r} was {a}, and now is {b}" if a != b else f"{kind} {name!r} ({a}): its code or settings have changed"
            )
    if not lines:
        lines.append(f"{kind}s are in another order")
    return lines


def _window(description: Any) -> str:
    if not isinstance(description, dict):
        return str(description)
    return str(description["own"]) if "own" in description else repr(to_window(description))


def _call(description: Any) -> str:
    if not isinstance(description, dict):
        return str(description)
    if "own" in description:
        alias = f" as {description['alias']}" if description.get("alias") else ""
        return f"{description['own']}({', '.join(description['inputs'])}){alias}"
    return repr(to_call(description))


def _shown(value: Any) -> str:
    if isinstance(value, dict) and "nanos" in value:
        return repr(Duration(**value))
    if isinstance(value, list) and len(value) == 1:
        return _shown(value[0])
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return "not given" if value is None else str(value) if isinstance(value, int) else repr(value)
