"""What each aggregate means, written once more and as plainly as possible. Nothing here uses sash."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

Values = list[Any]


def order(v: Any) -> tuple[bool, Any]:
    """A sort key under which NaN is larger than any number."""
    nan = isinstance(v, float) and math.isnan(v)
    return (nan, 0 if nan else v)


def total(values: Values) -> Any:
    if isinstance(values[0], float):
        return math.fsum(values) if all(math.isfinite(v) for v in values) else sum(values)
    return sum(values)


def average(values: Values) -> Any:
    if isinstance(values[0], Decimal):
        with localcontext() as context:
            context.prec = 60
            scale = -values[0].as_tuple().exponent + 4  # type: ignore[operator]
            return (sum(values) / len(values)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if isinstance(values[0], float):
        return total(values) / len(values)
    return float(Fraction(sum(values), len(values)))


def variance(values: Values, degrees: int) -> Any:
    if len(values) <= degrees:
        return None
    if not all(math.isfinite(v) for v in values):
        return math.nan
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return float(sum((v - mean) ** 2 for v in exact) / (len(exact) - degrees))


def deviation(values: Values, degrees: int) -> Any:
    v = variance(values, degrees)
    return None if v is None else math.sqrt(v)


def geometric(values: Values) -> Any:
    if any(v < 0 or v != v for v in values):
        return math.nan
    if any(v == 0 for v in values):
        return math.nan if any(v == math.inf for v in values) else 0.0
    return math.inf if math.inf in values else math.exp(math.fsum(math.log(v) for v in values) / len(values))


def quantile(values: Values, q: float) -> Any:
    ordered = sorted((float(v) for v in values), key=order)
    position = (len(ordered) - 1) * q
    low, high = math.floor(position), math.ceil(position)
    if low == high or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def distinct(values: Values) -> int:
    return len({("nan",) if v != v else v for v in values})


def best(values: Values, choose: Callable[..., Any]) -> Any:
    return choose(values, key=order)


AGGREGATES: dict[str, Callable[[Values], Any]] = {
    "count": len,
    "sum": total,
    "min": lambda v: best(v, min),
    "max": lambda v: best(v, max),
    "avg": average,
    "product": lambda v: math.prod(float(x) for x in v),
    "geometric_mean": geometric,
    "var_samp": lambda v: variance(v, 1),
    "var_pop": lambda v: variance(v, 0),
    "stddev_samp": lambda v: deviation(v, 1),
    "stddev_pop": lambda v: deviation(v, 0),
    "min_count": lambda v: sum(order(x) == order(best(v, min)) for x in v),
    "max_count": lambda v: sum(order(x) == order(best(v, max)) for x in v),
    "first": lambda v: v[0],
    "last": lambda v: v[-1],
    "m4": lambda v: {"min": best(v, min), "max": best(v, max), "first": v[0], "last": v[-1]},
    "median": lambda v: quantile(v, 0.5),
    "percentile": lambda v: quantile(v, 0.5),
    "count_distinct": distinct,
    "collect_list": list,
    "collect_set": lambda v: v,
    "string_agg": lambda v: "".join(v),
}

KEEPS_NULLS = {"first", "last"}
OF_NOTHING: dict[str, Any] = {"count": 0, "count_distinct": 0, "collect_list": [], "collect_set": []}


def aggregate(name: str, rows: Sequence[Any]) -> Any:
    """The aggregate of some rows, nulls among them."""
    if name in ("max_by", "min_by"):
        known = [(v, i) for i, v in enumerate(rows) if v is not None]
        if not known:
            return None
        pick = max if name == "max_by" else min
        extreme = pick((order(v) for v, _ in known))
        return next(i for v, i in known if order(v) == extreme)
    if name in KEEPS_NULLS:
        return AGGREGATES[name](list(rows)) if rows else None
    values = [v for v in rows if v is not None]
    return AGGREGATES[name](values) if values else OF_NOTHING.get(name)


def rolling(name: str, rows: Sequence[Any], size: int, every: int) -> list[Any]:
    """Every complete window."""
    starts = range(0, len(rows) - size + 1, every)
    results = [aggregate(name, rows[s : s + size]) for s in starts]
    if name in ("max_by", "min_by"):
        return [None if r is None else s + r for s, r in zip(starts, results, strict=True)]
    return results


def agree(name: str, ours: Any, theirs: Any, rows: Sequence[Any] = ()) -> bool:
    """Equal, up to the rounding of float arithmetic in proportion to what went in."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, dict):
        return all(agree(name, ours[k], theirs[k]) for k in theirs)
    if name == "collect_set":
        keyed = {("nan",) if v != v else v for v in ours}
        return len(ours) == len(keyed) and keyed == {("nan",) if v != v else v for v in theirs}
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(agree("item", a, b) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        if math.isinf(ours) or math.isinf(theirs):
            return ours == theirs
        size = max((abs(float(v)) for v in rows if v is not None and math.isfinite(v)), default=1.0)
        scale = {"var_samp": size * size, "var_pop": size * size}.get(name, size)
        slack = 1e-7 if name.startswith("stddev") else 1e-9
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=slack * max(scale, 1e-300) * max(1, len(rows)))
    return bool(ours == theirs)
