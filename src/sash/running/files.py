"""Finite inputs as tables, and results as files.

What does not parse is bad: counted, kept if wanted, and never part of the table. A row is bad as a whole, also where only one of its
fields does not fit its type.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet

from sash.errors import InvalidArgument
from sash.expressions.casts import attempt
from sash.plan.locations import Location, files_of, with_format
from sash.running.schemas import type_of_value


@dataclass(frozen=True)
class Read:
    """A source as a table, and its lines that did not parse."""

    table: pa.Table
    bad: list[str]


def read(place: Location, schema: pa.Schema | None, what: str) -> Read:
    """All rows of a finite source."""
    place = with_format(place, what)
    files: Iterable[Any] = [sys.stdin.buffer] if place.kind == "standard" else files_of(place, what)
    parts = [_READERS[place.format](_opened(file, place.format), schema, place.options, what) for file in files]
    table = pa.concat_tables([p.table for p in parts], promote_options="permissive" if schema is None else "none")
    return Read(table, [line for p in parts for line in p.bad])


def schema_of_files(place: Location, what: str) -> pa.Schema:
    """The columns that a source's first file has."""
    place = with_format(place, what)
    first = files_of(place, what)[0]
    if place.format == "parquet":
        return pyarrow.parquet.read_schema(first)
    return read(Location(str(first), "file", str(first), place.format, options=place.options), None, what).table.schema


def _opened(file: Any, format: str) -> Any:
    if isinstance(file, Path) and file.suffix == ".gz" and format in ("json", "csv"):
        return gzip.open(file)
    return file


def _bytes_of(file: Any) -> bytes:
    return file.read_bytes() if isinstance(file, Path) else bytes(file.read())


def _parquet(file: Any, schema: pa.Schema | None, options: dict[str, str], what: str) -> Read:
    try:
        table = pyarrow.parquet.read_table(file if isinstance(file, Path) else pa.BufferReader(_bytes_of(file)))
    except pa.ArrowInvalid as error:
        raise InvalidArgument(f"{what}: {getattr(file, 'name', file)!s} is not Parquet ({error})") from error
    return Read(_in_schema(table, schema, what), [])


def _arrow(file: Any, schema: pa.Schema | None, options: dict[str, str], what: str) -> Read:
    source = pa.BufferReader(_bytes_of(file))
    try:
        table = pyarrow.feather.read_table(source)
    except pa.ArrowInvalid:
        try:
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
        except pa.ArrowInvalid as error:
            raise InvalidArgument(f"{what}: {getattr(file, 'name', file)!s} is not an Arrow file or stream ({error})") from error
    return Read(_in_schema(table, schema, what), [])


def _in_schema(table: pa.Table, schema: pa.Schema | None, what: str) -> pa.Table:
    """The columns that were asked for, in their types."""
    if schema is None:
        return table
    missing = [n for n in schema.names if n not in table.column_names]
    if missing:
        raise InvalidArgument(f"{what}: there is no column {missing[0]!r}; there are {', '.join(table.column_names)}")
    return table.select(schema.names).cast(schema)


# Lines of JSON.


def _json(file: Any, schema: pa.Schema | None, options: dict[str, str], what: str) -> Read:
    data = _bytes_of(file)
    known = schema or _json_schema(data, what)
    try:
        # Times are read as text first: Arrow takes fewer spellings than we do.
        plain = pa.schema([f.with_type(pa.string()) if _is_read_as_text(f.type) else f for f in known])
        parse_options = pyarrow.json.ParseOptions(explicit_schema=plain, unexpected_field_behavior="ignore")
        table = pyarrow.json.read_json(pa.BufferReader(data), parse_options=parse_options) if data.strip() else plain.empty_table()
        columns = [attempt(_whole(table.column(f.name)), f.type) for f in known]
        texts = [table.column(f.name) for f in known]
        if all(c.null_count == t.null_count for c, t in zip(columns, texts, strict=True)):
            return Read(pa.table(columns, schema=known), [])
    except pa.ArrowInvalid:
        pass
    return json_lines(data.decode("utf-8", "replace").splitlines(), known)


def _is_read_as_text(t: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(t) or pa.types.is_decimal(t))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _json_schema(data: bytes, what: str) -> pa.Schema:
    """The columns of the first line that is a row."""
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict):
            return pa.schema([pa.field(name, type_of_value(value, f"{what}: {name!r}")) for name, value in row.items()])
    raise InvalidArgument(f"{what}: no line is a row of JSON; its columns are not known: pass --schema NAME='a long, b timestamp'")


def json_lines(lines: Iterable[str], schema: pa.Schema) -> Read:
    """Rows from lines of JSON, one by one: those that are no row, or do not fit the schema, are bad."""
    kept: list[str] = []
    values: list[list[Any]] = [[] for _ in schema]
    bad: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            row = None
        if not isinstance(row, dict):
            bad.append(line)
            continue
        kept.append(line)
        for value, field in zip(values, schema, strict=True):
            value.append(_text_of(row.get(field.name), field.type))
    columns, fits = [], np.ones(len(kept), bool)
    for value, field in zip(values, schema, strict=True):
        texts = pa.array([v if isinstance(v, str) else None for v in value], pa.string())
        column = attempt(texts, field.type)
        wrong = np.array([v is not None for v in value], bool) & column.is_null().to_numpy(zero_copy_only=False)
        fits &= ~wrong
        columns.append(column)
    bad += [line for line, fit in zip(kept, fits, strict=True) if not fit]
    return Read(pa.table(columns, schema=schema).filter(pa.array(fits)), bad)


