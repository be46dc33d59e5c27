"""``sash.aggregate`` and ``sash.over`` on a batch frame: how each way of :mod:`sash.plan.spark` becomes a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, InvalidType
from sash.expressions import Expression, parse
from sash.functions.call import Call
from sash.plan.logical import QUERY, WINDOW, Column, Plan, output_type
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
from sash.spark.types import OPAQUE, UNCARRIED, arrow_schema, spark_schema
from sash.windows.base import Everything, Periodic

ROWS_AT_ONCE = 1 << 20
"""A worker holds about this many rows, or slices, at a time."""


@dataclass(frozen=True)
class Prepared:
    """A request over a frame, checked: the frame's own plan, and which way it goes."""

    frame: Any
    request: Request
    plan: Plan
    choice: SparkChoice


def prepare(frame: Any, request: Request, asked: str = "auto") -> Prepared:
    """Check a request against a frame's columns, and choose; no job runs."""
    if frame.isStreaming:
        raise InvalidArgument("the frame is a stream; sash does not take streams yet, only batch frames and tables")
    schema = arrow_schema(frame.schema)
    _refuse_opaque(schema, frame.schema, request)
    plan = request.plan(schema)
    if request.trailing:
        over_names(plan)
        return Prepared(frame, request, plan, choose_over(plan))
    output_schema(plan)
    forms = [stored_form(c, schema) for c in plan.columns]
    return Prepared(frame, request, plan, choose_spark(plan, forms, [unstated(c) for c in plan.columns], asked))


def _refuse_opaque(schema: pa.Schema, given: Any, request: Request) -> None:
    aggs = request.aggs if isinstance(request.aggs, list | tuple) else [request.aggs]
    names: list[Any] = [request.time, *_listed(request.by), *_listed(request.order_by)]
    names += [name for a in aggs if isinstance(a, Call) for name in a.inputs]
    for name in names:
        if isinstance(name, str) and name in schema.names and schema.field(name).type == OPAQUE:
            t = given[name].dataType.simpleString()
            raise InvalidType(f"column {name!r} has the type {t}, which sash cannot read; cast it, or leave it out")


def _listed(given: Any) -> list[Any]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


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
    columns = [f"{sql.text(query.name)} as {QUERY}"] if plan.named else []
    columns += [sql.quoted(name) for name in plan.by]
    columns.append(f"named_struct('start', {ends[0]}, 'end', {ends[1]}) as {WINDOW}")
    columns += [f"{sql.quoted(_result(k))} as {sql.quoted(c.call.name)}" for k, c in enumerate(plan.columns)]
    return grouped.selectExpr(*columns)


def _type_name(plan: Plan) -> str:
    return str(spark_schema(pa.schema([pa.field("t", plan.measure.type)]))["t"].dataType.simpleString())


TICK = "@tick"


def _input(k: int) -> str:
    return f"@in{k}"


def _result(k: int) -> str:
    return f"@out{k}"


def _keys(F: Any, plan: Plan) -> list[Any]:
    return [F.expr(sql.quoted(name)) for name in plan.by]


def _sliced(prepared: Prepared) -> Any:
    """Rows with their key, tick, edge, and each aggregate's input, null where the row does not count."""
    plan = prepared.plan
    timed = prepared.frame.where(f"{sql.quoted(plan.time)} is not null")
    columns = [sql.quoted(name) for name in plan.by]
    columns.append(f"{sql.ticks(plan.time, plan.measure)} as {sql.quoted(TICK)}")
    columns += [f"{_counted(c, next(iter(c.inputs), None))} as {sql.quoted(_input(k))}" for k, c in enumerate(plan.columns)]
    edge = sql.start(sql.quoted(TICK), plan) if prepared.choice.way == "plain" else sql.edge(sql.quoted(TICK), plan)
    return timed.selectExpr(*columns).selectExpr("*", f"{edge} as {sql.quoted(CELL)}")


def _counted(column: Column, expression: Expression | None) -> str:
    """An input where the aggregate's condition holds, null elsewhere."""
    value = "1" if expression is None else expression.spark_sql()
    return value if column.condition is None else f"case when {column.condition.spark_sql()} then {value} end"


# Slices in Catalyst, windows in Arrow.


def catalyst(prepared: Prepared) -> Any:
    """Partials per key and slice by Spark's own aggregation, before and behind its shuffle."""
    frame, plan, F = prepared.frame, prepared.plan, functions_for(prepared.frame)
    layout = Layout.of(plan)
    fields: dict[str, str] = {}
    for k, column in enumerate(plan.columns):
        x = sql.quoted(_input(k))
        fields.setdefault(layout.held[k], f"count({x})")
        stated = STATEMENTS[column.call.aggregate.name].partial(x, input_type(column))
        fields |= dict(zip(layout.states[k], stated, strict=True))
    partials = [F.expr(text).alias(name) for name, text in fields.items()]
    slices = _sliced(prepared).groupBy(*_keys(F, plan), F.expr(sql.quoted(CELL))).agg(*partials)
    narrow = arrow_schema(frame.schema)
    return _assembled(prepared, slices, prepared.request, narrow, sql.quoted(CELL))


