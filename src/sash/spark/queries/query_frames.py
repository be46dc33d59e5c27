"""The plan of a query as a batch frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.logical import RETRACTED, REVISION
from sash.plan.queries.axes import axis_of
from sash.plan.queries.flows import conditions_of, sliced
from sash.plan.queries.relations import (
    END,
    START,
    TIME,
    Applied,
    Grouped,
    Inner,
    Joined,
    Query,
    Relation,
    Selected,
    StreamOf,
    Windowed,
    children,
    relation_schema,
)
from sash.plan.request import Request
from sash.spark.batch.batch_frames import aggregate_frame
from sash.spark.language.spark_frames import functions_for
from sash.spark.language.spark_types import spark_schema
from sash.spark.language.sql import of_ticks, quoted, ticks
from sash.spark.queries.pair_frames import joined_frames
from sash.spark.queries.span_frames import with_spans
from sash.spark.queries.window_frames import NUMBER, SINCE, TICK, UNTIL, FrameWindows
from sash.types import Measure
from sash.windows import unbounded
from sash.windows.base import Window

INTERNAL = frozenset([SINCE, UNTIL, TICK, NUMBER])


@dataclass(frozen=True)
class Rows:
    """A frame with the columns of a relation, ``TICK``, and rows' spans; or, ``in_windows``, their windows' numbers."""

    frame: Any
    schema: pa.Schema
    measure: Measure
    windows: FrameWindows
    in_windows: bool = False
    is_stream: bool = False
    """Whether rows are a stream's own, each with a time of its own."""

    def repeated(self) -> Rows:
        """Each row once for every window that it is in."""
        if self.in_windows:
            return self
        return replace(self, frame=self.windows.repeated(self.frame).drop(SINCE, UNTIL), in_windows=True)


@dataclass(frozen=True)
class Final:
    """Results whose windows are columns already: of one of :mod:`sash.spark.batch`'s own plans."""

    frame: Any
    schema: pa.Schema
    measure: Measure
    extra: tuple[str, ...] = ()
    """The columns of revisions, where there are any: they are part of every result."""


@dataclass(frozen=True)
class Direct:
    """An aggregation over windows of one stream as a request over a frame."""

    source: Windowed
    frame: Any
    request: Request
    conditions: list[str]
    """The conditions on the stream; :meth:`FrameRun.under` has applied them, or not."""


