"""What a query means, evaluated naively: every relation of every edge is made, row by row in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Windows:
    """A window as text, and what the oracle needs of it."""

    text: str
    kind: str
    size: int = 0
    slide: int = 0
    offset: int = 0
    partition: str | None = None
    when: Callable[[Row], bool | None] | None = None


@dataclass(frozen=True)
class Window:
    """The rows of one window; ``place`` orders windows of one partition, so that the one before is known."""

    start: int | None
    end: int | None
    time: int | None
    place: tuple[Any, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Part:
    """An expression as text, and in Python."""

    text: str
    value: Callable[[Row], Any]


@dataclass(frozen=True)
class Aggregate:
    """An aggregate as text, and over a list of rows in Python."""

    text: str
    value: Callable[[list[Row]], Any]


@dataclass(frozen=True)
class Spec:
    """A query over one stream."""

    windows: Windows
    where: Part | None
    keys: tuple[Part, ...]
    aggregates: tuple[Aggregate, ...]
    items: tuple[Part, ...] = ()
    having: Callable[[tuple[Any, ...]], bool] | None = None
    having_text: str = ""
    distinct: bool = False
    kind: str | None = None
    limit: int | None = None
    with_time: bool = True

    @property
    def is_grouped(self) -> bool:
        return bool(self.keys or self.aggregates)

    @property
    def text(self) -> str:
        columns = ["timestamp"] if self.with_time else []
        columns += [f"{part.text} as c{k}" for k, part in enumerate([*self.keys, *self.items, *self.aggregates])]
        text = f"select {'distinct ' * self.distinct}{', '.join(columns)} from S {self.windows.text}"
        text += f" where {self.where.text}" if self.where else ""
        text += f" group by {', '.join(k.text for k in self.keys)}" if self.keys else ""
        text += f" having {self.having_text}" if self.having_text else ""
        if self.limit is not None:
            names = [f"c{k}" for k in range(len(columns) - self.with_time)]
            text += f" order by {', '.join(names)} limit {self.limit}"
        return text if self.kind is None else f"{self.kind}({text})"


def in_order(rows: list[Row]) -> list[Row]:
    return sorted((r for r in rows if r["timestamp"] is not None), key=lambda r: r["timestamp"])


def windows_of(w: Windows, rows: list[Row]) -> list[Window]:
    """All windows over rows in the order of time, also empty ones beside others."""
    if not rows:
        return []
    if w.partition is not None and w.kind != "last rows":
        parts: dict[Any, list[Row]] = {}
        for row in rows:
            parts.setdefault(row[w.partition], []).append(row)
        plain = Windows(w.text, w.kind, w.size, w.slide, w.offset, None, w.when)
        return [
            Window(x.start, x.end, x.time, (n, *x.place), x.rows) for n, part in enumerate(parts.values()) for x in windows_of(plain, part)
        ]
    times = [r["timestamp"] for r in rows]
    if w.kind == "time":
        first, last = (times[0] - w.offset - w.size) // w.slide - 2, (times[-1] - w.offset) // w.slide + 2 + w.size // w.slide
        starts = [w.offset + k * w.slide for k in range(first, last + 1)]
        return [_window(s, s + w.size, (k,), [r for r in rows if s <= r["timestamp"] < s + w.size]) for k, s in enumerate(starts)]
    if w.kind in ("range", "unbounded", "now", "last rows"):
        result = []
        for k, t in enumerate(sorted(set(times))):
            result.append(_window(*_reach(w, t + 1), (k,), members(w, rows, t + 1)))
        return result
    if w.kind == "rows":
        counts = range(0, max(0, len(rows) - w.size + 1), w.slide)
        return [_of_rows(rows[k : k + w.size], (k // w.slide,)) for k in counts]
    if w.kind == "session":
        groups: list[list[Row]] = []
        for row in rows:
            if groups and row["timestamp"] - groups[-1][-1]["timestamp"] <= w.size:
                groups[-1].append(row)
            else:
                groups.append([row])
        return [_window(g[0]["timestamp"], g[-1]["timestamp"] + w.size, (k,), g) for k, g in enumerate(groups)]
    assert w.when is not None
    marks = sorted({r["timestamp"] for r in rows if w.when(r)})
    starts = sorted({times[0], *marks})
    ends = [*starts[1:], None]
    return [
        _window(s, e, (k,), [r for r in rows if s <= r["timestamp"] and (e is None or r["timestamp"] < e)])
        for k, (s, e) in enumerate(zip(starts, ends, strict=True))
    ]


def _window(start: int | None, end: int | None, place: tuple[Any, ...], rows: list[Row]) -> Window:
    return Window(start, end, None if end is None else end - 1, place, rows)


def _of_rows(rows: list[Row], place: tuple[Any, ...]) -> Window:
    return Window(rows[0]["timestamp"], rows[-1]["timestamp"], rows[-1]["timestamp"], place, rows)


def _reach(w: Windows, edge: int) -> tuple[int | None, int]:
    return {"range": edge - w.size, "now": edge - 1}.get(w.kind), edge


def members(w: Windows, rows: list[Row], edge: int) -> list[Row]:
    """The rows of a source at an edge in time."""
    earlier = [r for r in rows if r["timestamp"] < edge]
    if w.kind == "now":
        return [r for r in earlier if r["timestamp"] == edge - 1]
    if w.kind in ("range", "time"):
        return [r for r in earlier if r["timestamp"] >= edge - w.size]
    if w.kind == "last rows":
        assert w.partition is not None
        later: Counter[Any] = Counter()
        kept = []
        for row in reversed(earlier):
            later[row[w.partition]] += 1
            if later[row[w.partition]] <= w.size:
                kept.append(row)
        return kept[::-1]
    return earlier


def passes(where: Part | None, row: Row) -> bool:
    return where is None or where.value(row) is True


def evaluate(spec: Spec, rows: list[Row]) -> list[list[tuple[Any, ...]]]:
    """The results window by window; rows within one are in no order."""
    rows = in_order([{**r, "#": n} for n, r in enumerate(rows)])
    windows = windows_of(spec.windows, rows)
    kind = spec.kind or ("istream" if not spec.is_grouped and not spec.distinct else "rstream")
    if not spec.is_grouped and not spec.distinct and spec.limit is None and kind == "istream":
        seen = {r["#"] for w in windows for r in w.rows}
        return [[_projected(spec, r, r["timestamp"])] for r in rows if r["#"] in seen and passes(spec.where, r)]
    by_identity = not spec.is_grouped and not spec.distinct
    results = [(w, _result(spec, w)) for w in windows]
    before: dict[Any, list[Any]] = {w.place: found for w, found in results}
    out = []
    for w, found in sorted(results, key=lambda pair: (_far(pair[0].end), _far(pair[0].start))):
        if kind != "rstream":
            earlier = before.get((*w.place[:-1], w.place[-1] - 1), [])
            one, other = (found, earlier) if kind == "istream" else (earlier, found)
            gone = Counter(key if by_identity else values for key, values in other)
            kept = []
            for key, values in one:
                identity = key if by_identity else values
                if gone[identity]:
                    gone[identity] -= 1
                else:
                    kept.append((key, values))
            found = kept
        if found:
            out.append([(w.time, *values) if spec.with_time else values for _, values in found])
    return out


def _far(x: int | None) -> float:
    return float("inf") if x is None else x


def _projected(spec: Spec, row: Row, time: int | None) -> tuple[Any, ...]:
    values = tuple(item.value(row) for item in spec.items)
    return (time, *values) if spec.with_time else values


def _result(spec: Spec, window: Window) -> list[tuple[Any, tuple[Any, ...]]]:
    """A window's rows, each with its identity and its values; the time is not among them."""
    rows = [r for r in window.rows if passes(spec.where, r)]
    found: list[tuple[Any, tuple[Any, ...]]]
    if spec.is_grouped:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(k.value(row) for k in spec.keys), []).append(row)
        found = [(None, (*key, *(a.value(g) for a in spec.aggregates))) for key, g in groups.items()]
        if spec.having is not None:
            found = [f for f in found if spec.having(f[1])]
    else:
        found = [(r["#"], tuple(item.value(r) for item in spec.items)) for r in rows]
    if spec.distinct:
        found = [(None, values) for values in dict.fromkeys(values for _, values in found)]
    if spec.limit is not None:
        found = sorted(found, key=lambda f: [(v is not None, v) for v in f[1]])[: spec.limit]
    return found


