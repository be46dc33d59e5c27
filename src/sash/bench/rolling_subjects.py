"""What ``sash bench rolling`` rolls over: data, users' aggregates, the other libraries' functions, and the answers, window by window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sash.bench.harness import same
from sash.functions.udaf import udaf

Array = Any


@udaf(state=("float64", "int64"))
class sum_and_count:
    """The average with its count carried along, as a user would write it."""

    identity = (0.0, 0)
    commutative = True
    returns = "float64"

    def lift(v):
        return (v, 1)

    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1])

    def lower(s):
        return s[0] / s[1]


@udaf(state=("float64",))
class own_sum:
    """The built-in float sum's body, written by a user."""

    identity = (0.0,)
    commutative = True
    returns = "float64"

    def lift(v):
        return (v,)

    def combine(a, b):
        return (a[0] + b[0],)

    def lower(s):
        return s[0]


def data(kind: str, rows: int) -> Array:
    rng = np.random.default_rng(1)
    return rng.integers(0, 1 << 20, rows).astype(np.int32) if kind == "int32" else rng.normal(100, 15, rows)


def reference(name: str, x: Array, size: int, places: Array) -> Array:
    """A few windows, computed one by one."""
    windows = sliding_window_view(x, size)[places]
    return {
        "min": lambda: windows.min(1),
        "sum": lambda: windows.astype(np.float64 if x.dtype.kind == "f" else np.int64).sum(1),
        "avg": lambda: windows.mean(1, dtype=np.float64),
        "max_by": lambda: windows.argmax(1) + places,
        "var_samp": lambda: windows.astype(np.float64).var(1, ddof=1),
        "first": lambda: windows[:, 0],
        "last": lambda: windows[:, -1],
        "median": lambda: np.median(windows, 1),
    }[name]()


def check(name: str, result: Array, x: Array, size: int) -> None:
    rng = np.random.default_rng(2)
    places = np.unique(np.concatenate([rng.integers(0, len(result), 20), [0, len(result) - 1]]))
    same(result[places], reference(name, x, size, places), f"{name} of {size}", 1e-7)


def peers(name: str, x: Array, size: int) -> dict[str, Callable[[], Any]]:
    """The other libraries' rolling functions."""
    import bottleneck as bn
    import pandas as pd
    import polars as pl

    column, series = pl.Series(x), pd.Series(x)
    polars_name = {"min": "min", "sum": "sum", "avg": "mean", "var_samp": "var", "median": "median"}.get(name)
    calls: dict[str, Callable[[], Any]] = {}
    if polars_name:
        calls["polars"] = lambda: getattr(column, f"rolling_{polars_name}")(size)
        calls["pandas"] = lambda: getattr(series.rolling(size), polars_name)()
    move = {
        "min": bn.move_min,
        "sum": bn.move_sum,
        "avg": bn.move_mean,
        "max_by": bn.move_argmax,
        "var_samp": bn.move_var,
        "median": bn.move_median,
    }.get(name)
    if move:
        options = {"ddof": 1} if name == "var_samp" else {}
        calls["bottleneck"] = lambda: move(x, size, **options)
    return calls
