"""Locations: what the URIs of sources and sinks name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from sash.errors import InvalidArgument, unknown

Kind = Literal["file", "standard", "kafka", "rate", "spark"]
FORMATS = {
    "parquet": "parquet", "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json",
    "arrow": "arrow", "feather": "arrow",
}  # fmt: skip
"""The formats of files, by their extensions."""
KNOWN = "a file or folder, -, kafka://host:port/topic, rate://rows-per-second, spark+format:path"


@dataclass(frozen=True)
class Location:
    """A source or a sink."""

    uri: str
    kind: Kind
    target: str = ""
    """The path, the topic, or the rate."""
    format: str = ""
    """The format of files, or the name that Spark knows a format by."""
    servers: str = ""
    options: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_endless(self) -> bool:
        """Whether it never ends by itself."""
        return self.kind in ("kafka", "rate")

    @property
    def is_remote(self) -> bool:
        """Whether only Spark can read or write it."""
        return self.kind in ("kafka", "rate", "spark")

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.target)


def location(uri: str, what: str, format: str | None = None) -> Location:
    """What a URI names; ``what`` is the argument in error messages, ``format`` is that of files whose extension does not say.

    >>> location("kafka://localhost:9092/bids?startingOffsets=earliest", "--stream").target
    'bids'
    >>> location("events/2024.parquet", "--stream").format
    'parquet'
    """
    if format is not None and format not in FORMATS:
        raise unknown(f"format in {what}", format, FORMATS)
    known = FORMATS[format] if format is not None else ""
    if uri in ("-", "-?"):
        return Location(uri, "standard", format=known or "json")
    parts = urlsplit(uri)
    options = dict(parse_qsl(parts.query))
    if parts.scheme == "kafka":
        topic = unquote(parts.path.strip("/"))
        if not parts.netloc or not topic or "/" in topic:
            raise InvalidArgument(f"{what}: {uri!r} must be kafka://host:port/topic, or kafka://host:port,host2:port/topic?option=value")
        return Location(uri, "kafka", topic, known or "json", parts.netloc, options)
    if parts.scheme == "rate":
        return Location(uri, "rate", _rate(uri, parts.netloc or parts.path, what), options=options)
    if parts.scheme.startswith("spark+"):
        return Location(uri, "spark", _beyond(uri), parts.scheme.removeprefix("spark+"), options=options)
    if parts.scheme not in ("", "file") and len(parts.scheme) > 1:
        raise InvalidArgument(f"{what}: {uri!r} has the unknown scheme {parts.scheme!r}; known are {KNOWN}")
    options.pop("format", None)
    path = unquote(parts.path) if parts.scheme == "file" else uri.partition("?")[0]
    return Location(uri, "file", path, known or _format_of(Path(path), dict(parse_qsl(parts.query)), what), options=options)


def _rate(uri: str, text: str, what: str) -> str:
    rate = text.strip("/") or "1"
    if not rate.isdigit() or int(rate) < 1:
        raise InvalidArgument(f"{what}: {uri!r} must be rate://N, with N rows per second")
    return rate


def _beyond(uri: str) -> str:
    """What stands behind the scheme, without options."""
    return uri.partition(":")[2].partition("?")[0]


def _format_of(path: Path, options: dict[str, str], what: str) -> str:
    """The format that a path's extension says, or that of the files in a folder."""
    named = options.get("format")
    if named is not None:
        if named not in FORMATS:
            raise unknown(f"format in {what}", named, FORMATS)
        return FORMATS[named]
    suffix = path.suffix.lstrip(".").lower()
    if suffix == "gz":
        suffix = Path(path.stem).suffix.lstrip(".").lower()
    if suffix in FORMATS:
        return FORMATS[suffix]
    inside = {FORMATS[f.suffix.lstrip(".")] for f in _files_in(path) if f.suffix.lstrip(".") in FORMATS}
    if len(inside) == 1:
        return inside.pop()
    return ""


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return [f for f in sorted(path.iterdir()) if f.is_file() and not f.name.startswith(("_", "."))]


def files_of(place: Location, what: str) -> list[Path]:
    """The files of a source that is a file or a folder; raises if there are none."""
    path = place.path
    if path.is_dir():
        files = _files_in(path)
        if not files:
            raise InvalidArgument(f"{what}: the folder {place.target!r} has no files")
        return files
    if not path.exists():
        raise InvalidArgument(f"{what}: there is no file {place.target!r}")
    return [path]


def with_format(place: Location, what: str) -> Location:
    """The location, if the format of its files is known; raises if not."""
    if place.format:
        return place
    raise InvalidArgument(f"{what}: the format of {place.target!r} is not clear from its name; add ?format=json (or csv, parquet, arrow)")
