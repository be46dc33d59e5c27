"""``sash.aggregate`` and ``sash.over`` on a batch frame: how each way of :mod:`sash.plan.spark` becomes a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, InvalidExpression, InvalidType
from sash.expressions import Expression, parse
from sash.functions.call import Call
from sash.plan.logical import QUERY, WINDOW, Column, Plan, calls_of, check_columns, expression_of, output_type
from sash.plan.spark import Blocks, SparkChoice, choose_over, choose_spark
from sash.slicing.blocks import BLOCK
from sash.slicing.fragments import CELL, FIRST, Layout
from sash.slicing.inputs import stored_form
from sash.slicing.results import output_schema
from sash.slicing.trailing import over_names
from sash.spark import sql
from sash.spark.catalyst import STATEMENTS, input_type, unstated
from sash.spark.frames import functions_for
from sash.spark.requests import Request
from sash.spark.tasks import AggregateRows, Assemble, MakeFragments, OverRows, Task, shipped
from sash.spark.types import OPAQUE, arrow_schema, is_uncarried, spark_schema
from sash.windows.base import Everything, Periodic

ROWS_AT_ONCE = 1 << 20
"""A worker holds about this many rows, or slices, at a time."""


@dataclass(frozen=True)
class Prepared:
    """A request over a frame, checked, and turned into one over the columns that matter."""

    frame: Any
    """The columns that matter, expressions computed; rows without a time are gone, but for ``sash.over``."""
    request: Request
    schema: pa.Schema
    plan: Plan
    choice: SparkChoice
    calls: list[Call]
    """The aggregates as they were asked for."""


def prepare(frame: Any, request: Request, asked: str = "auto") -> Prepared:
    """Check a request against a frame's columns, and choose; no job runs."""
    if frame.isStreaming:
        raise InvalidArgument("the frame is a stream; sash does not take streams yet, only batch frames and tables")
    reserved = [name for name in frame.columns if name.startswith(RESERVED)]
    if reserved:
        raise InvalidArgument(f"the frame has a column named {reserved[0]!r}; names that start with {RESERVED!r} are sash's own: rename it")
    schema = arrow_schema(frame.schema)
    check_columns(schema, request.by, request.time, request.order_by)
    calls = calls_of(request.aggs)
    for name in [request.time, *_listed(request.by), *_listed(request.order_by), *(i for c in calls for i in c.inputs)]:
        if name in schema.names:
            _refuse(schema.field(name).type, frame.schema, name)
    narrow, narrowed, schema = _narrowed(frame, request, calls, schema)
    plan = narrowed.plan(schema)
    if request.trailing:
        names = [*frame.columns, *(name for group in over_names(replace(plan, schema=_like(schema, frame))) for name in group)]
        choice = choose_over(plan)
    else:
        names = output_schema(plan).names
        forms = [stored_form(c, schema) for c in plan.columns]
        choice = choose_spark(replace(plan, columns=_as_asked(plan, calls)), forms, [unstated(c) for c in plan.columns], asked)
    _check_case(frame, names)
    return Prepared(narrow, narrowed, schema, plan, choice, calls)


RESERVED = "@sash:"


def _as_asked(plan: Plan, calls: list[Call]) -> tuple[Column, ...]:
    """The columns, with the calls as users know them."""
    return tuple(replace(c, call=call) for c, call in zip(plan.columns, calls, strict=True))


def _like(schema: pa.Schema, frame: Any) -> pa.Schema:
    """The frame's own columns of a schema."""
    return pa.schema([schema.field(k) for k in range(len(frame.columns))])


def _check_case(frame: Any, names: list[str]) -> None:
    """Spark does not tell cases apart, unless it is told to."""
    if str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    own = {name for name in frame.columns if names[: len(frame.columns)] == frame.columns}
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name and not (name in own and other in own):
            raise InvalidArgument(
                f"the result would have columns named {other!r} and {name!r}, which Spark does not tell apart; use .alias(...)"
            )


