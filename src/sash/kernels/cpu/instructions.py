"""The primitives of :mod:`sash.algebra` as instructions, for single numbers and for lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sash import algebra
from sash.kernels.cpu.lane_memory import caster
from sash.kernels.cpu.vector_values import Lanes, cast_lanes, dtype_of, lane_count, overloads, where


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
                # llvm.minnum returns the other operand where one is NaN: one instruction and one blend
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


@overloads(smaller)
def _smaller(a: Any, b: Any) -> Any:
    if a == b and isinstance(a, Lanes | types.Number | types.Boolean):
        return lambda a, b: _smallest(a, b)
    return lambda a, b: a if b != b else a if a <= b else b


@overloads(larger)
def _larger(a: Any, b: Any) -> Any:
    if a == b and isinstance(a, Lanes | types.Number | types.Boolean):
        return lambda a, b: _largest(a, b)
    return lambda a, b: a if a != a or a >= b else b


def ratio(a: Any, b: Any) -> Any:
    return a / b


def _has_wide_reciprocals() -> bool:
    return bool(llvm.get_host_cpu_features().get("avx512f", False))


def _divider(may_be_infinite: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def divide(typing_context: Any, a: Any, b: Any) -> Any:
        """An estimate of 1 / b, refined to 42 bits, times a, once corrected: right up to the last bit."""

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
                e = builder.call(fma, [negative, r, one])
                r = builder.call(fma, [r, builder.call(fma, [e, e, e]), r])
                q = builder.fmul(x, r)
                better = builder.call(fma, [builder.call(fma, [negative, q, x]), r, q])
                return builder.select(builder.fcmp_ordered("ord", better, better), better, q) if may_be_infinite else better

            return _in_eights(builder, args[0], args[1], divided)

        return a(a, b), generate

    return divide


_divide, _divide_finite = _divider(True), _divider(False)


@overloads(ratio)
def _ratio(a: Any, b: Any) -> Any:
    count = lane_count(a, b)
    if count in (8, 16) and _has_wide_reciprocals() and not any(dtype_of(t) == types.float32 for t in (a, b)):
        as_double = caster(types.float64, count)
        divide = _divide if isinstance(dtype_of(a), types.Float) else _divide_finite
        return lambda a, b: divide(as_double(a), as_double(b))
    return lambda a, b: a / b


PRIMITIVES = {"smaller": smaller, "larger": larger, "ratio": ratio}


# Functions of one number, for lanes.


def _float_function(name: str, python: Callable[..., Any], number: Callable[..., Any]) -> None:
    """A function of one float that LLVM has on vectors."""

    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing_context: Any, a: Any) -> Any:
        dtype = a.dtype if isinstance(a.dtype, types.Float) else types.float64

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = cast_lanes(context, builder, args[0], signature.args[0], dtype, a.count)
            bits = "f64" if dtype == types.float64 else "f32"
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(x.type, [x.type]), f"llvm.{name}.v{a.count}{bits}")
            return builder.call(function, [x])

        return Lanes(dtype, a.count)(a), generate

    @overloads(python)
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


@overloads(lane_abs)
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
        return cast_lanes(context, builder, args[0], signature.args[0], types.float64, a.count)

    return Lanes(types.float64, a.count)(a), generate


@overloads(lane_float)
def _lane_float(a: Any) -> Any:
    return (lambda a: _to_float(a)) if isinstance(a, Lanes) else (lambda a: float(a))


@overloads(lane_bool)
def _lane_bool(a: Any) -> Any:
    return (lambda a: a != 0) if isinstance(a, Lanes) else (lambda a: bool(a))