NO_FIT = object()


def _text_of(value: Any, t: pa.DataType) -> Any:
    """A value of JSON as the text that is cast to a column's type; a number in a time column is seconds, as in Spark."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ("true" if value else "false") if pa.types.is_boolean(t) or pa.types.is_string(t) else NO_FIT
    if isinstance(value, int | float):
        if pa.types.is_timestamp(t):
            return _seconds(value)
        return NO_FIT if pa.types.is_boolean(t) or pa.types.is_date(t) else repr(value)
    if isinstance(value, str):
        return value if not (pa.types.is_integer(t) or pa.types.is_boolean(t)) else NO_FIT
    return json.dumps(value) if pa.types.is_string(t) else NO_FIT


def _seconds(value: float) -> Any:
    from datetime import UTC, datetime, timedelta

    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)).isoformat(sep=" ")
    except (OverflowError, ValueError):
        return NO_FIT


# CSV.


def _csv(file: Any, schema: pa.Schema | None, options: dict[str, str], what: str) -> Read:
    bad: list[str] = []

    def skipped(row: Any) -> str:
        bad.append(row.text or "")
        return "skip"

    parse_options = pyarrow.csv.ParseOptions(
        delimiter=options.get("sep", options.get("delimiter", ",")), invalid_row_handler=skipped, newlines_in_values=True
    )
    has_header = options.get("header", "true").lower() == "true"
    read_options = pyarrow.csv.ReadOptions(
        column_names=None if has_header else (schema.names if schema is not None else None), use_threads=False,
        autogenerate_column_names=not has_header and schema is None,
    )  # fmt: skip
    strings = None if schema is None else {n: pa.string() for n in schema.names}
    convert = pyarrow.csv.ConvertOptions(column_types=strings, strings_can_be_null=True, null_values=[""])
    try:
        data = pa.BufferReader(_bytes_of(file))
        table = pyarrow.csv.read_csv(data, read_options=read_options, parse_options=parse_options, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise InvalidArgument(f"{what}: {getattr(file, 'name', file)!s} cannot be read as CSV ({error})") from error
    if schema is None:
        return Read(_with_zones(table), bad)
    missing = [n for n in schema.names if n not in table.column_names]
    if missing:
        raise InvalidArgument(f"{what}: there is no column {missing[0]!r}; there are {', '.join(table.column_names)}")
    texts = [_whole(table.column(f.name)) for f in schema]
    columns = [attempt(text, f.type) for text, f in zip(texts, schema, strict=True)]
    fits = np.ones(table.num_rows, bool)
    for text, column in zip(texts, columns, strict=True):
        fits &= ~(text.is_valid().to_numpy(zero_copy_only=False) & column.is_null().to_numpy(zero_copy_only=False))
    rows = table.select(schema.names).filter(pa.array(~fits))
    bad += [",".join("" if v is None else v for v in row.values()) for row in rows.to_pylist()]
    return Read(pa.table(columns, schema=schema).filter(pa.array(fits)), bad)


def _with_zones(table: pa.Table) -> pa.Table:
    """Times in files of text are instants, in UTC where they do not say otherwise."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.timestamp("us", column.type.tz or "UTC")))
    return table


_READERS = {"parquet": _parquet, "arrow": _arrow, "json": _json, "csv": _csv}


# Results.


def write(table: pa.Table, place: Location, what: str) -> None:
    """Write results: to standard output, or to a file."""
    place = with_format(place, what)
    sink: Any = sys.stdout.buffer if place.kind == "standard" else io.BytesIO()
    _WRITERS[place.format](table, sink)
    if place.kind == "standard":
        sink.flush()
        return
    path = place.path
    target = path / f"part-0.{place.format}" if path.is_dir() else path
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.write_bytes(sink.getvalue())
    unfinished.replace(target)


def check_writable(place: Location, what: str) -> None:
    """Raise, before any work starts, if results could not be written."""
    if place.kind != "file":
        return
    with_format(place, what)
    folder = place.path if place.path.is_dir() else place.path.parent
    trial = folder / ".sash-writes-here"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise InvalidArgument(f"{what}: {place.target!r} cannot be written ({error.strerror})") from error


def json_text(table: pa.Table) -> str:
    """Rows as lines of JSON; times as ISO text."""
    return "".join(json.dumps(row, default=_json_value, ensure_ascii=False) + "\n" for row in table.to_pylist())


def _json_value(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _write_json(table: pa.Table, sink: Any) -> None:
    sink.write(json_text(table).encode())


def _write_csv(table: pa.Table, sink: Any) -> None:
    pyarrow.csv.write_csv(table, sink)


def _write_parquet(table: pa.Table, sink: Any) -> None:
    pyarrow.parquet.write_table(table, sink)


def _write_arrow(table: pa.Table, sink: Any) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


_WRITERS = {"json": _write_json, "csv": _write_csv, "parquet": _write_parquet, "arrow": _write_arrow}
