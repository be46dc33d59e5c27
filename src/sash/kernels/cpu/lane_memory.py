"""Vector registers and memory: loads and stores, rearranging lanes, and a few instructions on single words."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sash.kernels.cpu.vector_values import Lanes, cast_lanes, element_type, splat

# Pointers are numba's CPointer; a place is an index, never checked.


def _address(context: Any, builder: Any, pointer: Any, index: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())


def loader(dtype: Any, count: int) -> Any:
    """``load(pointer, i)``: ``count`` values from place ``i`` on."""

    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing_context: Any, pointer: Any, i: Any) -> Any:
        stored = pointer.dtype

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(element_type(stored), count)
            value = builder.load(_address(context, builder, args[0], args[1], vector), align=max(1, stored.bitwidth // 8))
            return cast_lanes(context, builder, value, Lanes(stored, count), dtype, count)

        return Lanes(dtype, count)(pointer, types.intp), generate

    return load


def storer(count: int, past_caches: bool = False) -> Any:
    """``store(pointer, i, value)``; past the caches it needs an aligned place."""

    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing_context: Any, pointer: Any, i: Any, value: Any) -> Any:
        stored = pointer.dtype

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = cast_lanes(context, builder, args[2], signature.args[2], stored, count)
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
            return cast_lanes(context, builder, args[0], signature.args[0], dtype, lanes)

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
            return builder.add(splat(builder, first, count), steps)

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


def _bits_before(builder: Any, valid: Any, before: Any, i: Any) -> Any:
    """How many bits of a bitmap are set before bit ``i``; ``before`` has it for the first bit of each word."""
    i64 = ir.IntType(64)
    number = builder.lshr(i, ir.Constant(i64, 6))
    word = builder.load(builder.gep(builder.bitcast(valid, i64.as_pointer()), [number]), align=1)
    lower = builder.sub(builder.shl(ir.Constant(i64, 1), builder.and_(i, ir.Constant(i64, 63))), ir.Constant(i64, 1))
    return builder.add(builder.load(builder.gep(before, [number])), _ones(builder, builder.and_(word, lower)))


def _ones(builder: Any, value: Any) -> Any:
    """The number of bits set, of an integer or in each lane."""
    name = f"v{value.type.count}i{value.type.element.width}" if isinstance(value.type, ir.VectorType) else f"i{value.type.width}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(value.type, [value.type]), f"llvm.ctpop.{name}")
    return builder.call(function, [value])


@intrinsic  # type: ignore[untyped-decorator]
def count_bits(typing_context: Any, valid: Any, before: Any, i: Any, j: Any) -> Any:
    """The number of bits set from bit ``i`` to bit ``j - 1``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        valid, before, i, j = args
        return builder.sub(_bits_before(builder, valid, before, j), _bits_before(builder, valid, before, i))

    return types.int64(valid, before, types.int64, types.int64), generate


def bit_counter(count: int) -> Any:
    """``count_bits_in_lanes(valid, before, i, j)``: :func:`count_bits` of ``i`` and ``j``, of ``i + 1`` and ``j + 1``, …"""

    @intrinsic  # type: ignore[untyped-decorator]
    def count_bits_in_lanes(typing_context: Any, valid: Any, before: Any, i: Any, j: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            valid, before, i, j = args
            i32, i64 = ir.IntType(32), ir.IntType(64)

            def bits(first: Any) -> Any:
                byte = builder.gep(valid, [builder.lshr(first, ir.Constant(i64, 3))])
                word = builder.load(builder.bitcast(byte, i32.as_pointer()), align=1)
                return builder.lshr(word, builder.trunc(builder.and_(first, ir.Constant(i64, 7)), i32))

            # Lane k counts the first k bits from j on, which have entered, and those from i + k on, which have not left; both in one word.
            coming = builder.and_(bits(j), ir.Constant(i32, (1 << count) - 1))
            both = builder.or_(coming, builder.shl(bits(i), ir.Constant(i32, 16)))
            here = [(1 << k) - 1 | ((1 << count) - (1 << k)) << 16 for k in range(count)]
            vector = ir.VectorType(i32, count)
            moved = _ones(builder, builder.and_(splat(builder, both, count), ir.Constant(vector, [ir.Constant(i32, h) for h in here])))
            behind = builder.add(i, ir.Constant(i64, count))  # of the window from here to j no lane loses or gains a row
            first = builder.sub(_bits_before(builder, valid, before, j), _bits_before(builder, valid, before, behind))
            return builder.add(splat(builder, first, count), builder.zext(moved, ir.VectorType(i64, count)))

        return Lanes(types.int64, count)(valid, before, types.int64, types.int64), generate

    return count_bits_in_lanes


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
    """Whether some lane is true."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = builder.bitcast(args[0], ir.IntType(v.count))
        return builder.icmp_unsigned("!=", whole, ir.Constant(whole.type, 0))

    return types.boolean(v), generate


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typing_context: Any, pointer: Any, i: Any) -> Any:
    """Prefetch ``pointer[i]`` into the caches."""

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
        return cast_lanes(context, builder, args[1], signature.args[1], model.dtype, model.count)

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


@intrinsic  # type: ignore[untyped-decorator]
def ones(typing_context: Any, x: Any) -> Any:
    """How many bits of an integer are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _ones(builder, args[0])

    return types.int64(types.int64), generate
