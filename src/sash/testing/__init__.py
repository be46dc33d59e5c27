"""Checks for your own aggregates and windows, shipped with the package.

>>> import sash
>>> from sash.testing import check_laws
>>> @sash.udaf(state=("int64",))
... class largest:
...     identity = (-(2**63),)
...     commutative = True
...     def lift(v): return (v,)
...     def combine(a, b): return (max(a[0], b[0]),)
...     def lower(s): return s[0]
>>> check_laws(largest, examples=50)
"""

from __future__ import annotations

from sash.testing.laws import check_laws

__all__ = ["check_laws"]
