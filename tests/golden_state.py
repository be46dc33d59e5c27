"""State as this version of the format writes it: ``python -m tests.golden_state`` makes ``tests/golden/state-1*.json``."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pyarrow as pa

from sash import functions as S
from sash import windows as W
from sash.slicing.persistence.encoding import VERSION
from sash.slicing.persistence.transactions import Transaction
from tests.stream_cases import LocalStream

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("flag", pa.bool_()), ("n", pa.int64())])
FOLDER = Path(__file__).parent / "golden"
CASES = {
    "slices": ({"w": W.sliding(40, 5), "s": W.session(6)}, [S.sum("v"), S.max("v"), S.var_pop("v"), S.count()], {}),
    "update": ({"w": W.sliding(40, 5), "s": W.session(6)}, [S.sum("v"), S.count()], {"emit": "update", "lateness": 20, "idle": 50}),
    "ordered": ({"w": W.tumbling(20)}, [S.first("v"), S.count()], {"order_by": "n"}),
    "rows": ({"r": W.rows(5, every=2), "p": W.punctuation("flag")}, [S.median("v"), S.collect_list("v")], {"order_by": "n"}),
}


def made(case, pocket=None):
    windows, aggs, options = CASES[case]
    return LocalStream(SCHEMA, windows, aggs, by="k", buckets=2, pocket=pocket, **options)


def rows(step):
    """The rows of a step: a few keys, a little out of order."""
    at = [(step * 7 + i * 13) % 30 for i in range(24)]
    keys = [["a", "b", "ü", None][(step + i) % 4] for i in range(24)]
    columns = [keys, [1000 + 20 * step + t for t in at], [(i * 31 + step) % 17 - 8 for i in range(24)], [t % 11 == 0 for t in at]]
    return pa.table([*columns, range(24 * step, 24 * step + 24)], schema=SCHEMA)


def played(stream, steps):
    return [stream.step([rows(n)], 1000 + 20 * n - 5) for n in steps]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, pocket in ((f"state-{VERSION}", 0), (f"state-{VERSION}-pocket", Transaction.most_inlined)):
        found = {}
        for case in CASES:
            stream = made(case, pocket)
            played(stream, range(6))
            found[case] = {
                str(label): {n: base64.b64encode(v).decode() for n, v in s.values.items()} for label, s in stream.storages.items()
            }
        (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
