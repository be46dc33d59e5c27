"""What a streaming query's operators did in each micro-batch, from Spark's observed metrics."""

from __future__ import annotations

from typing import Any

STATE, INPUT = "sash", "sash:in"
MEASURED = ("rows", "late_rows", "slices", "kept_rows", "keys", "bytes_read", "bytes_written")


def progress(query: Any) -> list[dict[str, Any]]:
    """For each of a query's recent micro-batches: its number, rows, late rows, slices and rows held, bytes read and written, watermark.

    ``query`` is what ``writeStream...start()`` gives. Listeners find the same among the observed metrics, under names that start with
    ``sash:``.
    """
    found = []
    for entry in query.recentProgress:
        metrics = dict(entry.observedMetrics or {})
        numbers = dict.fromkeys((*MEASURED, "without_time", "ahead"), 0)
        for name, row in metrics.items():
            if name.startswith(f"{STATE}:"):
                for what, value in row.asDict().items():
                    numbers[what] = numbers.get(what, 0) + (value or 0)
        times = dict(entry.eventTime or {})
        found.append({"batch": entry.batchId, **numbers, "watermark": times.get("watermark"), "seconds": entry.batchDuration / 1000})
    return found