def _refuse(t: pa.DataType, given: Any, name: str) -> None:
    if t == OPAQUE or pa.types.is_null(t):
        shown = given[name].dataType.simpleString()
        raise InvalidType(f"column {name!r} has the type {shown}, which sash cannot read; cast it, or leave it out")


def _listed(given: Any) -> list[Any]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _narrowed(frame: Any, request: Request, calls: list[Call], schema: pa.Schema) -> tuple[Any, Request, pa.Schema]:
    """The columns that matter, and the request over them: what an expression means is computed by Spark, once, in a column of its own."""
    own = frame.columns if request.trailing else list(dict.fromkeys([*_listed(request.by), request.time, *_listed(request.order_by)]))
    found: dict[str, str] = {}
    computed: dict[str, str] = {}

    def named(expression: Expression, text: str) -> str:
        """The column that has an expression's value: one of the frame's, or a new one."""
        names = expression.columns(schema)
        if sql.is_column(expression, schema) and text == expression.spark_sql():
            if names[0] not in own:
                found.setdefault(names[0], sql.quoted(names[0]))
            return names[0]
        return computed.setdefault(text, f"{RESERVED}x{len(computed)}")

    rewritten = []
    for call in calls:
        condition = None if call.condition is None else expression_of(call.condition, schema)
        inputs = []
        for e in (expression_of(text, schema) for text in call.inputs):
            text = e.spark_sql()
            if condition is not None and not sql.is_column(e, schema):
                # Where the condition does not hold, the expression is not asked for: it may have no value there.
                text = f"case when {condition.spark_sql()} then {text} end"
            inputs.append(named(e, text))
        known = None if condition is None else named(condition, condition.spark_sql())
        rewritten.append(replace(call, inputs=tuple(inputs), condition=known, given_alias=call.name))
    found |= {name: text for text, name in computed.items()}
    windows = request.windows.values() if isinstance(request.windows, dict) else [request.windows]
    for text in (text for w in windows for text in getattr(w, "reads", ()) if text not in own):
        found.setdefault(text, sql.quoted(text) if text in frame.columns else parse(text).spark_sql())
    columns = ["*"] if request.trailing else [sql.quoted(name) for name in own]
    narrow = frame if request.trailing else frame.where(f"{sql.quoted(request.time)} is not null")
    try:
        narrow = narrow.selectExpr(*columns, *[f"{text} as {sql.quoted(name)}" for name, text in found.items()])
        result = arrow_schema(narrow.schema)
    except Exception as error:
        if type(error).__name__ not in ("AnalysisException", "ParseException"):
            raise
        reason = str(error).partition(" SQLSTATE")[0].partition(";\n")[0]
        raise InvalidExpression(f"Spark does not take an expression among {', '.join(found.values())}: {reason}") from None
    for call, made in zip(calls, rewritten, strict=True):
        if made.condition is not None and not pa.types.is_boolean(result.field(made.condition).type):
            t = result.field(made.condition).type
            raise InvalidArgument(f"where {call.condition!r} must be true or false for each row; it is {t}")
    texts = {name: text for text, name in computed.items()}
    for name in found:
        if result.field(name).type == OPAQUE or pa.types.is_null(result.field(name).type):
            t = narrow.schema[name].dataType.simpleString()
            raise InvalidType(f"{texts.get(name, name)!r} has the type {t}, which sash cannot read; cast it")
    return narrow, replace(request, aggs=rewritten), result


def aggregate_frame(frame: Any, request: Request, asked: str = "auto") -> Any:
    """The frame of all windows; ``asked`` names a plan."""
    prepared = prepare(frame, request, asked)
    return WAYS[prepared.choice.way](prepared)


# Spark's own aggregation, where a window is a slice.


