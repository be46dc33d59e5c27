"""A new window type is one file: a context-free and a context-aware one, through tables, operator, snapshots, Spark batch and stream."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.testing.window_laws import check_window
from tests.stream_cases import LocalStream
from tests.test_stream import Folder

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SECOND = 1_000_000


class Fibonacci(W.ContextFreeWindow):
    """From one Fibonacci number of seconds since 1970 to the next."""

    longest = 1 << 40

    def _edges(self):
        a, b = 1, 2
        while True:
            yield a * SECOND
            a, b = b, a + b

    def next_edge(self, t):
        return next(edge for edge in self._edges() if edge > t)

    def ended(self, after, until):
        previous = None
        for edge in self._edges():
            if edge > until:
                return
            if previous is not None and edge > after:
                yield previous, edge
            previous = edge


class Rising(W.ContextAwareWindow):
    """As long as a column does not fall."""

    def __init__(self, column):
        self.reads = (column,)

    def notify(self, context, time, value, *, edges):
        if value is not None and context is not None and value < context:
            edges.end(time)
        if context is None or (value is not None and value < context):
            edges.start(time)
        return context if value is None else value


def rows():
    """Some seconds of two keys, in no order."""
    seconds = [(7 * i + 3) % 40 for i in range(40)]
    return pa.table(
        {
            "k": pa.array(["a" if s % 3 else "b" for s in seconds]),
            "t": pa.array([EPOCH + datetime.timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
            "v": pa.array([(s * s) % 11 for s in seconds], pa.int64()),
        }
    )


def fibonacci_windows(table):
    """The windows by definition."""
    edges, found = [1, 2, 3, 5, 8, 13, 21, 34, 55], {}
    for row in table.to_pylist():
        second = (row["t"] - EPOCH).total_seconds()
        for start, end in zip(edges[:-1], edges[1:], strict=True):
            if start <= second < end:
                found.setdefault((row["k"], start, end), []).append(row["v"])
    return {where: sum(values) for where, values in found.items()}


def rising_windows(table):
    """The windows by definition; the last of a key has no end."""
    found = {}
    for key in ("a", "b"):
        mine = sorted((r for r in table.to_pylist() if r["k"] == key), key=lambda r: r["t"])
        windows = []
        for row in mine:
            if not windows or row["v"] < windows[-1][-1]["v"]:
                windows.append([])
            windows[-1].append(row)
        for window, after in zip(windows, [*windows[1:], None], strict=True):
            start, end = seconds_of(window[0]["t"]), None if after is None else seconds_of(after[0]["t"])
            found[key, start, end] = sum(r["v"] for r in window)
    return found


def seconds_of(time):
    return None if time is None else int((time - EPOCH).total_seconds())


def as_windows(table):
    """Results as a dictionary; a window that is there twice is an error."""
    found = {}
    for row in table.to_pylist():
        where = (row["k"], seconds_of(row["window"]["start"]), seconds_of(row["window"]["end"]))
        assert where not in found
        found[where] = row["total"]
    return found


CASES = {"fibonacci": (Fibonacci(), fibonacci_windows), "rising": (Rising("v"), rising_windows)}
AGGS = [S.sum("v").alias("total")]


def test_their_laws():
    check_window(Fibonacci(), times=(0, 200 * SECOND))
    check_window(Rising("v"))


@pytest.mark.parametrize("name", CASES)
def test_tables(name):
    window, wanted = CASES[name]
    assert as_windows(sash.aggregate(rows(), windows=window, aggs=AGGS, by="k", time="t")) == wanted(rows())


@pytest.mark.parametrize("name", CASES)
def test_operators_over_a_restart(name):
    window, wanted = CASES[name]
    op = sash.Operator(windows=window, aggs=AGGS, by="k", time="t", lateness="40 seconds")
    parts, results = rows(), []
    for start in range(0, parts.num_rows, 7):
        op.add(parts.slice(start, 7))
        results.append(op.advance(EPOCH + datetime.timedelta(seconds=start)))
        op = sash.Operator.restore(op.snapshot(), windows={"window": window})
    results.append(op.close())
    assert as_windows(pa.concat_tables(results)) == wanted(rows())


def closed_only(windows):
    """A stream that goes on never emits a window without an end."""
    return {where: total for where, total in windows.items() if where[2] is not None and where[2] <= 39}


@pytest.mark.parametrize("name", CASES)
def test_behind_a_state_store(name):
    window, wanted = CASES[name]
    stream = LocalStream(rows().schema, window, AGGS, by=["k"], lateness="40 seconds")
    results = [stream.step([rows().slice(start, 10)], watermark=1) for start in range(0, 40, 10)]
    results.append(stream.step([], watermark=80 * SECOND))
    assert as_windows(pa.concat_tables(results)) == closed_only(wanted(rows()))


@pytest.mark.parametrize("name", CASES)
def test_spark_batch_and_stream(spark, tmp_path, name):
    window, wanted = CASES[name]
    folder = Folder(spark, tmp_path)
    folder.add(rows().slice(0, 20), rows().slice(20))
    batch = sash.aggregate(spark.read.parquet(str(tmp_path / "in")), windows=window, aggs=AGGS, by="k", time="t")
    assert as_windows(batch.toArrow()) == wanted(rows())
    frame = sash.aggregate(folder.source(), windows=window, aggs=AGGS, by="k", time="t", watermark="40 seconds")
    later = rows().slice(0, 1).set_column(1, "t", pa.array([EPOCH + datetime.timedelta(seconds=90)], pa.timestamp("us", "UTC")))
    folder.add(later)
    got = as_windows(folder.run(frame))
    assert {where: total for where, total in got.items() if where[2] <= 39} == closed_only(wanted(rows()))
