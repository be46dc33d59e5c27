"""``and``, ``or``, ``not``, ``case``, ``if``, ``coalesce``: a row evaluates only the arguments that it needs."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression
from sash.expressions.coercion import BOOL, DOUBLE, FLOAT, NULL, STRING, cast, common, implicit, is_float, name_of
from sash.expressions.library.comparisons import equal, pair
from sash.expressions.nodes import Call, Constant, Node
from sash.expressions.table import Datum, Function, Typed, alike, definer

define = definer(__name__)

if TYPE_CHECKING:
    from sash.expressions.evaluate import Evaluation


def condition(node: Node, what: str) -> Node:
    """A node that is true or false."""
    if node.type not in (BOOL, NULL, STRING):
        raise InvalidExpression(f"{what}: a condition must be true or false, not {name_of(node.type)}")
    return cast(node, BOOL)


def _test(node: Node, what: str) -> Node:
    """The condition of a case, which is neither text nor null."""
    if node.type != BOOL:
        raise InvalidExpression(f"{what}: a condition must be true or false, not {name_of(node.type)}")
    return node


def _logic(function: Function, arguments: list[Node], zone: str) -> Typed:
    return Typed([condition(a, function.title) for a in arguments], BOOL)


def _and(evaluation: Evaluation, node: Call) -> Datum:
    left = evaluation.of(node.arguments[0])
    return pc.and_kleene(left, evaluation.guarded(node.arguments[1], lambda: evaluation.flags(left, unknown=True)))


def _or(evaluation: Evaluation, node: Call) -> Datum:
    left = evaluation.of(node.arguments[0])
    return pc.or_kleene(left, evaluation.guarded(node.arguments[1], lambda: pc.invert(evaluation.flags(left))))


def _case_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    """Conditions and values by turns, and a last value for all other rows."""
    conditions = [_test(a, function.title) for a in arguments[:-1:2]]
    values = common([*arguments[1:-1:2], arguments[-1]], function.title)
    pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return Typed([*pairs, values[-1]], values[-1].type)


def _case(evaluation: Evaluation, node: Call) -> Datum:
    rest = pa.repeat(pa.scalar(True), evaluation.table.num_rows)  # the rows for which no condition was true yet
    chosen = []
    for test, value in zip(node.arguments[:-1:2], node.arguments[1:-1:2], strict=True):
        holds = evaluation.flags(evaluation.guarded(test, lambda rest=rest: rest))  # type: ignore[misc]
        here = pc.and_(rest, holds)
        chosen.append((holds, evaluation.guarded(value, lambda here=here: here)))  # type: ignore[misc]
        rest = pc.and_not(rest, holds)
    result = evaluation.guarded(node.arguments[-1], lambda: rest)
    for holds, value in reversed(chosen):
        result = pc.if_else(holds, value, result) if node.type != NULL else result
    return result


def _if_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    first, *rest = arguments
    return _case_typing(function, [condition(first, function.title) if first.type == NULL else first, *rest], zone)


def _nanvl_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    t = FLOAT if all(a.type == FLOAT for a in arguments) else DOUBLE
    return Typed([implicit(a, t, function.title) for a in arguments], t)


def _nanvl(evaluation: Evaluation, node: Call) -> Datum:
    """The second value where the first is no number."""
    value = evaluation.of(node.arguments[0])
    is_nan = evaluation.flags(pc.is_nan(value))
    return pc.if_else(is_nan, evaluation.guarded(node.arguments[1], lambda: is_nan), value)


def _in(evaluation: Evaluation, node: Call) -> Datum:
    """Whether a value equals one of the others; each is evaluated only for rows that matched none before it."""
    first, *others = node.arguments
    value = evaluation.of(first)
    constants = [o.value for o in others if isinstance(o, Constant) and o.value.is_valid]
    if len(constants) == len(others) > 8 and not is_float(first.type) and first.type != NULL:
        matches = pc.is_in(value, pa.array([c.as_py() for c in constants], first.type))
        return pc.if_else(pc.is_valid(value), matches, pa.scalar(None, BOOL))
    result: Datum = pc.if_else(pc.is_valid(value), pa.scalar(False), pa.scalar(None, BOOL))
    for other in others:
        option = evaluation.guarded(other, partial(_unmatched, evaluation, value, result))
        result = pc.or_kleene(result, _same(value, option))
    return result


def _same(a: Datum, b: Datum) -> Datum:
    """Whether values are equal; one flag for two constants."""
    both = isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar)
    return equal(pa.repeat(a, 1), b)[0] if both else equal(a, b)


def _unmatched(evaluation: Evaluation, value: Datum, result: Datum) -> pa.Array:
    """The rows whose value is not null and matched nothing yet."""
    return pc.and_(evaluation.flags(pc.is_valid(value)), pc.invert(evaluation.flags(result)))


def _first_known(evaluation: Evaluation, node: Call) -> Datum:
    """``coalesce``: arguments after the first value that is not null are not evaluated."""
    values: list[Datum] = []

    def missing() -> pa.Array:
        return reduce(pc.and_, [evaluation.flags(pc.is_null(v)) for v in values])

    for argument in node.arguments:
        values.append(evaluation.guarded(argument, missing) if values else evaluation.of(argument))
    return pc.coalesce(*values) if node.type != NULL else values[0]


def _nullif_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    """The value, and the two that are compared."""
    return Typed([arguments[0], *pair(function, arguments, zone).arguments], arguments[0].type)


def _nullif(evaluation: Evaluation, node: Call) -> Datum:
    argument, left, right = node.arguments
    value = evaluation.of(argument)
    if node.type == NULL:
        return value
    first = evaluation.of(left)
    second = evaluation.guarded(right, lambda: evaluation.flags(pc.is_valid(first)))
    return pc.if_else(pc.fill_null(_same(first, second), False), pa.scalar(None, node.type), value)


def _nvl2_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    first, *rest = arguments
    same = common(rest, function.title)
    return Typed([first, *same], same[0].type)


def _nvl2(evaluation: Evaluation, node: Call) -> Datum:
    first, known, unknown = node.arguments
    is_known = evaluation.flags(pc.is_valid(evaluation.of(first)))
    yes = evaluation.guarded(known, lambda: is_known)
    no = evaluation.guarded(unknown, lambda: pc.invert(is_known))
    return pc.if_else(is_known, yes, no) if node.type != NULL else yes


define("and", 2, _logic, _and, lazy=True)
define("or", 2, _logic, _or, lazy=True)
define("not", 1, _logic, lambda v, *, type: pc.invert(v), "!")
define("case", (3, 10_000), _case_typing, _case, lazy=True)
define("if", 3, _if_typing, _case, "iff", lazy=True)
define("coalesce", (1, 255), alike(), _first_known, lazy=True)
define("ifnull", 2, alike(), _first_known, "nvl", lazy=True)
define("nanvl", 2, _nanvl_typing, _nanvl, lazy=True)
define("in", (2, 10_000), alike(BOOL), _in, lazy=True)
define("nullif", 2, _nullif_typing, _nullif, lazy=True)
define("nvl2", 3, _nvl2_typing, _nvl2, lazy=True)
