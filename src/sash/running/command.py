"""``sash run``: what it does, and with which exit code it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sash.api.explain import explain
from sash.api.sql import sql
from sash.errors import InvalidArgument, SashError
from sash.running.display import Display
from sash.running.files import schema_of_files
from sash.running.on_spark import RATE, Interrupted, run_spark
from sash.running.on_tables import run_tables
from sash.running.schemas import checked_columns
from sash.running.settings import Settings, Source

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: a query or its data is wrong, an option is wrong, Ctrl-C."""


def run(settings: Settings) -> int:
    """Run a query; returns the exit code."""
    display = Display(quiet=settings.quiet, progress=settings.progress)
    try:
        (run_tables if settings.engine == "table" else run_spark)(settings, display)
    except Interrupted as stopped:
        display.say(str(stopped))
        return INTERRUPTED
    except KeyboardInterrupt:
        display.say("stopped; nothing was written")
        return INTERRUPTED
    except SashError as error:
        display.close()
        display.fail(str(error))
        return FAILED
    finally:
        display.close()
    return DONE


def check(settings: Settings) -> int:
    """Parse and check a query without reading rows; returns the exit code."""
    display = Display(quiet=settings.quiet)
    try:
        empty = sql(settings.text, streams=empty_streams(settings.sources, settings.time), time=settings.time)
    except SashError as error:
        display.fail(str(error))
        return FAILED
    display.say("the query is fine; its results have the columns " + ", ".join(f"{f.name} ({f.type})" for f in empty.schema))
    return DONE


def explained(settings: Settings) -> int:
    """Print the plan of a query; returns the exit code."""
    display = Display()
    try:
        print(explain(settings.text, streams=empty_streams(settings.sources, settings.time), time=settings.time))
    except SashError as error:
        display.fail(str(error))
        return FAILED
    return DONE


def empty_streams(sources: tuple[Source, ...], time: str) -> Mapping[str, Any]:
    """Tables without rows that have the sources' columns."""
    tables = {}
    for source in sources:
        schema = known_schema(source)
        checked_columns(schema, time, source.what)
        tables[source.name] = schema.empty_table()
    return tables


def known_schema(source: Source) -> pa.Schema:
    """The columns of a source, as far as they are known without Spark."""
    if source.schema is not None:
        return source.schema
    if source.place.kind == "rate":
        return RATE
    if source.place.kind == "file":
        return schema_of_files(source.place, source.what)
    raise InvalidArgument(f"{source.what}: its columns are not known; pass --schema {source.name}='a long, b timestamp'")
