"""Subtract on evict: a running result, from which rows that leave are subtracted again.

Where ``combine`` has an exact inverse, leaving is one subtraction. For min and max it is nothing at all unless the extreme
itself leaves, and then a scan of the window (Hammer Slide, sections 2.2 and 3.2(3)).
"""

from __future__ import annotations

from sash.algebra import Form, Function, Partial
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.scan import scan, scan_scalar
from sash.algorithms.window_algorithm import Card, WindowAlgorithm
from sash.kernels.generate import Module, generate, vector_reason, vector_width
from sash.kernels.vocabulary import Index, Memory, combine, invert, load, same, store

RUNNING = 0


def insert(w: Index, M: Memory, s: Partial) -> None:
    if w[FRONT] == w[BACK]:
        store(M[1], RUNNING, s)
    else:
        store(M[1], RUNNING, combine(load(M[1], RUNNING), s))
    store(M[0], w[BACK] & w[MASK], s)
    w[BACK] += 1


def evict_by_inverse(w: Index, M: Memory) -> None:
    store(M[1], RUNNING, invert(load(M[1], RUNNING), load(M[0], w[FRONT] & w[MASK])))
    w[FRONT] += 1


def evict_by_rescan(w: Index, M: Memory) -> None:
    leaving = load(M[0], w[FRONT] & w[MASK])
    w[FRONT] += 1
    if same(leaving, load(M[1], RUNNING)) and w[FRONT] < w[BACK]:
        store(M[1], RUNNING, scan(M[0], w[MASK], w[FRONT], w[BACK]))


def query(w: Index, M: Memory) -> Partial:
    return load(M[1], RUNNING)


class SubtractOnEvict(WindowAlgorithm):
    """Keeps a running result and subtracts rows that leave.

    >>> w = SubtractOnEvict("sum")
    >>> for v in (3, 9, 2): w.insert(v)
    >>> w.evict(); w.query()
    11
    """

    card = Card(
        name="subtract_on_evict",
        title="Subtract on evict",
        idea="Keep one running result. A row that leaves is subtracted; for min and max the window is scanned again, "
        "but only when the extreme itself leaves.",
        insert="O(1)",
        evict="O(1); O(n) when the extreme leaves",
        query="O(1)",
        space="n + 1 partials",
        paper="Hammer Slide, sections 2.2 and 3.2(3)",
        needs=("invertible", "selective and commutative"),
    )
    functions = (insert, evict_by_inverse, query)
    buffers = ("ring", "one")

    @classmethod
    def functions_for(cls, form: Form) -> tuple[Function, Function, Function]:
        return (insert, evict_by_inverse if form.invertible else evict_by_rescan, query)

    @classmethod
    def module(cls, function: Function, form: Form, *, masked: bool = False, known_rows: bool = False, simd: bool = True) -> Module:
        rescans = not form.invertible
        vector = simd and rescans and vector_reason(form) is None
        bindings = list(zip(("insert", "evict", "query"), cls.functions_for(form), strict=True))
        if rescans and not vector:
            bindings.append(("scan", scan_scalar))
        return generate(
            function,
            form,
            masked=masked,
            lanes=vector_width(form) if vector else 0,
            buffers=len(cls.buffers),
            known_rows=known_rows,
            bindings=tuple(bindings),
        )
