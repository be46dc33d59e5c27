"""Queries that are wrong: messages with line, column and caret (``tests/golden/query_errors.txt``), and queries mutated at random.

After a change of words: ``SASH_GOLDEN=write pytest tests/test_cql_errors.py``, and read the difference.
"""

from __future__ import annotations

import datetime
import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

import sash
from sash.errors import SashError, UserFunctionFailed

GOLDEN = Path(__file__).parent / "golden" / "query_errors.txt"
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOON = datetime.datetime(2026, 3, 1, 12)
S = pa.table({"timestamp": [1, 2, 3], "k": ["a", "b", "a"], "v": [1, 2, 3], "l": [[1], [2], [3]]})
T = pa.table({"timestamp": [1, 2], "k": ["a", "b"], "w": [1.0, 2.0]})
U = pa.table({"timestamp": pa.array([NOON], pa.timestamp("us")), "k": ["a"]})
STREAMS = {"S": S, "T": T, "U": U}
QUERIES = [
    "",
    "select",
    "select k",
    "select k frm S",
    "select k from",
    "select k from S wher v > 1",
    "select k from S where",
    "select k, from S",
    "select k from S where v > 'a' and",
    "select k from S where v + > 1",
    "select (k from S",
    "select k) from S",
    "select k from S [range 5",
    "select k from S [range 5)",
    "select 'k from S",
    "select `k from S",
    "select k /* from S",
    "select\n  k,\n  vv\nfrom S",
    "select k from s2",
    "select k from R",
    "select S.k, R.v from S",
    "select S.kk from S",
    "select v.a from S",
    "select k from S [rang 5]",
    "select k from S [range]",
    "select k from S [range -5]",
    "select k from S [range 0 slide 1]",
    "select k from S [range 5 slide]",
    "select k from S [range 5 slid 1]",
    "select k from S [range 5 offset 1]",
    "select k from S [rows 0]",
    "select k from S [rows 2.5]",
    "select k from S [range 5 seconds slide 1]",
    "select k from U [range 60 slide 1]",
    "select k from U [range 60 lightyears]",
    "select k from S [partition by k range 5]",
    "select k from S [partition by k]",
    "select k from S [partition by x rows 1]",
    "select k from S [punctuation v]",
    "select k from S where v = [range 5]",
    "select k from S as A [range 5]",
    "select sum(v) from S",
    "select sum(v), k from S [now]",
    "select sum(v) + v from S [now]",
    "select sum(count(v)) from S [now]",
    "select k from S [now] where sum(v) > 1",
    "select k from S [now] group by sum(v)",
    "select k from S [now] having v > 1",
    "select k, count(*) from S [now] group by k having k",
    "select sum(k) from S [now]",
    "select sum(v, v) from S [now]",
    "select sum() from S [now]",
    "select sum(*) from S [now]",
    "select sum(distinct v) from S [now]",
    "select percentile(v, k) from S [now]",
    "select percentile(v, 2.0) from S [now]",
    "select max(v) over (partition by k) from S [now]",
    "select summ(v) from S [now]",
    "select count(*) from S [now] group by l",
    "select k from S where k in (select k from T)",
    "select k from S where v",
    "select k as a, v as a from S",
    "select * from S, T",
    "select *, count(*) from S [now]",
    "select x.* from S",
    "select k from S [now], T [now]",
    "select A.k from S [now] A, T [now] A",
    "select A.k from S [range 6 slide 2] A, T [range 6 slide 3] B",
    "select A.k from S [range 6 slide 4] A, T [range 4 slide 4] B",
    "select A.k from S [rows 3] A, T [range 6 slide 3] B",
    "select A.k from S [session 3] A, T [range 6 slide 3] B",
    "select A.k from S [range 6 slide 3] A, U [range 6 seconds slide 3 seconds] B",
    "select k from S left join T on S.k = T.k",
    "select k from S union select k from T",
    "select k from S limit many",
    "select k from S order by l",
    "select k from S order by 7",
    "select k from S group by k where v > 1",
    "select window.middle, count(*) from S [now]",
    "create stream X as select k from S",
    "create stream S as select k from T; select k from S",
    "(select k, count(*) as c from S [now] group by k) as R select k from R [range 5]",
    "istream(rstream(select k from S))",
    "select k from S; select k from T",
    "select f(k) from S",
    "select k from f(S [now])",
    "select timestamp from tumble(S, time, 5)",
    "select timestamp from hop(S, timestamp, 5)",
    "select k from S where k = 1.5",
]


