"""Why a query has no results: each reason by its counts, and on streams of Spark."""

from __future__ import annotations

import datetime
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.plan.diagnosis import RULES, Facts, findings

UTC = pa.timestamp("us", "UTC")
MICROS = 1_000
NOON = 1_717_243_200_000_000  # 2024-06-01 12:00 UTC
SECOND = 1_000_000

CASES = {
    "no rows": (Facts(0), "No rows arrive", "Kafka starts at the end of a topic"),
    "nothing parses": (Facts(20, bad=20), "None of 20 rows could be parsed", "Compare --schema with a row"),
    "no time": (Facts(20, bad=2, without_time=18), "All 18 rows have no time", "Check the name of the time column"),
    "dropped by the condition": (Facts(20, bad=2), r"The condition \(WHERE\) dropped every one of 18 rows", "Try the query without WHERE"),
    "too far ahead": (Facts(20, ahead=20), "All 20 rows are further in front of the clock than max_ahead", "raise max_ahead"),
    "wrong unit": (
        Facts(20, rows=20, newest=1_717_243_200, tick_nanos=MICROS, watermark=1_717_243_100, next_end=1_717_300_000),
        r"The newest row's time is 1970-01-01 00:28:37 UTC: the unit of the time column looks wrong",
        "seconds or milliseconds are taken as microseconds",
    ),
    "all late": (
        Facts(20, rows=20, late=20, newest=NOON, watermark=NOON + 90 * 60 * SECOND, tick_nanos=MICROS),
        "All 20 rows are late: the newest is from 2024-06-01 12:00:00 UTC, 90.0 minutes behind the watermark",
        "raise watermark= or lateness=",
    ),
    "watermark stands still": (
        Facts(20, rows=20, newest=NOON, tick_nanos=MICROS, silent=("B",)),
        "The watermark stands still, because no rows arrive from B",
        "Send rows",
    ),
    "no watermark yet": (Facts(20, rows=20, newest=NOON, tick_nanos=MICROS), "There is no watermark yet", "emit='running'"),
    "first window is open": (
        Facts(20, rows=20, newest=NOON, watermark=NOON - 5 * SECOND, next_end=NOON + 60 * SECOND, tick_nanos=MICROS),
        "ends at 2024-06-01 12:01:00 UTC, and the watermark is at 2024-06-01 11:59:55 UTC: rows 65 seconds newer are needed",
        "Wait, or use emit='running'",
    ),
    "dropped by having": (
        Facts(20, rows=20, emitted=7, newest=NOON, tick_nanos=MICROS),
        "dropped every one of 7 results",
        "without HAVING",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reasons(name):
    facts, text, remedy = CASES[name]
    assert len(CASES) == len(RULES)
    first = findings(facts)[0]
    assert first.name == name
    assert re.search(text, first.text), first.text
    assert remedy in first.remedy
    assert findings(Facts(**{**vars(facts), "results": 1})) == []


def test_a_year_far_away():
    facts = Facts(5, rows=5, newest=NOON * 1_000_000, tick_nanos=MICROS)
    assert "the year " in findings(facts)[0].text
    assert "milliseconds or microseconds are taken as seconds" in findings(facts)[0].remedy


# On streams.


class Source:
    """A folder of files, each a micro-batch."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.count = spark, folder, 0
        folder.mkdir()

    def put(self, times, values=None):
        times = pa.array(times, pa.int64()).cast(UTC)
        pq.write_table(pa.table({"timestamp": times, "v": values or list(range(len(times)))}), self.folder / f"{self.count:03d}.parquet")
        os.utime(self.folder / f"{self.count:03d}.parquet", (self.count + 1, self.count + 1))
        self.count += 1

    def frame(self):
        return self.spark.readStream.schema("timestamp timestamp, v long").option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@pytest.fixture
def diagnosed(spark, tmp_path):
    """The names of what is found after a stream has read all that there is."""

    def run(frame, checkpoint="checkpoint"):
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found = sash.spark.diagnose(query)
        assert all(f.remedy for f in found)
        return [f.name for f in found]

    return run


COUNT = "select window.end, count(*) as n from S [range 1 minute slide 1 minute]"


def test_streams_without_results(spark, tmp_path, diagnosed):
    source = Source(spark, tmp_path / "in")
    source.put([NOON, NOON + SECOND], [1, 2])
    assert diagnosed(sash.sql(f"{COUNT} where v > 5", S=source.frame(), watermark="1 second"), "a")[0] == "dropped by the condition"
    source.put([NOON + 2 * SECOND])
    assert diagnosed(sash.sql(COUNT, S=source.frame(), watermark="1 second"), "b")[0] == "first window is open"
    source.put([NOON + 300 * SECOND])
    source.put([NOON + 301 * SECOND])
    assert diagnosed(sash.sql(COUNT, S=source.frame(), watermark="1 second"), "c") == []
    having = sash.sql(f"{COUNT} having n > 50", S=source.frame(), watermark="1 second")
    assert diagnosed(having, "d")[0] == "dropped by having"
    again = sash.sql(COUNT, S=source.frame(), watermark="1 second")
    source.put([NOON - 900 * SECOND, NOON - 901 * SECOND])
    assert diagnosed(again, "c")[0] == "all late"  # from its checkpoint
    ahead = int(datetime.datetime.now(datetime.UTC).timestamp() + 10**8) * SECOND
    other = Source(spark, tmp_path / "ahead")
    other.put([ahead])
    request = {"windows": W.tumbling("1 minute"), "aggs": [S.count()], "time": "timestamp", "watermark": "1 second"}
    assert diagnosed(sash.aggregate(other.frame(), max_ahead="1 hour", **request), "e")[0] == "too far ahead"
    old = Source(spark, tmp_path / "old")
    old.put([NOON // SECOND, NOON // SECOND + 1])
    assert diagnosed(sash.aggregate(old.frame(), **request), "f")[0] == "wrong unit"
    timeless = Source(spark, tmp_path / "timeless")
    timeless.put([None, None])
    assert diagnosed(sash.aggregate(timeless.frame(), **request), "g")[0] == "no time"


def test_a_stream_without_rows_and_a_silent_one(spark, tmp_path, diagnosed):
    source, silent = Source(spark, tmp_path / "in"), Source(spark, tmp_path / "silent")
    assert diagnosed(sash.sql(COUNT, S=source.frame(), watermark="1 second"), "a")[0] == "no rows"
    source.put([NOON])
    source.put([NOON + 300 * SECOND])
    text = "select A.v from A [range 1 minute slide 1 minute] as A, B [range 1 minute slide 1 minute] as B where A.v = B.v"
    join = sash.sql(text, A=source.frame(), B=silent.frame(), watermark="1 second")
    assert diagnosed(join, "b")[0] == "watermark stands still"
