"""What mypy must refuse; each line that it must refuse ends with the error's code."""

import polars as pl

import sash
from sash import functions as S
from sash import windows as W


def mistakes(frame: pl.DataFrame) -> None:
    sash.agregate(frame, windows=W.tumbling("1 hour"), aggs=S.sum("v"), time="t")  # attr-defined
    sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs=S.sum("v"), tme="t")  # call-overload
    sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs=S.sum("v"))  # call-overload
    sash.aggregate(frame, W.tumbling("1 hour"), [S.sum("v")], time="t")  # call-overload
    sash.aggregate(frame, windows="1 hour", aggs=S.sum("v"), time="t")  # call-overload
    sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs="sum", time="t")  # arg-type
    sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs=S.sum("v"), time="t", emit="finally")  # call-overload
    sash.over(frame, windows=W.trailing("1 hour"), aggs=S.sum("v"), time="t", lateness="1 hour")  # call-overload
    sash.rolling([1, 2, 3], 2, 1)  # call-overload
    sash.rolling([1, 2, 3], size="2")  # call-overload
    sash.explain(frame, windows=W.tumbling("1 hour"), aggs=S.sum("v"), time="t", colour="red")  # call-overload
    sash.Operator(windows=W.tumbling(10), aggs=S.sum("v"), time="t", late="keep")  # arg-type
    sash.Operator(windows=W.tumbling(10), aggs=S.sum("v"), time="t", stoer="lazy")  # call-arg
    W.tumbling()  # call-arg
    W.tumbling(1.5)  # arg-type
    W.trailing("1 hour", closed="both sides")  # arg-type
    W.last_rows(10, evry="5 seconds")  # call-arg
    S.sum(1)  # arg-type
    S.summ("v")  # attr-defined
    S.sum("v").alias(3)  # arg-type
