"""Vector registers as values inside numba, so that an aggregate's Python functions run on many rows at once.

A :class:`Lanes` value is an LLVM vector. Arithmetic, comparison and ``where`` work on it lane by lane and promote exactly
as numba promotes single numbers (integers to 64 bits, mixed to float64), so a function returns the same either way.
LLVM does not vectorise sliding-window loops by itself; this makes it explicit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model


class Lanes(types.Type):  # type: ignore[misc]
    """``count`` values of type ``dtype`` in one vector."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(element_type(lanes.dtype), lanes.count))


def element_type(dtype: Any) -> Any:
    if dtype == types.boolean:
        return ir.IntType(1)
    if isinstance(dtype, types.Integer):
        return ir.IntType(dtype.bitwidth)
    return ir.DoubleType() if dtype == types.float64 else ir.FloatType()


def dtype_of(t: Any) -> Any:
    """The element type of lanes or of a number."""
    if isinstance(t, Lanes):
        return t.dtype
    t = types.unliteral(t)
    return types.boolean if t == types.boolean else t


def is_number(t: Any) -> bool:
    return isinstance(types.unliteral(t), types.Number | types.Boolean)


def _promoted(a: Any, b: Any) -> Any:
    """The type in which two numbers meet, as in numba."""
    if isinstance(a, types.Float) or isinstance(b, types.Float):
        return types.float32 if a == b == types.float32 else types.float64
    return types.uint64 if a == b == types.uint64 else types.int64


def _meeting(a: Any, b: Any) -> Any:
    """The type in which two values are compared or chosen between: their own if it is one."""
    return a if a == b else _promoted(a, b)


def splat(builder: Any, value: Any, count: int) -> Any:
    vector = ir.VectorType(value.type, count)
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count))


def cast_lanes(context: Any, builder: Any, value: Any, source: Any, dtype: Any, count: int) -> Any:
    """Turn a number or lanes into lanes of ``dtype``."""
    if not isinstance(source, Lanes):
        number = types.unliteral(source)
        return splat(builder, context.cast(builder, value, number, dtype), count)
    have = source.dtype
    if have == dtype:
        return value
    target = ir.VectorType(element_type(dtype), count)
    if dtype == types.boolean:
        zero = ir.Constant(value.type, [ir.Constant(value.type.element, 0)] * count)
        compare = builder.fcmp_unordered if isinstance(have, types.Float) else builder.icmp_unsigned
        return compare("!=", value, zero)
    if isinstance(have, types.Float):
        if isinstance(dtype, types.Float):
            return (builder.fpext if dtype == types.float64 else builder.fptrunc)(value, target)
        return builder.fptosi(value, target) if dtype.signed else builder.fptoui(value, target)
    signed = have != types.boolean and have.signed
    if isinstance(dtype, types.Float):
        return (builder.sitofp if signed else builder.uitofp)(value, target)
    have_bits = value.type.element.width
    want_bits = target.element.width
    if have_bits > want_bits:
        return builder.trunc(value, target)
    if have_bits < want_bits:
        return (builder.sext if signed else builder.zext)(value, target)
    return value


def lane_count(*operands: Any) -> int:
    """The number of lanes among the arguments' types, 0 if none are lanes or they differ."""
    counts = {t.count for t in operands if isinstance(t, Lanes)}
    return counts.pop() if len(counts) == 1 else 0


Function = Callable[..., Any]
Emit = Callable[[Any, Any, Any, Any], Any]


def _binary(emit: Emit, meet: Callable[[Any, Any], Any], result: Callable[[Any], Any]) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing_context: Any, a: Any, b: Any) -> Any:
        count = lane_count(a, b)
        if not count or not all(isinstance(t, Lanes) or is_number(t) for t in (a, b)):
            return None
        dtype = meet(dtype_of(a), dtype_of(b))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = cast_lanes(context, builder, args[0], signature.args[0], dtype, count)
            y = cast_lanes(context, builder, args[1], signature.args[1], dtype, count)
            return emit(builder, dtype, x, y)

        return Lanes(result(dtype), count)(a, b), generate

    return apply


