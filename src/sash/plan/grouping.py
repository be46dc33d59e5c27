"""What rows are grouped by: columns, and named SQL expressions over the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, InvalidExpression, UnknownName, unknown
from sash.expressions import Expression, parse
from sash.expressions.syntax import split_alias
from sash.plan.hints import hint


@dataclass(frozen=True)
class Grouping:
    """The names of the key columns, and the expressions of those that are computed."""

    names: tuple[str, ...]
    computed: dict[str, Expression]

    def with_keys(self, table: pa.Table) -> pa.Table:
        """The table with the computed keys appended."""
        for name, expression in self.computed.items():
            table = table.append_column(name, expression.evaluate(table))
        return table


def grouping_of(by: Any, schema: pa.Schema, *, may_exist: bool = False) -> Grouping:
    """The keys that ``by`` names: a column, an expression ("k % 2", "k % 2 as parity"), several of them, or a dictionary of them by name.

    With ``may_exist``, computed columns may already be in the schema.
    """
    if by is None:
        return Grouping((), {})
    if isinstance(by, Mapping):
        keys: list[tuple[str | None, Any]] = [(str(name), text) for name, text in by.items()]
    else:
        if not isinstance(by, str) and (not hasattr(by, "__iter__") or hint(by)):
            raise InvalidArgument(f"by must be a column's name, an SQL expression or several, not {by!r}{hint(by)}")
        keys = [(None, text) for text in ([by] if isinstance(by, str) else list(by))]
    names: list[str] = []
    computed: dict[str, Expression] = {}
    for name, text in keys:
        if not isinstance(text, str):
            raise InvalidArgument(f"by must be a column's name, an SQL expression or several, not {text!r}{hint(text)}")
        if text in schema.names and name in (None, text) and not (may_exist and _is_expression(text, schema)):
            names.append(text)
            continue
        expression, own = (text, name) if name is not None else split_alias(text)
        parsed = _expression(expression, schema)
        own = own or text
        if own in schema.names and not may_exist:
            raise InvalidArgument(f"by names {text!r} {own!r}, and there is a column of that name; use another")
        names.append(own)
        computed[own] = parsed
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise InvalidArgument(f"by would have two columns named {twice!r}; name one of them with `as`")
    return Grouping(tuple(names), computed)


def _is_expression(text: str, schema: pa.Schema) -> bool:
    """Whether text is SQL over other columns, rather than the name of one."""
    try:
        columns = parse(text).columns(pa.schema([f for f in schema if f.name != text]))
    except (InvalidExpression, UnknownName):
        return False
    return bool(columns)


def _expression(text: str, schema: pa.Schema) -> Expression:
    if text in schema.names:
        return Expression.of_column(text)
    try:
        expression = parse(text)
        expression.columns(schema)
    except (InvalidExpression, UnknownName) as error:
        if text.replace("_", "").isalnum():  # a name rather than an expression
            raise unknown("column in by", text, schema.names) from error
        raise
    return expression
