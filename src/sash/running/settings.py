"""The options of ``sash run``, checked before anything is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa

from sash.errors import InvalidArgument, unknown
from sash.plan.locations import Location, location
from sash.plan.options import Emit, StreamOptions
from sash.running.files import check_writable
from sash.running.schemas import schema_of

Engine = Literal["table", "spark"]
ENGINES = ("auto", "table", "spark")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Source:
    """A stream of the query, and where it comes from."""

    name: str
    place: Location
    schema: pa.Schema | None

    @property
    def what(self) -> str:
        """The argument that it was passed by, for messages."""
        return f"--stream {self.name}={self.place.uri}"


@dataclass(frozen=True)
class Settings:
    """What to run, from where to where."""

    text: str
    sources: tuple[Source, ...]
    sink: Location
    engine: Engine
    follow: bool
    time: str = "timestamp"
    order_by: tuple[str, ...] = ()
    watermark: str | int | None = None
    lateness: str | int | None = None
    idle: str | None = None
    emit: Emit = "final"
    checkpoint: Path | None = None
    bad: Location | None = None
    limit: int | None = None
    quiet: bool = False
    progress: Path | None = None
    spark: dict[str, str] = field(default_factory=dict)


def query_text(query: Path | None, command: str | None, file: Path | None) -> str:
    """The query: an argument, ``-c``, ``-f``, or standard input."""
    given = [name for name, value in (("QUERY", query), ("-c", command), ("-f", file)) if value is not None]
    if len(given) > 1:
        raise InvalidArgument(f"the query is passed twice, by {given[0]} and {given[1]}; pass one of them")
    if command is not None:
        return command
    path = query if query is not None else file
    if path is None:
        raise InvalidArgument("there is no query; pass a file, -c 'select ...', or -f - for standard input")
    if str(path) == "-":
        import sys

        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"the query {str(path)!r} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"the query {str(path)!r} is not text in UTF-8") from error


def sources_of(streams: Sequence[str], schemas: Sequence[str], format: str | None) -> tuple[Source, ...]:
    """The streams, from ``NAME=URI`` and ``NAME=COLUMNS``."""
    places: dict[str, Location] = {}
    for text in streams:
        name, uri = _named(text, "--stream", "--stream NAME=URI")
        if any(name.lower() == known.lower() for known in places):
            raise InvalidArgument(f"--stream: {name!r} is passed twice")
        places[name] = location(uri, f"--stream {name}", format)
    if not places:
        raise InvalidArgument("no stream is passed; pass each stream of the query as --stream NAME=URI")
    if sum(p.kind == "standard" for p in places.values()) > 1:
        raise InvalidArgument("--stream: standard input can be one stream only")
    known: dict[str, pa.Schema] = {}
    for text in schemas:
        name, columns = _named(text, "--schema", "--schema NAME='a long, b timestamp'")
        if name not in places:
            raise unknown("stream in --schema", name, places)
        known[name] = schema_of(columns, f"--schema {name}")
    return tuple(Source(name, place, known.get(name)) for name, place in places.items())


def _named(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not equals or not rest or not NAME.fullmatch(name.strip()):
        raise InvalidArgument(f"{option}: {text!r} must be {form}")
    return name.strip(), rest


def choose_engine(engine: str, sources: Sequence[Source], sink: Location, *, follow: bool, checkpoint: Path | None) -> Engine:
    """Tables where all input ends and nothing has to be remembered; Spark otherwise."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    reasons = [f"{s.what} is read by Spark" for s in sources if s.place.is_remote]
    reasons += [f"--out {sink.uri} is written by Spark"] if sink.is_remote else []
    reasons += ["--follow needs Spark"] if follow else []
    reasons += ["--checkpoint needs Spark"] if checkpoint is not None else []
    if engine == "table" and reasons:
        raise InvalidArgument(f"--engine table: {reasons[0]}; use --engine spark")
    if engine == "spark" or reasons:
        return "spark"
    return "table"


def settings_of(
    text: str,
    *,
    streams: Sequence[str],
    out: str,
    schemas: Sequence[str] = (),
    format: str | None = None,
    engine: str = "auto",
    follow: bool | None = None,
    time: str = "timestamp",
    order_by: Sequence[str] = (),
    watermark: str | None = None,
    lateness: str | None = None,
    idle: str | None = None,
    emit: str = "final",
    checkpoint: Path | None = None,
    bad: str | None = None,
    late: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
    progress: Path | None = None,
    spark: Sequence[str] = (),
) -> Settings:
    """The options of one run; raises for what cannot work, before anything is read."""
    durations = {"watermark": _duration(watermark), "lateness": _duration(lateness)}
    StreamOptions.of(emit=emit, idle=_duration(idle), **durations)
    sources = sources_of(streams, schemas, format)
    sink = location(out, "--out", format)
    if sink.kind == "rate":
        raise InvalidArgument("--out: rate:// is a source")
    follows = any(s.place.is_endless for s in sources) if follow is None else follow
    chosen = choose_engine(engine, sources, sink, follow=follows, checkpoint=checkpoint)
    if late is not None:
        raise InvalidArgument("--late: late rows are counted here, not written; they are in the progress, and the display shows them")
    if limit is not None and limit < 0:
        raise InvalidArgument(f"--limit must not be negative, not {limit}")
    if emit != "final" and chosen == "table":
        raise InvalidArgument(f"--emit {emit} is for streams: a finite input reports each window once; add --follow, or --engine spark")
    if idle is not None and chosen == "table":
        raise InvalidArgument("--idle is for streams")
    bad_place = None if bad is None else location(bad, "--bad", "json")
    if bad_place is not None and bad_place.kind != "file":
        raise InvalidArgument(f"--bad: {bad!r} must be a file or a folder")
    if chosen == "table":
        check_writable(sink, "--out")
    if bad_place is not None:
        check_writable(bad_place, "--bad")
    return Settings(
        text, sources, sink, chosen, follows, time, tuple(order_by), durations["watermark"], durations["lateness"], idle,
        emit, checkpoint, bad_place, limit, quiet, progress, _spark_settings(spark),  # type: ignore[arg-type]
    )  # fmt: skip


def _duration(text: str | None) -> str | int | None:
    """A bare integer is in the unit of an integer time column."""
    return int(text) if text is not None and text.strip().isdigit() else text


def _spark_settings(texts: Sequence[str]) -> dict[str, str]:
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise InvalidArgument(f"--conf: {text!r} must be spark.NAME=VALUE")
        settings[name] = value
    return settings
