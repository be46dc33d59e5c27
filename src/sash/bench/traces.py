"""The streams of SABER's application queries and of Nexmark: the papers' real traces from a folder, or generated ones of the same shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array = npt.NDArray[Any]

_LONG, _INT, _FLOAT = "int64", "int32", "float32"
TASK_EVENTS = {
    "timestamp": _LONG, "jobId": _LONG, "taskId": _LONG, "machineId": _LONG, "eventType": _INT, "userId": _INT, "category": _INT,
    "priority": _INT, "cpu": _FLOAT, "ram": _FLOAT, "disk": _FLOAT, "constraints": _INT,
}  # fmt: skip
SMART_GRID = {"timestamp": _LONG, "value": _FLOAT, "property": _INT, "plug": _INT, "household": _INT, "house": _INT}
POSITIONS = {"timestamp": _LONG, "vehicle": _INT, "speed": _FLOAT, "highway": _INT, "lane": _INT, "direction": _INT, "position": _INT}
FILES = {
    "TaskEvents": ("google-cluster-data.txt", TASK_EVENTS),
    "SmartGridStr": ("smartgrid-data.txt", SMART_GRID),
    "PosSpeedStr": ("lrb-data-small-ht.txt", POSITIONS),
}
"""The papers' streams by the names that the queries use."""


def trace(name: str, folder: Path) -> pa.Table:
    """A real trace."""
    file, columns = FILES[name]
    values = np.loadtxt(folder / file)
    return pa.table({column: values[:, k].astype(t) for k, (column, t) in enumerate(columns.items())})


def generated(name: str, rows: int, seed: int = 7) -> pa.Table:
    """A stream of a trace's schema, in the order of time, with about as many keys and rows a second."""
    rng = np.random.default_rng(seed)
    columns = FILES[name][1]
    per_second = {"TaskEvents": 6, "SmartGridStr": 400, "PosSpeedStr": 100}[name]
    made: dict[str, Array] = {"timestamp": np.sort(rng.integers(0, max(1, rows // per_second), rows))}
    if name == "TaskEvents":
        made |= {n: rng.integers(0, 300, rows) for n in ("jobId", "taskId", "machineId", "userId")}
        made |= {n: rng.integers(0, 4, rows) for n in ("eventType", "category", "priority", "constraints")}
        made |= {n: rng.integers(0, 1024, rows) / 1024 for n in ("cpu", "ram", "disk")}  # whose sums are exact
    elif name == "SmartGridStr":
        plug = rng.integers(0, 40, rows)
        made |= {"value": rng.integers(0, 1 << 12, rows) / 16, "property": np.ones(rows), "plug": plug % 5}
        made |= {"household": plug // 5 % 4, "house": plug // 20}
    else:
        vehicle = rng.integers(0, 150, rows)
        made |= {"vehicle": vehicle, "speed": rng.integers(0, 100, rows), "highway": vehicle % 2, "lane": rng.integers(0, 5, rows)}
        made |= {"direction": vehicle // 2 % 2, "position": rng.integers(0, 528_000, rows)}
    return pa.table({column: made[column].astype(t) for column, t in columns.items()})


def repeated(table: pa.Table, rows: int) -> pa.Table:
    """A stream repeated with advancing times up to at least so many rows."""
    ticks = table.column("timestamp").to_numpy()
    times = -(-rows // table.num_rows)
    step = int(ticks.max() - ticks.min()) + 1
    whole = pa.concat_tables([table] * times).combine_chunks()
    shifted = np.concatenate([ticks + k * step for k in range(times)])
    return whole.set_column(0, "timestamp", pa.array(shifted))


def streams(data: Path | None, rows: int) -> dict[str, pa.Table]:
    """All three streams: the real traces, repeated, if there is a folder with them."""
    return {name: repeated(trace(name, data), rows) if data is not None else generated(name, rows) for name in FILES}


# Nexmark.


def _addresses(auctions: Any) -> pa.Array:
    """An address for each bid; of every third, without a channel."""
    numbers = pa.array(auctions).cast(pa.string())
    whole = pc.binary_join_element_wise("https://auctions.example/shop/", numbers, "/item.htm?query=1", "")
    channel = pc.binary_join_element_wise("&channel_id=", numbers, "")
    return pc.if_else(pa.array(auctions % 3 == 0), whole, pc.binary_join_element_wise(whole, channel, ""))


def nexmark(events: int, seed: int = 11) -> dict[str, pa.Table]:
    """Nexmark's streams ``person``, ``auction`` and ``bid``, 1 to 3 to 46, a million events in 150 seconds."""
    rng = np.random.default_rng(seed)
    micros = 1_700_000_000_000_000 + np.arange(events) * 150
    turn = np.arange(events) % 50
    person, auction, bid = turn == 0, (turn > 0) & (turn < 4), turn >= 4
    persons, auctions, bids = int(person.sum()), int(auction.sum()), int(bid.sum())
    time = pa.timestamp("us")
    known = np.arange(events) // 50 + 1  # persons so far
    open_auctions = known * 3
    names, cities = np.array(["Ann Ames", "Ben Beck", "Cal Cole", "Dee Dunn"]), np.array(["Portland", "Boise", "Kent", "Bend"])
    states = np.array(["OR", "ID", "CA", "WA", "AZ"])
    newest = known[auction]
    seller = np.maximum(1, newest - np.floor(rng.random(auctions) ** 3 * np.minimum(newest, 100)).astype(np.int64))
    latest = open_auctions[bid]
    wanted = np.maximum(1, latest - np.floor(rng.random(bids) ** 3 * np.minimum(latest, 400)).astype(np.int64))
    return {
        "person": pa.table(
            {
                "id": np.arange(1, persons + 1),
                "name": names[rng.integers(0, 4, persons)],
                "city": cities[rng.integers(0, 4, persons)],
                "state": states[rng.integers(0, 5, persons)],
                "timestamp": pa.array(micros[person]).cast(time),
            }
        ),
        "auction": pa.table(
            {
                "id": np.arange(1, auctions + 1),
                "seller": seller,
                "category": 10 + rng.integers(0, 5, auctions),
                "initialBid": 100 + rng.integers(0, 1000, auctions),
                "timestamp": pa.array(micros[auction]).cast(time),
            }
        ),
        "bid": pa.table(
            {
                "auction": wanted,
                "bidder": np.maximum(1, known[bid] - rng.integers(0, 1000, bids)),
                "price": 100 + np.exp(rng.random(bids) * 15).astype(np.int64),
                "channel": np.array(["apple", "google", "baidu", "direct"])[rng.integers(0, 4, bids)],
                "timestamp": pa.array(micros[bid]).cast(time),
                "url": _addresses(wanted),
                "extra": np.array(["", "abc", "cc-c", "xyz"])[wanted % 4],
            }
        ),
    }
