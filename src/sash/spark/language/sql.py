"""Snippets of Spark SQL that frames are built from: names, ticks, edges, blocks of time."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from sash.expressions import Expression
from sash.plan.logical import Plan
from sash.types import FAR_AHEAD, Measure

EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
DAY = 86_400_000_000


def quoted(name: str) -> str:
    """A column's name quoted for SQL."""
    return "`" + name.replace("`", "``") + "`"


def is_column(expression: Expression, schema: pa.Schema) -> bool:
    """Whether an expression is a column and nothing else."""
    if expression.text in schema.names:
        return True
    return isinstance(expression.tree, exp.Column) and len(expression.tree.parts) == 1


def text(value: str) -> str:
    """A string literal of SQL; Spark would take ``${x}`` for a variable."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"


def where(value: str, *conditions: str) -> str:
    """A value where all conditions hold, null elsewhere."""
    known = [c for c in conditions if c]
    return f"case when {' and '.join(known)} then {value} end" if known else value


def ticks(time: str, measure: Measure) -> str:
    """A time column as ticks."""
    column, t = quoted(time), measure.type
    if pa.types.is_timestamp(t):
        return micros(column, t)
    if pa.types.is_date(t):
        return f"cast(unix_date({column}) as bigint)"
    if not pa.types.is_int64(t):
        return f"cast({column} as bigint)"
    far = FAR_AHEAD >> 1
    message = text(f"the time column {time!r} holds a value beyond ±2**61; windows around it cannot be computed in 64 bits")
    return f"if({column} > -{far} and {column} < {far} or {column} is null, {column}, cast(raise_error({message}) as bigint))"


def micros(column: str, t: pa.DataType) -> str:
    """A timestamp's microseconds since the epoch; without a zone from its parts, since Spark's differences use the session's zone."""
    if t.tz is not None:
        return f"unix_micros({column})"
    seconds = f"cast(extract(second from {column}) * 1000000 as bigint)"
    return f"(unix_date(cast({column} as date)) * {DAY}L + hour({column}) * 3600000000L + minute({column}) * 60000000L + {seconds})"


def of_ticks(value: str, measure: Measure) -> str:
    """Ticks as values of the measure's type; values outside of a narrow type are clamped to it."""
    t = measure.type
    if pa.types.is_timestamp(t):
        if t.tz is not None:
            return f"timestamp_micros({value})"
        seconds = f"cast({value} % {DAY}L as decimal(18, 0)) / 1000000"
        return f"({EPOCH} + make_dt_interval(cast({value} div {DAY}L as int), 0, 0, {seconds}))"
    if pa.types.is_date(t):
        return f"date_from_unix_date(cast({value} as int))"
    if pa.types.is_int64(t):
        return value
    name = {8: "tinyint", 16: "smallint", 32: "int"}[t.bit_width]
    far = 1 << (t.bit_width - 1)
    return f"cast(least(greatest({value}, -{far}), {far - 1}) as {name})"


def floor(value: str, step: int, offset: int = 0) -> str:
    """The largest ``offset + k * step`` that is not above ``value``: right before 1970, too."""
    shifted = value if offset == 0 else f"({value} - {offset})"
    return f"({value} - pmod({shifted}, {step}L))"


def start(value: str, plan: Plan) -> str:
    """The start of the window at or before a tick, for a plan with one query."""
    (query,) = plan.queries
    shape = query.shape
    return floor(value, *shape.edge_series[0]) if shape.edge_series else "0L"


def edge(value: str, plan: Plan) -> str:
    """The latest edge of any query at or before a tick."""
    distinct = list(dict.fromkeys(floor(value, *series) for q in plan.queries for series in q.shape.edge_series or ()))
    if not distinct:
        return "0L"
    return distinct[0] if len(distinct) == 1 else f"greatest({', '.join(distinct)})"


def block_of(value: str, length: int) -> str:
    """The number of the block of time that a tick lies in, as :func:`sash.slicing.batch.time_blocks.block_of` has it."""
    return f"({floor(f'({value} + {length // 2}L)', length)} div {length}L)"


def key(plan: Plan) -> list[str]:
    """The key's columns such that equal keys are equal: one zero, one NaN."""
    return [one_of_equals(quoted(name), plan.schema.field(name).type) for name in plan.by]


def one_of_equals(value: str, t: pa.DataType) -> str:
    """A value such that equal ones are identical: one zero, one NaN."""
    return f"if(isnan({value}), double('NaN'), {value} + 0.0D)" if pa.types.is_floating(t) else value
