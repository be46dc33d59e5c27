"""Vector registers as values inside numba, so that an aggregate's Python functions run on many rows at once.

A :class:`Lanes` value is an LLVM vector. Arithmetic, comparison and ``where`` work on it lane by lane and promote exactly
as numba promotes single numbers (integers to 64 bits, mixed to float64), so a function gives the same result either way.
LLVM does not vectorise sliding-window loops by itself; this makes it explicit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from sash import algebra


class Lanes(types.Type):  # type: ignore[misc]
    """``count`` values of type ``dtype`` in one vector."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(_element(lanes.dtype), lanes.count))


def _element(dtype: Any) -> Any:
    if dtype == types.boolean:
        return ir.IntType(1)
    if isinstance(dtype, types.Integer):
        return ir.IntType(dtype.bitwidth)
    return ir.DoubleType() if dtype == types.float64 else ir.FloatType()


def _dtype(t: Any) -> Any:
    """The element type of lanes or of a number."""
    if isinstance(t, Lanes):
        return t.dtype
    t = types.unliteral(t)
    return types.boolean if t == types.boolean else t


def _is_number(t: Any) -> bool:
    return isinstance(types.unliteral(t), types.Number | types.Boolean)


def _promoted(a: Any, b: Any) -> Any:
    """The type in which two numbers meet, as in numba."""
    if isinstance(a, types.Float) or isinstance(b, types.Float):
        return types.float32 if a == b == types.float32 else types.float64
    return types.uint64 if a == b == types.uint64 else types.int64


def _meeting(a: Any, b: Any) -> Any:
    """The type in which two values are compared or chosen between: their own if it is one."""
    return a if a == b else _promoted(a, b)


def _splat(builder: Any, value: Any, count: int) -> Any:
    vector = ir.VectorType(value.type, count)
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count))


def _cast(context: Any, builder: Any, value: Any, source: Any, dtype: Any, count: int) -> Any:
    """Turn a number or lanes into lanes of ``dtype``."""
    if not isinstance(source, Lanes):
        plain = types.unliteral(source)
        return _splat(builder, context.cast(builder, value, plain, dtype), count)
    have = source.dtype
    if have == dtype:
        return value
    target = ir.VectorType(_element(dtype), count)
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


def _count(*given: Any) -> int:
    """The number of lanes among the arguments' types, 0 if none are lanes or they differ."""
    counts = {t.count for t in given if isinstance(t, Lanes)}
    return counts.pop() if len(counts) == 1 else 0


Function = Callable[..., Any]
Emit = Callable[[Any, Any, Any, Any], Any]


def _binary(emit: Emit, meet: Callable[[Any, Any], Any], result: Callable[[Any], Any]) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing_context: Any, a: Any, b: Any) -> Any:
        count = _count(a, b)
        if not count or not all(isinstance(t, Lanes) or _is_number(t) for t in (a, b)):
            return None
        dtype = meet(_dtype(a), _dtype(b))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = _cast(context, builder, args[0], signature.args[0], dtype, count)
            y = _cast(context, builder, args[1], signature.args[1], dtype, count)
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
    """Python's quotient and remainder of integers; a divisor of zero gives something, never a trap."""
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


def _overloads(python: Any) -> Callable[[Function], Function]:
    """numba's ``overload`` for functions with annotations, which it would compare with those of the implementation."""

    def register(choose: Function) -> Function:
        choose.__annotations__ = {}
        overload(python)(choose)
        return choose

    return register


def _overload_binary(python: Any, vector: Any) -> None:
    @_overloads(python)
    def choose(a: Any, b: Any) -> Any:
        if _count(a, b) and all(isinstance(t, Lanes) or _is_number(t) for t in (a, b)):
            return lambda a, b: vector(a, b)
        return None


for _python, _vector in _OPERATORS.items():
    _overload_binary(_python, _vector)


