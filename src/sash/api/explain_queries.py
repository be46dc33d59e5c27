"""The plan of a query as text: the tree of its relations, and what each becomes over these streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sash.api.explain_tables import slicing_lines
from sash.api.sql import check_engine, given_tables, planned, planned_over_frames, streams_of
from sash.columns import in_known_layouts
from sash.plan.options import StreamOptions
from sash.plan.queries.relation_tree import tree
from sash.plan.queries.relations import Grouped, Joined, Relation, Windowed
from sash.plan.queries.rewrites import rewritten
from sash.relational.groups import bound_plan, with_keys
from sash.relational.members import Members
from sash.relational.query_run import QueryRun


def explain_query(text: str, arguments: Mapping[str, Any]) -> list[str]:
    """The plan of ``sash.sql(text, ...)`` as lines of text."""
    options = {n: arguments[n] for n in ("streams", "time", "order_by", "functions", "engine") if n in arguments}
    of_streams = {n: arguments[n] for n in ("watermark", "lateness", "emit", "late") if n in arguments}
    named = {n: v for n, v in arguments.items() if n not in (*options, *of_streams)}
    streams = streams_of(options.get("streams"), named)
    if check_engine(streams, options.get("engine", "auto")):
        from sash.spark.explain_spark import explain_query_frames

        plan, order = planned_over_frames(
            text, streams, **{n: options.get(n) for n in ("order_by", "functions")}, time=options.get("time", "timestamp")
        )
        return explain_query_frames(plan, streams, StreamOptions.of(**of_streams), order)
    tables = given_tables(streams)
    plan = rewritten(planned(text, {n: t.schema for n, t in tables.items()}, options.get("time", "timestamp"), options.get("functions")))
    run = QueryRun({n: in_known_layouts(t) for n, t in tables.items()})
    rows = ", ".join(f"{name} ({table.num_rows:,} rows)" for name, table in tables.items())
    return [f"query over tables: {rows}", *(f"  {line}" for line in tree(plan, lambda relation: _notes(run, relation)))]


def _notes(run: QueryRun, relation: Relation) -> list[str]:
    if isinstance(relation, Windowed):
        return [] if relation.windowing.is_implied else [f"windows: {_KINDS[relation.windowing.kind]}"]
    if isinstance(relation, Joined):
        how = "equal keys" if relation.equal else "time"
        return [f"pairs: rows whose spans of windows overlap, found by {how}; repeated per window only in the result"]
    if not isinstance(relation, Grouped):
        return []
    rows = run.relation(relation.child)
    if not isinstance(rows, Members):
        return ["rows: each is in one window"]
    if rows.pipe is None:
        return ["rows: repeated per window, in blocks of windows"]
    return [line.removeprefix("  ") for line in slicing_lines(*bound_plan(relation, with_keys(relation, rows.table), rows.pipe))]


_KINDS = {
    "time": "by time, at equal distances",
    "instants": "one per distinct time of a row",
    "last rows": "one per distinct time of a row, with the last rows of each partition",
    "rows": "by the number of rows",
    "sessions": "by gaps between rows",
    "marks": "by marked rows",
}
