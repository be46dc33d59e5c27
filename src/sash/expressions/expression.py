"""An expression: SQL text with its syntax tree, the columns it reads, its type and its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.errors import InvalidExpression, unknown
from sash.expressions.syntax import DIALECT, tree_of, without_statement

if TYPE_CHECKING:
    from sqlglot import exp

    from sash.expressions.nodes import Node


_ROW_GENERATORS = ("explode", "posexplode", "inline", "variant_explode")
GENERATORS = frozenset([*_ROW_GENERATORS, *(f"{name}_outer" for name in _ROW_GENERATORS), "stack", "json_tuple"])
"""Spark's generator functions, which return several rows for one; not every release of sqlglot knows all of them."""


@dataclass(frozen=True)
class Expression:
    """SQL text over the row, with Spark's meaning."""

    text: str
    tree: exp.Expression = field(compare=False, repr=False)
    is_name: bool = field(default=False, repr=False)
    """Whether the text is a column's name, which need not be SQL."""

    @staticmethod
    def of_column(name: str) -> Expression:
        """The expression that is a column."""
        from sqlglot import exp

        return Expression(name, exp.column(name, quoted=True), is_name=True)

    def columns(self, schema: pa.Schema) -> list[str]:
        """The columns that it reads."""
        from sqlglot import exp

        names = [_root(c) for c in self.tree.find_all(exp.Column)] if self.text not in schema.names else [self.text]
        for name in names:
            _known(name, schema)
        return list(dict.fromkeys(_known(name, schema) for name in names))

    def typed(self, schema: pa.Schema) -> Node:
        """The typed tree over columns of a schema; raises where it has no meaning."""
        cell = _cell(self)
        if not cell or not cell[0][0].equals(schema):  # comparing is far quicker than hashing
            cell[:] = [(schema, _typed(self, schema))]
        return cell[0][1]

    def type(self, schema: pa.Schema) -> pa.DataType:
        """The result's type over rows of this schema; raises where it has none."""
        return schema.field(self.text).type if self.text in schema.names else self.typed(schema).type

    def is_defined(self, schema: pa.Schema) -> bool:
        """Whether it has a value, or null, for every row of this schema, so that evaluating it never raises."""
        from sash.expressions.nodes import is_defined

        return self.text in schema.names or is_defined(self.typed(schema))

    def evaluate(self, table: pa.Table) -> pa.Array:
        """Its value for each row."""
        from sash.expressions.evaluate import evaluate

        place = table.schema.get_field_index(self.text)  # the list of all names would be made anew
        if place >= 0:
            return _flat(table.column(place))
        return evaluate(self.typed(table.schema), table, self.text)

    def spark_sql(self) -> str:
        """The same as Spark SQL: the text itself, so that Spark alone says what it means."""
        if self.is_name:
            return "`" + self.text.replace("`", "``") + "`"
        return f"({self.text}\n)" if "--" in self.text else self.text  # nothing that follows may become part of a comment


@lru_cache(maxsize=1024)
def _cell(expression: Expression) -> list[tuple[pa.Schema, Node]]:
    """The schema that an expression was last typed over, and its tree; empty at first."""
    return []


@lru_cache(maxsize=1024)
def _typed(expression: Expression, schema: pa.Schema) -> Node:
    from sash.expressions.resolve import resolve

    try:
        return resolve(expression.tree, schema)
    except InvalidExpression as error:
        raise InvalidExpression(f"{error} (in {expression.text!r})") from error


def _flat(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    return values


def _root(column: Any) -> str:
    """The first name of ``a.b.c``: the others are fields of structs."""
    return str(column.parts[0].name)


def _known(name: str, schema: pa.Schema) -> str:
    if name in schema.names:
        return name
    folded = [n for n in schema.names if n.lower() == name.lower()]  # Spark ignores case
    if len(folded) == 1:
        return str(folded[0])
    raise unknown("column", name, schema.names)


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Parse SQL text; an error shows the place.

    >>> parse("cpu * 100 > 5")
    Expression(text='cpu * 100 > 5')
    >>> parse("cpu * (1 +")
    Traceback (most recent call last):
        ...
    sash.errors.InvalidExpression: 'cpu * (1 +' is not an expression: ...
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel, SqlglotError

    try:
        parsed = sqlglot.parse_one(without_statement(text), dialect=DIALECT, error_level=ErrorLevel.IMMEDIATE)
        tree = tree_of(text)
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        place = max(0, int(details[0].get("col") or len(text)) - len(details[0].get("highlight") or " "))
        reason = str(details[0].get("description") or error).rstrip(".")
        if reason.startswith("Required keyword"):  # the parser speaks of its own classes
            reason = "an operand or argument is missing"
        raise InvalidExpression(f"{text!r} is not an expression: {reason}\n  {text}\n  {' ' * min(place, len(text))}^") from error
    if isinstance(parsed, exp.Query | exp.Alias | exp.Command) or not isinstance(parsed, exp.Expression):
        raise InvalidExpression(f"{text!r} is not an expression over the row; write it without SELECT and AS")
    for node in parsed.walk():
        unknown_generator = isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS
        if unknown_generator or isinstance(node, exp.Query | exp.Window | exp.AggFunc | exp.UDTF):
            part = node.sql(dialect=DIALECT)
            raise InvalidExpression(f"{text!r} is not an expression over the row: {part} looks at other rows, or returns several for one")
    return Expression(text, tree)
