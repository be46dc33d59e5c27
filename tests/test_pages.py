"""Results that are written into tables made beforehand: what was given out stays as it was, and is what a table of its own would be."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from sash.slicing.stream import pages

AGGS = [S.sum("v").alias("sum"), S.count("v").alias("count"), S.avg("v").alias("avg"), S.max("f").alias("max")]
SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64()), ("f", pa.float32())])
rows = st.lists(
    st.tuples(st.integers(0, 12), st.one_of(st.none(), st.integers(-9, 9)), st.floats(width=32, allow_nan=False)), min_size=1, max_size=80
)


def run(steps, specs, **options):
    op = sash.Operator(windows=specs, aggs=AGGS, time="t", **options)
    given_out, t = [], 0
    for ahead, v, f in steps:
        t += ahead
        op.add(pa.table({"t": [t], "v": [v], "f": [f]}, schema=SCHEMA))
        given_out.append(op.advance(t))
    return [*given_out, op.close()]


@given(steps=rows, size=st.integers(1, 9), gap=st.integers(1, 9), room=st.integers(1, 8))
def test_parts_of_pages_are_what_tables_of_their_own_are(steps, size, gap, room):
    specs = {"a window": W.tumbling(size), "größer": W.sliding(3 * size, size), "s": W.session(gap)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "ROWS", room)
        got = run(steps, specs)
        seen = [table.to_pylist() for table in got]
        patch.setattr(pages.Pages, "part", lambda self, parts: None)
        own = run(steps, specs)
    assert [table.to_pylist() for table in own] == seen
    for a, b in zip(got, own, strict=True):
        a.validate(full=True)
        assert a.schema.equals(b.schema)
        assert a.equals(b)  # after all of them were written


def test_a_part_goes_elsewhere_as_any_table():
    got = run([(1, k, 0.5) for k in range(40)], {"w": W.tumbling(2)})
    (one,) = [table for table in got if table.num_rows and table.column("window")[0].as_py()["start"] == 20]
    expected = [{"query": "w", "window": {"start": 20, "end": 22}, "sum": 39, "count": 2, "avg": 19.5, "max": 0.5}]
    assert pickle.loads(pickle.dumps(one)).to_pylist() == expected
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, one.schema) as writer:
        writer.write_table(one)
    assert pa.ipc.open_stream(sink.getvalue()).read_all().to_pylist() == expected
    assert sink.getvalue().size < 2000  # the row alone, not its page
    assert pa.concat_tables(got).combine_chunks().num_rows == 21


def test_a_stream_without_pages_for_what_is_no_plain_number():
    op = sash.Operator(windows=W.tumbling("2 seconds"), aggs=[S.max("v").alias("m"), S.min("t").alias("at")], time="t")
    for k in range(4):
        op.add(pa.table({"t": pa.array([k], pa.timestamp("s")), "v": pa.array([f"{k}"])}))
    assert [(r["m"], r["at"].second) for r in op.advance(4).to_pylist()] == [("1", 0), ("3", 2)]


def test_a_sum_that_does_not_fit_leaves_the_page_as_it_was():
    op = sash.Operator(windows=W.tumbling(2), aggs=[S.sum("v").alias("s")], time="t")
    most = (1 << 63) - 1
    op.add([{"t": 0, "v": 1}])
    first = op.advance(2)
    op.add([{"t": 2, "v": most}, {"t": 3, "v": most}])
    with pytest.raises(sash.errors.IntegerOverflow):
        op.advance(4)
    assert first.column("s").to_pylist() == [1]
