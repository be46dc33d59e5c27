"""A query over finite inputs, in one process."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.api.sql import sql
from sash.plan.locations import Location
from sash.running.display import Display
from sash.running.files import Read, read, write
from sash.running.reasons import reasons_for_nothing
from sash.running.schemas import checked_columns
from sash.running.settings import Settings


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    rows: int
    bad: int
    results: int


def run_tables(settings: Settings, display: Display) -> Outcome:
    """Read all inputs, run the query, and write its results."""
    inputs: dict[str, Read] = {}
    for source in settings.sources:
        display.say(f"reading {source.name} from {source.place.uri}")
        inputs[source.name] = read(source.place, source.schema, source.what)
        checked_columns(inputs[source.name].table.schema, settings.time, source.what)
    bad = [line for one in inputs.values() for line in one.bad]
    if bad and settings.bad is not None:
        keep(bad, settings.bad)
    rows = sum(one.table.num_rows for one in inputs.values())
    streams = {name: one.table for name, one in inputs.items()}
    result = sql(
        settings.text, streams=streams, time=settings.time, order_by=settings.order_by or None,
        watermark=settings.watermark, lateness=settings.lateness,
    )  # fmt: skip
    if settings.limit is not None:
        result = result.slice(0, settings.limit)
    write(result, settings.sink, "--out")
    display.summary(rows=rows, bad=len(bad), results=result.num_rows)
    if not result.num_rows:
        for reason in reasons_for_nothing(streams, settings.time, len(bad)):
            display.warn(reason)
    return Outcome(rows, len(bad), result.num_rows)


def keep(lines: list[str], place: Location) -> None:
    """Append lines that did not parse to a file, or to one in a folder."""
    path = place.path / "bad.jsonl" if place.path.is_dir() else place.path
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def empty_streams(settings: Settings, schemas: dict[str, pa.Schema]) -> dict[str, pa.Table]:
    """Tables without rows, over which a query can be checked."""
    return {name: schema.empty_table() for name, schema in schemas.items()}