@intrinsic  # type: ignore[untyped-decorator]
def _select(typing_context: Any, m: Any, a: Any, b: Any) -> Any:
    count = _count(m, a, b)
    dtype = _meeting(_dtype(a), _dtype(b))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mask = _cast(context, builder, args[0], signature.args[0], types.boolean, count)
        x = _cast(context, builder, args[1], signature.args[1], dtype, count)
        y = _cast(context, builder, args[2], signature.args[2], dtype, count)
        return builder.select(mask, x, y)

    return Lanes(dtype, count)(m, a, b), generate


def where(m: Any, a: Any, b: Any) -> Any:
    """``a`` where ``m`` holds, else ``b``: of numbers, lanes, or tuples of them."""
    return a if m else b


_TUPLE_WHERE = {
    n: eval(f"lambda m, a, b: ({', '.join(f'where(m, a[{k}], b[{k}])' for k in range(n))},)", {"where": where}) for n in range(1, 13)
}


@_overloads(where)
def _where(m: Any, a: Any, b: Any) -> Any:
    if isinstance(a, types.BaseTuple) and isinstance(b, types.BaseTuple) and len(a) == len(b):
        return _TUPLE_WHERE[len(a)]
    if _count(m, a, b):
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


@_overloads(both)
def _both(a: Any, b: Any) -> Any:
    if _count(a, b):
        return lambda a, b: lanes_both(a, b)
    return lambda a, b: bool(a) & bool(b)


@_overloads(either)
def _either(a: Any, b: Any) -> Any:
    if _count(a, b):
        return lambda a, b: lanes_either(a, b)
    return lambda a, b: bool(a) | bool(b)


@_overloads(negate)
def _negate(a: Any) -> Any:
    if isinstance(a, Lanes):
        return lambda a: _select(a, False, True)
    return lambda a: not a


@_overloads(operator.neg)
def _neg(a: Any) -> Any:
    if isinstance(a, Lanes):
        if isinstance(a.dtype, types.Float):
            return lambda a: sub(-0.0, a)
        return lambda a: sub(0, a)
    return None


def _float_function(name: str, python: Callable[..., Any], number: Callable[..., Any]) -> None:
    """A function of one float that LLVM has on vectors."""

    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing_context: Any, a: Any) -> Any:
        dtype = a.dtype if isinstance(a.dtype, types.Float) else types.float64

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = _cast(context, builder, args[0], signature.args[0], dtype, a.count)
            bits = "f64" if dtype == types.float64 else "f32"
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(x.type, [x.type]), f"llvm.{name}.v{a.count}{bits}")
            return builder.call(function, [x])

        return Lanes(dtype, a.count)(a), generate

    @_overloads(python)
    def choose(a: Any) -> Any:
        return (lambda a: apply(a)) if isinstance(a, Lanes) else number


def lane_sqrt(a: Any) -> Any:
    return a**0.5


def lane_fabs(a: Any) -> Any:
    return abs(a)


def lane_floor(a: Any) -> Any:
    return a // 1


