"""A condition of two sides with what depends on one side computed once for each of its rows, not for each pair."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions.evaluate import evaluate
from sash.expressions.nodes import Call, Cast, Field, Node, walk


def over_sides(node: Node, left: pa.Table, right: pa.Table, text: str) -> tuple[Node, tuple[pa.Table, pa.Table]]:
    """The condition over fewer columns, and both sides with those columns alone."""
    sides = _Sides(left, right, text)
    result = sides.visit(node)
    names = {part.path[0] for part in walk(result) if isinstance(part, Field)}
    one, other = (t.select([n for n in t.column_names if n in names]) for t in sides.tables)
    return result, (one, other)


class _Sides:
    """Replaces the largest parts that read one side by columns of that side."""

    def __init__(self, left: pa.Table, right: pa.Table, text: str) -> None:
        self.tables = [left, right]
        self.text = text
        self.count = 0

    def visit(self, node: Node) -> Node:
        if not isinstance(node, Call | Cast):
            return node
        reads = {part.path[0] for part in walk(node) if isinstance(part, Field)}
        for k, table in enumerate(self.tables):
            if reads and reads <= set(table.column_names):
                return self.computed(node, k)
        if isinstance(node, Cast):
            return replace(node, argument=self.visit(node.argument))
        return replace(node, arguments=tuple(self.visit(a) for a in node.arguments))

    def computed(self, node: Node, side: int) -> Node:
        """The part as a column; as it is where some row has no value for it, which pairs may not need."""
        table = self.tables[side]
        try:
            values = evaluate(node, table, self.text)
        except InvalidExpression:
            return node
        name = f"@side:{self.count}"
        self.count += 1
        self.tables[side] = table.append_column(name, values)
        return Field(node.type, (name,))
