"""The aggregates that users call: ``from sash import functions as S``.

Each function takes columns or SQL expressions over the row and has ``.alias(name)`` and ``.where(condition)``. Names are those
of ``pyspark.sql.functions`` where Spark has the function. Without a column they are for :func:`sash.rolling`.

>>> import sash
>>> from sash import functions as S, windows as W
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
    """How many rows there are, or how many values that are not null.

    Args:
        column: A column or an SQL expression whose nulls do not count; by default rows are counted.

    Returns:
        A call for `aggs=`; its result is a 64-bit integer, 0 where there is nothing.

    Examples:
        >>> sash.rolling([4, None, 6], 2, agg=S.count).to_pylist()
        [1, 1]
    """
    return Call(Count(), () if column is None else (column,))


def sum(column: str | None = None) -> Call:
    """The sum: exact for integers and decimals, without drift for floats.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; 64-bit for integers, `decimal(min(38, p + 10), s)` for decimals, double for floats.

    Examples:
        >>> sash.rolling([4, None, 6], 2, agg=S.sum).to_pylist()
        [4, 6]
    """
    return call(Sum(), column)


def min(column: str | None = None) -> Call:
    """The smallest value; NaN is larger than any number.

    Args:
        column: A column or an SQL expression over the row, of any type that has an order; none for `sash.rolling`.

    Returns:
        A call for `aggs=`, of the column's type.

    Examples:
        >>> sash.rolling(["pear", "apple", "plum"], 2, agg=S.min).to_pylist()
        ['apple', 'apple']
    """
    return call(Min(), column)


def max(column: str | None = None) -> Call:
    """The largest value; NaN is larger than any number.

    Args:
        column: A column or an SQL expression over the row, of any type that has an order; none for `sash.rolling`.

    Returns:
        A call for `aggs=`, of the column's type.

    Examples:
        >>> sash.rolling(["pear", "apple", "plum"], 2, agg=S.max).to_pylist()
        ['pear', 'plum']
    """
    return call(Max(), column)


def avg(column: str | None = None) -> Call:
    """The arithmetic mean.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double, for decimals `decimal(p + 4, s + 4)`, capped.

    Examples:
        >>> sash.rolling([4, None, 6, 8], 2, agg=S.avg).to_pylist()
        [4.0, 6.0, 7.0]
    """
    return call(Avg(), column)


def product(column: str | None = None) -> Call:
    """The product.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double.

    Examples:
        >>> sash.rolling([4, None, 6, 8], 2, agg=S.product).to_pylist()
        [4.0, 6.0, 48.0]
    """
    return call(Product(), column)


def geometric_mean(column: str | None = None) -> Call:
    """The geometric mean, computed in logarithms.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double.

    Examples:
        >>> sash.rolling([2.0, 8.0], 2, agg=S.geometric_mean).to_pylist()
        [4.0]
    """
    return call(GeometricMean(), column)


def var_samp(column: str | None = None) -> Call:
    """The sample variance, merged in a numerically stable way.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double, null over one row.

    Examples:
        >>> sash.rolling([1, 3, None], 2, agg=S.var_samp).to_pylist()
        [2.0, None]
    """
    return call(VarSamp(), column)


def var_pop(column: str | None = None) -> Call:
    """The population variance, merged in a numerically stable way.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double.

    Examples:
        >>> sash.rolling([1, 3, None], 2, agg=S.var_pop).to_pylist()
        [1.0, 0.0]
    """
    return call(VarPop(), column)


def stddev_samp(column: str | None = None) -> Call:
    """The sample standard deviation.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double, null over one row.

    Examples:
        >>> sash.rolling([1, 1, 4, None], 2, agg=S.stddev_samp).to_pylist()
        [0.0, 2.1213203435596424, None]
    """
    return call(StddevSamp(), column)


def stddev_pop(column: str | None = None) -> Call:
    """The population standard deviation.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double.

    Examples:
        >>> sash.rolling([1, 1, 4], 2, agg=S.stddev_pop).to_pylist()
        [0.0, 1.5]
    """
    return call(StddevPop(), column)


def min_count(column: str | None = None) -> Call:
    """How often the smallest value occurs.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a 64-bit integer.

    Examples:
        >>> sash.rolling([1, 1, 4], 2, agg=S.min_count).to_pylist()
        [2, 1]
    """
    return call(MinCount(), column)


def max_count(column: str | None = None) -> Call:
    """How often the largest value occurs.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a 64-bit integer.

    Examples:
        >>> sash.rolling([1, 4, 4], 2, agg=S.max_count).to_pylist()
        [1, 2]
    """
    return call(MaxCount(), column)


def min_by(column: str | None = None, by: str | None = None) -> Call:
    """The value of one column in the first row where another is smallest.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`, which returns positions.
        by: A column or an SQL expression that decides; of equal ones the first row.

    Returns:
        A call for `aggs=`, of the column's type; the value may be null.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"t": [1, 2, 3], "item": ["pear", "plum", "fig"], "price": [3, 1, 3]})
        >>> out = sash.aggregate(rows, windows=W.tumbling(10), aggs=S.min_by("item", "price").alias("item"), time="t")
        >>> out["item"].to_pylist()
        ['plum']
    """
    return call(MinBy(), column, by)


def max_by(column: str | None = None, by: str | None = None) -> Call:
    """The value of one column in the first row where another is largest.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`, which returns positions.
        by: A column or an SQL expression that decides; of equal ones the first row.

    Returns:
        A call for `aggs=`, of the column's type; the value may be null.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"t": [1, 2, 3], "item": ["pear", "plum", "fig"], "price": [3, 1, 3]})
        >>> out = sash.aggregate(rows, windows=W.tumbling(10), aggs=S.max_by("item", "price").alias("item"), time="t")
        >>> out["item"].to_pylist()
        ['pear']
    """
    return call(MaxBy(), column, by)


def _flag(argument: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{argument} must be True or False, not {value!r}")
    return value


def first(column: str | None = None, ignorenulls: bool = False) -> Call:
    """The value of the first row, in the order of time.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.
        ignorenulls: Whether nulls are passed over.

    Returns:
        A call for `aggs=`, of the column's type; null if the first row has null, unless nulls are passed over.

    Examples:
        >>> sash.rolling([None, 2, 3], 2, agg=S.first).to_pylist()
        [None, 2]
        >>> sash.rolling([None, 2, 3], 2, agg=S.first(ignorenulls=True)).to_pylist()
        [2, 2]
    """
    return call(First(ignorenulls=_flag("ignorenulls", ignorenulls)), column)


def last(column: str | None = None, ignorenulls: bool = False) -> Call:
    """The value of the last row, in the order of time.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.
        ignorenulls: Whether nulls are passed over.

    Returns:
        A call for `aggs=`, of the column's type; null if the last row has null, unless nulls are passed over.

    Examples:
        >>> sash.rolling([1, None, 3], 2, agg=S.last).to_pylist()
        [None, 3]
    """
    return call(Last(ignorenulls=_flag("ignorenulls", ignorenulls)), column)


def collect_list(column: str | None = None) -> Call:
    """All values that are not null, in the order of time.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a list of the column's type, empty where there is none.

    Examples:
        >>> sash.rolling([1, None, 3], 2, agg=S.collect_list).to_pylist()
        [[1], [3]]
    """
    return call(CollectList(), column)


def collect_set(column: str | None = None) -> Call:
    """The different values, in no promised order.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a list of the column's type, empty where there is none.

    Examples:
        >>> sash.rolling([1, 1, None], 2, agg=S.collect_set).to_pylist()
        [[1], [1]]
    """
    return call(CollectSet(), column)


def count_distinct(column: str | None = None) -> Call:
    """How many different values there are, exactly.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a 64-bit integer.

    Examples:
        >>> sash.rolling([1, 1, 4], 2, agg=S.count_distinct).to_pylist()
        [1, 2]
    """
    return call(CountDistinct(), column)


def approx_count_distinct(column: str | None = None, rsd: float = 0.05) -> Call:
    """About how many different values there are.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.
        rsd: The relative standard deviation that is allowed.

    Returns:
        A call for `aggs=`; a 64-bit integer.

    Examples:
        >>> sash.rolling([1, 1, 4], 2, agg=S.approx_count_distinct).to_pylist()
        [1, 2]
    """
    return call(ApproxCountDistinct(rsd=rsd), column)


def median(column: str | None = None) -> Call:
    """The exact median; between two middle values their mean.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a double.

    Examples:
        >>> sash.rolling([1, 5, 3, 4], 3, agg=S.median).to_pylist()
        [3.0, 4.0]
    """
    return call(Median(), column)


def percentile(column: str | None = None, q: float = 0.5) -> Call:
    """The exact quantile, interpolated between neighbours.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.
        q: Which quantile, from 0 to 1.

    Returns:
        A call for `aggs=`; a double.

    Examples:
        >>> sash.rolling([1, 5, 3, 4], 3, agg=S.percentile(q=1.0)).to_pylist()
        [5.0, 5.0]
    """
    return call(Percentile(q=q), column)


def approx_percentile(column: str | None = None, q: float = 0.5, k: int = 200) -> Call:
    """A value whose rank is near a quantile, by a sketch of bounded size.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.
        q: Which quantile, from 0 to 1.
        k: The size of the sketch; a larger one is nearer.

    Returns:
        A call for `aggs=`, of the column's type.

    Examples:
        >>> sash.rolling([1, 5, 3, 4], 3, agg=S.approx_percentile(q=0.5)).to_pylist()
        [3, 4]
    """
    return call(ApproxPercentile(q=q, k=k), column)


def string_agg(column: str | None = None, separator: str = "") -> Call:
    """The strings that are not null, joined in the order of time.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.
        separator: The text between two of them.

    Returns:
        A call for `aggs=`; a string.

    Examples:
        >>> sash.rolling(["a", None, "b"], 3, agg=S.string_agg(separator=", ")).to_pylist()
        ['a, b']
    """
    return call(StringAgg(separator=separator), column)


def m4(column: str | None = None) -> Call:
    """What a line chart needs of a window: min, max, first and last.

    Args:
        column: A column or an SQL expression over the row; none for `sash.rolling`.

    Returns:
        A call for `aggs=`; a struct with the fields min, max, first and last, of the column's type.

    Examples:
        >>> sash.rolling([2, 5, 1, 4], 4, agg=S.m4).to_pylist()
        [{'min': 1, 'max': 5, 'first': 2, 'last': 4}]
    """
    return call(M4(), column)