def lane_ceil(a: Any) -> Any:
    return -(-a // 1)


def _register_float_functions() -> None:
    import math

    _float_function("sqrt", lane_sqrt, lambda a: math.sqrt(a))
    _float_function("fabs", lane_fabs, lambda a: math.fabs(a))
    _float_function("floor", lane_floor, lambda a: math.floor(a))
    _float_function("ceil", lane_ceil, lambda a: math.ceil(a))


_register_float_functions()


def lane_abs(a: Any) -> Any:
    return abs(a)


@_overloads(lane_abs)
def _abs(a: Any) -> Any:
    if isinstance(a, Lanes):
        if isinstance(a.dtype, types.Float):
            return lambda a: lane_fabs(a)
        return lambda a: where(a < 0, 0 - a, a + 0)
    return lambda a: abs(a)


def lane_float(a: Any) -> Any:
    return float(a)


def lane_bool(a: Any) -> Any:
    return bool(a)


@intrinsic  # type: ignore[untyped-decorator]
def _to_float(typing_context: Any, a: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _cast(context, builder, args[0], signature.args[0], types.float64, a.count)

    return Lanes(types.float64, a.count)(a), generate


@_overloads(lane_float)
def _lane_float(a: Any) -> Any:
    return (lambda a: _to_float(a)) if isinstance(a, Lanes) else (lambda a: float(a))


@_overloads(lane_bool)
def _lane_bool(a: Any) -> Any:
    return (lambda a: a != 0) if isinstance(a, Lanes) else (lambda a: bool(a))


# Memory. Pointers are numba's CPointer; a place is an index, never checked.


def _address(context: Any, builder: Any, pointer: Any, index: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())


def loader(dtype: Any, count: int) -> Any:
    """``load(pointer, i)``: ``count`` values from place ``i`` on."""

    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing_context: Any, pointer: Any, i: Any) -> Any:
        stored = pointer.dtype

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(_element(stored), count)
            value = builder.load(_address(context, builder, args[0], args[1], vector), align=max(1, stored.bitwidth // 8))
            return _cast(context, builder, value, Lanes(stored, count), dtype, count)

        return Lanes(dtype, count)(pointer, types.intp), generate

    return load


def storer(count: int, past_caches: bool = False) -> Any:
    """``store(pointer, i, value)``; past the caches it needs an aligned place."""

    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing_context: Any, pointer: Any, i: Any, value: Any) -> Any:
        stored = pointer.dtype

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = _cast(context, builder, args[2], signature.args[2], stored, count)
            size = max(1, stored.bitwidth // 8)
            target = _address(context, builder, args[0], args[1], x.type)
            if past_caches:
                instruction = builder.store(x, target, align=min(64, size * count))
                one = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
                instruction.set_metadata("nontemporal", one)
            else:
                builder.store(x, target, align=size)
            return context.get_dummy_value()

        return types.void(pointer, types.intp, value), generate

    return store


def caster(dtype: Any, count: int) -> Any:
    """``cast(value)``: a number or lanes as lanes of ``dtype``."""

    @intrinsic  # type: ignore[untyped-decorator]
    def cast(typing_context: Any, value: Any) -> Any:
        lanes = value.count if isinstance(value, Lanes) else count

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _cast(context, builder, args[0], signature.args[0], dtype, lanes)

        return Lanes(dtype, lanes)(value), generate

    return cast


def counter(count: int) -> Any:
    """``positions(i)``: the row numbers ``i, i + 1, …``."""

    @intrinsic  # type: ignore[untyped-decorator]
    def positions(typing_context: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = ir.IntType(64)
            steps = ir.Constant(ir.VectorType(element, count), [ir.Constant(element, k) for k in range(count)])
            first = context.cast(builder, args[0], signature.args[0], types.int64)
            return builder.add(_splat(builder, first, count), steps)

        return Lanes(types.int64, count)(i), generate

    return positions


def bit_loader(count: int) -> Any:
    """``bits(pointer, i)``: ``count`` bits of a bitmap from bit ``i`` on; reads up to eight bytes."""

    @intrinsic  # type: ignore[untyped-decorator]
    def bits(typing_context: Any, pointer: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            byte = builder.lshr(args[1], ir.Constant(i64, 3))
            word_pointer = builder.bitcast(builder.gep(args[0], [byte]), i64.as_pointer())
            word = builder.load(word_pointer, align=1)
            shifted = builder.lshr(word, builder.and_(args[1], ir.Constant(i64, 7)))
            small = builder.trunc(shifted, ir.IntType(count))
            return builder.bitcast(small, ir.VectorType(ir.IntType(1), count))

        return Lanes(types.boolean, count)(pointer, types.intp), generate

    return bits


def _half(first: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def half(typing_context: Any, v: Any) -> Any:
        size = v.count // 2

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            places = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(first, v.count, 2)))
            return builder.shuffle_vector(args[0], ir.Constant(args[0].type, ir.Undefined), places)

        return Lanes(v.dtype, size)(v), generate

    return half


evens, odds = _half(0), _half(1)


def _halves(first: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def halves(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            places = ir.Constant(ir.VectorType(ir.IntType(32), a.count), list(range(first, 2 * a.count, 2)))
            return builder.shuffle_vector(args[0], args[1], places)

        return a(a, b), generate

    return halves


evens_of_two, odds_of_two = _halves(0), _halves(1)


@intrinsic  # type: ignore[untyped-decorator]
def first_lane(typing_context: Any, v: Any) -> Any:
    """The value in lane 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], ir.Constant(ir.IntType(32), 0))

    return v.dtype(v), generate


@intrinsic  # type: ignore[untyped-decorator]
def any_lane(typing_context: Any, v: Any) -> Any:
    """Whether a truth holds in some lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = builder.bitcast(args[0], ir.IntType(v.count))
        return builder.icmp_unsigned("!=", whole, ir.Constant(whole.type, 0))

    return types.boolean(v), generate


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typing_context: Any, pointer: Any, i: Any) -> Any:
    """Ask the memory for ``pointer[i]`` ahead of its use."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32]), "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(builder.gep(args[0], [args[1]]), byte), i32(0), i32(2), i32(1)])
        return context.get_dummy_value()

    return types.void(pointer, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def like(typing_context: Any, model: Any, value: Any) -> Any:
    """``value`` as lanes of the model's type and width."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _cast(context, builder, args[1], signature.args[1], model.dtype, model.count)

    return Lanes(model.dtype, model.count)(model, value), generate


@intrinsic  # type: ignore[untyped-decorator]
def lane(typing_context: Any, v: Any, k: Any) -> Any:
    """The value in lane ``k``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return v.dtype(v, types.intp), generate


def place_in_line(count: int) -> Any:
    """``place(pointer)``: how many elements lie between the last aligned address and the pointer."""

    @intrinsic  # type: ignore[untyped-decorator]
    def place(typing_context: Any, pointer: Any) -> Any:
        size = max(1, pointer.dtype.bitwidth // 8)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = builder.ptrtoint(args[0], ir.IntType(64))
            within = builder.and_(address, ir.Constant(ir.IntType(64), size * count - 1))
            return builder.udiv(within, ir.Constant(ir.IntType(64), size))

        return types.int64(pointer), generate

    return place


# The primitives of sash.algebra.


def _has_range(element: Any, count: int) -> bool:
    """Whether the processor has the minimum that skips NaN as one instruction (vrange)."""
    whole = count % 8 == 0 if element == types.float64 else element == types.float32 and count == 16
    return whole and bool(llvm.get_host_cpu_features().get("avx512dq", False))


def _range_minimum(builder: Any, element: Any) -> Callable[[Any, Any], Any]:
    """vrange: the smaller operand with its sign; where one is NaN, the other."""
    kind, bits, width = (ir.DoubleType(), "pd", 8) if element == types.float64 else (ir.FloatType(), "ps", 16)
    vector, i32, mask = ir.VectorType(kind, width), ir.IntType(32), ir.IntType(width)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector, vector, i32, vector, mask, i32]), f"llvm.x86.avx512.mask.range.{bits}.512"
    )
    nothing = ir.Constant(vector, [ir.Constant(kind, 0.0)] * width)
    return lambda x, y: builder.call(function, [x, y, i32(4), nothing, mask(-1), i32(4)])


def _in_eights(builder: Any, x: Any, y: Any, apply: Callable[[Any, Any], Any]) -> Any:
    """A function of whole registers on vectors of one or two of them."""
    width = 8 if isinstance(x.type.element, ir.DoubleType) else 16
    if x.type.count == width:
        return apply(x, y)
    undefined = ir.Constant(x.type, ir.Undefined)
    parts = []
    for start in (0, width):
        places = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(start, start + width)))
        parts.append(apply(builder.shuffle_vector(x, undefined, places), builder.shuffle_vector(y, undefined, places)))
    joined = ir.Constant(ir.VectorType(ir.IntType(32), 2 * width), list(range(2 * width)))
    return builder.shuffle_vector(parts[0], parts[1], joined)


def _extreme(name: str) -> Any:
    """``smaller`` or ``larger`` of two lanes, or of two numbers, of one type; never a branch."""
    less = name == "smaller"

    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing_context: Any, a: Any, b: Any) -> Any:
        element = a.dtype if isinstance(a, Lanes) else a

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x, y = args
            if less and isinstance(a, Lanes) and _has_range(element, a.count):
                return _in_eights(builder, x, y, _range_minimum(builder, element))
            if isinstance(element, types.Float):
                # llvm.minnum gives the other operand where one is NaN: one instruction and one blend
                suffix = f"v{a.count}f{element.bitwidth}" if isinstance(a, Lanes) else f"f{element.bitwidth}"
                function = cgutils.get_or_insert_function(
                    builder.module, ir.FunctionType(x.type, [x.type] * 2), f"llvm.{'minnum' if less else 'maxnum'}.{suffix}"
                )
                chosen = builder.call(function, [x, y])
                if less:
                    return chosen
                return builder.select(builder.fcmp_unordered("uno", x, y), builder.fadd(x, y), chosen)
            signed = element != types.boolean and element.signed
            compare = builder.icmp_signed if signed else builder.icmp_unsigned
            return builder.select(compare("<=" if less else ">=", x, y), x, y)

        return a(a, b), generate

    return apply


_smallest, _largest = _extreme("smaller"), _extreme("larger")


def smaller(a: Any, b: Any) -> Any:
    return algebra.smaller(a, b)


def larger(a: Any, b: Any) -> Any:
    return algebra.larger(a, b)


@_overloads(smaller)
def _smaller(a: Any, b: Any) -> Any:
    if a == b and isinstance(a, Lanes | types.Number | types.Boolean):
        return lambda a, b: _smallest(a, b)
    return lambda a, b: a if b != b else a if a <= b else b


@_overloads(larger)
def _larger(a: Any, b: Any) -> Any:
    if a == b and isinstance(a, Lanes | types.Number | types.Boolean):
        return lambda a, b: _largest(a, b)
    return lambda a, b: a if a != a or a >= b else b


def ratio(a: Any, b: Any) -> Any:
    return a / b


def _has_wide_reciprocals() -> bool:
    return bool(llvm.get_host_cpu_features().get("avx512f", False))


@intrinsic  # type: ignore[untyped-decorator]
def _ratio_lanes(typing_context: Any, a: Any, b: Any) -> Any:
    """An estimate of 1 / b, twice refined (Newton), times a, once corrected: right up to the last bit."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.VectorType(ir.DoubleType(), 8)
        estimate = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(eight, [eight, eight, ir.IntType(8)]), "llvm.x86.avx512.rcp14.pd.512"
        )
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(eight, [eight] * 3), "llvm.fma.v8f64")
        one = ir.Constant(eight, [ir.Constant(ir.DoubleType(), 1.0)] * 8)

        def divided(x: Any, y: Any) -> Any:
            r = builder.call(estimate, [y, ir.Constant(eight, ir.Undefined), ir.IntType(8)(-1)])
            negative = builder.fneg(y)
            for _ in range(2):
                r = builder.call(fma, [r, builder.call(fma, [negative, r, one]), r])
            q = builder.fmul(x, r)
            better = builder.call(fma, [builder.call(fma, [negative, q, x]), r, q])
            return builder.select(builder.fcmp_ordered("ord", better, better), better, q)  # infinities stay what they are

        return _in_eights(builder, args[0], args[1], divided)

    return a(a, b), generate


@_overloads(ratio)
def _ratio(a: Any, b: Any) -> Any:
    count = _count(a, b)
    if count in (8, 16) and _has_wide_reciprocals() and not any(_dtype(t) == types.float32 for t in (a, b)):
        as_double = caster(types.float64, count)
        return lambda a, b: _ratio_lanes(as_double(a), as_double(b))
    return lambda a, b: a / b


PRIMITIVES = {"smaller": smaller, "larger": larger, "ratio": ratio}


def _zeros(name: str) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def zeros(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            kind = ir.FunctionType(i64, [i64, ir.IntType(1)])
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.i64")
            return builder.call(function, [args[0], ir.Constant(ir.IntType(1), 0)])

        return types.int64(types.int64), generate

    return zeros


trailing_zeros, leading_zeros = _zeros("cttz"), _zeros("ctlz")
