"""Users' window functions: called once per window, with one table per source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.errors import InvalidType, UserFunctionFailed
from sash.plan.queries.relations import Applied
from sash.relational.members import Members, Results, expanded, values_of

Array = npt.NDArray[Any]


def applied(relation: Applied, sources: Sequence[Members | Results]) -> Results:
    """What the function returns for each window in which some source has rows."""
    spread = [_per_window(source) for source in sources]
    edges, measure = sources[0].edges, sources[0].measure
    numbers = np.unique(np.concatenate([n for _, n in spread]))
    exist = edges.exist(numbers)
    numbers = numbers if exist is None else numbers[exist]
    own = pa.schema(list(relation.schema)[1:])
    tables, counts = [own.empty_table()], []
    begins = [np.searchsorted(n, numbers) for _, n in spread]
    ends = [np.searchsorted(n, numbers, side="right") for _, n in spread]
    for k in range(len(numbers)):
        arguments = [table.slice(int(b[k]), int(e[k] - b[k])) for (table, _), b, e in zip(spread, begins, ends, strict=True)]
        result = _called(relation, arguments, own)
        tables.append(result)
        counts.append(result.num_rows)
    table = pa.concat_tables(tables)
    repeated = np.repeat(numbers, counts) if counts else numbers[:0]
    time = values_of(measure, edges.times(repeated))
    return Results(pa.table([time, *table.columns], schema=relation.schema), edges, repeated, measure)


def _per_window(rows: Members | Results) -> tuple[pa.Table, Array]:
    """Rows window by window, and their windows."""
    if isinstance(rows, Members):
        places, numbers = expanded(*rows.span)
        order = np.argsort(numbers, kind="stable")
        return rows.table.take(pa.array(places[order])), numbers[order]
    order = np.argsort(rows.numbers, kind="stable")
    return rows.table.take(pa.array(order)), rows.numbers[order]


def _called(relation: Applied, arguments: list[pa.Table], schema: pa.Schema) -> pa.Table:
    try:
        result = pa.table(relation.function(*arguments))
    except Exception as error:
        raise UserFunctionFailed(f"the window function {relation.name} raised {type(error).__name__}: {error}") from error
    names = [n for n in result.column_names if n.lower() != relation.schema.names[0].rpartition(".")[2].lower()]
    wanted = [n.rpartition(".")[2] for n in schema.names]
    if sorted(names) != sorted(wanted):
        raise InvalidType(f"the window function {relation.name} returned the columns {names}; over empty tables it returned {wanted}")
    try:
        return pa.table([result.column(n).cast(f.type) for n, f in zip(wanted, schema, strict=True)], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidType(f"the window function {relation.name} returned other types than over empty tables: {error}") from error
