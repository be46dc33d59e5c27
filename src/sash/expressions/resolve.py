"""From a syntax tree and a schema to a typed tree: names resolved, types checked, implicit casts made explicit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sash.errors import InvalidExpression, UnknownName, unknown
from sash.expressions import casts, decimals
from sash.expressions.coercion import (
    BINARY,
    BOOL,
    DATE,
    DOUBLE,
    DURATION,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    MONTHS,
    NTZ,
    NULL,
    STRING,
    timestamp,
)
from sash.expressions.evaluate import known_type
from sash.expressions.intervals import interval_literal
from sash.expressions.library import ALIASES, FUNCTIONS
from sash.expressions.nodes import Call, Cast, Constant, Field, Node
from sash.expressions.syntax import LEVELS, chain_of, grouped


def resolve(tree: exp.Expression, schema: pa.Schema) -> Node:
    """The typed tree of an expression over columns of a schema."""
    return _Resolution(schema, zone_of(tree, schema)).of(tree)


def zone_of(tree: exp.Expression, schema: pa.Schema) -> str:
    """The zone that an expression's calendar is read in: that of its columns if they have one in common, otherwise UTC."""
    zones = set()
    for column in tree.find_all(exp.Column):
        t = next((schema.field(n).type for n in schema.names if n.lower() == column.parts[0].name.lower()), None)
        if t is not None and pa.types.is_timestamp(t) and t.tz is not None:
            zones.add(t.tz)
    return str(zones.pop()) if len(zones) == 1 else "UTC"