class FrameRun:
    """Makes the frames of one query."""

    def __init__(self, frames: Mapping[str, Any], order_by: tuple[str, ...] = ()) -> None:
        self.frames = frames
        self.order_by = order_by
        self._streams: dict[int, Any] = {}

    def frame(self, query: Query) -> Any:
        """The results of a query; in no order."""
        return self.selected(query, self.relation(query.relation, wants_numbers=query.kind != "rstream" or query.limit is not None))

    # Relations.

    def relation(self, relation: Relation, *, wants_numbers: bool = True) -> Rows | Final:
        """The rows of a relation; unless ``wants_numbers``, windows may be columns instead."""
        if isinstance(relation, Windowed):
            return self._windowed(relation)
        if isinstance(relation, Selected):
            rows = self.relation(relation.child)
            return replace(rows, frame=rows.frame.where(relation.condition))
        if isinstance(relation, Grouped):
            direct = None if wants_numbers else self._directly(relation)
            return direct or self._grouped(relation, self._rows(relation.child))
        if isinstance(relation, Joined):
            left, right = self._rows(relation.left), self._rows(relation.right)
            axis = axis_of(relation, left.measure)
            frame, windows = joined_frames(relation, axis, left, right)
            return Rows(frame, relation.schema, left.measure, windows, in_windows=axis.kind == "rows")
        if isinstance(relation, Applied):
            return self._applied(relation)
        return self._inner(relation)

    def _rows(self, relation: Relation) -> Rows:
        rows = self.relation(relation)
        assert isinstance(rows, Rows)
        return rows

    def _origin(self, relation: Windowed) -> Any:
        origin = relation.origin
        if not isinstance(origin, StreamOf):
            return self.frames[origin.name]
        if id(origin.query) not in self._streams:
            query = origin.query
            rows = self.relation(query.relation, wants_numbers=query.kind != "rstream" or query.limit is not None)
            self._streams[id(query)] = self.selected(query, rows, time=origin.time)
        return self._streams[id(origin.query)]

    def _windowed(self, relation: Windowed) -> Rows:
        measure = Measure(relation.origin.measure_type)
        frame = self._timed(relation, measure)
        spanned, windows = with_spans(relation.windowing, measure, frame, self._ordering(frame))
        texts = [f"{quoted(n)} as {quoted(own)}" for n, own in zip(relation.names, relation.schema.names, strict=True)]
        internal = [quoted(n) for n in (TICK, SINCE, UNTIL, *windows.parts)]
        return Rows(spanned.selectExpr(*texts, *internal), relation.schema, measure, windows, is_stream=not relation.windowing.expands)

    def _timed(self, relation: Windowed, measure: Measure) -> Any:
        """The stream's rows that have a time, with their ticks."""
        time = relation.origin.time
        frame = self._origin(relation).where(f"{quoted(time)} is not null")
        return frame.selectExpr("*", f"{ticks(time, measure)} as {quoted(TICK)}")

    def _ordering(self, frame: Any) -> tuple[str, ...]:
        return tuple(n for n in self.order_by if n in frame.columns)

    def direct(self, relation: Grouped) -> Direct | None:
        """Aggregates over windows of one stream, as a request; None where its windows are not those of the query."""
        source = sliced(relation)
        if source is None or not relation.calls:
            return None
        window = source.windowing.window
        assert window is not None
        own = source.origin.schema.names
        texts = [f"{quoted(n)} as {quoted(p)}" for n, p in zip(source.names, source.schema.names, strict=True)]
        more = [quoted(n) for n in {*self.order_by, *_columns_of(window, own)} if n in own and n not in source.schema.names]
        frame = self._origin(source).selectExpr(*texts, *more)
        conditions = conditions_of(relation.child)
        frame = self.under(frame, conditions)
        frame = _with_keys(frame, relation)
        request = Request.of(
            window, list(relation.calls), [n for n, _ in relation.keys] or None, source.time, self._ordering(frame) or None
        )
        return Direct(source, frame, request, conditions)

    def _directly(self, relation: Grouped) -> Final | None:
        """Aggregates over windows of one stream, by :func:`sash.aggregate`."""
        direct = self.direct(relation)
        if direct is None:
            return None
        source, result = direct.source, self.aggregated(direct)
        measure = Measure(source.origin.measure_type)
        ends = {START: "window.start", END: "window.end"}
        columns = [f"{text} as {quoted(name)}" for name, text in ends.items()]
        extra = tuple(n for n in (REVISION, RETRACTED) if n in result.columns and n not in relation.schema.names)
        frame = result.selectExpr(*map(quoted, (*relation.schema.names, *extra)), *columns)
        last = quoted(END) if source.windowing.kind == "rows" else of_ticks(f"({ticks(END, measure)} - 1L)", measure)
        return Final(frame.selectExpr("*", f"{last} as {quoted(TIME)}"), relation.schema, measure, extra)

    def under(self, frame: Any, conditions: Sequence[str]) -> Any:
        """The rows that conditions on a stream leave."""
        return reduce(lambda passing, condition: passing.where(condition), conditions, frame)

    def aggregated(self, direct: Direct) -> Any:
        """The windows of a request over one stream, as :func:`sash.aggregate` returns them."""
        return aggregate_frame(direct.frame, direct.request)

    def _grouped(self, relation: Grouped, rows: Rows) -> Rows:
        """Aggregates over rows that are repeated per window."""
        repeated = rows.repeated()
        frame = _with_keys(repeated.frame, relation)
        by = [*rows.windows.identity, *(n for n, _ in relation.keys)]
        if relation.calls:
            request = Request.of(unbounded(), list(relation.calls), by, TICK, self._ordering(frame) or None)
            frame = aggregate_frame(frame, request)
        else:
            frame = frame.select(*map(quoted, by)).distinct()
        columns = [quoted(n) for n in (*relation.schema.names, *rows.windows.identity)]
        return Rows(
            frame.selectExpr(*columns, f"{quoted(NUMBER)} as {quoted(TICK)}"), relation.schema, rows.measure, rows.windows, in_windows=True
        )

    def _inner(self, relation: Inner) -> Rows:
        """A nested query's relations."""
        query, time = relation.query, relation.names[0]
        rows = self._rows(query.relation)
        if query.is_rows and not rows.in_windows:
            own = of_ticks(quoted(TICK), rows.measure)
            frame = rows.frame.selectExpr("*", f"{own} as {quoted(TIME)}")
            texts = {c.name: c.text for c in query.columns} | {time: quoted(TIME)}
            columns = [f"{texts[n]} as {quoted(own)}" for n, own in zip(relation.names, relation.schema.names, strict=True)]
            internal = [quoted(n) for n in (TICK, SINCE, UNTIL, *rows.windows.parts)]
            return replace(rows, frame=frame.selectExpr(*columns, *internal), schema=relation.schema)
        result = self._windowed_results(query, rows)
        timed = rows.windows.timed(result, rows.measure)
        texts = {c.name: f"`@v{k}`" for k, c in enumerate(query.columns)} | {time: quoted(TIME)}
        columns = [f"{texts[n]} as {quoted(own)}" for n, own in zip(relation.names, relation.schema.names, strict=True)]
        internal = [quoted(n) for n in rows.windows.identity]
        frame = timed.selectExpr(*columns, *internal, f"{quoted(NUMBER)} as {quoted(TICK)}")
        return Rows(frame, relation.schema, rows.measure, rows.windows, in_windows=True)

    def _applied(self, relation: Applied) -> Rows:
        sources = [self._rows(s).repeated() for s in relation.sources]
        if len(sources) > 2:
            raise InvalidArgument(f"the window function {relation.name} has {len(sources)} sources; on Spark at most two are possible")
        first = sources[0]
        own = pa.schema(list(relation.schema)[1:])
        result = spark_schema(pa.schema([pa.field(NUMBER, pa.int64()), *own]))
        function, names = relation.function, [list(s.schema.names) for s in relation.sources]
        wanted = [n.rpartition(".")[2] for n in own.names]

        def call(key: Any, *tables: pa.Table) -> pa.Table:
            import pyarrow

            made = pyarrow.table(function(*[t.select(n) for t, n in zip(tables, names, strict=True)])).select(wanted)
            numbers = pyarrow.repeat(pyarrow.scalar(key[0].as_py(), pyarrow.int64()), made.num_rows)
            return pyarrow.table([numbers, *made.columns], names=["@number", *own.names])

        groups = [s.frame.selectExpr(*map(quoted, s.schema.names), quoted(NUMBER)).groupBy(NUMBER) for s in sources]
        if len(groups) == 1:
            frame = groups[0].applyInArrow(lambda key, table: call(key, table), result)
        else:
            frame = groups[0].cogroup(groups[1]).applyInArrow(lambda key, one, other: call(key, one, other), result)
        time = relation.schema.names[0]
        timed = first.windows.timed(frame, first.measure)
        columns = [f"{quoted(TIME)} as {quoted(time)}", *map(quoted, own.names), quoted(NUMBER), f"{quoted(NUMBER)} as {quoted(TICK)}"]
        return Rows(timed.selectExpr(*columns), relation.schema, first.measure, first.windows, in_windows=True)

    # The select list.

    def selected(self, query: Query, rows: Rows | Final, time: str | None = None) -> Any:
        """The query's columns; with ``time`` as a stream whose time is in a column of this name."""
        texts = {c.name: c.text for c in query.columns}
        names = list(texts)
        if time is not None:
            texts[time] = quoted(TIME)
            names = relation_schema(query, time).names
        if isinstance(rows, Final):
            frame = rows.frame if query.having is None else _having(rows, query.having)
            texts |= {n: quoted(n) for n in rows.extra}
            names = [*names, *rows.extra]
            if query.distinct:
                return frame.selectExpr(*[f"{texts[n]} as {quoted(n)}" for n in names], quoted(END)).distinct().select(*map(quoted, names))
            return frame.selectExpr(*[f"{texts[n]} as {quoted(n)}" for n in names])
        if rows.is_stream and query.kind == "istream" and not query.distinct and query.limit is None:
            present = rows.windows.present(rows.frame).selectExpr("*", f"{quoted(time_of_rows(query.relation))} as {quoted(TIME)}")
            return present.selectExpr(*[f"{texts[n]} as {quoted(n)}" for n in names])
        frame = self._windowed_results(query, rows)
        timed = rows.windows.timed(frame, rows.measure)
        values = {c.name: f"`@v{k}`" for k, c in enumerate(query.columns)} | ({} if time is None else {time: quoted(TIME)})
        timed = self._with_window_columns(query, timed)
        return timed.selectExpr(*[f"{values[n]} as {quoted(n)}" for n in names])

    def _with_window_columns(self, query: Query, timed: Any) -> Any:
        """The frame with those columns of the select list that read the window."""
        for k, column in enumerate(query.columns):
            if f"@v{k}" not in timed.columns:
                timed = timed.selectExpr("*", f"{column.text} as `@v{k}`")
        return timed

    def _windowed_results(self, query: Query, rows: Rows) -> Any:
        """The results per window, as the query turns them into a stream: columns ``@v0`` ... and the windows' numbers."""
        identity = [quoted(n) for n in rows.windows.identity]
        own = [(f"`@v{k}`", c.text) for k, c in enumerate(query.columns) if not _reads_window(c.text)]
        base = [quoted(n) for n in rows.schema.names if any(_reads_window(c.text) and quoted(n) in c.text for c in query.columns)]
        values = [f"{text} as {name}" for name, text in own]
        if rows.is_stream and query.kind == "dstream" and not query.distinct and query.limit is None:
            return rows.windows.leaving(rows.frame).selectExpr(*values, *base, *identity)
        frame = rows.repeated().frame
        if query.having is not None:
            if _reads_window(query.having):
                frame = rows.windows.timed(frame, rows.measure)
            frame = frame.where(query.having)
        order = [(f"`@o{k}`", key) for k, key in enumerate(query.order)]
        needs_time = any(_reads_window(key.text) for _, key in order)
        timed = rows.windows.timed(frame, rows.measure) if needs_time else frame
        frame = timed.selectExpr(*values, *base, *identity, quoted(TICK), *[f"{key.text} as {name}" for name, key in order])
        keys = [name for name, _ in own]
        if query.distinct:
            frame = frame.drop(TICK).distinct()
        if query.limit is not None:
            by = [f"{n} {'desc' if k.descending else 'asc'} nulls {'first' if k.nulls_first else 'last'}" for n, k in order]
            rank = f"row_number() over (partition by {', '.join(identity)} order by {', '.join([*by, *keys]) or identity[0]})"
            frame = frame.selectExpr("*", f"{rank} as `@rank`").where(f"`@rank` <= {query.limit}").drop("@rank")
        if query.kind == "rstream":
            return frame
        if rows.is_stream and not query.distinct:
            keys = [*keys, quoted(TICK)]
        return self._changes(query, frame, [*keys, *base], rows.windows)

    def _changes(self, query: Query, frame: Any, keys: list[str], windows: FrameWindows) -> Any:
        """What is new in a window, or gone, against the window before, as multisets."""
        n = quoted(NUMBER)
        parts = [quoted(p) for p in windows.parts]
        now = frame.selectExpr(*keys, *parts, n, "1L as `@change`")
        before = frame.selectExpr(*keys, *parts, f"{n} + 1L as {n}", "-1L as `@change`")
        F = functions_for(frame)
        net = now.unionByName(before).groupBy(*[F.expr(k) for k in (*keys, *parts, n)]).agg(F.expr("sum(`@change`)").alias("@net"))
        sign = "" if query.kind == "istream" else "-"
        changed = net.where(f"{sign}`@net` > 0").selectExpr("*", f"explode(sequence(1L, {sign}`@net`)) as `@copy`")
        return changed.drop("@net", "@copy")


