"""Damaged state with its digest made again: whatever is done to it, there is a clean error or a sound operator, never a crash.

As a program it works through many cases in a process whose memory is limited: ``python -m tests.damage CASES SEED``.
"""

from __future__ import annotations

import hashlib
import random
import struct
import sys
import zlib
from pathlib import Path

import pyarrow as pa

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import InvalidSnapshot, SashError
from sash.slicing.persistence import encoding
from sash.slicing.persistence.transactions import InDictionary
from tests.own_aggregates import affine
from tests.stream_cases import LocalStream
from tests.window_oracle import Delta

RUNNING = {"by": "k", "emit": "running"}
EXTREMES = [0, 1, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
MEMORY = 64 << 20
"""What a case may allocate beyond all that was there before."""


def operators() -> list[tuple[dict, sash.Operator]]:
    """One of each kind of state, with rows in it, and what restore needs besides the bytes."""
    ordered = [affine("coalesce(v, 0)").alias("affine"), S.first("v").alias("first"), S.count().alias("n")]
    cases = [
        ({"s": W.sliding(10, 3), "t": W.tumbling(7)}, [S.sum("v"), S.avg("x"), S.count(), S.max("v")], {"by": "k"}),
        ({"s": W.session(4)}, [S.sum("v"), S.min("x")], {"by": "k", "emit": "update"}),
        ({"s": W.sliding(10, 3)}, ordered, {"by": "k"}),
        ({"r": W.rows(3, 2), "p": W.punctuation("flag"), "l": W.last_rows(2, every=5)}, [S.sum("v"), S.median("x")], RUNNING),
        ({"d": Delta("v", 4)}, [S.count()], {"by": ["k", "flag"], "idle": 50}),
        ({"r": W.rows(3), "p": W.punctuation("flag")}, [S.sum("v"), S.count()], {"ordered": True}),
        ({"u": W.unbounded(), "b": W.band(0, 30)}, [S.collect_list("k"), S.min("k")], {"late": "output"}),
    ]  # fmt: skip
    made = []
    for windows, aggs, options in cases:
        op = sash.Operator(windows=windows, aggs=aggs, time="t", **options)
        for start in (0, 12, 24):
            op.add(rows(start, ordered=True))
            if not options.get("ordered"):
                op.advance(start)
        made.append(({"windows": windows, "aggs": aggs}, op))
    return made


def rows(start: int, *, ordered: bool = False) -> pa.Table:
    times = range(start, start + 12) if ordered else [start + (7 * n) % 12 for n in range(12)]
    return pa.table(
        {
            "k": [["a", "b", None, "ü"][n % 4] for n in range(12)], "t": list(times), "v": [n - 5 if n % 5 else None for n in range(12)],
            "x": [n / 3 for n in range(12)], "flag": [n % 4 == 0 for n in range(12)],
        }
    )  # fmt: skip


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, lost or doubled; numbers made extreme."""
    found = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        place = draw.randrange(len(found))
        kind = draw.randrange(7)
        if kind <= 1:
            found[place] ^= 1 << draw.randrange(8)
        elif kind == 2:
            found[place] = draw.randrange(256)
        elif kind == 3:
            del found[place : place + draw.choice([1, 4, 8, 64])]
        elif kind == 4:
            found[place:place] = found[place : place + draw.choice([1, 4, 8, 64])]
        elif kind == 5:
            found[place : place + 8] = struct.pack("<Q", draw.choice(EXTREMES))[: len(found) - place]
        else:
            found[place : place + 4] = struct.pack("<I", draw.choice(EXTREMES) & 0xFFFFFFFF)[: len(found) - place]
        if len(found) < 2:
            break
    return bytes(found)


def damaged_snapshot(good: bytes, draw: random.Random) -> bytes:
    """A snapshot with its digest made again."""
    body = mutated(good[:-32], draw)
    return body + hashlib.sha256(body).digest()


def damaged_value(good: bytes, draw: random.Random) -> bytes:
    """A stored value: damaged inside and sealed again, or with its seal made again, or with what is in its pocket damaged."""
    if good[:4] == encoding.INLINED or draw.random() < 0.2:
        return mutated(good, draw)
    if draw.random() < 0.7:
        return encoding.sealed(mutated(encoding.opened(good, "value"), draw))
    bad = bytearray(mutated(good, draw))
    head = struct.Struct("<4sBIQ")
    if len(bad) > head.size:
        magic, version, _, length = head.unpack_from(bad)
        checksum = zlib.crc32(bytes(bad[head.size :]), zlib.crc32((length & (2**64 - 1)).to_bytes(8, "little")))
        bad[: head.size] = head.pack(magic, version, checksum, length)
    return bytes(bad)


def try_snapshot(bad: bytes, given: dict, *, ordered: bool) -> bool:
    """Whether it was refused; if it was not, the operator must work."""
    try:
        op = sash.Operator.restore(bad, **given)
    except InvalidSnapshot:
        return True
    try:
        op.add(rows(40, ordered=ordered))
        op.snapshot()
        op.close()
    except SashError:
        return False
    return False


def streams() -> list[LocalStream]:
    """One of each kind of state behind a store."""
    ordered = [affine("coalesce(v, 0)").alias("affine"), S.first("v"), S.count()]
    cases = [
        ({"s": W.sliding(10, 3)}, [S.sum("v"), S.avg("x"), S.count()], {}),
        ({"s": W.sliding(200, 1), "g": W.session(4)}, [S.sum("v"), S.max("x")], {"emit": "update", "lateness": 5}),
        ({"s": W.sliding(10, 3)}, ordered, {"idle": 60}),
        ({"r": W.rows(3, 2), "p": W.punctuation("flag"), "l": W.last_rows(2, every=5)}, [S.sum("v"), S.median("x")], {"emit": "running"}),
        ({"u": W.unbounded()}, [S.sum("v"), S.collect_list("k")], {"emit": "update"}),
    ]
    made = []
    for number, (windows, aggs, options) in enumerate(cases):
        stream = LocalStream(rows(0).schema, windows, aggs, by="k", buckets=1, pocket=0 if number % 2 else None, **options)
        for start in (0, 12, 24):
            stream.step([rows(start)], start + 6)
        made.append(stream)
    return made


def try_value(stream: LocalStream, good: dict[str, bytes], draw: random.Random) -> bool:
    """A step with one stored value damaged: whether it was refused."""
    (label,) = stream.labels
    name = draw.choice(sorted(good))
    stream.storages[label] = InDictionary({**good, name: damaged_value(good[name], draw)})
    try:
        stream.step([rows(36)], 60)
        stream.step([], 200)
    except InvalidSnapshot:
        return True
    except SashError:
        return False
    return False


def main(count: int, seed: int) -> None:
    import faulthandler
    import resource

    faulthandler.enable()
    made = operators()
    good = [op.snapshot() for _, op in made]
    for (given, op), data in zip(made, good, strict=True):
        try_snapshot(data, given, ordered=True)  # kernels are compiled before memory is limited
        op.close()
    stored = [(stream, dict(next(iter(stream.storages.values())).values)) for stream in streams()]
    for stream, values in stored:
        try_value(stream, values, random.Random(0))
        next(iter(stream.storages.values())).values = dict(values)
        stream.step([rows(36)], 60)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    refused = 0
    for case in range(count):
        draw = random.Random(f"{seed}/{case}")
        try:
            if case % 2:
                refused += try_value(*draw.choice(stored), draw)
                continue
            k = draw.randrange(len(good))
            refused += try_snapshot(damaged_snapshot(good[k], draw), made[k][0], ordered=True)
        except BaseException as error:
            print(f"case {seed}/{case}: {type(error).__name__}: {error}", flush=True)
            raise
    print(f"{count} damaged snapshots and stored values: {refused} refused, {count - refused} taken, none crashed")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
