"""From Kafka to Kafka: a real broker on loopback, ``sash run`` killed and restarted, and what a consumer sees."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict

import pyarrow as pa
import pytest

import sash
from sash.bench.kafka_broker import Broker, connector, jars

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(jars() is None, reason="Kafka's jars are missing: make kafka"),
]
UTC = pa.timestamp("us", "UTC")
QUERY = """select window.start, window.end, k, sum(v) as total, count(*) as n
           from S [range 20 seconds slide 5 seconds] where v >= 0 group by k"""
COLUMNS = "timestamp timestamp, k string, v long"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


def rows(count, seed=3):
    """A row every tenth of a second, a little out of order."""
    rng = random.Random(seed)
    ticks = [1_700_000_000_000_000 + n * 100_000 - rng.randrange(2_000_000) for n in range(count)]
    names, values = [rng.choice("abc") for _ in range(count)], [rng.randrange(-5, 50) for _ in range(count)]
    return pa.table({"timestamp": pa.array(ticks, pa.int64()).cast(UTC), "k": names, "v": values})


def messages_of(table):
    return [json.dumps(row, default=lambda v: v.isoformat()) for row in table.to_pylist()]


def command(broker, home, source, sink, *more, query=QUERY):
    settings = ["spark.sql.shuffle.partitions=2", f"spark.local.dir={home}", "spark.driver.memory=1g"]
    conf = [word for setting in (f"spark.jars={connector()}", *settings) for word in ("--conf", setting)]
    stream = f"S=kafka://{broker.servers}/{source}?maxOffsetsPerTrigger=400"
    out = sink if "://" not in sink and sink == "-" else f"kafka://{broker.servers}/{sink}?key=k"
    words = ["-c", query, "--stream", stream, "--out", out, "--schema", f"S={COLUMNS}", "--watermark", "3 seconds", *conf, *more]
    return [sys.executable, "-m", "sash", "run", *words]


def test_every_window_is_seen_once_over_kills(broker, tmp_path):
    broker.create("in", 1)  # rows of several partitions would meet in no order, and some of them be late
    broker.create("out")
    table = rows(2_400)
    sent = messages_of(table)
    broker.send("in", [*sent[:1200], "no json", '{"timestamp": "never"}'])
    arguments = command(broker, tmp_path, "in", "out", "--checkpoint", str(tmp_path / "state"))
    rng = random.Random(int(os.environ.get("SASH_SEED", "1")))
    for kill in range(2):
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(arguments, stdout=log, stderr=log, start_new_session=True)
        before = committed(tmp_path)
        while process.poll() is None and committed(tmp_path) < before + 1 + kill:
            time.sleep(0.1)
        time.sleep(rng.uniform(0, 1.5))
        assert process.poll() is None, (tmp_path / "log").read_text()[-2000:]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        broker.send("in", sent[1200 + kill * 600 : 1800 + kill * 600])
    last = {"timestamp": "2024-01-01T00:00:00Z", "k": "z", "v": 1}
    broker.send("in", [json.dumps(last)])
    done = subprocess.run([*arguments, "--no-follow"], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    found, seen = {}, defaultdict(int)
    for message in broker.messages("out"):
        key = (message["k"], message["start"])
        assert found.setdefault(key, message) == message  # at least once, and always the same
        seen[key] += 1
    expected = {(r["k"], r["start"].isoformat()): (r["total"], r["n"]) for r in sash.sql(QUERY, S=table).to_pylist()}
    assert {(k, iso(start)): (m["total"], m["n"]) for (k, start), m in found.items()} == expected


def iso(text):
    """Spark writes Z, Python +00:00, with microseconds where there are some."""
    return text.replace("Z", "+00:00").replace(".000000", "")


def committed(home):
    return max((int(path.name) + 1 for path in (home / "state" / "query" / "commits").glob("[0-9]*")), default=0)


def test_a_topic_that_does_not_exist(broker, tmp_path):
    done = subprocess.run(
        command(broker, tmp_path, "nowhere", "-", "--no-follow"), capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 1
    assert "error: the topic does not exist" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broker_that_goes_away(broker, tmp_path):
    """The query ends with a clear message; once the broker is back, the same command goes on, and nothing is lost."""
    broker.create("unsteady", 1)
    table = rows(300, seed=5)
    sent = messages_of(table)
    broker.send("unsteady", sent[:150])
    query = QUERY
    options = "default.api.timeout.ms", "request.timeout.ms"
    arguments = command(broker, tmp_path, "unsteady", "-", "--checkpoint", str(tmp_path / "state"), query=query)
    arguments = [a + "".join(f"&kafka.{o}=4000" for o in options) if a.startswith("S=kafka") else a for a in arguments]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while process.poll() is None and committed(tmp_path) < 1:
        time.sleep(0.1)
    broker.stop()
    try:
        first, err = process.communicate(timeout=150)
    finally:
        broker.start()
    assert process.returncode == 1, err
    assert "error: the broker does not answer" in err
    broker.send("unsteady", [*sent[150:], json.dumps({"timestamp": "2024-01-01T00:00:00Z", "k": "z", "v": 1})])
    done = subprocess.run([*arguments, "--no-follow"], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (first + done.stdout).splitlines()]
    found = {(m["k"], m["start"]): (m["total"], m["n"]) for m in lines}
    assert len(found) == len(lines)
    assert found == {(r["k"], r["start"].isoformat()): (r["total"], r["n"]) for r in sash.sql(QUERY, S=table).to_pylist()}
