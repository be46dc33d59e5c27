"""A stream without Spark: payloads and buckets as on Spark, each bucket's state in a dictionary."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import sash
from sash.plan.choices.stream_choice import choose_stream
from sash.plan.logical import make_plan
from sash.plan.request import Request
from sash.slicing.persistence.transactions import InDictionary, Transaction
from sash.slicing.rows.inputs import stored_form
from sash.slicing.rows.keys import encode
from sash.spark.workers.buckets import labels
from sash.spark.workers.payloads import BUCKET, BucketInput, MakePayloads
from sash.spark.workers.stream_tasks import Bucket, Clock
from sash.types import Duration

FACTS = {"windows": "as they are", "aggs": "as they are"}


def duration(given):
    return None if given is None else Duration.of(given, "a duration")


class LocalStream:
    """What Spark does with ``sash.aggregate`` on a stream, step by step."""

    def __init__(self, schema, windows, aggs, by=None, time="t", order_by=None, emit="final", lateness=None, idle=None, buckets=4,
                 delay=None, plan="auto", pocket=None):  # fmt: skip
        self.request = Request.of(windows, aggs, by, time, order_by)
        made = make_plan(schema, self.request)
        self.strategy = choose_stream(made, [stored_form(c, schema) for c in made.columns], plan).choice
        self.labels = labels(buckets if made.by else 1)
        self.by = made.by
        self.bucket = Bucket(
            self.request, schema, self.strategy, self.labels, FACTS, emit, duration(lateness), duration(idle), Clock(delay, 0, 1)
        )
        with_bucket = schema.append(pa.field(BUCKET, pa.int32())) if len(self.labels) > 1 else schema
        self.payloads = MakePayloads(self.request, with_bucket, self.strategy, self.labels, 1 << 20)
        self.storages = {label: InDictionary() for label in self.labels}
        # About half of all cases have no pocket, so that small states are seen in values of their own as well.
        self.pocket = Transaction.most_inlined * (len(repr((windows, aggs))) % 2) if pocket is None else pocket
        self.late = 0
        self.done = []

    def numbered(self, table):
        """Rows with their bucket's number, which depends on nothing but the key."""
        if len(self.labels) == 1:
            return table
        keys = encode(table, self.by)
        texts = [repr(tuple("nan" if v != v else v for v in row)) for row in zip(*[v.to_pylist() for v in keys.values], strict=True)]
        of_key = np.array([sum(text.encode()) % len(self.labels) for text in texts] or [0], np.int32)
        return table.append_column(BUCKET, pa.array(of_key[keys.codes], pa.int32()))

    def step(self, tables, watermark=None):
        """Rows of several partitions, then the watermark; a step that fails leaves all buckets as they were."""
        given = {label: [] for label in self.labels}
        for table in tables:
            for made in self.payloads.run(self.numbered(table).to_batches()):
                for row in made.to_pylist():
                    given[row["bucket"]].append(SimpleNamespace(**row))
        results, before = [], {label: dict(storage.values) for label, storage in self.storages.items()}
        try:
            usual, Transaction.most_inlined = Transaction.most_inlined, self.pocket
            for label in self.labels:
                found, operator = self.bucket.step(self.storages[label], label, BucketInput.of(given[label]), watermark)
                self.done.append(operator.commit())
                self.late += self.done[-1].late_rows
                results.append(found)
        except Exception:
            self.storages = {label: InDictionary(values) for label, values in before.items()}
            raise
        finally:
            Transaction.most_inlined = usual
        return pa.concat_tables(results)

    @property
    def state_bytes(self):
        return sum(len(v) for s in self.storages.values() for v in s.values.values())


def in_one_process(schema, windows, aggs, **options):
    """The operator that a stream must agree with."""
    op = sash.Operator(windows=windows, aggs=aggs, **{k: v for k, v in options.items() if k not in ("buckets", "plan")})
    op.add(schema.empty_table())
    return op
