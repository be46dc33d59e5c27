"""Functions of doubles. Their last bits may differ from Java's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sash.expressions.arrays import Array, all_valid, from_numbers, numbers, spread
from sash.expressions.coercion import DOUBLE
from sash.expressions.table import Datum, definer, doubles, takes

define = definer(__name__)


def _of(compute: Callable[..., Array], defined: Callable[..., Array] | None = None) -> Callable[..., Datum]:
    """A function of NumPy's over doubles; null where ``defined`` is false."""

    def arrow(*values: Datum, type: pa.DataType) -> Datum:
        known = all_valid(*values)
        inputs = [numbers(v) for v in spread(*values)]
        with np.errstate(all="ignore"):
            if defined is not None:
                known &= defined(*inputs)
            return from_numbers(compute(*inputs), known, DOUBLE)

    return arrow


def _sign(value: Array) -> Array:
    return np.where(value == 0, value, np.sign(value))


def _positive(*values: Array) -> Array:
    result = np.ones(len(values[0]), bool)
    for v in values:
        result &= ~(v <= 0)
    return result


def _atan2(y: Array, x: Array) -> Array:
    return np.asarray(np.arctan2(y + 0.0, x + 0.0))


def _power(a: Array, b: Array) -> Array:
    """As Java's: one to the power of infinity or NaN is no number."""
    result = np.power(a, b)
    return np.where((np.abs(a) == 1) & (np.isinf(b)), np.nan, np.where((a == 1) & np.isnan(b), np.nan, result))


for _name, _compute, _aliases in [
    ("sqrt", np.sqrt, ()),
    ("exp", np.exp, ()),
    ("expm1", np.expm1, ()),
    ("cbrt", np.cbrt, ()),
    ("sin", np.sin, ()),
    ("cos", np.cos, ()),
    ("tan", np.tan, ()),
    ("asin", np.arcsin, ()),
    ("acos", np.arccos, ()),
    ("atan", np.arctan, ()),
    ("sinh", np.sinh, ()),
    ("cosh", np.cosh, ()),
    ("tanh", np.tanh, ()),
    ("degrees", np.degrees, ()),
    ("radians", np.radians, ()),
    ("rint", np.rint, ()),
]:
    define(_name, 1, doubles, _of(_compute), *_aliases)

define("ln", 1, doubles, _of(np.log, _positive))
define("log10", 1, doubles, _of(np.log10, _positive))
define("log2", 1, doubles, _of(np.log2, _positive))
define("log1p", 1, doubles, _of(np.log1p, lambda v: ~(v <= -1)))


def _log(*values: Datum, type: pa.DataType) -> Datum:
    if len(values) == 1:
        return _of(np.log, _positive)(*values, type=type)
    return _of(lambda base, v: np.log(v) / np.log(base), _positive)(*values, type=type)


define("log", (1, 2), doubles, _log)
define("power", 2, doubles, _of(_power), "pow")
define("atan2", 2, doubles, _of(_atan2))
define("hypot", 2, doubles, _of(np.hypot))
define("sign", 1, doubles, _of(_sign), "signum")
define("pi", 0, takes(returns=DOUBLE), lambda one, *, type: pa.array([math.pi]), keeps_nulls=True)
define("e", 0, takes(returns=DOUBLE), lambda one, *, type: pa.array([math.e]), keeps_nulls=True)
