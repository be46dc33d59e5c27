"""A query on Spark: finite inputs as a batch, or as a stream that can be resumed; endless ones as a stream."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.api.sql import sql
from sash.errors import InvalidArgument, SashError
from sash.running.display import Display, Status
from sash.running.files import json_text, schema_of_files
from sash.running.on_tables import Outcome
from sash.running.schemas import checked_columns, schema_of
from sash.running.settings import Settings, Source

if TYPE_CHECKING:
    from sash.spark.pipelines.execution import Watched

RATE = pa.schema([("timestamp", pa.timestamp("us", "UTC")), ("value", pa.int64())])


class Interrupted(Exception):
    """The run was stopped by Ctrl-C; its last step is complete."""


def run_spark(settings: Settings, display: Display) -> Outcome:
    """Run a query on Spark."""
    from sash.spark.pipelines.stream_sinks import check_sink

    check_sink(settings.sink)
    is_stream = settings.follow or settings.checkpoint is not None
    if settings.bad is not None and not is_stream:
        raise InvalidArgument(
            "--bad: a batch on Spark counts what does not parse; use --engine table, or --checkpoint to run it as a stream"
        )
    with _session(settings, display) as session:
        return _stream(settings, session, display) if is_stream else _batch(settings, session, display)


@contextlib.contextmanager
def _session(settings: Settings, display: Display) -> Any:
    from sash.spark import session
    from sash.spark.pipelines.connectors import settings_for

    places = [s.place for s in settings.sources] + [settings.sink]
    own = settings_for(places, settings.spark)
    log = Path(tempfile.mkdtemp(prefix="sash-run-")) / "spark.log"
    display.say(f"starting Spark; its log is {log}")
    with _standard_error_in(log):  # which Java and the Python workers inherit
        started = session(settings={"spark.sql.session.timeZone": "UTC", "spark.log.level": "ERROR", **own, **settings.spark})
    try:
        yield started
    finally:
        started.stop()


@contextlib.contextmanager
def _standard_error_in(path: Path) -> Any:
    """Inside, processes that are started write their standard error to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _schema(settings: Settings, source: Source, session: Any) -> pa.Schema | None:
    """A source's columns: as they were passed, or from its files, or from a message."""
    if source.schema is not None or source.place.kind == "spark":
        return source.schema
    if source.place.kind == "rate":
        return RATE
    if source.place.kind == "kafka":
        return _schema_of_message(source, session)
    return schema_of_files(source.place, source.what)


def _schema_of_message(source: Source, session: Any) -> pa.Schema:
    from dataclasses import replace

    from sash.spark.pipelines.execution import reason_of
    from sash.spark.pipelines.stream_sources import STARTING, kafka_values

    from_start = {n: v for n, v in source.place.options.items() if n != STARTING}
    try:
        first = kafka_values(session, replace(source.place, options=from_start), streaming=False).limit(20).collect()
    except Exception as error:
        raise InvalidArgument(f"{source.what}: {reason_of(error)}") from None
    for row in first:
        with contextlib.suppress(SashError):
            if row.value is not None and row.value.lstrip().startswith("{"):
                return schema_of(row.value, source.what)
    raise InvalidArgument(f"{source.what}: no message tells its columns; pass --schema {source.name}='a long, b timestamp'")


