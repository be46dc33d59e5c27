"""What a streaming query's operators did in each micro-batch, from Spark's observed metrics."""

from __future__ import annotations

from typing import Any, Protocol

from sash.spark.workers.stream_tasks import MEASURED

STATE, INPUT, PLAIN = "sash", "sash:in", "sash:plain"
OF_INPUT = ("rows", "without_time", "ahead")
"""The metrics of a stream whose state is Spark's own (``plan="plain"``)."""
MOST, LEAST = ("open_windows", "reached", "newest", "tick_nanos"), ("oldest", "next_end")
"""Metrics that are reported as the maximum or the minimum over all buckets; the others are summed."""


TIMES = ("oldest", "newest", "next_end", "tick_nanos")


class StreamingQuery(Protocol):
    """A query of Structured Streaming, classic or Connect."""

    @property
    def recentProgress(self) -> Any: ...  # noqa: N802


def _named(row: Any) -> dict[str, Any]:
    """Metrics by name; Connect has them as values and a schema."""
    metrics: dict[str, Any] = row.asDict()
    if set(metrics) == {"values", "schema"}:
        return dict(zip([f["name"] for f in metrics["schema"]["fields"]], metrics["values"], strict=True))
    return metrics


def metrics_of(observed: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The observed metrics that are Sash's, by name."""
    return [(name, _named(row)) for name, row in observed.items() if name.startswith("sash")]


def progress(query: StreamingQuery) -> list[dict[str, Any]]:
    """What a streaming query's operators did in each of its recent micro-batches.

    Args:
        query: What `writeStream...start()` returned.

    Returns:
        A dictionary for each micro-batch. `rows` (that have a time), `late_rows` of them (dropped), `without_time` and `ahead` (set aside)
        count rows of the micro-batch; `slices`, `kept_rows` and `keys` are stored after it; `bytes_read` and `bytes_written` are of the
        state store; `emitted` counts results; `open_windows` can still change: those with known edges, whatever the key, and each key's
        sessions and the like. `oldest` and `newest` are the span of the micro-batch's times, in the unit of the time column. `watermark`
        is Spark's, as text; where Spark has none (integers, dates, timestamps without a zone) it is Sash's own, in that unit. With
        `plan="plain"` the state is Spark's own, and what only Sash's state has is None. Listeners get the same numbers as observed
        metrics, under names that start with `sash:`.

    Examples:
        ```python
        query = sash.aggregate(stream, ...).writeStream.format("parquet").option(...).start()
        print(sash.spark.progress(query)[-1]["late_rows"])
        ```
    """
    batches = []
    for entry in query.recentProgress:
        metrics = dict(entry.observedMetrics or {})
        numbers = dict.fromkeys((*(m for m in MEASURED if m not in ("reached", *TIMES)), "ahead"), 0)
        times: dict[str, int | None] = dict.fromkeys(("oldest", "newest"))
        reached: int | None = None
        for name, row in metrics.items():
            if name.startswith(f"{STATE}:"):
                measured = _named(row)
                own = measured.pop("reached", None)
                reached = own if reached is None else reached if own is None else min(reached, own)
                for what, value in measured.items():
                    if what in TIMES:
                        known = [v for v in (times.get(what), value) if v is not None]
                        times[what] = (max if what in MOST else min)(known, default=None)
                    else:
                        numbers[what] = numbers.get(what, 0) + (value or 0)
        numbers["open_windows"] += numbers.pop("own_windows")
        is_plain = any(name.startswith(f"{PLAIN}:") for name in metrics)
        reported = {name: None if is_plain and name not in OF_INPUT else value for name, value in numbers.items()}
        watermark = dict(entry.eventTime or {}).get("watermark", reached)
        span = {"oldest": times["oldest"], "newest": times["newest"]}
        batches.append({"batch": entry.batchId, **reported, **span, "watermark": watermark, "seconds": entry.batchDuration / 1000})
    return batches
