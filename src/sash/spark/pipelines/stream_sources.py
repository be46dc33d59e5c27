"""Frames of sources: files, folders that grow, Kafka, a generator, and whatever format the session has.

Rows that do not parse are set apart: they are counted (an observed metric per source), and can be read as a frame of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.locations import Location, with_format
from sash.spark.language.spark_frames import functions_for
from sash.spark.language.spark_types import spark_schema
from sash.spark.language.sql import quoted

PARSED = "sash:parse"
"""Observed metrics of a source: rows, and those that did not parse."""
CORRUPT = "@sash:corrupt"
STARTING = "startingOffsets"


@dataclass(frozen=True)
class SourceFrames:
    """A source's rows, and its lines that did not parse (None where all do)."""

    rows: Any
    bad: Any | None


def source_frames(session: Any, name: str, place: Location, schema: pa.Schema | None, *, streaming: bool) -> SourceFrames:
    """The frames of a source."""
    reader = session.readStream if streaming else session.read
    if place.kind == "rate":
        if not streaming:
            raise InvalidArgument(f"--stream {name}: rate:// never ends; it is for --follow")
        frame = reader.format("rate").option("rowsPerSecond", place.target).options(**place.options).load()
        return SourceFrames(frame, None)
    if place.kind == "spark":
        typed = reader.schema(spark_schema(schema)) if schema is not None else reader
        loaded = typed.format(place.format).options(**place.options)
        return SourceFrames(loaded.load(place.target) if place.target else loaded.load(), None)
    if place.kind == "kafka":
        text = kafka_values(session, place, streaming=streaming)
        return _of_json(text, name, _needed(schema, name))
    if place.kind == "standard":
        raise InvalidArgument(f"--stream {name}: standard input is read by --engine table")
    place = with_format(place, f"--stream {name}")
    if streaming:
        _check_folder(name, place)
        reader = reader.option("maxFilesPerTrigger", place.options.get("maxFilesPerTrigger", "1000"))
    needed = _needed(schema, name)
    if place.format == "json":
        return _of_json(reader.format("text").load(place.target).selectExpr("value"), name, needed)
    if place.format == "csv":
        return _of_csv(reader, place, name, needed)
    if place.format == "parquet":
        return SourceFrames(reader.schema(spark_schema(needed)).parquet(place.target), None)
    raise InvalidArgument(
        f"--stream {name}: files of the format {place.format} are read by --engine table; Spark reads parquet, json and csv"
    )


def _check_folder(name: str, place: Location) -> None:
    if place.path.is_file():
        raise InvalidArgument(f"--stream {name}: {place.target!r} is a file; a stream follows a folder")


def _needed(schema: pa.Schema | None, name: str) -> pa.Schema:
    if schema is None:
        raise InvalidArgument(f"--stream {name}: its columns are not known; pass --schema {name}='a long, b timestamp'")
    return schema


def kafka_values(session: Any, place: Location, *, streaming: bool) -> Any:
    """The values of a topic's messages as text."""
    reader = session.readStream if streaming else session.read
    options = {STARTING: "earliest", **place.options}
    loaded = reader.format("kafka").option("kafka.bootstrap.servers", place.servers).option("subscribe", place.target).options(**options)
    return loaded.load().selectExpr("cast(value as string) as value")


def _of_json(text: Any, name: str, schema: pa.Schema) -> SourceFrames:
    """Lines of JSON as rows."""
    F = functions_for(text)
    wanted = spark_schema(schema).add(CORRUPT, "string")
    parsed = text.select("value", F.from_json("value", wanted, {"columnNameOfCorruptRecord": CORRUPT}).alias("row"))
    is_bad = f"(row is null or row.{quoted(CORRUPT)} is not null)"
    counts = [F.expr("count(*)").alias("rows"), F.expr(f"count_if({is_bad})").alias("bad")]
    observed = parsed.observe(f"{PARSED}:{name}", *counts)
    columns = [f"row.{quoted(n)} as {quoted(n)}" for n in schema.names]
    return SourceFrames(observed.where(f"not {is_bad}").selectExpr(*columns), parsed.where(is_bad).selectExpr("value"))


def _of_csv(reader: Any, place: Location, name: str, schema: pa.Schema) -> SourceFrames:
    """Lines of CSV as rows."""
    options = {"header": "true", "columnNameOfCorruptRecord": CORRUPT, **place.options}
    frame = reader.schema(spark_schema(schema).add(CORRUPT, "string")).options(**options).csv(place.target)
    F = functions_for(frame)
    is_bad = f"{quoted(CORRUPT)} is not null"
    counts = [F.expr("count(*)").alias("rows"), F.expr(f"count_if({is_bad})").alias("bad")]
    observed = frame.observe(f"{PARSED}:{name}", *counts)
    rows = observed.where(f"not ({is_bad})").selectExpr(*map(quoted, schema.names))
    return SourceFrames(rows, frame.where(is_bad).selectExpr(f"{quoted(CORRUPT)} as value"))
