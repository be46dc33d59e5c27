"""``sash.spark.diagnose``: why a streaming query has no results."""

from __future__ import annotations

from typing import Any

from sash.plan.diagnosis import Facts, Finding, findings
from sash.spark.streams.progress import StreamingQuery, metrics_of

PARSED = "sash:parse"
RESULTS = "sash:results"
LEFT_BY_HAVING = "sash:having"
"""The observed metric with the number of results that HAVING has left."""


def diagnose(query: StreamingQuery) -> list[Finding]:
    """Why a streaming query has no results so far, the likeliest reason first, each with what to do about it.

    Args:
        query: What `writeStream...start()` returned, of a frame of `sash.aggregate`, `sash.over` or `sash.sql`.

    Returns:
        The reasons: their `name`, `text` and `remedy`. Empty if there are results.

    Examples:
        ```python
        query = sash.sql(text, S=stream, watermark="10 seconds").writeStream.format("parquet").option(...).start()
        for finding in sash.spark.diagnose(query):
            print(finding)
        ```
    """
    return findings(facts_of([(dict(p.observedMetrics or {}), sources_of(p)) for p in query.recentProgress]))


def sources_of(progress: Any) -> list[tuple[str, int]]:
    """The sources of a micro-batch, and how many rows each delivered: at least one if it advanced, since files whose statistics rule
    out the condition are skipped, and not counted."""
    return [(str(source.description), max(int(source.numInputRows), int(_has_advanced(source)))) for source in progress.sources]


def _has_advanced(source: Any) -> bool:
    return source.endOffset is not None and source.endOffset != source.startOffset


def facts_of(batches: list[tuple[dict[str, Any], list[tuple[str, int]]]]) -> Facts:
    """What the micro-batches tell together: their observed metrics, and the rows of their sources."""
    counts = dict.fromkeys(("rows", "late_rows", "without_time", "ahead", "emitted", "bad", "results"), 0)
    latest: dict[str, int | None] = dict.fromkeys(("reached", "newest", "oldest", "next_end", "tick_nanos"))
    ends: list[int] = []
    delivered: dict[str, int] = {}
    left: int | None = None
    for metrics, sources in batches:
        for number, (source, rows) in enumerate(sources):
            name = f"{source} ({number})" if any(s == source for s, _ in sources[:number]) else source
            delivered[name] = delivered.get(name, 0) + rows
        for name, values in metrics_of(metrics):
            if name.startswith(f"{PARSED}:"):
                counts["bad"] += values.get("bad") or 0
            elif name == RESULTS:
                counts["results"] += values.get("rows") or 0
            elif name.startswith(LEFT_BY_HAVING):
                left = (left or 0) + (values.get("rows") or 0)
            else:
                for what in ("rows", "late_rows", "without_time", "ahead", "emitted"):
                    counts[what] += values.get(what) or 0
                for what in ("reached", "newest", "tick_nanos"):
                    latest[what] = _most(latest[what], values.get(what))
                if values.get("oldest") is not None:
                    latest["oldest"] = min(values["oldest"], latest["oldest"] if latest["oldest"] is not None else values["oldest"])
                if values.get("next_end") is not None:
                    ends.append(values["next_end"])
    reached = latest["reached"]
    open_ends = [end for end in ends if reached is None or end > reached]
    some = any(delivered.values())
    silent = tuple(name for name, rows in delivered.items() if not rows) if some and len(delivered) > 1 else ()
    return Facts(
        rows_in=sum(delivered.values()), bad=counts["bad"], rows=counts["rows"], without_time=counts["without_time"],
        late=counts["late_rows"], ahead=counts["ahead"], emitted=counts["emitted"],
        results=counts["results"] if _has_results(batches) else counts["emitted"] if left is None else left,
        oldest=latest["oldest"], newest=latest["newest"], watermark=reached, next_end=min(open_ends, default=None),
        tick_nanos=latest["tick_nanos"], silent=silent,
    )  # fmt: skip


def _has_results(batches: list[tuple[dict[str, Any], Any]]) -> bool:
    """Whether results are counted by themselves, behind HAVING."""
    return any(RESULTS in metrics for metrics, _ in batches)


def _most(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
