"""Sinks: where a frame of results goes, as a batch or as a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.locations import Location, with_format
from sash.spark.language.sql import quoted

Printer = Callable[[pa.Table], None]
"""Prints results."""
FILES = ("parquet", "json", "csv")
TIMES = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""How times are written as text; by default, Spark leaves out microseconds."""


def check_sink(place: Location) -> None:
    """Raise if results cannot be written there."""
    if place.kind == "file":
        place = with_format(place, "--out")
        if place.format not in FILES:
            raise InvalidArgument(f"--out: Spark writes {', '.join(FILES)}, not {place.format}")
        if place.path.is_file():
            raise InvalidArgument(f"--out: {place.target!r} is a file; Spark writes a folder of files")


def write_batch(frame: Any, place: Location, printer: Printer) -> int:
    """Write a batch; returns how many results there are."""
    if place.kind == "standard":
        table = frame.toArrow()
        printer(table)
        return int(table.num_rows)
    frame = frame.cache()
    try:
        if place.kind == "kafka":
            _as_messages(frame, place).write.format("kafka").options(**_options(place)).save()
        elif place.kind == "spark":
            writer = frame.write.format(place.format).options(**place.options).mode("append")
            writer.save(*([place.target] if place.target else []))
        else:
            frame.write.format(place.format).options(**_of_files(place)).mode("overwrite").save(place.target)
        return int(frame.count())
    finally:
        frame.unpersist()


def stream_writer(frame: Any, place: Location, mode: str, checkpoint: str, printer: Printer) -> Any:
    """A writer that is ready to be started."""
    if place.kind == "kafka":
        writer = _as_messages(frame, place).writeStream.format("kafka").options(**_options(place))
    elif place.kind == "spark":
        writer = frame.writeStream.format(place.format).options(**place.options)
        writer = writer.option("path", place.target) if place.target else writer
    elif place.kind == "standard":
        writer = frame.writeStream.foreachBatch(lambda batch, number: printer(batch.toArrow()))
    elif mode == "append":
        writer = frame.writeStream.format(place.format).option("path", place.target).options(**_of_files(place))
    else:  # files take no updates: each micro-batch has a folder, which is written again if the micro-batch is
        path, format, options = place.target, place.format, _of_files(place)

        def write(batch: Any, number: int) -> None:
            batch.write.format(format).options(**options).mode("overwrite").save(f"{path}/batch={number}")

        writer = frame.writeStream.foreachBatch(write)
    return writer.outputMode(mode).option("checkpointLocation", checkpoint)


def _as_messages(frame: Any, place: Location) -> Any:
    """Results as Kafka's messages: JSON, by a key if ``?key=`` names columns."""
    keys = [n.strip() for n in place.options.get("key", "").split(",") if n.strip()]
    missing = [n for n in keys if n not in frame.columns]
    if missing:
        raise InvalidArgument(f"--out: key={missing[0]!r} is no column of the results; they are {', '.join(frame.columns)}")
    value = f"to_json(struct({', '.join(map(quoted, frame.columns))}), map('timestampFormat', \"{TIMES}\")) as value"
    if not keys:
        return frame.selectExpr(value)
    key = f"to_json(struct({', '.join(map(quoted, keys))}))" if len(keys) > 1 else f"cast({quoted(keys[0])} as string)"
    return frame.selectExpr(f"{key} as key", value)


def _of_files(place: Location) -> dict[str, str]:
    """The options of files: times with all of their digits, and a header in CSV."""
    own = {"csv": {"header": "true", "timestampFormat": TIMES}, "json": {"timestampFormat": TIMES}}.get(place.format, {})
    return {**own, **place.options}


def _options(place: Location) -> dict[str, str]:
    others = {n: v for n, v in place.options.items() if n != "key"}
    return {"kafka.bootstrap.servers": place.servers, "topic": place.target, **others}
