"""``sash.spark.check``: whether a query can resume from a checkpoint, before it is started."""

from __future__ import annotations

import json
from typing import Any

from sash.errors import InvalidArgument, InvalidSnapshot
from sash.slicing.persistence import encoding, manifests
from sash.slicing.persistence.manifests import other_query
from sash.spark.language.spark_frames import QUERY
from sash.spark.language.sql import quoted
from sash.types import SparkFrame

STATE_VARIABLE = "sash"


def check(frame: SparkFrame, checkpoint: str) -> None:
    """Raise `sash.errors.InvalidSnapshot` if a query cannot resume from a checkpoint, and name the difference.

    Without it, the first micro-batch that has rows fails with the same message. A folder in which no query has run yet is fine.

    Args:
        frame: What `sash.aggregate` or `sash.over` returned for a stream, or a frame derived from it that still has the window (or time)
            column.
        checkpoint: The folder that `checkpointLocation` names.

    Examples:
        ```python
        out = sash.aggregate(stream, ...)
        sash.spark.check(out, "checkpoints/hourly")
        query = out.writeStream.option("checkpointLocation", "checkpoints/hourly").start()
        ```
    """
    streaming: Any = frame
    requested = [f.metadata[QUERY] for f in streaming.schema.fields if QUERY in (f.metadata or {})]
    if not requested:
        raise InvalidArgument(
            "frame is not a stream of sash.aggregate, sash.over or sash.sql, or it has lost the column that says so: check it before that"
        )
    if any(json.loads(text).get("plan") == "plain" for text in requested):
        raise InvalidArgument(
            "plan='plain' uses Spark's own state, which does not record the query that it belongs to: there is nothing to compare with"
        )
    for old in _queries(streaming.sparkSession, str(checkpoint)):
        problems = [other_query(old, json.loads(text)) for text in requested]
        if all(problem is not None for problem in problems):
            raise InvalidSnapshot(problems[0])


def _queries(session: Any, checkpoint: str) -> list[dict[str, Any]]:
    """The queries whose state a checkpoint has."""
    try:
        operators = session.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorName").distinct().collect()
    except Exception as error:
        if "CANNOT_READ" in str(error) or "does not exist" in str(error) or "PATH_NOT_FOUND" in str(error) or "OFFSET" in str(error):
            return []  # nothing has run there yet
        raise
    queries = []
    for operator in sorted({row.operatorId for row in operators if "transformWithState" in row.operatorName}):
        reader = session.read.format("statestore").option("operatorId", operator).option("stateVarName", STATE_VARIABLE)
        values = reader.load(checkpoint).where(f"{quoted('key')} is not null and user_map_key.name = '{manifests.QUERY}'")
        rows = values.selectExpr("user_map_value.value as value").limit(1).collect()
        queries += [encoding.to_json(bytes(row.value), "the state's query") for row in rows]
    return queries