def plain(prepared: Prepared) -> Any:
    """Windows that lie apart: one aggregation by key and window."""
    plan, F = prepared.plan, functions_for(prepared.frame)
    (query,) = plan.queries
    shape = query.shape
    sliced = _sliced(prepared)
    if isinstance(shape, Periodic) and shape.size < shape.every:
        sliced = sliced.where(f"{sql.quoted(TICK)} < {sql.quoted(CELL)} + {shape.size}L")
    results = [
        F.expr(STATEMENTS[c.call.aggregate.name].result(sql.quoted(_input(k)), input_type(c))).alias(_result(k))
        for k, c in enumerate(plan.columns)
    ]
    grouped = sliced.groupBy(*_keys(F, plan), F.expr(sql.quoted(CELL))).agg(*results)
    start = sql.quoted(CELL)
    if isinstance(shape, Everything):
        ends = [f"cast(null as {_type_name(plan)})"] * 2
    else:
        ends = [sql.of_ticks(f"({start} + {move}L)", plan.measure) for move in (0, shape.size)]
    columns = [F.lit(query.name).alias(QUERY)] if plan.named else []
    columns += _keys(F, plan)
    columns.append(F.expr(f"named_struct('start', {ends[0]}, 'end', {ends[1]})").alias(WINDOW))
    columns += [F.expr(sql.quoted(_result(k))).alias(c.call.name) for k, c in enumerate(plan.columns)]
    return grouped.select(*columns)


def _type_name(plan: Plan) -> str:
    return str(spark_schema(pa.schema([pa.field("t", plan.measure.type)]))["t"].dataType.simpleString())


TICK = "@sash:tick"


def _input(k: int) -> str:
    return f"@sash:in{k}"


def _result(k: int) -> str:
    return f"@sash:out{k}"


def _keys(F: Any, plan: Plan) -> list[Any]:
    return [F.expr(sql.quoted(name)) for name in plan.by]


def _sliced(prepared: Prepared) -> Any:
    """Rows with their key, tick, edge, and each aggregate's input, null where the row does not count."""
    plan = prepared.plan
    columns = [sql.quoted(name) for name in plan.by]
    columns.append(f"{sql.ticks(plan.time, plan.measure)} as {sql.quoted(TICK)}")
    columns += [f"{_counted(c)} as {sql.quoted(_input(k))}" for k, c in enumerate(plan.columns)]
    edge = sql.start(sql.quoted(TICK), plan) if prepared.choice.way == "plain" else sql.edge(sql.quoted(TICK), plan)
    return prepared.frame.selectExpr(*columns).selectExpr("*", f"{edge} as {sql.quoted(CELL)}")


def _counted(column: Column) -> str:
    """An aggregate's input where its condition holds, null elsewhere."""
    value = sql.quoted(column.inputs[0].text) if column.inputs else "1"
    return value if column.condition is None else f"case when {sql.quoted(column.condition.text)} then {value} end"


# Slices in Catalyst, windows in Arrow.


def catalyst(prepared: Prepared) -> Any:
    """Partials per key and slice by Spark's own aggregation, before and behind its shuffle."""
    plan, F = prepared.plan, functions_for(prepared.frame)
    layout = Layout.of(plan)
    fields: dict[str, str] = {}
    for k, column in enumerate(plan.columns):
        x = sql.quoted(_input(k))
        fields.setdefault(layout.held[k], f"count({x})")
        stated = STATEMENTS[column.call.aggregate.name].partial(x, input_type(column))
        fields |= dict(zip(layout.states[k], stated, strict=True))
    partials = [F.expr(text).alias(name) for name, text in fields.items()]
    slices = _sliced(prepared).groupBy(*_keys(F, plan), F.expr(sql.quoted(CELL))).agg(*partials)
    return _assembled(prepared, slices, sql.quoted(CELL))