def join(
    left: Windows, right: Windows, rows: list[Row], others: list[Row], condition: Callable[[Row, Row], bool | None]
) -> list[list[tuple[int, Row, Row]]]:
    """The pairs of each edge, with its time."""
    rows, others = in_order(rows), in_order(others)
    if left.kind == "rows":
        pairs = zip(windows_of(left, rows), windows_of(right, others), strict=False)
        found = [[(max(a.time or 0, b.time or 0), x, y) for x in a.rows for y in b.rows if condition(x, y)] for a, b in pairs]
        return [f for f in found if f]
    timed = next((w for w in (left, right) if w.kind == "time"), None)
    times = [r["timestamp"] for r in [*rows, *others]]
    if not times:
        return []
    if timed is None:
        edges = sorted({t + 1 for t in times})
    else:
        longest = max(w.size for w in (left, right) if w.kind == "time")
        phase = (timed.offset + timed.size) % timed.slide
        edges = [e for e in range(min(times) - longest, max(times) + longest + timed.slide + 1) if (e - phase) % timed.slide == 0]
        if any(w.kind not in ("time", "now", "range") for w in (left, right)):
            last = max([r["timestamp"] for r in (rows if left.kind == "time" else others)], default=min(times) - 1)
            edges = [e for e in edges if e <= last + longest]
    found = [[(e - 1, x, y) for x in members(left, rows, e) for y in members(right, others, e) if condition(x, y)] for e in edges]
    return [f for f in found if f]
