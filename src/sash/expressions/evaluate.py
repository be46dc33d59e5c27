"""Evaluates a typed tree over an Arrow table."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression, UndefinedValue
from sash.expressions.arrays import all_valid, valid
from sash.expressions.casts import attempt
from sash.expressions.coercion import INT16, INT32, INT64, NULL, name_of
from sash.expressions.nodes import Call, Cast, Constant, Field, Node
from sash.expressions.table import Datum


def evaluate(node: Node, table: pa.Table, text: str) -> pa.Array:
    """The value for each row."""
    if table.num_rows == 0:
        return pa.array([], node.type)
    try:
        value = Evaluation(table).of(node)
    except InvalidExpression as error:
        raise type(error)(f"{error} (in {text!r})") from error
    except pa.ArrowCapacityError as error:
        raise UndefinedValue(f"the text is longer than a column can hold (in {text!r})") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidExpression(f"{text!r} cannot be computed: {str(error).splitlines()[0]}") from error
    return pa.repeat(value, table.num_rows) if isinstance(value, pa.Scalar) else value


class Evaluation:
    """An expression over the rows of one table."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def of(self, node: Node) -> Datum:
        """A node's value: an array, or a scalar that stands for all rows."""
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Field):
            return read(self.table, node.path, node.type)
        if isinstance(node, Cast):
            return self._cast(node)
        assert isinstance(node, Call)
        if node.function.lazy:
            return node.function.arrow(self, node)
        return self._call(node)

    def _call(self, node: Call) -> Datum:
        function = node.function
        values = [self.of(a) for a in node.arguments] if function.keeps_nulls else self._arguments(node)
        is_one = all(isinstance(v, pa.Scalar) for v in values)
        if is_one:
            values = [pa.repeat(v, 1) for v in values] or [pa.nulls(1)]
        result = function.arrow(*values, type=node.type)
        if function.undefined and result.null_count and (all_valid(*values) & ~valid(result)).any():
            raise UndefinedValue(function.undefined)
        return result[0] if is_one else result

    def _arguments(self, node: Call) -> list[Datum]:
        """The arguments, evaluated one after the other: where one is null so is the result, and the next ones are not evaluated."""
        values: list[Datum] = []

        def needed_rows() -> pa.Array:
            flags = [self.flags(pc.is_valid(v)) for v in values]
            return reduce(pc.and_, flags)

        for argument in reversed(node.arguments) if node.function.right_first else node.arguments:
            values.append(self.guarded(argument, needed_rows) if values else self.of(argument))
        return values[::-1] if node.function.right_first else values

    def _cast(self, node: Cast) -> Datum:
        value = self.of(node.argument)
        is_one = isinstance(value, pa.Scalar)
        values = pa.repeat(value, 1) if is_one else value
        result = attempt(values, node.type)
        failed = _failed(values, result) if not node.tries and result.null_count > values.null_count else None
        if failed is not None and len(failed):
            raise UndefinedValue(f"{_shown(failed[0])} cannot be cast to {name_of(node.type)}; try_cast returns null there")
        return result[0] if is_one else result

    def flags(self, condition: Datum, *, unknown: bool = False) -> pa.Array:
        """A condition as a flag for each row."""
        known = pc.fill_null(condition, unknown)
        return pa.repeat(known, self.table.num_rows) if isinstance(known, pa.Scalar) else known

    def guarded(self, node: Node, where: Callable[[], pa.Array]) -> Datum:
        """A node's value where only the rows that ``where`` selects need one: at the others it may be undefined, and is then null."""
        try:
            return self.of(node)
        except UndefinedValue:
            some = where()
            if some.true_count == len(some):
                raise
        if not some.true_count:
            return pa.scalar(None, node.type)
        value = Evaluation(self.table.filter(some)).of(node)
        if isinstance(value, pa.Scalar):
            return value
        flags = some.to_numpy(zero_copy_only=False)
        return value.take(pa.array(np.cumsum(flags) - 1, mask=~flags))


def _failed(values: pa.Array, result: pa.Array) -> pa.Array:
    """The values that could not be cast; NaN and infinities are not among them, since Spark casts them to null decimals."""
    failed = values.filter(pc.and_(result.is_null(), values.is_valid()))
    return failed.filter(pc.is_finite(failed)) if pa.types.is_floating(values.type) and pa.types.is_decimal(result.type) else failed


def _shown(value: Any) -> str:
    return repr(value.as_py()) if pa.types.is_string(value.type) else str(value.as_py())


# Columns in the types that expressions know.

_WIDER = {pa.uint8(): INT16, pa.uint16(): INT32, pa.uint32(): INT64, pa.uint64(): pa.decimal128(20, 0), pa.float16(): pa.float32()}


def known_type(t: pa.DataType, zone: str) -> pa.DataType:
    """The type that a column of an Arrow type has in an expression: Spark's own."""
    if pa.types.is_dictionary(t) or pa.types.is_run_end_encoded(t):
        return known_type(t.value_type, zone)
    if t in _WIDER:
        return _WIDER[t]
    if pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return pa.string()
    if pa.types.is_large_binary(t) or pa.types.is_binary_view(t) or pa.types.is_fixed_size_binary(t):
        return pa.binary()
    if pa.types.is_decimal(t) and t.precision <= 38:
        return pa.decimal128(t.precision, t.scale)
    if pa.types.is_timestamp(t):
        return pa.timestamp("us", None if t.tz is None else zone)
    if pa.types.is_date(t):
        return pa.date32()
    return pa.duration("us") if pa.types.is_duration(t) else t


def read(table: pa.Table, path: tuple[str, ...], t: pa.DataType) -> pa.Array:
    """A column, or a field in it, in the type that it has in an expression."""
    value = table.column(path[0])
    value = value.chunk(0) if value.num_chunks == 1 else value.combine_chunks()
    for name in path[1:]:
        value = pc.struct_field(value, name)
    if value.type == t:
        return value
    if pa.types.is_dictionary(value.type):
        value = value.dictionary_decode() if not pa.types.is_string_view(value.type.value_type) else value.cast(pa.string())
    if pa.types.is_run_end_encoded(value.type):
        value = pc.run_end_decode(value)
    if value.type == NULL:
        return pa.nulls(len(value), t)
    if pa.types.is_timestamp(value.type) or pa.types.is_duration(value.type):
        return _in_micros(value, t)
    return value if value.type == t else value.cast(t)


def _in_micros(value: pa.Array, t: pa.DataType) -> pa.Array:
    """Times in microseconds, rounded down, as Spark takes them."""
    if value.type.unit == "ns":
        ticks = value.view(pa.int64())
        micros = np.floor_divide(ticks.fill_null(0).to_numpy(zero_copy_only=False), 1000)
        return pa.array(micros, pa.int64(), mask=~valid(value)).view(t)
    if pa.types.is_duration(value.type):
        return value.cast(t)
    return value.cast(pa.timestamp("us", value.type.tz)).view(pa.int64()).view(t)