class _Resolution:
    def __init__(self, schema: pa.Schema, zone: str) -> None:
        self.schema = schema
        self.zone = zone

    def of(self, node: Any) -> Node:
        rule = RULES.get(type(node))
        if rule is None:
            if isinstance(node, exp.Func):
                _refuse_parts(node, node.arg_types)
                raise unknown("function", node.sql_name().lower(), [n for n in [*FUNCTIONS, *ALIASES] if n.isidentifier()])
            raise InvalidExpression(f"{node.sql(dialect='spark')!r} is not supported in an expression over the row")
        return rule(self, node)

    def call(self, name: str, *arguments: Node) -> Node:
        """A function or an operator of the table over typed arguments."""
        function = FUNCTIONS.get(ALIASES.get(name, name))
        if function is None:
            raise unknown("function", name, [n for n in [*FUNCTIONS, *ALIASES] if n.isidentifier()])
        if not function.fewest <= len(arguments) <= function.most:
            wanted = str(function.fewest) if function.fewest == function.most else f"{function.fewest} to {function.most}"
            raise InvalidExpression(f"{name} takes {wanted} argument{'s' * (function.most != 1)}, {len(arguments)} were given")
        typed = function.typing(function, list(arguments), self.zone)
        for argument in typed.arguments:
            _check_casts(argument)
        return Call(typed.type, function, tuple(map(_folded, typed.arguments)))

    def column(self, node: exp.Column) -> Node:
        names = [part.name for part in node.parts]
        root = _named(names[0], self.schema.names)
        if root is None:
            raise unknown("column", names[0], self.schema.names)
        path, t = [root], self.schema.field(root).type
        for name in names[1:]:
            field_name, t = _member(t, name)
            path.append(field_name)
        return Field(known_type(t, self.zone), tuple(path))

    def dot(self, node: exp.Dot) -> Node:
        value = self.of(node.this)
        if not isinstance(value, Field):
            raise InvalidExpression(f"{node.sql(dialect='spark')!r}: only columns have fields")
        field_name, t = _member(value.type, node.expression.name)
        return Field(known_type(t, self.zone), (*value.path, field_name))

    def literal(self, node: exp.Literal, *, negative: bool = False) -> Node:
        if node.is_string:
            return _constant(node.this, STRING)
        digits = ("-" if negative else "") + node.this
        try:
            if "e" in digits.lower():
                return _constant(float(digits), DOUBLE)
            if "." not in digits and -(1 << 63) <= int(digits) < 1 << 63:
                number = int(digits)
                return Constant(t := INT32 if -(1 << 31) <= number < 1 << 31 else INT64, pa.scalar(number, t), is_literal=True)
            value = decimals.literal(digits)
        except (ValueError, ArithmeticError, pa.ArrowInvalid) as error:
            raise InvalidExpression(f"{digits} is not a number that fits into 38 digits") from error
        return Constant(value.type, value, is_literal=True)

    def negation(self, node: exp.Neg) -> Node:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.literal(node.this, negative=True)
        return self.call("negative", self.of(node.this))

    def cast(self, node: exp.Cast) -> Node:
        _refuse_parts(node, ("this", "to", "safe"))
        target = type_of(node.to, self.zone)
        value = self.of(node.this)
        casts.check(value.type, target)
        return value if value.type == target else Cast(target, value, isinstance(node, exp.TryCast))

    def anonymous(self, node: exp.Anonymous) -> Node:
        _refuse_parts(node, ("this", "expressions"))
        name = str(node.this)
        if name in CASTS:
            (argument,) = node.expressions if len(node.expressions) == 1 else [None]
            if argument is None:
                raise InvalidExpression(f"{name} takes 1 argument, {len(node.expressions)} were given")
            return self.cast(exp.Cast(this=argument.copy(), to=exp.DataType.build(CASTS[name])))
        return self.call(name, *[self.of(a) for a in node.expressions])

    def operator(self, name: str) -> Callable[[Any], Node]:
        def rule(node: Any) -> Node:
            return self.call(name, self.of(node.this), self.of(node.expression))

        return rule

    def like(self, node: Any, escape: Any = None) -> Node:
        _refuse_parts(node, ("this", "expression", "negate"))
        name = "ilike" if isinstance(node, exp.ILike) else "like"
        pattern = node.expression
        if isinstance(pattern, exp.Any | exp.All):
            raise InvalidExpression(
                f"{name} any and {name} all are not supported; write the patterns one by one, with or / and between them"
            )
        arguments = [self.of(node.this), self.of(pattern), *([self.of(escape)] if escape is not None else [])]
        return self.negated(self.call(name, *arguments), node)

    def escape(self, node: exp.Escape) -> Node:
        return self.like(node.this, node.expression)

    def negated(self, value: Node, node: Any) -> Node:
        """Newer trees say NOT in the node itself, older ones around it."""
        return self.call("not", value) if node.args.get("negate") else value

    def is_(self, node: exp.Is) -> Node:
        _refuse_parts(node, ("this", "expression", "negate"))
        value = self.of(node.this)
        if isinstance(node.expression, exp.Null):
            return self.negated(self.call("isnull", value), node)
        if not isinstance(node.expression, exp.Boolean):
            raise InvalidExpression(f"{node.sql(dialect='spark')!r} is not supported in an expression over the row")
        return self.negated(self.call("<=>", value, self.of(node.expression)), node)

    def in_(self, node: exp.In) -> Node:
        _refuse_parts(node, ("this", "expressions", "negate"))
        return self.negated(self.call("in", self.of(node.this), *[self.of(e) for e in node.expressions]), node)

    def between(self, node: exp.Between) -> Node:
        _refuse_parts(node, ("this", "low", "high", "negate"))
        value = self.of(node.this)
        low, high = self.call(">=", value, self.of(node.args["low"])), self.call("<=", value, self.of(node.args["high"]))
        return self.negated(self.call("and", low, high), node)

    def case(self, node: exp.Case) -> Node:
        _refuse_parts(node, ("this", "ifs", "default"))
        arguments: list[Node] = []
        subject = None if node.this is None else self.of(node.this)
        for branch in node.args["ifs"]:
            _refuse_parts(branch, ("this", "true"))
            condition = self.of(branch.this)
            arguments += [condition if subject is None else self.call("=", subject, condition), self.of(branch.args["true"])]
        default = node.args.get("default")
        return self.call("case", *arguments, self.of(default) if default is not None else NOTHING)

    def extract(self, node: exp.Extract) -> Node:
        _refuse_parts(node, ("this", "expression"))
        return self.call("date_part", _constant(node.this.name, STRING), self.of(node.expression))

    def trim(self, node: exp.Trim) -> Node:
        _refuse_parts(node, ("this", "expression", "position"))
        name = {"LEADING": "trim leading", "TRAILING": "trim trailing"}.get(str(node.args.get("position") or "").upper(), "btrim")
        letters = node.args.get("expression")
        return self.call(name, self.of(node.this), *([self.of(letters)] if letters is not None else []))

    def substring(self, node: exp.Substring) -> Node:
        _refuse_parts(node, ("this", "start", "length"))
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return self.call("substring", *[self.of(p) for p in parts if p is not None])

    def position(self, node: exp.StrPosition) -> Node:
        _refuse_parts(node, ("this", "substr"))
        return self.call("instr", self.of(node.this), self.of(node.args["substr"]))

    def concat(self, node: exp.Concat) -> Node:
        """``'a' 'b'``: literals side by side are one."""
        if not all(isinstance(e, exp.Literal) for e in node.expressions):
            raise InvalidExpression(f"{node.sql(dialect='spark')!r} is not supported in an expression over the row")
        return _constant("".join(e.this for e in node.expressions), STRING)

    def interval(self, node: exp.Interval) -> Node:
        value, t = interval_literal(node)
        return Constant(t, value)


NOTHING = Constant(NULL, pa.scalar(None, NULL))


def _constant(value: Any, t: pa.DataType) -> Constant:
    return Constant(t, pa.scalar(value, t))


def _folded(node: Node) -> Node:
    """The cast of a constant as a constant, where it has a value."""
    if not isinstance(node, Cast) or not isinstance(node.argument, Constant):
        return node
    value = casts.attempt(pa.repeat(node.argument.value, 1), node.type)
    return node if value.null_count and node.argument.value.is_valid else Constant(node.type, value[0])


def _check_casts(node: Node) -> None:
    if isinstance(node, Cast):
        casts.check(node.argument.type, node.type)


