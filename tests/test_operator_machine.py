"""A state machine: rows, watermarks, queries that come and go, snapshots; after each step what a list of rows says."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import sash
from sash import functions as S
from sash import windows as W
from tests import oracle, window_oracle
from tests.own_aggregates import affine, affine_of
from tests.test_operator import due, key_of, rest_of
from tests.test_tables import table_of, values
from tests.window_oracle import Row, by_key

COMMUTE = [S.sum("v").alias("sum"), S.count().alias("count"), S.max("v").alias("max")]
ORDERED = [affine("coalesce(v, 0)").alias("affine"), S.last("v").alias("last"), S.count().alias("count")]


class OperatorMachine(RuleBasedStateMachine):
    """``emit="final"``; rows are never too late, so that what is due is settled."""

    @initialize(case=window_oracle.cases(), lateness=st.integers(0, 15), ordered=st.booleans(), store=st.sampled_from(["lazy", "eager"]))
    def start(self, case, lateness, ordered, store):
        self.aggs = ORDERED if ordered else COMMUTE
        self.lateness, self.watermark, self.rows = lateness, -100, []
        self.queries = {"q0": (case, None)}
        self.given: set = set()
        self.numbers = 1
        self.op = sash.Operator(windows={"q0": case[0]}, aggs=self.aggs, by="k", time="t", lateness=lateness, store=store)
        self.op.add(table_of([]))

    @rule(rows=st.lists(st.tuples(st.sampled_from([None, 1]), st.integers(0, 40), values, st.booleans()), max_size=8))
    def add(self, rows):
        horizon = max(self.watermark - self.lateness, -60)
        fresh = [Row(k, horizon + t, v, flag, len(self.rows) + i) for i, (k, t, v, flag) in enumerate(rows)]
        self.rows += fresh
        self.op.add(table_of(fresh))

    @rule(ahead=st.integers(0, 30))
    def advance(self, ahead):
        self.watermark += ahead
        self.compare(self.op.advance(self.watermark), self.watermark - self.lateness)

    @precondition(lambda self: len(self.queries) < 4)
    @rule(case=window_oracle.cases())
    def add_query(self, case):
        newest = max((r.t for r in self.rows), default=None)
        name = f"q{self.numbers}"
        self.numbers += 1
        self.queries[name] = (case, None if newest is None else newest + 1)
        self.op.add_query(name, case[0])

    @precondition(lambda self: len(self.queries) > 1)
    @rule(data=st.data())
    def remove_query(self, data):
        name = data.draw(st.sampled_from(sorted(self.queries)))
        del self.queries[name]
        self.op.remove_query(name)

    @rule()
    def restart(self):
        specs = {name: case[0] for name, (case, _) in self.queries.items()}
        self.op = sash.Operator.restore(self.op.snapshot(), windows=specs, aggs=self.aggs)

    def expected(self):
        for name, ((spec, windows), since) in self.queries.items():
            whole = spec.context == "context free" and not isinstance(spec, type(W.unbounded()))
            seen = self.rows if since is None or whole else [r for r in self.rows if r.t >= since]
            for key, group in by_key(seen).items():
                for start, end, ranks, part in windows(group):
                    if since is None or not whole or start >= since:
                        yield spec, (name, key, start, end, ranks), [r.v for r in part]

    def compare(self, result, horizon):
        got = {key_of(r): rest_of(r) for r in result.to_pylist()}
        wanted = {}
        for spec, at, held in self.expected():
            ready = due(spec, at)
            if ready is not None and ready <= horizon and at not in self.given:
                wanted[at] = held
        assert got.keys() == wanted.keys(), set(got) ^ set(wanted)
        for at, held in wanted.items():
            for name, value in got[at].items():
                own = {"affine": lambda: affine_of([v or 0 for v in held]), "count": lambda: len(held)}
                assert value == own.get(name, lambda: oracle.aggregate(name, held))(), (at, name)
        self.given |= wanted.keys()

    @invariant()
    def counts(self):
        if hasattr(self, "op"):
            assert self.op.stats.late == 0
            assert self.op.stats.rows == len(self.rows)


TestOperator = OperatorMachine.TestCase
