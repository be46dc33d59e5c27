"""Window algorithms: the published ones, each in a file of its own with its card, and the bulk kernels over ranges.

>>> from sash.algorithms import TwoStacks
>>> w = TwoStacks("max")
>>> w.insert(3); w.insert(7); w.insert(5); w.evict(); w.query(), len(w)
(7, 2)
"""

from __future__ import annotations

from sash.algorithms.b_int import BInt
from sash.algorithms.daba import Daba
from sash.algorithms.flat_fat import FlatFat
from sash.algorithms.hammer_slide import HammerSlide
from sash.algorithms.reactive_aggregator import ReactiveAggregator
from sash.algorithms.recalculate import Recalculate
from sash.algorithms.subtract_on_evict import SubtractOnEvict
from sash.algorithms.two_stacks import TwoStacks
from sash.algorithms.window_algorithm import Card, WindowAlgorithm

__all__ = [
    "BInt",
    "Card",
    "Daba",
    "FlatFat",
    "HammerSlide",
    "ReactiveAggregator",
    "Recalculate",
    "SubtractOnEvict",
    "TwoStacks",
    "WindowAlgorithm",
]
