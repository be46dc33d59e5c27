"""``sash.aggregate`` and ``sash.over`` on a batch frame: how each strategy of :mod:`sash.plan.choices.spark_choice` becomes a frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sash.plan.choices.spark_choice import Blocks, Strategy
from sash.plan.logical import QUERY, WINDOW, Column, Plan
from sash.plan.request import Request
from sash.slicing.batch.fragments import CELL, FIRST, Layout
from sash.slicing.batch.results import output_schema
from sash.slicing.batch.time_blocks import BLOCK
from sash.spark import needs
from sash.spark.batch.glance import either
from sash.spark.batch.prepare import Prepared, check_carried, over_schema, prepare
from sash.spark.language import sql
from sash.spark.language.catalyst import CATALYST_AGGREGATES, input_type
from sash.spark.language.native import Rows, native_expression
from sash.spark.language.spark_frames import TIME_WINDOW, functions_for, selected, with_metadata
from sash.spark.language.spark_types import spark_schema
from sash.spark.workers.batch_tasks import AggregateRows, Assemble, MakeFragments, OverRows, worker_function
from sash.spark.workers.own_code import own_code

ROWS_AT_ONCE = 1 << 20
"""A worker reads at least this many rows, or slices, into memory at once, if the partition has as many."""
MORE_AT_ONCE = 4
"""Up to this many times ``ROWS_AT_ONCE`` where rows become few windows: a partition that fits into memory is not sorted on disk."""
MOST_PER_ROW = 24
"""``ROWS_AT_ONCE`` rows may become this many windows each; the fewer windows a row is in, the more rows are read at once."""


def aggregate_frame(frame: Any, request: Request, requested: str = "auto") -> Any:
    """The frame of all windows; ``requested`` names a strategy."""
    needs.check(needs.BATCH, "a batch on Spark")
    prepared = prepare(frame, request, requested)
    strategy = STRATEGIES[prepared.decision.choice]
    if prepared.decision.or_rows:
        result = either(
            prepared.frame, prepared.plan, lambda f: strategy(replace(prepared, frame=f)), lambda f: rows(replace(prepared, frame=f))
        )
    else:
        result = strategy(prepared)
    return with_metadata(result, WINDOW, TIME_WINDOW) if pa.types.is_timestamp(prepared.plan.measure.type) else result


def rows_at_once(plan: Plan) -> int:
    """How many rows, or slices, a worker has in memory at once."""
    windows = MOST_PER_ROW if plan.empty else sum(q.shape.windows_per_row or MOST_PER_ROW for q in plan.queries)
    return ROWS_AT_ONCE * max(1, min(MORE_AT_ONCE, MOST_PER_ROW // windows))


# Spark's own aggregation, where every window is one slice.


def plain(prepared: Prepared) -> Any:
    """Windows that do not overlap: one aggregation by key and window."""
    plan, F = prepared.plan, functions_for(prepared.frame)
    (query,) = plan.queries
    shape = query.shape
    sliced = _placed(prepared)
    size = shape.longest or 0
    if shape.leaves_gaps:
        sliced = sliced.where(f"{sql.quoted(TICK)} < {sql.quoted(CELL)} + {size}L")
    rows = Rows(sql.quoted(TICK), plan.order_by, sql.quoted(CELL), size, bool(plan.by))
    results = [F.expr(native_expression(c, rows)).alias(_result(k)) for k, c in enumerate(plan.columns)]
    grouped = sliced.groupBy(*_keys(F, plan), F.expr(sql.quoted(CELL))).agg(*results)
    start = sql.quoted(CELL)
    if shape.is_whole:
        ends = [f"cast(null as {_type_name(plan)})"] * 2
    else:
        ends = [sql.of_ticks(f"({start} + {move}L)", plan.measure) for move in (0, size)]
    columns = [(sql.text(query.name), QUERY)] if plan.named else []
    columns += [(sql.quoted(name), name) for name in plan.by]
    columns.append((f"named_struct('start', {ends[0]}, 'end', {ends[1]})", WINDOW))
    columns += [(sql.quoted(_result(k)), c.call.name) for k, c in enumerate(plan.columns)]
    return selected(grouped, columns)


def _type_name(plan: Plan) -> str:
    return str(spark_schema(pa.schema([pa.field("t", plan.measure.type)]))["t"].dataType.simpleString())


TICK = "@sash:tick"


def _input(k: int) -> str:
    return f"@sash:in{k}"


def _result(k: int) -> str:
    return f"@sash:out{k}"


def _keys(F: Any, plan: Plan) -> list[Any]:
    return [F.expr(sql.quoted(name)) for name in plan.by]


def _placed(prepared: Prepared) -> Any:
    """The rows with their tick and the start of their window."""
    plan = prepared.plan
    tick = sql.ticks(plan.time, plan.measure)
    return prepared.frame.selectExpr("*", f"{tick} as {sql.quoted(TICK)}", f"{sql.start(tick, plan)} as {sql.quoted(CELL)}")


def _sliced(prepared: Prepared) -> Any:
    """Rows with their key, tick, edge, and each aggregate's input, null where the row does not count."""
    plan = prepared.plan
    columns = [sql.quoted(name) for name in plan.by]
    columns.append(f"{sql.ticks(plan.time, plan.measure)} as {sql.quoted(TICK)}")
    columns += [f"{_counted(c)} as {sql.quoted(_input(k))}" for k, c in enumerate(plan.columns)]
    return prepared.frame.selectExpr(*columns).selectExpr("*", f"{sql.edge(sql.quoted(TICK), plan)} as {sql.quoted(CELL)}")


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
        fields.setdefault(layout.count_columns[k], f"count({x})")
        texts = CATALYST_AGGREGATES[column.call.aggregate.name].partial(x, input_type(column))
        fields |= dict(zip(layout.states[k], texts, strict=True))
    partials = [F.expr(text).alias(name) for name, text in fields.items()]
    slices = _sliced(prepared).groupBy(*_keys(F, plan), F.expr(sql.quoted(CELL))).agg(*partials)
    return _assembled(prepared, slices, sql.quoted(CELL))


