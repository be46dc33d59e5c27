"""An operator's state as bytes: a header in JSON, sections in Arrow's format, and a digest over all.

The version is that of the format. A snapshot of an unknown version, of other queries or columns, or a damaged one is refused.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import pyarrow as pa

from sash.errors import InvalidSnapshot
from sash.slicing import validation
from sash.slicing.persistence import encoding
from sash.slicing.persistence.engine_state import Counts, EngineState, Position
from sash.slicing.stores.slice_store import StoreState

MAGIC = b"SASHSNAP"
VERSION = 1
_LENGTH = struct.Struct("<Q")


def pack(header: dict[str, Any], sections: dict[str, pa.Table]) -> bytes:
    """Header and tables as bytes."""
    text = json.dumps({**header, "sections": list(sections)}).encode()
    parts = [MAGIC, bytes([VERSION]), _LENGTH.pack(len(text)), text]
    for table in sections.values():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body = sink.getvalue().to_pybytes()
        parts += [_LENGTH.pack(len(body)), body]
    whole = b"".join(parts)
    return whole + hashlib.sha256(whole).digest()


def unpack(snapshot: Any) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables of a snapshot; an error says what is wrong with the bytes."""
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise InvalidSnapshot(f"a snapshot is bytes, not {type(snapshot).__qualname__}")
    data = bytes(snapshot)
    if not data.startswith(MAGIC):
        raise InvalidSnapshot("these bytes are no snapshot of a sash operator")
    if len(data) < len(MAGIC) + 1 + 32 or hashlib.sha256(data[:-32]).digest() != data[-32:]:
        version = data[len(MAGIC)] if len(data) > len(MAGIC) else None
        raise InvalidSnapshot(f"the snapshot (version {version}) is damaged: its digest does not fit")
    version = data[len(MAGIC)]
    if version != VERSION:
        raise InvalidSnapshot(f"the snapshot has version {version}; this sash reads version {VERSION}")
    at = len(MAGIC) + 1

    end = len(data) - 32

    def part() -> bytes:
        nonlocal at
        if at + _LENGTH.size > end:
            raise validation.damaged("the snapshot", "a part is missing")
        (length,) = _LENGTH.unpack_from(data, at)
        if length > end - at - _LENGTH.size:
            raise validation.damaged("the snapshot", "a part is longer than all of it")
        at += _LENGTH.size + length
        return data[at - length : at]

    with validation.reading("the snapshot"):
        header = json.loads(part())
        if not isinstance(header, dict) or not isinstance(header.get("sections"), list):
            raise validation.damaged("the snapshot", "it has no header")
        sections = {str(name): encoding.arrow_table(part(), f"the snapshot's section {str(name)[:40]!r}") for name in header["sections"]}
        if at != end:
            raise validation.damaged("the snapshot", "there is more in it than it says")
    return header, sections


def of_engine(query: dict[str, Any], state: EngineState | None, schema: pa.Schema | None, by: tuple[str, ...], counts: Counts) -> bytes:
    """A snapshot of an operator: its query, and its engine's state and columns once they are known."""
    header: dict[str, Any] = {"query": query, "stats": vars(counts), "started": state is not None}
    sections: dict[str, pa.Table] = {}
    if state is not None:
        assert schema is not None
        assert state.queries is not None
        header |= {
            **vars(state.position), "since": state.since, "last_seen": state.last_seen.tolist(),
            "given": {name: [c.tolist() for c in columns] for name, columns in state.emitted.items()},
            "states": [{**stored.facts, "queries": names} for stored, names in zip(state.stores, state.queries, strict=True)],
        }  # fmt: skip
        sections["schema"] = schema.empty_table()
        sections["keys"] = pa.table(dict(zip(by, state.keys, strict=True)))
        sections["late"] = state.late_rows if state.late_rows is not None else schema.empty_table()
        for k, stored in enumerate(state.stores):
            assert stored.table is not None
            sections[f"state{k}"] = stored.table
    return pack(header, sections)


def to_engine(header: dict[str, Any], sections: dict[str, pa.Table]) -> EngineState:
    """The engine's state of an unpacked snapshot."""
    what = "the snapshot"
    keys = [c.combine_chunks() for c in sections["keys"].columns]
    validation.no_key_twice(keys, what)
    stores = []
    for k, facts in enumerate(header["states"]):
        kind = facts.get("kind") or ("rows" if facts["keeps_rows"] else "slices")
        stores.append(StoreState(kind, facts, sections[f"state{k}"]))
    return EngineState(
        Position.of(header), Counts.of(header["stats"], what), stores, [list(facts["queries"]) for facts in header["states"]], keys,
        since={name: validation.tick(t, what) for name, t in header["since"].items()},
        last_seen=validation.numbers(header["last_seen"], what, most=len(keys[0]) if keys else 1),
        emitted=header["given"], late_rows=sections["late"],
    )  # fmt: skip