def _assembled(prepared: Prepared, slices: Any, position: str) -> Any:
    blocks = prepared.choice.blocks
    if blocks is not None:
        slices = _in_blocks(slices, position, -(blocks.halo - 1), 0, blocks.length)
    gathered = _gathered(slices, prepared.plan, blocks)
    task = Assemble(prepared.request, prepared.schema, None if blocks is None else blocks.length, ROWS_AT_ONCE)
    return _mapped(gathered, task, spark_schema(output_schema(prepared.plan)))


def _in_blocks(frame: Any, position: str, back: int, ahead: int, length: int) -> Any:
    """Each row once for every block that needs it."""
    low, high = (f"coalesce({sql.block_of(f'({position} + {move}L)', length)}, 0L)" for move in (back, ahead))
    return frame.selectExpr("*", f"explode(sequence({low}, {high})) as {sql.quoted(BLOCK)}")


def _gathered(frame: Any, plan: Plan, blocks: Blocks | None) -> Any:
    """A key's rows (or a block's) in one partition."""
    F = functions_for(frame)
    apart = [*sql.key(plan), *([] if blocks is None else [sql.quoted(BLOCK)])]
    return frame.repartition(*[F.expr(text) for text in apart]) if apart else frame.repartition(1)


def _mapped(frame: Any, task: Task, schema: Any) -> Any:
    numbered = frame.toDF(*[f"c{k}" for k in range(len(frame.columns))])
    return numbered.mapInArrow(shipped(task, frame.columns), schema)


# Slices in Arrow, before the shuffle.


def fragments(prepared: Prepared) -> Any:
    """Partials per key and slice of each partition, by the same kernels as a table's."""
    layout = Layout.of(prepared.plan)
    slices = _mapped(prepared.frame, MakeFragments(prepared.request, prepared.schema, ROWS_AT_ONCE), spark_schema(layout.schema))
    return _assembled(prepared, slices, sql.quoted(FIRST if layout.timed else CELL))


# Rows, sorted.


def rows(prepared: Prepared) -> Any:
    """Rows by key and time; windows are cut from them."""
    narrow, plan, blocks = prepared.frame, prepared.plan, prepared.choice.blocks
    position = f"({sql.ticks(plan.time, plan.measure)})"
    if blocks is not None:
        narrow = _in_blocks(narrow, position, -(blocks.halo - 1), 0, blocks.length)
    gathered = _gathered(narrow, plan, blocks)
    task = AggregateRows(prepared.request, prepared.schema, None if blocks is None else blocks.length, ROWS_AT_ONCE)
    return _mapped(gathered, task, spark_schema(output_schema(plan)))


def over_frame(frame: Any, request: Request) -> Any:
    """Every row with the aggregates of its trailing windows."""
    from pyspark.sql.types import StructField, StructType

    prepared = prepare(frame, request)
    for f in frame.schema.fields:
        if is_uncarried(f.dataType):
            t = f.dataType.simpleString()
            raise InvalidType(f"column {f.name!r} has the type {t}, which Spark cannot send to Python; drop it, or cast it")
    narrow, plan, blocks = prepared.frame, prepared.plan, prepared.choice.blocks
    position = f"({sql.ticks(plan.time, plan.measure)})"
    if blocks is not None:
        narrow = _in_blocks(narrow, position, 0, blocks.halo - 1, blocks.length)
    gathered = _gathered(narrow, plan, blocks)
    names = over_names(replace(plan, schema=_like(prepared.schema, frame)))
    new = [(names[k][w], output_type(c)) for w in range(len(plan.queries)) for k, c in enumerate(plan.columns)]
    columns = (*frame.columns, *(name for name, _ in new))
    task = OverRows(prepared.request, prepared.schema, None if blocks is None else blocks.length, ROWS_AT_ONCE, columns)
    added = spark_schema(pa.schema([pa.field(n, t) for n, t in new])).fields
    result = StructType([*(StructField(f.name, f.dataType, f.nullable) for f in frame.schema.fields), *added])
    return _mapped(gathered, task, result)


WAYS = {"plain": plain, "catalyst": catalyst, "fragments": fragments, "rows": rows}
