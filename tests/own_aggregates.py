"""Users' own aggregates for the tests, one of which reveals the order in which rows were joined."""

from __future__ import annotations

import sash

PRIME = 1009


@sash.udaf(state=("int64", "int64"))
class affine:
    """Affine maps ``x -> a * x + b`` modulo a prime, composed in order: associative, not commutative, not idempotent."""

    identity = (1, 0)
    returns = "int64"

    def lift(v):
        return ((v % PRIME) * 7 % PRIME + 1, (v % PRIME) * 13 % PRIME)

    def combine(a, b):
        return (a[0] * b[0] % PRIME, (a[1] * b[0] + b[1]) % PRIME)

    def lower(s):
        return s[0] * PRIME + s[1]


@sash.udaf(state=("int64", "int64"))
class mean:
    identity = (0, 0)
    commutative = True

    def lift(v):
        return (v, 1)

    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1])

    def invert(a, b):
        return (a[0] - b[0], a[1] - b[1])

    def lower(s):
        return s[0] / s[1]


def affine_of(rows):
    """What :data:`affine` gives, step by step."""
    a, b = 1, 0
    for v in rows:
        c, d = (v % PRIME) * 7 % PRIME + 1, (v % PRIME) * 13 % PRIME
        a, b = a * c % PRIME, (b * c + d) % PRIME
    return a * PRIME + b


@sash.udaf(state=("int64",))
class counts_true:
    identity = (0,)
    commutative = True

    def lift(v):
        return (1 if v else 0,)

    def combine(a, b):
        return (a[0] + b[0],)

    def lower(s):
        return s[0]