def _arithmetic(float_name: str, integer_name: str) -> Emit:
    def emit(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
        return getattr(builder, float_name if isinstance(dtype, types.Float) else integer_name)(x, y)

    return emit


def _comparison(symbol: str) -> Emit:
    def emit(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
        if isinstance(dtype, types.Float):
            return (builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered)(symbol, x, y)
        signed = dtype != types.boolean and dtype.signed
        return (builder.icmp_signed if signed else builder.icmp_unsigned)(symbol, x, y)

    return emit


def _true_quotient(a: Any, b: Any) -> Any:
    return types.float32 if a == b == types.float32 else types.float64


def _floored(builder: Any, dtype: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Python's quotient and remainder of integers; with a divisor of zero the result is arbitrary, never a trap."""
    zero = ir.Constant(x.type, [ir.Constant(x.type.element, 0)] * x.type.count)
    one = ir.Constant(x.type, [ir.Constant(x.type.element, 1)] * x.type.count)
    y = builder.select(builder.icmp_signed("==", y, zero), one, y)
    quotient, remainder = builder.sdiv(x, y), builder.srem(x, y)
    off = builder.and_(
        builder.icmp_signed("!=", remainder, zero),
        builder.icmp_signed("<", builder.xor(remainder, y), zero),
    )
    return (
        builder.select(off, builder.sub(quotient, one), quotient),
        builder.select(off, builder.add(remainder, y), remainder),
    )


def _whole(a: Any, b: Any) -> Any:
    if isinstance(a, types.Float) or isinstance(b, types.Float):
        raise TypeError("// and % of floats have no vector form")
    return _promoted(a, b)


def _bits(a: Any, b: Any) -> Any:
    return types.boolean if a == b == types.boolean else _promoted(a, b)


def _same(dtype: Any) -> Any:
    return dtype


def _truth(dtype: Any) -> Any:
    return types.boolean


def _both_bool(a: Any, b: Any) -> Any:
    return types.boolean


add = _binary(_arithmetic("fadd", "add"), _promoted, _same)
sub = _binary(_arithmetic("fsub", "sub"), _promoted, _same)
mul = _binary(_arithmetic("fmul", "mul"), _promoted, _same)
div = _binary(lambda b, t, x, y: b.fdiv(x, y), _true_quotient, _same)
floordiv = _binary(lambda b, t, x, y: _floored(b, t, x, y)[0], _whole, _same)
mod = _binary(lambda b, t, x, y: _floored(b, t, x, y)[1], _whole, _same)
shl = _binary(lambda b, t, x, y: b.shl(x, y), _whole, _same)
shr = _binary(lambda b, t, x, y: (b.ashr if t.signed else b.lshr)(x, y), _whole, _same)
bit_and = _binary(lambda b, t, x, y: b.and_(x, y), _bits, _same)
bit_or = _binary(lambda b, t, x, y: b.or_(x, y), _bits, _same)
bit_xor = _binary(lambda b, t, x, y: b.xor(x, y), _bits, _same)
lanes_both = _binary(lambda b, t, x, y: b.and_(x, y), _both_bool, _truth)
lanes_either = _binary(lambda b, t, x, y: b.or_(x, y), _both_bool, _truth)

_OPERATORS: dict[Any, Any] = {
    operator.add: add,
    operator.sub: sub,
    operator.mul: mul,
    operator.truediv: div,
    operator.floordiv: floordiv,
    operator.mod: mod,
    operator.lshift: shl,
    operator.rshift: shr,
    operator.and_: bit_and,
    operator.or_: bit_or,
    operator.xor: bit_xor,
}
for _symbol, _operator in {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}.items():
    _OPERATORS[_operator] = _binary(_comparison(_symbol), _meeting, _truth)


def overloads(python: Any) -> Callable[[Function], Function]:
    """numba's ``overload`` for functions with annotations, which it would compare with those of the implementation."""

    def register(choose: Function) -> Function:
        choose.__annotations__ = {}
        overload(python)(choose)
        return choose

    return register


def _overload_binary(python: Any, vector: Any) -> None:
    @overloads(python)
    def choose(a: Any, b: Any) -> Any:
        if lane_count(a, b) and all(isinstance(t, Lanes) or is_number(t) for t in (a, b)):
            return lambda a, b: vector(a, b)
        return None


for _python, _vector in _OPERATORS.items():
    _overload_binary(_python, _vector)


@intrinsic  # type: ignore[untyped-decorator]
def _select(typing_context: Any, m: Any, a: Any, b: Any) -> Any:
    count = lane_count(m, a, b)
    dtype = _meeting(dtype_of(a), dtype_of(b))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mask = cast_lanes(context, builder, args[0], signature.args[0], types.boolean, count)
        x = cast_lanes(context, builder, args[1], signature.args[1], dtype, count)
        y = cast_lanes(context, builder, args[2], signature.args[2], dtype, count)
        return builder.select(mask, x, y)

    return Lanes(dtype, count)(m, a, b), generate


def where(m: Any, a: Any, b: Any) -> Any:
    """``a`` where ``m`` is true, else ``b``: of numbers, lanes, or tuples of them."""
    return a if m else b


_TUPLE_WHERE = {
    n: eval(f"lambda m, a, b: ({', '.join(f'where(m, a[{k}], b[{k}])' for k in range(n))},)", {"where": where}) for n in range(1, 13)
}


@overloads(where)
def _where(m: Any, a: Any, b: Any) -> Any:
    if isinstance(a, types.BaseTuple) and isinstance(b, types.BaseTuple) and len(a) == len(b):
        return _TUPLE_WHERE[len(a)]
    if lane_count(m, a, b):
        return lambda m, a, b: _select(m, a, b)
    return lambda m, a, b: a if m else b


def both(a: Any, b: Any) -> Any:
    """``a and b``, without a branch."""
    return bool(a) and bool(b)


def either(a: Any, b: Any) -> Any:
    """``a or b``, without a branch."""
    return bool(a) or bool(b)


def negate(a: Any) -> Any:
    """``not a``, without a branch."""
    return not a


@overloads(both)
def _both(a: Any, b: Any) -> Any:
    if lane_count(a, b):
        return lambda a, b: lanes_both(a, b)
    return lambda a, b: bool(a) & bool(b)


@overloads(either)
def _either(a: Any, b: Any) -> Any:
    if lane_count(a, b):
        return lambda a, b: lanes_either(a, b)
    return lambda a, b: bool(a) | bool(b)


@overloads(negate)
def _negate(a: Any) -> Any:
    if isinstance(a, Lanes):
        return lambda a: _select(a, False, True)
    return lambda a: not a


@overloads(operator.neg)
def _neg(a: Any) -> Any:
    if isinstance(a, Lanes):
        if isinstance(a.dtype, types.Float):
            return lambda a: sub(-0.0, a)
        return lambda a: sub(0, a)
    return None
