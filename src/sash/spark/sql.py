"""The pieces of Spark SQL that frames are built from: names, ticks, edges, blocks of time."""

from __future__ import annotations

import pyarrow as pa

from sash.plan.logical import Plan
from sash.types import FAR_AHEAD, Measure
from sash.windows.base import Periodic

ORDER = "@order"
TIME_BITS = 43
"""In :data:`ORDER` the lower bits are time, the upper ones a hash of the key: one sort of 64-bit numbers groups and orders rows."""
HASH_MASK = (1 << 20) - 1
EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def quoted(name: str) -> str:
    """A column's name as it stands in SQL."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """Text as it stands in SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def ticks(time: str, measure: Measure) -> str:
    """A time column as ticks."""
    column, t = quoted(time), measure.type
    if pa.types.is_timestamp(t):
        return f"unix_micros({column})" if t.tz is not None else f"timestampdiff(MICROSECOND, {EPOCH}, {column})"
    if pa.types.is_date(t):
        return f"cast(unix_date({column}) as bigint)"
    if not pa.types.is_int64(t):
        return f"cast({column} as bigint)"
    far = FAR_AHEAD >> 1
    message = text(f"the time column {time!r} holds a value beyond ±2**61; windows around it cannot be reckoned in 64 bits")
    return f"if({column} > -{far} and {column} < {far} or {column} is null, {column}, cast(raise_error({message}) as bigint))"


def of_ticks(value: str, measure: Measure) -> str:
    """Ticks as values of the measure's type; a narrow type's nearest value stands for what lies outside."""
    t = measure.type
    if pa.types.is_timestamp(t):
        return f"timestamp_micros({value})" if t.tz is not None else f"timestampadd(MICROSECOND, {value}, {EPOCH})"
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
    """Where the only query's window starts that a tick lies in or behind."""
    (query,) = plan.queries
    shape = query.shape
    return floor(value, shape.every, shape.offset % shape.every) if isinstance(shape, Periodic) else "0L"


def edge(value: str, plan: Plan) -> str:
    """The latest edge of any query at or before a tick: the greatest of each query's own."""
    found: list[str] = []
    for shape in (q.shape for q in plan.queries):
        if isinstance(shape, Periodic):
            found.append(floor(value, shape.every, shape.offset % shape.every))
            if shape.size % shape.every:
                found.append(floor(value, shape.every, (shape.offset + shape.size) % shape.every))
    distinct = list(dict.fromkeys(found))
    if not distinct:
        return "0L"
    return distinct[0] if len(distinct) == 1 else f"greatest({', '.join(distinct)})"


def block_of(value: str, length: int) -> str:
    """The number of the block of time that a tick lies in."""
    return f"({floor(value, length)} div {length}L)"


def key_hash(plan: Plan, *more: str) -> str:
    """A hash under which equal keys are equal: one zero, one NaN."""
    parts = []
    for name in plan.by:
        column = quoted(name)
        if pa.types.is_floating(plan.schema.field(name).type):
            column = f"if(isnan({column}), double('NaN'), {column} + 0.0D)"
        parts.append(column)
    return f"xxhash64({', '.join([*parts, *more])})" if parts or more else "0L"


def order(plan: Plan, value: str, *more: str) -> str:
    """What rows are grouped and sorted by: a hash of the key (and its block), then time as finely as the bits allow."""
    half = 1 << (TIME_BITS - 1)
    shift = order_shift(plan.measure)
    time = f"least(greatest(shiftright({value}, {shift}) + {half}L, 0L), {(1 << TIME_BITS) - 1}L)"
    return f"shiftleft({key_hash(plan, *more)} & {HASH_MASK}L, {TIME_BITS}) | coalesce({time}, 0L)"


def order_shift(measure: Measure) -> int:
    """How many of a tick's lowest bits :func:`order` leaves out: none but of microseconds, which are told apart by the thousand."""
    return 10 if pa.types.is_timestamp(measure.type) else 0


def group_of(column: str = ORDER) -> str:
    """The hash in :data:`ORDER`."""
    return f"shiftright({quoted(column)}, {TIME_BITS})"


def order_floor(measure: Measure, value: int) -> int | None:
    """No row that sorts at or behind ``value`` is older than this tick; None if that cannot be said."""
    part = value & ((1 << TIME_BITS) - 1)
    if part == 0:
        return None
    return (part - (1 << (TIME_BITS - 1))) << order_shift(measure)