def message(text):
    streams = {name: table for name, table in STREAMS.items() if f" {name}" in text or f"({name}" in text} or {"S": S}
    try:
        sash.sql(text, streams=streams)
    except SashError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def test_every_message():
    page = "\n\n".join(f"# {text!r}\n{message(text)}" for text in QUERIES) + "\n"
    if os.environ.get("SASH_GOLDEN") == "write":
        GOLDEN.write_text(page)
    assert page == GOLDEN.read_text()


def test_errors_know_their_place():
    with pytest.raises(sash.errors.InvalidQuery) as caught:
        sash.sql("select\n  k,\n  vv\nfrom S", S=S)
    assert (caught.value.line, caught.value.column) == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "no stream was passed"),
        ({"S": S, "T": T}, "'T' is not used"),
        ({"streams": {"S": S}, "S": S}, "passed twice"),
        ({"S": S, "s": S}, "differ only in case"),
        ({"S": 5}, "the stream 'S'"),
        ({"S": S, "time": "when"}, "no column 'when'"),
        ({"S": S, "time": "k"}, "must be a timestamp"),
        ({"S": S, "order_by": "x"}, "order_by"),
        ({"S": S, "engine": "fast"}, "engine must be one of"),
        ({"S": S, "emit": "update"}, "is for streams"),
        ({"S": S, "functions": {"f": 5}}, "functions\\['f'\\]"),
        ({"S": S, "functions": [5]}, "functions must be"),
    ],
)
def test_arguments_that_are_wrong(arguments, words):
    with pytest.raises(SashError, match=words):
        sash.sql("select k from S", **arguments)
    with pytest.raises(SashError, match="a query is text"):
        sash.sql(5, S=S)


def test_a_window_function_that_fails_or_changes_its_columns():
    def fails(table):
        if table.num_rows:
            raise RuntimeError("no")
        return table

    def changes(table):
        return table if not table.num_rows else table.drop_columns(["v"])

    with pytest.raises(UserFunctionFailed, match="the window function f raised RuntimeError: no"):
        sash.sql("select k from f(S [range 2 slide 2])", S=S, functions={"f": fails})
    with pytest.raises(SashError, match="over empty tables it returned"):
        sash.sql("select k from f(S [range 2 slide 2])", S=S, functions={"f": changes})
    with pytest.raises(SashError, match="fails over empty tables"):
        sash.sql("select k from f(S [range 2 slide 2])", S=S, functions={"f": lambda table: 1 / 0})


WORDS = """select from where group by having order limit as and or not in between like is null case when then else end distinct istream
rstream dstream range slide rows now unbounded session punctuation partition create stream join on union ( ) [ ] , ; . * + - / %
= == < > <> ' " ` -- /* */ 0 1 60 1e400 99999999999999999999 'x' '' \\ @ # $ ? : :: || & | ^ ~ count sum avg max( first( tumble( hop(
window.start S T k v timestamp interval cast( date timestamp'2020-01-01' seconds minute \x00 \ue000 \uf000 ß 🙂""".split()  # noqa: SIM905


def mutated(text, rng):
    """A query with some pieces dropped, doubled, swapped or replaced."""
    pieces = text.replace("(", " ( ").replace(")", " ) ").replace("[", " [ ").replace("]", " ] ").replace(",", " , ").split()
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(pieces)) if pieces else 0
        how = rng.randrange(5)
        if how == 0 and pieces:
            del pieces[at]
        elif how == 1 and pieces:
            pieces.insert(at, pieces[at])
        elif how == 2 and pieces:
            other = rng.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif how == 3:
            pieces.insert(at, rng.choice(WORDS))
        elif pieces:
            word = pieces[at]
            cut = rng.randrange(len(word) + 1)
            pieces[at] = word[:cut] + rng.choice(WORDS) * rng.randrange(2) + word[cut + rng.randrange(2) :]
    return " ".join(pieces)


def test_mutated_queries_raise_clean_errors():
    rng = random.Random(int(os.environ.get("SASH_SEED", "5")))
    good = [p.read_text() for p in sorted(EXAMPLES.glob("*/*.cql"))] + [q for q in QUERIES if len(q) > 20]
    good += ["select k, sum(v) as s from S [range 5 slide 2] where v > 1 group by k having s > 2 order by s desc limit 3"] * 20
    schemas = {"timestamp": pa.int64(), "k": pa.string(), "v": pa.int64()}
    empty = pa.schema(schemas).empty_table()
    for _ in range(int(os.environ.get("SASH_MUTATIONS", "1500"))):
        text = mutated(rng.choice(good), rng)
        names = [n for n in ("S", "T", "TaskEvents", "bid", "SmartGridStr", "PosSpeedStr") if n in text] or ["S"]
        try:
            sash.sql(text, streams=dict.fromkeys(names, empty))
        except SashError:
            pass
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{text!r}") from error
