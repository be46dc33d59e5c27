"""One run of a streaming query: started, watched, and stopped between micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sash.errors import StreamFailed
from sash.plan.diagnosis import Facts, Finding, findings
from sash.spark.streams.diagnose import facts_of, sources_of
from sash.spark.streams.progress import progress

QUIET_SECONDS = 5.0
"""After so long without results, the reasons are looked for."""


@dataclass
class Watched:
    """A streaming query with everything that its micro-batches have reported."""

    query: Any
    seen: list[tuple[dict[str, Any], list[tuple[str, int]]]] = field(default_factory=list)
    last_batch: int = -1
    last: dict[str, Any] = field(default_factory=dict)

    def look(self) -> bool:
        """Take note of new micro-batches; returns whether there were any."""
        new = [p for p in self.query.recentProgress if p.batchId > self.last_batch]
        if not new:
            return False
        self.seen += [(dict(p.observedMetrics or {}), sources_of(p)) for p in new]
        self.last_batch = new[-1].batchId
        self.last = progress(self.query)[-1] | {"rows_per_second": new[-1].processedRowsPerSecond or 0.0}
        return True

    @property
    def is_waiting(self) -> bool:
        """Whether no rows have arrived yet."""
        return "Waiting for data" in self.query.status["message"]

    @property
    def facts(self) -> Facts:
        """What is known of the query's rows since it was started."""
        return facts_of(self.seen)

    @property
    def findings(self) -> list[Finding]:
        """Why there are no results."""
        return findings(self.facts)


def watch(query: Any, seconds: float = 0.25) -> Iterator[Watched]:
    """The query whenever it has moved, and from time to time, until it ends; raises as :class:`StreamFailed` what ends it."""
    watched = Watched(query)
    while query.isActive:
        watched.look()
        yield watched
        time.sleep(seconds)
    watched.look()
    yield watched
    failure = query.exception()
    if failure is not None:
        raise StreamFailed(reason_of(failure))


def stop_between_steps(query: Any, patience: float = 120.0, wait: Callable[[float], None] = time.sleep) -> None:
    """Stop a query once its micro-batch is done, so that nothing has to be computed again."""
    end, before = time.monotonic() + patience, _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == before and time.monotonic() < end:
        wait(0.05)
    query.stop()


def _last_batch(query: Any) -> int:
    """The number of the last micro-batch that is done."""
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)


KNOWN = {
    "UnknownTopicOrPartition": "the topic does not exist",
    "Topic(s)": "the topic does not exist",
    "Failed to create new KafkaAdminClient": "the broker's address cannot be used",
    "TimeoutException": "the broker does not answer",
    "Failed to find data source: kafka": "Spark's Kafka connector is missing; pass --conf spark.jars.packages=... (docs/kafka.md)",
    "PATH_NOT_FOUND": "the folder does not exist",
}


def reason_of(error: Any) -> str:
    """The reason of a failure in one line: Sash's own message, or Spark's without its stack."""
    text = str(error)
    for mark, words in KNOWN.items():
        if mark in text:
            return f"{words} ({_first_line(text)})"
    for line in text.splitlines():
        if line.startswith("sash.errors."):
            return line.partition(": ")[2]
    return _first_line(text)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:500] if lines else "the stream ended with an error"
