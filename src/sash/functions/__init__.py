"""What users aggregate with: ``from sash import functions as S``.

Each function takes columns or SQL expressions over the row and has ``.alias(name)`` and ``.where(condition)``. Names are those
of ``pyspark.sql.functions`` where Spark has the function. Without a column they are for :func:`sash.rolling`.
"""

from __future__ import annotations

from sash.aggregates.approx_count_distinct import ApproxCountDistinct
from sash.aggregates.approx_percentile import ApproxPercentile
from sash.aggregates.avg import Avg
from sash.aggregates.collect_list import CollectList
from sash.aggregates.collect_set import CollectSet
from sash.aggregates.count import Count
from sash.aggregates.count_distinct import CountDistinct
from sash.aggregates.first import First
from sash.aggregates.geometric_mean import GeometricMean
from sash.aggregates.last import Last
from sash.aggregates.m4 import M4
from sash.aggregates.max import Max
from sash.aggregates.max_by import MaxBy
from sash.aggregates.max_count import MaxCount
from sash.aggregates.median import Median
from sash.aggregates.min import Min
from sash.aggregates.min_by import MinBy
from sash.aggregates.min_count import MinCount
from sash.aggregates.percentile import Percentile
from sash.aggregates.product import Product
from sash.aggregates.stddev_pop import StddevPop
from sash.aggregates.stddev_samp import StddevSamp
from sash.aggregates.string_agg import StringAgg
from sash.aggregates.sum import Sum
from sash.aggregates.var_pop import VarPop
from sash.aggregates.var_samp import VarSamp
from sash.errors import InvalidArgument
from sash.functions.call import Call, call
from sash.functions.udaf import UserAggregate, udaf

__all__ = [
    "Call",
    "UserAggregate",
    "approx_count_distinct",
    "approx_percentile",
    "avg",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "first",
    "geometric_mean",
    "last",
    "m4",
    "max",
    "max_by",
    "max_count",
    "median",
    "min",
    "min_by",
    "min_count",
    "percentile",
    "product",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "udaf",
    "var_pop",
    "var_samp",
]


def count(column: str | None = None) -> Call:
    """How many rows, or how many values of ``column`` that are not null."""
    return Call(Count(), () if column is None else (column,))


def sum(column: str | None = None) -> Call:
    """The sum: exact for integers and decimals, without drift for floats."""
    return call(Sum(), column)


def min(column: str | None = None) -> Call:
    """The smallest value; NaN is larger than any number."""
    return call(Min(), column)


def max(column: str | None = None) -> Call:
    """The largest value; NaN is larger than any number."""
    return call(Max(), column)


def avg(column: str | None = None) -> Call:
    """The arithmetic mean."""
    return call(Avg(), column)


def product(column: str | None = None) -> Call:
    """The product, as a double."""
    return call(Product(), column)


def geometric_mean(column: str | None = None) -> Call:
    """The geometric mean, computed in logarithms."""
    return call(GeometricMean(), column)


def var_samp(column: str | None = None) -> Call:
    """The sample variance; null over one row."""
    return call(VarSamp(), column)


def var_pop(column: str | None = None) -> Call:
    """The population variance."""
    return call(VarPop(), column)


def stddev_samp(column: str | None = None) -> Call:
    """The sample standard deviation; null over one row."""
    return call(StddevSamp(), column)


def stddev_pop(column: str | None = None) -> Call:
    """The population standard deviation."""
    return call(StddevPop(), column)


def min_count(column: str | None = None) -> Call:
    """How often the smallest value occurs."""
    return call(MinCount(), column)


def max_count(column: str | None = None) -> Call:
    """How often the largest value occurs."""
    return call(MaxCount(), column)


def min_by(column: str | None = None, by: str | None = None) -> Call:
    """The value of ``column`` in the first row where ``by`` is smallest."""
    return call(MinBy(), column, by)


def max_by(column: str | None = None, by: str | None = None) -> Call:
    """The value of ``column`` in the first row where ``by`` is largest."""
    return call(MaxBy(), column, by)


def _flag(argument: str, given: bool) -> bool:
    if not isinstance(given, bool):
        raise InvalidArgument(f"{argument} must be True or False, not {given!r}")
    return given


def first(column: str | None = None, ignorenulls: bool = False) -> Call:
    """The first value."""
    return call(First(ignorenulls=_flag("ignorenulls", ignorenulls)), column)


def last(column: str | None = None, ignorenulls: bool = False) -> Call:
    """The last value."""
    return call(Last(ignorenulls=_flag("ignorenulls", ignorenulls)), column)


def collect_list(column: str | None = None) -> Call:
    """All values in order."""
    return call(CollectList(), column)


def collect_set(column: str | None = None) -> Call:
    """The different values, in no promised order."""
    return call(CollectSet(), column)


def count_distinct(column: str | None = None) -> Call:
    """How many different values there are."""
    return call(CountDistinct(), column)


def approx_count_distinct(column: str | None = None, rsd: float = 0.05) -> Call:
    """About how many different values there are; ``rsd`` bounds the relative standard deviation."""
    return call(ApproxCountDistinct(rsd=rsd), column)


def median(column: str | None = None) -> Call:
    """The exact median."""
    return call(Median(), column)


def percentile(column: str | None = None, q: float = 0.5) -> Call:
    """The exact ``q``-quantile, interpolated."""
    return call(Percentile(q=q), column)


def approx_percentile(column: str | None = None, q: float = 0.5, k: int = 200) -> Call:
    """A value whose rank is near ``q``; ``k`` sets how near."""
    return call(ApproxPercentile(q=q, k=k), column)


def string_agg(column: str | None = None, separator: str = "") -> Call:
    """The strings joined in order."""
    return call(StringAgg(separator=separator), column)


def m4(column: str | None = None) -> Call:
    """A struct of min, max, first and last."""
    return call(M4(), column)
