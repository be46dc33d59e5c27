"""Checks of stored state before it is used: native kernels index by its values, so none of them may be trusted.

A digest shows that bytes are those that were written, not that sash wrote them. Every function here raises
:class:`~sash.errors.InvalidSnapshot` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.errors import InvalidSnapshot, SashError
from sash.plan.logical import Plan
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]

FARTHEST = FAR_AHEAD >> 1
"""The times of rows lie between this and its negative."""
LARGEST_COUNT = 1 << 40
"""The largest valid count of rows, keys or revisions."""


def damaged(what: str, why: str) -> InvalidSnapshot:
    """The error for state that is not valid."""
    return InvalidSnapshot(f"{what} is damaged: {why}")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """A context in which every error is reported as damage of the state ``what``."""
    try:
        yield
    except InvalidSnapshot:
        raise
    except SashError as error:
        raise damaged(what, str(error)) from error
    except Exception as error:
        raise damaged(
            what, f"it holds something else ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
        ) from error


def whole(value: Any, what: str, low: int = 0, high: int = LARGEST_COUNT) -> int:
    """The value, which must be a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise damaged(what, f"{str(value)[:60]!r} is not a whole number from {low} to {high}")
    return value


def tick(value: Any, what: str) -> int:
    """The value, which must be a point in time, or one that stands for the beginning or the end of time."""
    return whole(value, what, 2 * FAR_BACK, 2 * FAR_AHEAD)


def numbers(values: Any, what: str, *, most: int, low: int = 2 * FAR_BACK, high: int = 2 * FAR_AHEAD) -> Array:
    """A list of whole numbers as an array of no more than ``most``."""
    if not isinstance(values, list) or len(values) > most:
        raise damaged(what, f"there should be a list of at most {most} numbers")
    if not all(type(v) is int and low <= v <= high for v in values):
        raise damaged(what, f"there is a value that is not a whole number from {low} to {high}")
    return np.array(values, np.int64)


def table(stored: pa.Table, what: str) -> pa.Table:
    """The table, whose buffers must be consistent with its types and lengths."""
    try:
        stored.validate(full=True)
    except pa.ArrowException as error:
        raise damaged(what, str(error).splitlines()[0]) from error
    return stored


def like(stored: pa.Table, schema: pa.Schema, what: str) -> pa.Table:
    """The table, which must have just these columns, of these types; they are returned in this order."""
    if sorted(stored.column_names) != sorted(schema.names) or any(stored.schema.field(f.name).type != f.type for f in schema):
        raise damaged(what, "its columns are not those of the query")
    return pa.Table.from_arrays([stored.column(name) for name in schema.names], schema=schema)


def rows(stored: pa.Table, plan: Plan, what: str) -> tuple[pa.Table, Array]:
    """The rows, which must have the columns that a plan reads, and their times, of which none may be missing."""
    checked = like(stored, pa.schema([plan.schema.field(name) for name in plan.reads]), what)
    times = arrow_column(checked.column(plan.time))
    if times.null_count:
        raise damaged(what, "a row has no time")
    ticks = plan.measure.column(times)
    if len(ticks) and not -FARTHEST < int(ticks.min()) <= int(ticks.max()) < FARTHEST:
        raise damaged(what, "a row lies too far away")
    return checked, ticks


def column(stored: pa.Table, name: str, what: str, *, low: int, high: int) -> Array:
    """A column's values, which must be whole numbers within bounds, none missing."""
    if name not in stored.column_names or stored.schema.field(name).type != pa.int64() or stored.column(name).null_count:
        raise damaged(what, f"its column {name!r} is not one of whole numbers")
    values: Array = stored.column(name).to_numpy()
    if len(values) and (int(values.min()) < low or int(values.max()) >= high):
        raise damaged(what, f"its column {name!r} has a value outside of {low} to {high}")
    return values


def keys(columns: list[pa.Array], types: list[pa.DataType], what: str) -> list[pa.Array]:
    """The key columns, which must be of one length and of the query's types."""
    if [c.type for c in columns] != types:
        raise damaged(what, "its keys are of other types")
    if len({len(c) for c in columns}) > 1:
        raise damaged(what, "its keys' columns are not of one length")
    return columns


def no_key_twice(columns: list[pa.Array], what: str) -> None:
    """Raise if a key occurs twice; checked only where all state is read anyway."""
    names = [str(k) for k in range(len(columns))]
    if columns and pa.table(columns, names).group_by(names).aggregate([]).num_rows != len(columns[0]):
        raise damaged(what, "it has a key twice")