def _assembled(prepared: Prepared, slices: Any, position: str) -> Any:
    blocks = prepared.decision.blocks
    if blocks is not None:
        slices = _in_blocks(slices, position, -(blocks.halo - 1), 0, blocks.length)
    gathered = _gathered(slices, prepared.plan, blocks)
    task = Assemble(prepared.request, prepared.schema, None if blocks is None else blocks.length, rows_at_once(prepared.plan))
    return _mapped(gathered, task, spark_schema(output_schema(prepared.plan)))


def _in_blocks(frame: Any, position: str, back: int, ahead: int, length: int) -> Any:
    """The frame with each row once for every block that needs it."""
    low, high = (f"coalesce({sql.block_of(f'({position} + {move}L)', length)}, 0L)" for move in (back, ahead))
    return frame.selectExpr("*", f"explode(sequence({low}, {high})) as {sql.quoted(BLOCK)}")


def _gathered(frame: Any, plan: Plan, blocks: Blocks | None) -> Any:
    """The frame repartitioned, so that a key's rows (or a block's) are in one partition."""
    F = functions_for(frame)
    apart = [*sql.key(plan), *([] if blocks is None else [sql.quoted(BLOCK)])]
    return frame.repartition(*[F.expr(text) for text in apart]) if apart else frame.repartition(1)


def _mapped(frame: Any, task: MakeFragments | Assemble | AggregateRows | OverRows, schema: Any) -> Any:
    numbered = frame.toDF(*[f"c{k}" for k in range(len(frame.columns))])
    return numbered.mapInArrow(worker_function(task, frame.columns, own_code(task.request)), schema)


# Slices in Arrow, before the shuffle.


def fragments(prepared: Prepared) -> Any:
    """Partials per key and slice of each partition, by the same kernels as a table's."""
    layout = Layout.of(prepared.plan)
    slices = _mapped(prepared.frame, MakeFragments(prepared.request, prepared.schema, ROWS_AT_ONCE), spark_schema(layout.schema))
    return _assembled(prepared, slices, sql.quoted(FIRST if layout.timed else CELL))


# Rows, sorted.


def rows(prepared: Prepared) -> Any:
    """Rows shuffled by key and sorted by time; the worker cuts windows from them."""
    narrow, plan, blocks = prepared.frame, prepared.plan, prepared.decision.blocks
    position = f"({sql.ticks(plan.time, plan.measure)})"
    if blocks is not None:
        narrow = _in_blocks(narrow, position, -(blocks.halo - 1), 0, blocks.length)
    gathered = _gathered(narrow, plan, blocks)
    task = AggregateRows(prepared.request, prepared.schema, None if blocks is None else blocks.length, rows_at_once(plan))
    return _mapped(gathered, task, spark_schema(output_schema(plan)))


def over_frame(frame: Any, request: Request) -> Any:
    """Every row with the aggregates of its trailing windows."""
    needs.check(needs.BATCH, "a batch on Spark")
    prepared = prepare(frame, request)
    check_carried(frame)
    narrow, plan, blocks = prepared.frame, prepared.plan, prepared.decision.blocks
    position = f"({sql.ticks(plan.time, plan.measure)})"
    if blocks is not None:
        narrow = _in_blocks(narrow, position, 0, blocks.halo - 1, blocks.length)
    gathered = _gathered(narrow, plan, blocks)
    result = over_schema(frame, plan)
    task = OverRows(prepared.request, prepared.schema, None if blocks is None else blocks.length, rows_at_once(plan), tuple(result.names))
    return _mapped(gathered, task, result)


STRATEGIES: dict[Strategy, Callable[[Prepared], Any]] = {"plain": plain, "catalyst": catalyst, "fragments": fragments, "rows": rows}
