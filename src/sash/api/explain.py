"""``sash.explain``: what will be done, with which algorithm, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sash import threads
from sash.algorithms.rolling import modules
from sash.api.explain_tables import explain_table
from sash.api.rolling import checked, decide, prepare, result_type
from sash.errors import InvalidArgument
from sash.kernels.compiler import is_at_hand
from sash.kernels.generate import Module
from sash.plan.choose import choose_holistic


@dataclass(frozen=True)
class Explanation:
    """A plan, as lines of text; ``str()`` and printing give them."""

    lines: tuple[str, ...]
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self.lines, *(f"\n{text}" for text in self.sources)])

    __repr__ = __str__


def explain(
    values: Any,
    size: int | None = None,
    every: int = 1,
    agg: Any = "min",
    algorithm: str = "auto",
    device: str = "auto",
    source: bool = False,
    **table: Any,
) -> Explanation:
    """The plan of :func:`sash.rolling`, or, with ``windows=``, of :func:`sash.aggregate` or :func:`sash.over` with the same arguments.

    With ``source`` the text of rolling's kernels is shown as well.

    >>> import numpy as np, sash
    >>> print(sash.explain(np.zeros(100), 10, agg="max"))
    rolling max(double) -> double: 91 windows of 10 rows, every 1, over 100 rows
      algorithm: blocks
        slide 1: two stacks, block by block
        no vector lanes: 100 rows are too few for windows of 10
      laws: associative, commutative, selective
      device: cpu, ... thread...

    >>> import pyarrow as pa
    >>> from sash import functions as S, windows as W
    >>> rows = pa.table({"t": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
    >>> print(sash.explain(rows, windows=W.sliding(10, every=5), aggs=[S.sum("cpu")], time="t"))
    aggregate 4 rows, 1 key, measured in int64
      window: sliding(10, every 5), context free
      slices: scatter
        edges are known and aggregates commute: each row is added to its slice, in any order
      sum(cpu) -> int64: prefixes over slices
      device: cpu, ... thread...
    """
    if "windows" in table:
        return Explanation(tuple(explain_table(values, **table)))
    if table or size is None:
        raise InvalidArgument("explain takes the arguments of sash.rolling (size=, ...), or of sash.aggregate or sash.over (windows=, ...)")
    request = checked(values, size, every, agg, algorithm, device)
    aggregate = request.aggregate
    lines = [
        f"rolling {aggregate.label}({request.type}) -> {result_type(request)}: {request.windows} windows of {request.size} rows, "
        f"every {request.every}, over {len(request.values)} rows"
    ]
    kernels: tuple[Module, ...] = ()
    if aggregate.kind == "fields":
        form, column, job = prepare(request)
        choice = decide(request, form, job, count=False)
        kernels = modules(choice.algorithm, job)
        laws = ", ".join(["associative", *sorted(form.laws)])
        nulls = "nulls are skipped" if job.masked else "nulls are kept" if column.valid is not None else ""
        ranked = "values are replaced by their ranks" if column.ranked is not None else ""
    else:
        choice = choose_holistic(aggregate)
        laws, nulls, ranked = f"associative (partials: {aggregate.kind})", "", ""
    lines += [f"  algorithm: {choice.algorithm}", *(f"    {reason}" for reason in choice.reasons), f"  laws: {laws}"]
    lines += [f"  {note}" for note in (nulls, ranked) if note]
    parts = len(threads.shares(0, request.windows, rows_each=request.every)) or 1
    lines.append(f"  device: cpu, {parts} thread{'s' * (parts > 1)}")
    for module in kernels if source else ():
        lines.append(f"  kernel: {module.title} ({'at hand' if is_at_hand(module) else 'to be compiled'})")
    return Explanation(tuple(lines), tuple(module.text for module in kernels) if source else ())
