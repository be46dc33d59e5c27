"""``sash bench stream``: ``sash.aggregate`` on streams against Spark's own windows, micro-batch by micro-batch, in one session."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.harness import Figure, Report, doing, in_turns, new_report, number, same
from sash.bench.stream_runs import PHASES, Run, phases, size_of, together
from sash.spark.sessions import PROVIDER

SLIDE, ADVANCE = 10, 15
"""Seconds that windows slide by, and that the event time of a micro-batch spans."""
START = 1_700_000_000 // 3600 * 3600
AGGREGATES = [S.sum("v").alias("total"), S.count("v").alias("amount"), S.max("v").alias("most")]
STORES = {name: f"org.apache.spark.sql.execution.streaming.state.{name}StateStoreProvider" for name in ("RocksDB", "HDFSBacked")}
SLIDES: tuple[tuple[int, float, float | None], ...] = ((60, 1.8, 2.5), (600, 5.0, None), (3600, 20.0, None))
"""Slides per window, and the bounds for few keys: what must be reached, and the aim."""
WARM = 2
"""How many micro-batches after the one that fills the windows are not measured."""
ROUNDS = 3
"""How often each of several streams is run, in turns."""


def measure(*, quick: bool = False, data: Path | None = None) -> Report:
    """All figures."""
    report = new_report("stream")
    settings = {
        "spark.driver.memory": "8g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    spark = sash.spark.session(settings=settings)
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        bench = Bench(spark, Path(folder), report, quick)
        bench.few_keys()
        bench.many_keys()
        bench.queries()
        bench.sessions()
        bench.latency()
    spark.stop()
    return report


class Bench:
    """A session, a folder for data and checkpoints, and the report."""

    def __init__(self, spark: Any, folder: Path, report: Report, quick: bool) -> None:
        self.spark, self.folder, self.report, self.quick = spark, folder, report, quick
        self.rows = 20_000 if quick else 250_000
        self._runs = 0

    # Rows, and what is done with them.

    def files(self, keys: int, slides: int, batches: int, rows: int | None = None) -> Path:
        """A folder with two files for each micro-batch: the first fills the windows with as many rows a slide as the others have."""
        rows = self.rows if rows is None else rows
        folder = self.folder / f"rows-{keys}-{slides}-{rows}"
        rng = np.random.default_rng(keys + slides)
        fill = int(slides * min(rows * SLIDE / ADVANCE, 1.2 * keys))
        if not folder.exists():
            folder.mkdir()
            self._write(folder, 0, fill, START - slides * SLIDE, slides * SLIDE, keys, rng)
            for number_ in range(1, batches + 1):
                self._write(folder, number_, rows, START + (number_ - 1) * ADVANCE, ADVANCE, keys, rng)
        return folder

    def _write(self, folder: Path, batch: int, rows: int, begin: int, span: int, keys: int, rng: Any) -> None:
        for half in (0, 1):
            count = rows // 2
            ticks = np.sort(rng.integers(0, span * 1_000_000, count)) + begin * 1_000_000
            table = pa.table({
                "k": rng.integers(0, keys, count),
                "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
                "v": rng.integers(0, 1000, count).astype(float),
            })  # fmt: skip
            path = folder / f"{batch:04d}-{half}.parquet"
            pq.write_table(table, path)
            os.utime(path, (batch + 1, batch + 1))

    def source(self, folder: Path) -> Any:
        """The files as a stream, two for each micro-batch."""
        reader = self.spark.readStream.schema("k long, ts timestamp, v double").option("maxFilesPerTrigger", 2)
        return reader.parquet(str(folder))

    def run(self, frame: Any, store: str = "RocksDB", warm: int = WARM) -> Run:
        """All micro-batches of a stream of results, each timed by Spark itself, with sums of all results."""
        from pyspark.sql import functions as F

        self._runs += 1
        home = self.folder / f"checkpoint-{self._runs}"
        self.spark.conf.set(PROVIDER, STORES[store])
        observed = frame.observe(
            "answer", F.count("*").alias("n"), F.sum("total").alias("t"), F.sum("amount").alias("a"), F.sum("most").alias("m"),
            F.sum(F.expr("unix_seconds(window.end) - unix_seconds(window.start)")).alias("w"),
        )  # fmt: skip
        query = observed.writeStream.format("noop").option("checkpointLocation", str(home)).trigger(availableNow=True).start()
        query.awaitTermination()
        entries = [p for p in query.recentProgress if p.numInputRows][1 + warm :]
        answer = np.zeros(5)
        for p in query.recentProgress:
            answer += [float(x or 0) for x in p.observedMetrics["answer"]] if "answer" in p.observedMetrics else 0.0
        wanted = {p.batchId for p in entries}
        reports = [p for p in sash.spark.progress(query) if p["batch"] in wanted]
        done = Run(
            [p.batchDuration / 1000 for p in entries], answer.tolist(),
            float(np.median([p["bytes_read"] for p in reports])) / 1e6, float(np.median([p["bytes_written"] for p in reports])) / 1e6,
            size_of(home), size_of(home / "state"), phases(entries, query.recentProgress),
        )  # fmt: skip
        shutil.rmtree(home)
        self.spark.conf.set(PROVIDER, STORES["RocksDB"])
        return done

    def in_turns(self, frames: dict[str, tuple[Any, str]], rounds: int = ROUNDS) -> dict[str, Run]:
        """Several streams, each with its store, one after the other and then again: all of them meet the same machine."""

        def once(name: str) -> Run:
            doing(name)
            return self.run(*frames[name])

        runs = in_turns({name: partial(once, name) for name in frames}, rounds)
        for name, repeated in runs.items():
            for other in repeated[1:]:
                same(np.array(other.answer), np.array(repeated[0].answer), f"{name}, run again")
        return {name: together(repeated) for name, repeated in runs.items()}

    def ours(self, folder: Path, windows: Any, **options: Any) -> Any:
        """Our windows."""
        return sash.aggregate(self.source(folder), windows=windows, aggs=AGGREGATES, by="k", time="ts", watermark="0 seconds", **options)

    def theirs(self, folder: Path, window: Any) -> Any:
        """Spark's own."""
        from pyspark.sql import functions as F

        grouped = self.source(folder).withWatermark("ts", "0 seconds").groupBy("k", window.alias("window"))
        return grouped.agg(F.sum("v").alias("total"), F.count("v").alias("amount"), F.max("v").alias("most"))

    # The figures.

    def few_keys(self) -> None:
        from pyspark.sql import functions as F

        lines = []
        folder = self.files(16, 6, 10)
        doing("few keys: compilers warm up")
        for frame in 3 * (
            self.ours(folder, W.sliding("60 seconds", every="10 seconds")),
            self.theirs(folder, F.window("ts", "60 seconds", "10 seconds")),
        ):
            self.run(frame)  # compilers warm up: it takes them some thirty micro-batches
        measured = SLIDES[: 2 if self.quick else None]
        step = f"{SLIDE} seconds"
        frames: dict[str, tuple[Any, str]] = {
            f"sash, {slides} slides": (self.ours(self.files(16, slides, 14), W.sliding(f"{slides * SLIDE} seconds", every=step)), "RocksDB")
            for slides, _, _ in measured
        }
        shortest = measured[0][0]
        for store in STORES:
            window = F.window("ts", f"{shortest * SLIDE} seconds", step)
            frames[f"F.window, {shortest} slides, {store}"] = (self.theirs(self.files(16, shortest, 14), window), store)
        runs = self.in_turns(frames)
        for slides, must, aim in measured:
            size = f"{slides * SLIDE} seconds"
            mine = runs[f"sash, {slides} slides"]
            # A peer that copies each row takes long: it runs a few micro-batches of a share of the rows, without filling the windows.
            share = {60: 1, 600: 10}.get(slides, 100)
            if share == 1:
                peers, again = {store: runs[f"F.window, {slides} slides, {store}"] for store in STORES}, mine
            else:
                doing(f"F.window, {slides} slides, a few micro-batches of 1/{share} of the rows")
                small = self.files(16, 1, 3, self.rows // share)
                peers = {"HDFSBacked": self.run(self.theirs(small, F.window("ts", size, step)), "HDFSBacked", warm=1)}
                again = self.run(self.ours(small, W.sliding(size, every=step)), warm=0)
            for peer in peers.values():
                same(np.array(again.answer), np.array(peer.answer), f"F.window, 16 keys, {slides} slides")
            best = min(p.median for p in peers.values())
            shown = ", ".join(f"{name} {number(p.median)}" for name, p in peers.items()) + (
                f" for 1/{share} of the rows" if share > 1 else ""
            )
            lines.append([str(slides), number(mine.median), shown])
            if share == 1:
                parts = {"sash": mine, **{f"F.window, {name}": p for name, p in peers.items()}}
                self.report.tables.append(
                    (
                        f"Where a micro-batch goes, 16 keys, {slides} slides: medians in ms, as Spark reports them",
                        ["", *PHASES],
                        [[who, *(number(run.phases[p]) for p in PHASES)] for who, run in parts.items()],
                    )
                )
            name = f"16 keys, {slides} slides, against F.window, the better store"
            note = f"{number(mine.median)} s against {shown}"
            self.report.figures.append(Figure(name, best / mine.median, must=must, aim=aim, note=note))
        flat = [runs[f"sash, {slides} slides"].median for slides, _, _ in measured]
        spread = max(flat) / min(flat)
        self.report.figures.append(Figure("16 keys, ours from 60 to 3600 slides", spread, "× the time", must=1.3, better="lower"))
        head = ["slides", "sash s", "F.window s"]
        self.report.tables.append((f"{self.rows:,} rows a micro-batch, 16 keys, sum + count + max", head, lines))

    def many_keys(self) -> None:
        from pyspark.sql import functions as F

        keys = 10_000 if self.quick else 100_000
        runs = {}
        for slides in (60, 600):
            doing(f"{keys:,} keys, {slides} slides")
            folder = self.files(keys, slides, 16)
            runs[slides] = self.run(self.ours(folder, W.sliding(f"{slides * SLIDE} seconds", every=f"{SLIDE} seconds")))
            if slides == 600:
                shutil.rmtree(folder)
        folder = self.files(keys, 60, 16)
        short = self.folder / "short-keys"
        shutil.copytree(folder, short)
        for path in short.iterdir():
            if int(path.name[:4]) > 3:
                path.unlink()
        doing(f"F.window, {keys:,} keys, 60 slides")
        peer = self.run(self.theirs(short, F.window("ts", "600 seconds", f"{SLIDE} seconds")), warm=1)
        again = self.run(self.ours(short, W.sliding("600 seconds", every=f"{SLIDE} seconds")), warm=1)
        same(np.array(again.answer), np.array(peer.answer), "F.window, many keys")
        ten = 10 * keys
        folder = self.files(ten, 60, 16)
        name = f"{ten:,} keys, 60 slides"
        frame = self.ours(folder, W.sliding("600 seconds", every=f"{SLIDE} seconds"))
        million = self.in_turns({name: (frame, "RocksDB")})[name]
        add = self.report.figures.append
        note = f"{number(runs[60].median)} s against {number(peer.median)} s"
        add(Figure(f"{keys:,} keys, 60 slides, against F.window on RocksDB", peer.median / runs[60].median, must=20, aim=50, note=note))
        ratio = runs[600].median / runs[60].median
        add(
            Figure(
                f"{keys:,} keys, 600 slides against 60", ratio, "× the time", must=1.5, better="lower", note=f"{number(runs[600].median)} s"
            )
        )
        add(Figure(f"{keys:,} keys, 600 slides, read a batch", runs[600].read, "MB", must=30, better="lower"))
        add(Figure(f"{keys:,} keys, 600 slides, written a batch", runs[600].written, "MB", must=10, better="lower"))
        ratio = million.median / runs[60].median
        note = f"{number(million.median)} s; {number(million.read)} MB read, {number(million.written)} MB written"
        add(Figure(f"{ten:,} keys, 60 slides, against {keys:,}", ratio, "× the time", must=3, better="lower", note=note))
        note = f"the median of {len(million.worst)} runs' worst: {', '.join(number(w) for w in million.worst)}"
        worst = float(np.median(million.worst))
        add(Figure(f"{ten:,} keys, worst batch against the median", worst, "× the time", must=2, better="lower", note=note))
        add(
            Figure(
                f"{keys:,} keys, 60 slides, checkpoint on disk",
                again.checkpoint / 1e6,
                "MB",
                note=f"Spark's own {peer.checkpoint / 1e6:.0f} MB",
            )
        )

    def queries(self) -> None:
        from pyspark.sql import functions as F

        lengths = (10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
        specs = {f"t{n}": W.tumbling(f"{n} seconds") for n in lengths}
        specs |= {f"s{n}": W.sliding(f"{n} seconds", every=f"{SLIDE} seconds") for n in lengths}
        keys, rows = (100, 2_000) if self.quick else (1_000, self.rows)
        folder = self.files(keys, 360, 12, rows)
        one = W.sliding("3600 seconds", every=f"{SLIDE} seconds")
        runs = self.in_turns({"twenty queries": (self.ours(folder, specs), "RocksDB"), "one query": (self.ours(folder, one), "RocksDB")})
        twenty, single = runs["twenty queries"].median, runs["one query"].median
        doing("twenty of Spark's own")
        small = self.files(keys, 360, 2, 2_000)
        mine = self.run(self.ours(small, specs), warm=0)
        state, answer = 0, np.zeros(5)
        for name in specs:
            n = int(name[1:])
            window = F.window("ts", f"{n} seconds") if name[0] == "t" else F.window("ts", f"{n} seconds", f"{SLIDE} seconds")
            done = self.run(self.theirs(small, window), warm=0)
            state, answer = state + done.state, answer + np.array(done.answer)
        same(np.array(mine.answer), answer, "twenty queries")
        add = self.report.figures.append
        note = f"{keys:,} keys: {number(twenty)} s against {number(single)} s"
        add(Figure("20 queries (10 s to 1 h) against one", twenty / single, "× the time", must=1.5, better="lower", note=note))
        note = f"{mine.state / 1e6:.1f} MB on disk against {state / 1e6:.1f} MB"
        add(
            Figure(
                "20 queries, state against twenty of Spark's own",
                mine.state / state,
                "of theirs",
                must=0.1,
                aim=0.05,
                better="lower",
                note=note,
            )
        )

    def sessions(self) -> None:
        from pyspark.sql import functions as F

        keys = 10_000 if self.quick else 100_000
        folder = self.files(keys, 6, 12)
        frames = {"sessions": (self.ours(folder, W.session("5 seconds")), "RocksDB")}
        frames |= {f"session_window, {s}": (self.theirs(folder, F.session_window("ts", "5 seconds")), s) for s in STORES}
        runs = self.in_turns(frames)
        mine, peers = runs["sessions"], {s: runs[f"session_window, {s}"] for s in STORES}
        for peer in peers.values():
            same(np.array(mine.answer), np.array(peer.answer), "session_window")
        best = min(p.median for p in peers.values())
        note = f"{number(mine.median)} s against {', '.join(f'{s} {number(p.median)} s' for s, p in peers.items())}"
        name = f"sessions, {keys:,} keys, against session_window, the better store"
        self.report.figures.append(Figure(name, best / mine.median, must=1, aim=3, note=note))

    def latency(self) -> None:
        """The time from a window's end, at which its last row arrives, to the arrival of its result."""
        from pyspark.sql import functions as F

        def rows() -> Any:
            generated = self.spark.readStream.format("rate").option("rowsPerSecond", 10_000).option("numPartitions", 2).load()
            return generated.selectExpr("value % 16 k", "timestamp ts", "cast(value % 1000 as double) v")

        latencies: dict[str, list[float]] = {}
        for who in ("sash", "F.window"):
            doing(f"latency of {who}")
            if who == "sash":
                frame = sash.aggregate(
                    rows(), windows=W.sliding("10 seconds", every="1 second"), aggs=AGGREGATES, by="k", time="ts", watermark="0 seconds"
                )
            else:
                grouped = rows().withWatermark("ts", "0 seconds").groupBy("k", F.window("ts", "10 seconds", "1 second"))
                frame = grouped.agg(F.sum("v").alias("total"), F.count("v").alias("amount"), F.max("v").alias("most"))
            seen: list[float] = []

            def note(batch: Any, number_: int, seen: list[float] = seen) -> None:
                ends = [r[0] for r in batch.selectExpr("unix_millis(window.end) e").collect()]
                seen.extend(time.time() - e / 1000 for e in ends if number_ > 5)

            home = self.folder / f"latency-{who}"
            query = frame.writeStream.foreachBatch(note).option("checkpointLocation", str(home)).trigger(processingTime="1 second").start()
            query.awaitTermination(15 if self.quick else 45)
            query.stop()
            latencies[who] = seen
        add = self.report.figures.append
        for q in (50, 99):
            mine, peer = (float(np.percentile(latencies[w], q)) if latencies[w] else float("nan") for w in ("sash", "F.window"))
            add(Figure(f"latency of a window's result, 16 keys, 1 s triggers, p{q}", mine, "s", note=f"Spark's own {number(peer)} s"))