def _having(rows: Final, condition: str) -> Any:
    """The results for which a condition is true; where there are revisions, one that it has become false for is retracted."""
    if not rows.extra:
        return rows.frame.where(condition)
    others = [quoted(n) for n in rows.frame.columns if n != RETRACTED]
    gone = f"{quoted(RETRACTED)} or not coalesce({condition}, false) as {quoted(RETRACTED)}"
    return rows.frame.selectExpr(*others, gone).where(f"{quoted(REVISION)} > 0 or not {quoted(RETRACTED)}")


def time_of_rows(relation: Relation) -> str:
    """The column with the time of the rows of a projection or selection."""
    if isinstance(relation, Selected):
        return time_of_rows(relation.child)
    assert isinstance(relation, Windowed | Inner)
    return relation.time


def _with_keys(frame: Any, relation: Grouped) -> Any:
    computed = [f"{text} as {quoted(name)}" for name, text in relation.keys if quoted(name) != text]
    return frame.selectExpr("*", *computed) if computed else frame


def _reads_window(text: str) -> bool:
    return any(quoted(name) in text for name in (TIME, START, END))


def _columns_of(window: Window, names: list[str]) -> set[str]:
    """The columns that a window's conditions may read."""
    return {n for n in names if any(n.lower() in text.lower() for text in window.reads)}


def measure_of_streams(relation: Relation) -> Measure:
    """What the streams below a relation are measured in."""
    if isinstance(relation, Windowed):
        return Measure(relation.origin.measure_type)
    return reduce(lambda one, _: one, (measure_of_streams(c) for c in children(relation)))
