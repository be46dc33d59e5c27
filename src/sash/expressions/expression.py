"""An expression: SQL text, its tree, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.errors import InvalidExpression, unknown

if TYPE_CHECKING:
    from sqlglot import exp


GENERATORS = frozenset(
    ["explode_outer", "posexplode_outer", "inline_outer", "stack", "json_tuple", "variant_explode", "variant_explode_outer"]
)
"""Functions of Spark that make several rows of one, and that sqlglot does not know as such."""


@dataclass(frozen=True)
class Expression:
    """SQL text over the row, with Spark's meaning."""

    text: str
    tree: exp.Expression = field(compare=False, repr=False)

    def columns(self, schema: pa.Schema) -> list[str]:
        """The columns that it reads."""
        from sqlglot import exp

        names = [_root(c) for c in self.tree.find_all(exp.Column)] if self.text not in schema.names else [self.text]
        for name in names:
            _known(name, schema)
        return list(dict.fromkeys(_known(name, schema) for name in names))

    def type(self, schema: pa.Schema) -> pa.DataType:
        """The result's type over rows of this schema; raises where it has none."""
        return self.evaluate(schema.empty_table()).type

    def evaluate(self, table: pa.Table) -> pa.Array:
        """Its value for each row."""
        from sash.expressions.evaluate import evaluate

        if self.text in table.column_names:
            return _flat(table.column(self.text))
        value = evaluate(self.tree, table, self.text)
        if isinstance(value, pa.Scalar):
            return pa.repeat(value, table.num_rows)
        return _flat(value)

    def spark_sql(self) -> str:
        """The same as Spark SQL."""
        return str(self.tree.sql(dialect="spark"))


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
    folded = [n for n in schema.names if n.lower() == name.lower()]  # Spark does not tell cases apart
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

    # Databricks' dialect is Spark's with a CAST that raises, as ANSI mode has it; as Spark's, sqlglot takes it for TRY_CAST.
    try:
        tree = sqlglot.parse_one(text, dialect="databricks", error_level=ErrorLevel.IMMEDIATE)
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        place = max(0, int(details[0].get("col") or len(text)) - len(details[0].get("highlight") or " "))
        reason = str(details[0].get("description") or error).rstrip(".")
        raise InvalidExpression(f"{text!r} is not an expression: {reason}\n  {text}\n  {' ' * min(place, len(text))}^") from error
    if isinstance(tree, exp.Query | exp.Alias | exp.Command) or not isinstance(tree, exp.Expression):
        raise InvalidExpression(f"{text!r} is not an expression over the row; write it without SELECT and AS")
    for node in tree.walk():
        unknown_generator = isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS
        if unknown_generator or isinstance(node, exp.Query | exp.Window | exp.AggFunc | exp.UDTF):
            part = node.sql(dialect="databricks")
            raise InvalidExpression(f"{text!r} is not an expression over the row: {part} looks at other rows, or makes several of one")
    return Expression(text, tree)