def _refuse_parts(node: Any, known: Any) -> None:
    """Raise if a node has a part that is not among ``known``: ignoring it would change the meaning silently."""
    for name, value in node.args.items():
        if name not in known and value not in (None, False, [], ""):
            raise InvalidExpression(f"{node.sql(dialect='spark')!r} is not supported in an expression over the row (its part {name!r})")


def _named(name: str, names: list[str]) -> str | None:
    """The name among ``names`` that equals ``name``, regardless of case as in Spark; None if none or several do."""
    if name in names:
        return name
    folded = [n for n in names if n.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


def _member(t: pa.DataType, name: str) -> tuple[str, pa.DataType]:
    if not pa.types.is_struct(t):
        raise InvalidExpression(f".{name}: {t} is no struct, so it has no fields")
    fields = [f.name for f in t]
    field_name = _named(name, fields)
    if field_name is None:
        raise unknown("field", name, fields)
    return field_name, t.field(field_name).type


TYPES: dict[str, pa.DataType] = {
    "TINYINT": INT8,
    "SMALLINT": INT16,
    "INT": INT32,
    "BIGINT": INT64,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "BOOLEAN": BOOL,
    "DATE": DATE,
    "TIMESTAMPNTZ": NTZ,
    "BINARY": BINARY,
}
CASTS = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "TEXT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "binary": "BINARY",
    "decimal": "DECIMAL",
}
"""Types that are functions as well: ``int(x)``."""


def type_of(data_type: exp.DataType, zone: str) -> pa.DataType:
    """The type that a cast names."""
    name = data_type.this.name if hasattr(data_type.this, "name") else str(data_type.this)
    if name == "DECIMAL":
        digits = [int(p.this.name) for p in data_type.expressions] or [10]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise InvalidExpression(
                f"decimal({precision},{scale}) is no type; there are at most 38 digits, and no more behind the point than in all"
            )
        return pa.decimal128(precision, scale)
    if name in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"):
        return timestamp(zone)
    if name not in TYPES or data_type.expressions:
        raise InvalidExpression(
            f"cast to {data_type.sql(dialect='spark')} is not supported; known types: {', '.join([*CASTS, 'timestamp_ntz'])}"
        )
    return TYPES[name]


_OPERATORS: dict[Any, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    exp.RegexpLike: "rlike",
}
_PREDICATES = (exp.In, exp.Like, exp.ILike, exp.Between, exp.RegexpLike, exp.Escape)


def _operator(name: str) -> Callable[[_Resolution, Any], Node]:
    def rule(resolution: _Resolution, node: Any) -> Node:
        _refuse_parts(node, ("this", "expression", "safe", "typed", "negate"))
        if isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE) and isinstance(node.expression, _PREDICATES):
            raise InvalidExpression(f"{node.sql(dialect='spark')!r} can be read in two ways; put parentheses")
        result = resolution.call(name, resolution.of(node.this), resolution.of(node.expression))
        return resolution.negated(result, node)

    return rule


def _grouped(resolution: _Resolution, node: Any) -> Node:
    """A chain of operators, grouped by Spark's precedence instead of sqlglot's."""
    typed = [(operator, resolution.of(operand)) for operator, operand in chain_of(node)]
    result: Node = grouped(typed, lambda operator, left, right: resolution.call(_OPERATORS[getattr(exp, operator)], left, right))
    return result


R = _Resolution
RULES: dict[type, Callable[[_Resolution, Any], Node]] = {
    **{kind: _operator(name) for kind, name in _OPERATORS.items()},
    **{getattr(exp, name): _grouped for level in LEVELS for name in level},
    exp.NullSafeNEQ: lambda r, n: r.call("not", r.call("<=>", r.of(n.this), r.of(n.expression))),
    exp.Column: R.column,
    exp.Dot: R.dot,
    exp.Literal: R.literal,
    exp.RawString: lambda r, n: _constant(n.this, STRING),
    exp.HexString: lambda r, n: _constant(bytes.fromhex(n.this), BINARY),
    exp.Boolean: lambda r, n: _constant(bool(n.this), BOOL),
    exp.Null: lambda r, n: NOTHING,
    exp.Paren: lambda r, n: r.of(n.this),
    exp.Neg: R.negation,
    exp.Not: lambda r, n: r.call("not", r.of(n.this)),
    exp.BitwiseNot: lambda r, n: r.call("~", r.of(n.this)),
    exp.Cast: R.cast,
    exp.TryCast: R.cast,
    exp.Anonymous: R.anonymous,
    exp.Like: R.like,
    exp.ILike: R.like,
    exp.Escape: R.escape,
    exp.Is: R.is_,
    exp.In: R.in_,
    exp.Between: R.between,
    exp.Case: R.case,
    exp.Extract: R.extract,
    exp.Trim: R.trim,
    exp.Substring: R.substring,
    exp.StrPosition: R.position,
    exp.Concat: R.concat,
    exp.Interval: R.interval,
}

__all__ = ["DURATION", "MONTHS", "UnknownName", "resolve"]
