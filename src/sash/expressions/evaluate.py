"""Evaluates an expression's tree over an Arrow table, with Spark's meaning."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sash.errors import InvalidExpression, UnknownName, unknown
from sash.expressions import functions as f
from sash.expressions.functions import ALIASES, FUNCTIONS, Datum, together


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
            raise InvalidExpression(f"cast to {target} failed: {str(error).splitlines()[0]}") from error

    def case(self, node: exp.Expression) -> Datum:
        subject = self.of(node.this) if node.this is not None else None
        branches = node.args["ifs"]
        conditions = [self.of(b.this) if subject is None else f.equal(subject, self.of(b.this)) for b in branches]
        default = node.args.get("default")
        values = [self.of(b.args["true"]) for b in branches]
        values.append(self.of(default) if default is not None else pa.scalar(None, pa.null()))
        values = together(values)
        result = values[-1]
        for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
            result = pc.if_else(pc.fill_null(condition, False), value, result)
        return result

    def condition(self, node: exp.Expression) -> Datum:
        branches = [self.of(node.args["true"])]
        branches.append(self.of(node.args["false"]) if node.args.get("false") is not None else pa.scalar(None, pa.null()))
        yes, no = together(branches)
        return pc.if_else(pc.fill_null(self.of(node.this), False), yes, no)

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


def _arithmetic(compute: Callable[[Datum, Datum], Datum]) -> Callable[[_Evaluation, Any], Datum]:
    def rule(evaluation: _Evaluation, node: exp.Expression) -> Datum:
        a, b = evaluation.of(node.this), evaluation.of(node.expression)
        if pa.types.is_string(a.type):
            a = a.cast(pa.float64())
        if pa.types.is_string(b.type):
            b = b.cast(pa.float64())
        if f.is_float(a) != f.is_float(b) and (pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type)):
            a, b = a.cast(pa.float64()), b.cast(pa.float64())
        return compute(a, b)

    return rule


def _divide(a: Datum, b: Datum) -> Datum:
    _no_zero(b)
    if pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type):
        return _decimal_division(a, b)
    return pc.divide(a.cast(pa.float64()), b.cast(pa.float64()))


def _whole_division(a: Datum, b: Datum) -> Datum:
    _no_zero(b)
    return pc.divide_checked(a.cast(pa.int64()), b.cast(pa.int64()))


def _no_zero(b: Datum) -> None:
    if pc.any(pc.equal(b if not isinstance(b, pa.Scalar) else pa.repeat(b, 1), pa.scalar(0, pa.int8()).cast(b.type))).as_py():
        raise InvalidExpression("division by zero; guard it, e.g. `case when d <> 0 then n / d end`")


def _decimal_division(a: Datum, b: Datum) -> Datum:
    """Spark's result type and rounding; Arrow's own has other digits."""
    a, b = (v if pa.types.is_decimal(v.type) else v.cast(pa.decimal128(f.DIGITS[v.type.bit_width], 0)) for v in (a, b))
    scale = max(6, a.type.scale + b.type.precision + 1)
    precision = a.type.precision - a.type.scale + b.type.scale + scale
    if precision > 38:
        integral = precision - scale
        scale = max(38 - integral, min(scale, 6))
        precision = 38
    context = Context(prec=60, rounding=ROUND_HALF_UP)
    unit = Decimal(1).scaleb(-scale)
    count = (
        max(1 if isinstance(v, pa.Scalar) else len(v) for v in (a, b))
        if not all(len(v) == 0 for v in (a, b) if not isinstance(v, pa.Scalar))
        else 0
    )
    left, right = ([v.as_py()] * count if isinstance(v, pa.Scalar) else v.to_pylist() for v in (a, b))
    quotients = [
        None if x is None or y is None else context.divide(x, y).quantize(unit, context=context) for x, y in zip(left, right, strict=True)
    ]
    return pa.array(quotients, pa.decimal128(precision, scale))


def _remainder(a: Datum, b: Datum) -> Datum:
    """With the sign of the dividend."""
    _no_zero(b)
    a, b = together([a, b])
    quotient = pc.trunc(pc.divide(a, b)) if f.is_float(a) else pc.divide(a, b)
    if pa.types.is_decimal(a.type):
        raise InvalidExpression("% takes integers and floats; cast the decimal")
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
        return value.cast(pa.decimal128(min(38, f.DIGITS[source.bit_width] + target.scale), target.scale)).cast(target)
    return value.cast(target)


def _one_cast(value: pa.Scalar, target: pa.DataType) -> Any:
    try:
        return _cast(pa.array([value.as_py()], value.type), target)[0].as_py()
    except (pa.ArrowInvalid, InvalidExpression, InvalidOperation):
        return None


def _two(compute: Callable[[Datum, Datum], Datum]) -> Callable[[_Evaluation, Any], Datum]:
    return lambda e, node: compute(e.of(node.this), e.of(node.expression))


def _boolean(compute: Callable[[Datum, Datum], Datum]) -> Callable[[_Evaluation, Any], Datum]:
    def rule(evaluation: _Evaluation, node: Any) -> Datum:
        return compute(_truth(evaluation.of(node.this)), _truth(evaluation.of(node.expression)))

    return rule


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
    (exp.And, _boolean(pc.and_kleene)),
    (exp.Or, _boolean(pc.or_kleene)),
    (exp.Add, _arithmetic(pc.add_checked)),
    (exp.Sub, _arithmetic(pc.subtract_checked)),
    (exp.Mul, _arithmetic(pc.multiply_checked)),
    (exp.IntDiv, _arithmetic(_whole_division)),
    (exp.Div, _arithmetic(_divide)),
    (exp.Mod, _arithmetic(_remainder)),
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