def _assembled(prepared: Prepared, slices: Any, request: Request, schema: pa.Schema, position: str) -> Any:
    blocks = prepared.choice.blocks
    if blocks is not None:
        slices = _in_blocks(slices, position, -(blocks.halo - 1), 0, blocks.length)
    gathered = _gathered(slices, prepared.plan, blocks)
    task = Assemble(request, schema, None if blocks is None else blocks.length, ROWS_AT_ONCE)
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
    narrow, request, schema = _narrowed(prepared)
    layout = Layout.of(request.plan(schema))
    slices = _mapped(narrow, MakeFragments(request, schema, ROWS_AT_ONCE), spark_schema(layout.schema))
    return _assembled(prepared, slices, request, schema, sql.quoted(FIRST if layout.timed else CELL))


def _narrowed(prepared: Prepared, *, all_columns: bool = False) -> tuple[Any, Request, pa.Schema]:
    """The columns that matter, and the request over them: what an expression means is computed by Spark, once, in a column of its own."""
    frame, plan = prepared.frame, prepared.plan
    names = frame.columns if all_columns else list(dict.fromkeys([*plan.by, plan.time, *plan.order_by]))
    found = {name: sql.quoted(name) for name in names}
    calls = []
    for column in plan.columns:
        inputs = []
        for e in column.inputs:
            text, name = e.spark_sql(), e.text
            if name not in frame.columns and column.condition is not None:
                # Where the condition does not hold, the expression is not asked for: it may have no value there.
                name, text = f"{e.text} where {column.condition.text}", _counted(column, e)
            found.setdefault(name, text)
            inputs.append(name)
        if column.condition is not None:
            found.setdefault(column.condition.text, column.condition.spark_sql())
        calls.append(replace(column.call, inputs=tuple(inputs), given_alias=column.call.name))
    for text in (text for q in plan.queries for text in q.window.reads):
        found.setdefault(text, sql.quoted(text) if text in frame.columns else parse(text).spark_sql())
    narrow = frame if all_columns else frame.where(f"{sql.quoted(plan.time)} is not null")
    narrow = narrow.selectExpr(*[f"{text} as {sql.quoted(name)}" for name, text in found.items()])
    schema = arrow_schema(narrow.schema)
    for name in found.keys() - set(names):
        if schema.field(name).type == OPAQUE:
            t = narrow.schema[name].dataType.simpleString()
            raise InvalidType(f"{name!r} has the type {t}, which sash cannot read; cast it")
    return narrow, replace(prepared.request, aggs=calls), schema


# Rows, sorted.


def rows(prepared: Prepared) -> Any:
    """Rows by key and time; windows are cut from them."""
    narrow, request, schema = _narrowed(prepared)
    plan, blocks = prepared.plan, prepared.choice.blocks
    position = f"({sql.ticks(plan.time, plan.measure)})"
    if blocks is not None:
        narrow = _in_blocks(narrow, position, -(blocks.halo - 1), 0, blocks.length)
    gathered = _gathered(narrow, plan, blocks)
    task = AggregateRows(request, schema, None if blocks is None else blocks.length, ROWS_AT_ONCE)
    return _mapped(gathered, task, spark_schema(output_schema(plan)))


def over_frame(frame: Any, request: Request) -> Any:
    """Every row with the aggregates of its trailing windows."""
    from pyspark.sql.types import StructField, StructType

    prepared = prepare(frame, request)
    for f in frame.schema.fields:
        if isinstance(f.dataType, UNCARRIED):
            raise InvalidType(
                f"column {f.name!r} has the type {f.dataType.simpleString()}, which Spark cannot send to Python; drop or cast it"
            )
    narrow, request, schema = _narrowed(prepared, all_columns=True)
    plan, blocks = prepared.plan, prepared.choice.blocks
    position = f"({sql.ticks(plan.time, plan.measure)})"
    if blocks is not None:
        narrow = _in_blocks(narrow, position, 0, blocks.halo - 1, blocks.length)
    gathered = _gathered(narrow, plan, blocks)
    names = over_names(plan)
    new = [(names[k][w], output_type(c)) for w in range(len(plan.queries)) for k, c in enumerate(plan.columns)]
    columns = (*frame.columns, *(name for name, _ in new))
    task = OverRows(request, schema, None if blocks is None else blocks.length, ROWS_AT_ONCE, columns)
    added = spark_schema(pa.schema([pa.field(n, t) for n, t in new])).fields
    result = StructType([*(StructField(f.name, f.dataType, f.nullable) for f in frame.schema.fields), *added])
    return _mapped(gathered, task, result)


WAYS = {"plain": plain, "catalyst": catalyst, "fragments": fragments, "rows": rows}
