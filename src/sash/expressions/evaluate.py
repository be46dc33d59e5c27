"""Evaluates an expression's tree over an Arrow table, with Spark's meaning."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sash.errors import InvalidExpression, UnknownName, unknown
from sash.expressions import decimals
from sash.expressions import functions as f
from sash.expressions.datum import DIGITS, Datum, Undefined
from sash.expressions.functions import ALIASES, FUNCTIONS, together


def evaluate(tree: exp.Expression, table: pa.Table, text: str) -> Datum:
    """The tree's value for each row, or one value for all."""
    try:
        return _Evaluation(table).of(tree)
    except (InvalidExpression, UnknownName) as error:
        if text in str(error):
            raise
        raise type(error)(f"{error} (in {text!r})") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidExpression(f"{text!r} cannot be computed: {str(error).splitlines()[0]}") from error


class _Evaluation:
    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def of(self, node: exp.Expression) -> Datum:
        for kind, rule in RULES:
            if isinstance(node, kind):
                return rule(self, node)
        return self.call(node)

    def column(self, node: exp.Expression) -> Datum:
        names = [part.name for part in node.parts] if isinstance(node, exp.Column) else []
        root = next((n for n in self.table.column_names if n == names[0]), None) or next(
            (n for n in self.table.column_names if n.lower() == names[0].lower()), None
        )
        if root is None:
            raise unknown("column", names[0], self.table.column_names)
        value = self.table.column(root)
        value = value.chunk(0) if value.num_chunks == 1 else value.combine_chunks()
        for name in names[1:]:
            value = self.member(value, name)
        return value.dictionary_decode() if pa.types.is_dictionary(value.type) else value

    def member(self, value: Datum, name: str) -> Datum:
        if not pa.types.is_struct(value.type):
            raise InvalidExpression(f".{name} asks for a field of a {value.type}, which is no struct")
        fields = [field.name for field in value.type]
        found = next((n for n in fields if n == name), None) or next((n for n in fields if n.lower() == name.lower()), None)
        if found is None:
            raise unknown("field", name, fields)
        return pc.struct_field(value, found)

    def dot(self, node: exp.Expression) -> Datum:
        return self.member(self.of(node.this), node.expression.name)

    def literal(self, node: exp.Expression) -> Datum:
        assert isinstance(node, exp.Literal)
        if node.is_string:
            return pa.scalar(node.this, pa.string())
        digits = node.this
        if "e" in digits.lower():
            return pa.scalar(float(digits), pa.float64())
        if "." in digits:
            value = Decimal(digits)
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)
            scale = -exponent
            return pa.scalar(value, pa.decimal128(max(len(value.as_tuple().digits), scale, 1), scale))
        number = int(digits)
        return pa.scalar(number, pa.int32() if number < 1 << 31 else pa.int64())

    def cast(self, node: exp.Expression) -> Datum:
        value = self.of(node.this)
        target = _arrow_type(node.to)  # type: ignore[attr-defined]
        try:
            return _cast(value, target)
        except (pa.ArrowInvalid, InvalidExpression) as error:
            if isinstance(node, exp.TryCast) and not isinstance(value, pa.Scalar):
                return pa.array([_one_cast(v, target) for v in value], target)
            raise Undefined(f"cast to {target} failed: {str(error).splitlines()[0]}") from error

    def guarded(self, node: exp.Expression, where: Callable[[], pa.Array]) -> Datum:
        """A value that Spark asks for in some rows only: in the others it may have none, and is not looked at."""
        try:
            return self.of(node)
        except (Undefined, pa.ArrowInvalid):
            some = where()
            if len(some) and some.true_count == len(some):
                raise
        try:
            found = _Evaluation(self.table.filter(some)).of(node)
        except (Undefined, pa.ArrowInvalid):
            if some.true_count:
                raise
            return pa.scalar(None, pa.null())  # no row asks for it, and it is the same for all
        if isinstance(found, pa.Scalar):
            return found
        flags = some.to_numpy(zero_copy_only=False)
        return found.take(pa.array(np.cumsum(flags) - 1, mask=~flags))

    def divisor(self, value: Datum) -> Datum:
        """A value that must not be zero; where there are no rows, only its type matters."""
        if pa.types.is_null(value.type):
            return value
        zero = pa.scalar(Decimal(0) if pa.types.is_decimal(value.type) else 0, value.type)
        if isinstance(value, pa.Scalar) and not self.table.num_rows:
            return pa.scalar(None, value.type) if value.equals(zero) else value
        if pc.any(pc.equal(value if not isinstance(value, pa.Scalar) else pa.repeat(value, 1), zero)).as_py():
            raise Undefined("division by zero; guard it, e.g. `case when d <> 0 then n / d end`")
        return value

    def flags(self, condition: Datum, *, unknown: bool = False) -> pa.Array:
        """A condition as a flag for each row."""
        known = pc.fill_null(_truth(condition), unknown)
        return pa.repeat(known, self.table.num_rows) if isinstance(known, pa.Scalar) else known

    def case(self, node: exp.Expression) -> Datum:
        subject = self.of(node.this) if node.this is not None else None
        rest = pa.repeat(pa.scalar(True), self.table.num_rows)  # the rows that no condition held for yet
        conditions, values = [], []
        for branch in node.args["ifs"]:
            test = branch.this if subject is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
            condition = self.flags(self.guarded(test, lambda rest=rest: rest))  # type: ignore[misc]
            held = pc.and_(rest, condition)
            values.append(self.guarded(branch.args["true"], lambda held=held: held))  # type: ignore[misc]
            conditions.append(condition)
            rest = pc.and_not(rest, condition)
        default = node.args.get("default")
        values.append(self.guarded(default, lambda: rest) if default is not None else pa.scalar(None, pa.null()))
        *values, result = together(values)
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            result = pc.if_else(condition, value, result)
        return result

    def condition(self, node: exp.Expression) -> Datum:
        held = self.flags(self.of(node.this))
        other = node.args.get("false")
        yes = self.guarded(node.args["true"], lambda: held)
        no = self.guarded(other, lambda: pc.invert(held)) if other is not None else pa.scalar(None, pa.null())
        yes, no = together([yes, no])
        return pc.if_else(held, yes, no)

    def both(self, node: exp.Expression) -> Datum:
        left = _truth(self.of(node.this))
        return pc.and_kleene(left, _truth(self.guarded(node.expression, lambda: self.flags(left, unknown=True))))

    def either(self, node: exp.Expression) -> Datum:
        left = _truth(self.of(node.this))
        return pc.or_kleene(left, _truth(self.guarded(node.expression, lambda: pc.invert(self.flags(left)))))

    def first_known(self, arguments: list[exp.Expression]) -> Datum:
        """``coalesce``: what comes after a value is not asked for."""
        values: list[Datum] = []

        def missing() -> pa.Array:
            unknown = [self.flags(pc.is_null(v)) for v in values]
            return reduce(pc.and_, unknown)

        for argument in arguments:
            values.append(self.guarded(argument, missing) if values else self.of(argument))
        return f.coalesce(*values)

    def contained(self, node: exp.Expression) -> Datum:
        subject = self.of(node.this)
        return reduce(pc.or_kleene, [f.equal(subject, self.of(option)) for option in node.expressions])

    def between(self, node: exp.Expression) -> Datum:
        subject = self.of(node.this)
        low, high = self.of(node.args["low"]), self.of(node.args["high"])
        return pc.and_kleene(f.greater_equal(subject, low), f.less_equal(subject, high))

    def like(self, node: exp.Expression) -> Datum:
        pattern = self.of(node.expression)
        if not isinstance(pattern, pa.Scalar):
            raise InvalidExpression("the pattern of LIKE must be text that stands in the expression")
        return pc.match_like(self.of(node.this), pattern.as_py(), ignore_case=isinstance(node, exp.ILike))

    def is_(self, node: exp.Expression) -> Datum:
        value, what = self.of(node.this), node.expression
        if isinstance(what, exp.Null):
            return pc.is_null(value)
        return pc.fill_null(pc.equal(value, self.of(what)), False)

    def call(self, node: exp.Expression) -> Datum:
        name, arguments = _call(node)
        name = ALIASES.get(name, name)
        if name not in FUNCTIONS:
            raise unknown("function", name, [*FUNCTIONS, *ALIASES])
        function, fewest, most = FUNCTIONS[name]
        if not fewest <= len(arguments) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise InvalidExpression(f"{name} takes {wanted} argument{'s' * (most > 1)}, {len(arguments)} were given")
        if name == "coalesce":
            return self.first_known(arguments)
        return function(*[self.of(a) for a in arguments])