def _frames(settings: Settings, session: Any, *, streaming: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The frames of all sources, and those of what does not parse."""
    from sash.spark.pipelines.stream_sources import source_frames

    rows, bad = {}, {}
    for source in settings.sources:
        schema = _schema(settings, source, session)
        if schema is not None:
            checked_columns(schema, settings.time, source.what)
        frames = source_frames(session, source.name, source.place, schema, streaming=streaming)
        rows[source.name] = frames.rows
        if frames.bad is not None:
            bad[source.name] = frames.bad
    return rows, bad


def _result(settings: Settings, frames: dict[str, Any], *, streaming: bool) -> Any:
    of_streams = {"emit": settings.emit} if streaming else {}
    return sql(
        settings.text, streams=frames, time=settings.time, order_by=settings.order_by or None, watermark=settings.watermark,
        lateness=settings.lateness, **of_streams,  # type: ignore[arg-type]
    )  # fmt: skip


def _batch(settings: Settings, session: Any, display: Display) -> Outcome:
    from sash.spark.pipelines.execution import reason_of
    from sash.spark.pipelines.stream_sinks import write_batch

    frames, _ = _frames(settings, session, streaming=False)
    result = _result(settings, frames, streaming=False)
    if settings.limit is not None:
        result = result.limit(settings.limit)
    try:
        results = write_batch(result, settings.sink, _print)
    except SashError:
        raise
    except Exception as error:
        raise InvalidArgument(reason_of(error)) from None
    display.say(f"{results:,} results")
    if not results:
        display.warn("No window has a result: there are no rows, they have no time, or WHERE or HAVING dropped every one")
    return Outcome(0, 0, results)


def _print(table: pa.Table) -> None:
    sys.stdout.write(json_text(table))
    sys.stdout.flush()


class _Limited:
    """Prints up to a number of results."""

    def __init__(self, limit: int | None) -> None:
        self.left = limit

    def __call__(self, table: pa.Table) -> None:
        if self.left is not None:
            table = table.slice(0, self.left)
            self.left -= table.num_rows
        _print(table)

    @property
    def is_done(self) -> bool:
        return self.left == 0


def _stream(settings: Settings, session: Any, display: Display) -> Outcome:
    from sash.spark import check
    from sash.spark.pipelines.execution import stop_between_steps, watch
    from sash.spark.pipelines.stream_sinks import stream_writer

    if settings.limit is not None and settings.sink.kind != "standard":
        raise InvalidArgument("--limit: a stream is cut on standard output only (--out -)")
    frames, bad = _frames(settings, session, streaming=True)
    result = _result(settings, frames, streaming=True)
    checkpoint = settings.checkpoint or Path(tempfile.mkdtemp(prefix="sash-run-"))
    if settings.checkpoint is None:
        display.say("no --checkpoint: the next run starts anew")
    with contextlib.suppress(InvalidArgument):  # of what has no state there is nothing to check
        check(result, str(checkpoint / "query"))
    printer = _Limited(settings.limit)
    counted = result.observe("sash:results", *_count(result))
    mode = "append" if settings.emit == "final" else "update"
    queries = [_started(stream_writer(counted, settings.sink, mode, str(checkpoint / "query"), printer), settings)]
    if settings.bad is not None and bad:
        queries.append(_bad_rows(settings, bad, checkpoint))
    try:
        watched = _watched(queries[0], display, printer, watch, follow=settings.follow)
        for query in queries[1:]:
            query.awaitTermination() if not settings.follow else stop_between_steps(query)
    except KeyboardInterrupt:
        display.close()
        display.say("finishing the step")
        for query in queries:
            stop_between_steps(query)
        raise Interrupted(_how_to_go_on(settings)) from None
    facts = watched.facts
    display.summary(rows=facts.rows_in, bad=facts.bad, results=facts.results)
    if not facts.results:
        for finding in watched.findings:
            display.warn(str(finding))
    return Outcome(facts.rows_in, facts.bad, facts.results)


def _count(frame: Any) -> list[Any]:
    from sash.spark.language.spark_frames import functions_for

    return [functions_for(frame).expr("count(*)").alias("rows")]


def _started(writer: Any, settings: Settings) -> Any:
    return (writer.trigger(processingTime="0 seconds") if settings.follow else writer.trigger(availableNow=True)).start()


def _bad_rows(settings: Settings, bad: dict[str, Any], checkpoint: Path) -> Any:
    """A second query, which keeps what does not parse."""
    from functools import reduce

    assert settings.bad is not None
    frame = reduce(lambda one, other: one.unionAll(other), bad.values())
    folder = settings.bad.target
    writer = frame.writeStream.format("text").option("path", folder).option("checkpointLocation", str(checkpoint / "bad"))
    return _started(writer, settings)


def _watched(query: Any, display: Display, printer: _Limited, watch: Any, *, follow: bool) -> Watched:
    """Show a query until it ends; one that goes on without results says why."""
    from sash.spark.pipelines.execution import QUIET_SECONDS

    begun, shown = time.monotonic(), -1
    for watched in watch(query):
        if watched.last_batch > shown:
            shown = watched.last_batch
            display.update(_status(watched))
        is_quiet = follow and time.monotonic() - begun > QUIET_SECONDS and query.isActive and not watched.facts.results
        if is_quiet and (watched.seen or watched.is_waiting):
            for finding in watched.findings[:2]:
                display.warn(str(finding))
        if printer.is_done and query.isActive:
            query.stop()
    return watched  # type: ignore[no-any-return]


def _status(watched: Watched) -> Status:
    facts, last = watched.facts, watched.last
    return Status(
        watched.last_batch, facts.rows_in, facts.bad, facts.late, facts.results,
        "" if facts.watermark is None else facts.time(facts.watermark), last.get("open_windows") or 0,
        (last.get("slices") or 0) + (last.get("kept_rows") or 0), round(float(last["rows_per_second"]), 1), last["seconds"],
    )  # fmt: skip


def _how_to_go_on(settings: Settings) -> str:
    if settings.checkpoint is None:
        return "stopped; without --checkpoint DIR the next run starts anew"
    return f"stopped; the same command goes on from {settings.checkpoint}"