def _call(node: exp.Expression) -> tuple[str, list[exp.Expression]]:
    """A function's name as it is written, and its arguments in order."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), list(node.expressions)
    if not isinstance(node, exp.Func):
        raise InvalidExpression(f"{node.sql(dialect='spark')!r} is not supported in an expression")
    arguments: list[exp.Expression] = []
    for key in node.arg_types:
        value = node.args.get(key)
        arguments += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expression)]
    name = node.sql_name().lower()
    if isinstance(node, exp.Log) and len(arguments) == 1:
        name = "ln"
    return name, arguments


Operation = Callable[[Datum, Datum], Datum]


def _arithmetic(compute: Operation, of_decimals: Operation, *, divides: bool = False) -> Callable[[_Evaluation, Any], Datum]:
    def rule(evaluation: _Evaluation, node: Any) -> Datum:
        a, b = evaluation.of(node.this), evaluation.of(node.expression)
        if pa.types.is_string(a.type):
            a = a.cast(pa.float64())
        if pa.types.is_string(b.type):
            b = b.cast(pa.float64())
        if divides:
            b = evaluation.divisor(b)
        if pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type):
            if f.is_float(a) or f.is_float(b):
                a, b = a.cast(pa.float64()), b.cast(pa.float64())
            elif all(pa.types.is_decimal(v.type) or pa.types.is_integer(v.type) for v in (a, b)):
                return of_decimals(_narrow(node.this, a), _narrow(node.expression, b))
        return compute(a, b)

    return rule


def _narrow(node: Any, value: Datum) -> Datum:
    """An integer that stands in the expression takes no more digits than it has."""
    node = node.unnest()
    inner = node.this.unnest() if isinstance(node, exp.Neg) else node
    if isinstance(inner, exp.Literal) and pa.types.is_integer(value.type):
        number = decimals.literal(inner.this)
        return pc.negate(number) if inner is not node else number
    return value


def _divide(a: Datum, b: Datum) -> Datum:
    return pc.divide(a.cast(pa.float64()), b.cast(pa.float64()))


def _whole_division(a: Datum, b: Datum) -> Datum:
    return pc.divide_checked(a.cast(pa.int64()), b.cast(pa.int64()))


def _whole_division_of_decimals(a: Datum, b: Datum) -> Datum:
    """``div`` of decimals is a 64-bit integer."""
    return f.to_integer(decimals.whole_quotient(a, b), pa.int64())


def _remainder(a: Datum, b: Datum) -> Datum:
    """With the sign of the dividend."""
    a, b = together([a, b])
    quotient = pc.trunc(pc.divide(a, b)) if f.is_float(a) else pc.divide(a, b)
    return pc.subtract(a, pc.multiply(quotient, b))


TYPES: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "TEXT": pa.string(), "VARCHAR": pa.string(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"), "TIMESTAMPNTZ": pa.timestamp("us"), "BINARY": pa.binary(),
}  # fmt: skip


def _arrow_type(given: exp.DataType) -> pa.DataType:
    name = given.this.name if hasattr(given.this, "name") else str(given.this)
    if name == "DECIMAL":
        digits = [int(p.this.name) for p in given.expressions]
        return pa.decimal128(*(digits or [10, 0])) if len(digits) != 1 else pa.decimal128(digits[0], 0)
    if name not in TYPES:
        raise InvalidExpression(f"cast to {given.sql(dialect='spark')} is not supported; known types: {', '.join(TYPES).lower()}, decimal")
    return TYPES[name]


def _cast(value: Datum, target: pa.DataType) -> Datum:
    source = value.type
    if source == target:
        return value
    if pa.types.is_integer(target) and (pa.types.is_floating(source) or pa.types.is_decimal(source)):
        return f.to_integer(pc.trunc(value) if pa.types.is_decimal(source) else value, target)
    if pa.types.is_integer(target) and pa.types.is_timestamp(source):
        return pc.floor(pc.divide(value.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64()), 1e6)).cast(target)
    if pa.types.is_string(source) and not pa.types.is_string(target):
        value = pc.utf8_trim_whitespace(value)
        if pa.types.is_boolean(target):
            value = pc.utf8_lower(value)
    if pa.types.is_decimal(target) and pa.types.is_floating(source):
        return pc.round(value, ndigits=target.scale, round_mode="half_towards_infinity").cast(target)
    if pa.types.is_decimal(target) and pa.types.is_decimal(source) and target.scale < source.scale:
        return pc.round(value, ndigits=target.scale, round_mode="half_towards_infinity").cast(target)
    if pa.types.is_decimal(target) and pa.types.is_integer(source):
        return value.cast(pa.decimal128(min(38, DIGITS[source.bit_width] + target.scale), target.scale)).cast(target)
    return value.cast(target)


def _one_cast(value: pa.Scalar, target: pa.DataType) -> Any:
    try:
        return _cast(pa.array([value.as_py()], value.type), target)[0].as_py()
    except (pa.ArrowInvalid, InvalidExpression, InvalidOperation):
        return None


def _two(compute: Callable[[Datum, Datum], Datum]) -> Callable[[_Evaluation, Any], Datum]:
    return lambda e, node: compute(e.of(node.this), e.of(node.expression))


def _truth(value: Datum) -> Datum:
    if pa.types.is_null(value.type):
        return value.cast(pa.bool_())
    if not pa.types.is_boolean(value.type):
        raise InvalidExpression(f"a condition must be true or false, not {value.type}")
    return value


RULES: list[tuple[type[exp.Expression], Callable[[_Evaluation, Any], Datum]]] = [
    (exp.Column, _Evaluation.column),
    (exp.Dot, _Evaluation.dot),
    (exp.Literal, _Evaluation.literal),
    (exp.Boolean, lambda e, n: pa.scalar(bool(n.this), pa.bool_())),
    (exp.Null, lambda e, n: pa.scalar(None, pa.null())),
    (exp.Paren, lambda e, n: e.of(n.this)),
    (exp.Neg, lambda e, n: pc.negate_checked(e.of(n.this))),
    (exp.Not, lambda e, n: pc.invert(_truth(e.of(n.this)))),
    (exp.And, _Evaluation.both),
    (exp.Or, _Evaluation.either),
    (exp.Add, _arithmetic(pc.add_checked, decimals.add)),
    (exp.Sub, _arithmetic(pc.subtract_checked, decimals.subtract)),
    (exp.Mul, _arithmetic(pc.multiply_checked, decimals.multiply)),
    (exp.IntDiv, _arithmetic(_whole_division, _whole_division_of_decimals, divides=True)),
    (exp.Div, _arithmetic(_divide, decimals.divide, divides=True)),
    (exp.Mod, _arithmetic(_remainder, decimals.remainder, divides=True)),
    (exp.NullSafeEQ, lambda e, n: _null_safe(e.of(n.this), e.of(n.expression))),
    (exp.EQ, _two(f.equal)),
    (exp.NEQ, _two(f.not_equal)),
    (exp.LT, _two(f.less)),
    (exp.LTE, _two(f.less_equal)),
    (exp.GT, _two(f.greater)),
    (exp.GTE, _two(f.greater_equal)),
    (exp.Is, _Evaluation.is_),
    (exp.In, _Evaluation.contained),
    (exp.Between, _Evaluation.between),
    (exp.ILike, _Evaluation.like),
    (exp.Like, _Evaluation.like),
    (exp.Case, _Evaluation.case),
    (exp.If, _Evaluation.condition),
    (exp.TryCast, _Evaluation.cast),
    (exp.Cast, _Evaluation.cast),
    (exp.DPipe, lambda e, n: f.concat(e.of(n.this), e.of(n.expression))),
]


def _null_safe(a: Datum, b: Datum) -> Datum:
    both = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.if_else(both, True, pc.fill_null(f.equal(a, b), False))
