"""``sash.rolling``: one array in, one array out, an aggregate over every complete window of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash import columns
from sash.aggregates.max_by import MaxBy
from sash.aggregates.min_by import MinBy
from sash.aggregates.percentile import Percentile
from sash.algebra import Aggregate, Form, struct_of
from sash.algorithms import distinct, ranks
from sash.algorithms.binding import form_of
from sash.algorithms.device.runner import run_on_device
from sash.algorithms.device.self_test import usable_device
from sash.algorithms.nulls import windows_with_rows
from sash.algorithms.rolling import Job, Output, run
from sash.algorithms.two_stacks import TwoStacks
from sash.api.frames import series_like
from sash.api.places import DeviceName, place_of
from sash.columns import Array, Column
from sash.errors import DeviceUnavailable, InvalidArgument, InvalidWindow, UnlawfulAlgorithm
from sash.functions.call import Agg, resolve
from sash.functions.udaf import UserAggregate, user_type
from sash.kernels.sources import may_return_none, read
from sash.plan.choices.device_choice import decide_on_device
from sash.plan.choices.rolling_choice import choose_holistic, decide, note_rows
from sash.types import SeriesT, Values, dtype


@dataclass(frozen=True)
class RollingRequest:
    """The arguments of :func:`rolling`, checked."""

    values: pa.Array | Array
    type: pa.DataType
    own_type: pa.DataType
    """The type of the values as they were passed, before they were converted to another layout."""
    aggregate: Aggregate
    size: int
    every: int
    algorithm: str
    device: str = "auto"

    @property
    def windows(self) -> int:
        return max(0, (len(self.values) - self.size) // self.every + 1)


@overload
def rolling(
    values: npt.NDArray[Any],
    size: int,
    *,
    every: int = ...,
    agg: Agg = ...,
    algorithm: str = ...,
    device: DeviceName = ...,
    out: npt.NDArray[Any] | None = ...,
) -> npt.NDArray[Any]: ...
@overload
def rolling(
    values: SeriesT,
    size: int,
    *,
    every: int = ...,
    agg: Agg = ...,
    algorithm: str = ...,
    device: DeviceName = ...,
) -> SeriesT: ...
@overload
def rolling(
    values: Values,
    size: int,
    *,
    every: int = ...,
    agg: Agg = ...,
    algorithm: str = ...,
    device: DeviceName = ...,
) -> pa.Array: ...
def rolling(
    values: Any,
    size: int,
    *,
    every: int = 1,
    agg: Agg = "min",
    algorithm: str = "auto",
    device: DeviceName = "auto",
    out: npt.NDArray[Any] | None = None,
) -> Any:
    """The aggregate of every complete window of `size` rows that starts `every` rows after the one before.

    Args:
        values: A NumPy array, a pandas or polars series, an Arrow array, or a list. Nulls are skipped, unless the aggregate
            takes them.
        size: The number of rows in a window.
        every: By how many rows windows slide.
        agg: A name in `sash.functions`, one of those functions without a column (`S.percentile(q=0.95)`), or your own aggregate.
            `max_by` and `min_by` return the position of the first extreme.
        algorithm: `"auto"`, or the name of an algorithm; `sash.explain` shows what `"auto"` chooses.
        device: `"cpu"`; `"opencl"` for the preferred OpenCL device, or the name of one (`sash.devices()`); or `"auto"`, which takes a GPU
            where there is one and the work is worth the way.
        out: A NumPy array to write the result to; allocating a new one costs about as much as the computation.

    Returns:
        One value for each window: a NumPy array for a NumPy array, a series of the same kind for a pandas or polars series, an Arrow
        array otherwise.

    Examples:
        >>> import numpy as np, sash
        >>> sash.rolling(np.array([5, 3, 8, 1, 9]), 3, agg="max")
        array([8, 8, 9])
        >>> sash.rolling([1, None, None, 4], 2, agg="sum").to_pylist()
        [1, None, 4]
    """
    request = checked(values, size, every, agg, algorithm, device)
    aggregate = request.aggregate
    if out is not None:
        _check_out(out, request)
    result = _holistic(request, out) if aggregate.kind != "fields" else _fields(request, out)
    if not isinstance(result, pa.Array):
        return result
    if request.type != request.own_type:
        result = columns.restored(result, result_type(replace(request, type=request.own_type)))
    return series_like(values, result)


def checked(values: Any, size: Any, every: Any, agg: Any, algorithm: Any, device: Any) -> RollingRequest:
    """The arguments of :func:`rolling`, or an error that names the wrong one and the reason."""
    for name, value in (("size", size), ("every", every)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InvalidWindow(f"{name} must be an integer, not {value!r}")
        if value < 1:
            raise InvalidWindow(f"{name} must be at least 1, not {value}")
    call = resolve(agg)
    if call.inputs or call.condition:
        raise InvalidArgument(f"agg of rolling has no columns and no condition; write {call.aggregate.label}() without them")
    if not isinstance(device, str):
        raise InvalidArgument(f"device must be a name, not {device!r}")
    if device not in ("auto", "cpu"):
        usable_device(device)
    if not isinstance(algorithm, str):
        raise InvalidArgument(f"algorithm must be a name, not {algorithm!r}")
    own = columns.from_anything(values)
    column = columns.in_kernel_layout(own)
    if isinstance(call.aggregate, UserAggregate) and isinstance(column, pa.Array):
        own = column = columns.in_type(column, user_type(column.type))
    t = columns.type_of(column)
    # Beyond the rows, size and every make no difference; kernels count in 64 bits.
    size, every = min(int(size), len(column) + 1), min(int(every), len(column) + 1)
    request = RollingRequest(column, t, columns.type_of(own), call.aggregate, size, every, algorithm, device)
    logical = result_type(request)
    _check_nulls_can_be_shown(request, logical)
    if device not in ("auto", "cpu") and call.aggregate.kind != "fields":
        raise DeviceUnavailable(
            f"device={device!r}: {call.aggregate.label} keeps {call.aggregate.kind}, and devices run aggregates of flat fields; "
            "use device='cpu'"
        )
    if algorithm != "auto" and call.aggregate.kind != "fields":
        raise UnlawfulAlgorithm(
            f"algorithm={algorithm!r}: {call.aggregate.label} keeps {call.aggregate.kind} and has one algorithm of its own"
        )
    return request


def _check_nulls_can_be_shown(request: RollingRequest, logical: pa.DataType) -> None:
    """Raise if a result may be null and NumPy has no null of its type: only floats have one, NaN."""
    own = isinstance(request.aggregate, UserAggregate) and isinstance(request.values, np.ndarray) and not pa.types.is_floating(logical)
    if own and may_return_none(read(request.aggregate.lower, "lower")):  # type: ignore[attr-defined]
        raise InvalidArgument(
            f"lower of {request.aggregate.label} may return None, and NumPy has no null of type {logical}; "
            "pass values as an Arrow array, or return a float"
        )


def result_type(request: RollingRequest) -> pa.DataType:
    """The logical type of the result."""
    aggregate, t = request.aggregate, request.type
    if isinstance(aggregate, MaxBy | MinBy):
        aggregate.returns(pa.int64(), t)
        return pa.int64()
    if isinstance(aggregate, UserAggregate):
        if aggregate.inputs != 1:
            raise InvalidArgument(f"rolling has one column, the lift of {aggregate.label} takes {aggregate.inputs}")
        (machine,) = form_of(aggregate, t).outputs
        return pa.bool_() if machine == "bool" else pa.from_numpy_dtype(machine)
    return aggregate.returns(t)


def _check_out(out: Any, request: RollingRequest) -> None:
    if not isinstance(request.values, np.ndarray):
        raise InvalidArgument("out is for NumPy input; Arrow results are always newly allocated")
    logical = result_type(request)
    if pa.types.is_nested(logical):
        raise InvalidArgument(f"out cannot take a result of type {logical}")
    wanted = np.dtype(logical.to_pandas_dtype())
    if not isinstance(out, np.ndarray) or out.dtype != wanted or out.shape != (request.windows,):
        passed = f"{out.dtype}{list(out.shape)}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InvalidArgument(f"out must be a NumPy array {wanted}[{request.windows}], not {passed}")
    if not out.flags.c_contiguous or not out.flags.writeable or not out.flags.aligned:
        raise InvalidArgument("out must be contiguous, aligned and writable")
    if np.may_share_memory(out, request.values):
        raise InvalidArgument("out must not share memory with values")


# Aggregates of flat fields.


def prepare(request: RollingRequest) -> tuple[Form, Column, Job]:
    """The form, the column as NumPy arrays, and the job of a request."""
    aggregate, t = request.aggregate, request.type
    column = columns.to_column(request.values, aggregate.reads)
    has_nulls = column.valid is not None
    takes_nulls = bool(aggregate.null_aware_inputs) and has_nulls and not isinstance(aggregate, MaxBy | MinBy)
    if isinstance(aggregate, MaxBy | MinBy):
        form = aggregate.positions(t)
    elif aggregate.arity == 0:
        form = aggregate.form()
    else:
        form = form_of(aggregate, t, nullable=(takes_nulls,), rows=request.size)
    rows: list[Array] = list(column.parts) if aggregate.arity else []
    if takes_nulls:
        assert column.valid is not None
        rows.append(column.valid)
    masked = has_nulls and not takes_nulls
    if masked:
        assert column.valid is not None
        rows.append(column.valid)
    return form, column, Job(form, rows, len(column), request.size, request.every, masked)


def _fields(request: RollingRequest, out: Array | None) -> Any:
    form, column, job = prepare(request)
    device, _ = place_of(request.device, request.algorithm, job)
    target = out.view(np.uint8) if out is not None and out.dtype == bool else out
    direct = target is not None and target.dtype == dtype(form.outputs[0])
    if device is not None and job.windows:
        decision = decide_on_device(form, job, device, request.algorithm)
        output = run_on_device(device, job, decision.choice, target if direct else None)
    else:
        decision = decide(form, job, request.algorithm)
        note_rows(form, job, decision)
        output = run(decision.choice, job, target if direct else None)
    known = _known_rows(request, column, output)
    if isinstance(request.values, np.ndarray):
        result = _as_numpy(request, output, known)
        if out is None:
            return result
        if not direct:
            out[:] = result
        return out
    return _as_arrow(request, form, column, output, known)


def _known_rows(request: RollingRequest, column: Column, output: Output) -> Array | None:
    """Which results are not null: their window has a row that counts, and ``lower`` returned a value."""
    known = output.defined
    aggregate = request.aggregate
    if column.valid is None or aggregate.counts_rows or (aggregate.null_aware_inputs == (0,) and aggregate.arity == 1):
        return known
    nonempty = windows_with_rows(column.valid, len(column), request.size, request.every, request.windows)
    if nonempty is None:
        return known
    return nonempty if known is None else known & nonempty


def _as_numpy(request: RollingRequest, output: Output, known: Array | None) -> Array:
    logical = result_type(request)
    if pa.types.is_struct(logical):
        names = [f.name for f in logical]
        record = np.empty(request.windows, dtype=[(n, request.values.dtype) for n in names])
        for name, values in zip(names, output.values, strict=True):
            record[name] = values.astype(request.values.dtype)
        return record
    values = output.values[0]
    wanted = np.dtype(logical.to_pandas_dtype())
    result = values.view(bool) if wanted.kind == "b" else values.astype(wanted, copy=False)
    if known is not None and not known.all():
        result[known == 0] = np.nan
    return result


def _as_arrow(request: RollingRequest, form: Form, column: Column, output: Output, known: Array | None) -> pa.Array:
    raw = [columns.to_arrow(v, m, known) for v, m in zip(output.values, form.outputs, strict=True)]
    logical = result_type(request)
    if column.ranked is not None and logical == request.type:
        return column.ranked.take(raw[0])
    if column.ranked is not None and pa.types.is_struct(logical):
        return struct_of([column.ranked.take(r) for r in raw], logical)
    if isinstance(request.aggregate, MaxBy | MinBy | UserAggregate):
        return raw[0]
    return request.aggregate.lower_logical(raw, request.type)


# Aggregates whose partials have no fixed size.


def _holistic(request: RollingRequest, out: Array | None) -> Any:
    algorithm = choose_holistic(request.aggregate).choice
    if algorithm == "ranks":
        return _quantiles(request, out)
    values = pa.array(request.values) if isinstance(request.values, np.ndarray) else request.values
    if algorithm == "distinct":
        result = _distinct(request, values)
    elif algorithm == "gather":
        result = _gathered(request, values)
    else:
        result = _merged(request, values)
    if not isinstance(request.values, np.ndarray):
        return result
    if out is not None:
        out[:] = result.to_numpy()
        return out
    if pa.types.is_list(result.type) or pa.types.is_large_list(result.type):
        return _lists_as_numpy(request, result)
    return result.to_numpy(zero_copy_only=False)


def _quantiles(request: RollingRequest, out: Array | None) -> Any:
    assert isinstance(request.aggregate, Percentile)
    column = columns.to_column(request.values, "double")
    results, known = ranks.roll(column.parts[0], column.valid, request.aggregate.q, request.size, request.every, request.windows, out)
    if isinstance(request.values, np.ndarray):
        return results
    return pa.array(results, mask=known == 0)


def _distinct(request: RollingRequest, values: pa.Array) -> pa.Array:
    if request.aggregate.name == "count_distinct":
        return pa.array(distinct.roll_counts(values, request.size, request.every, request.windows))
    offsets, places = distinct.roll_places(values, request.size, request.every, request.windows)
    return _list_array(offsets, values.take(pa.array(places)))


def _gathered(request: RollingRequest, values: pa.Array) -> pa.Array:
    present = values.is_valid().to_numpy(zero_copy_only=False)
    totals = np.concatenate([[0], np.cumsum(present, dtype=np.int64)])
    starts = np.arange(request.windows, dtype=np.int64) * request.every
    first, last = totals[starts], totals[starts + request.size]
    offsets = np.concatenate([[0], np.cumsum(last - first)])
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, last - first)
    lists = _list_array(offsets, values.drop_null().take(pa.array(places)))
    if request.aggregate.name == "collect_list":
        return lists
    joined = pc.binary_join(lists, getattr(request.aggregate, "separator", ""))
    return pc.if_else(pa.array(last > first), joined, None).cast(pa.string())


def _list_array(offsets: Array, values: pa.Array) -> pa.Array:
    if offsets[-1] < np.iinfo(np.int32).max:
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)


def _lists_as_numpy(request: RollingRequest, lists: pa.Array) -> Array:
    flat = lists.values.to_numpy(zero_copy_only=False)
    if request.aggregate.name == "collect_list" and lists.values.null_count == 0:
        return np.reshape(flat, (request.windows, request.size))
    result = np.empty(len(lists), object)
    bounds = lists.offsets.to_numpy()
    for k in range(len(lists)):
        result[k] = flat[bounds[k] : bounds[k + 1]]
    return result


def _merged(request: RollingRequest, values: pa.Array) -> pa.Array:
    """Sketches: two stacks of Python objects."""
    logical = result_type(request)
    window = TwoStacks(request.aggregate, capacity=min(request.size, 1 << 20))
    items = values.to_pylist()
    results: list[Any] = []
    row = oldest = 0
    for j in range(request.windows):
        start = j * request.every
        while oldest < start and oldest < row:
            window.evict()
            oldest += 1
        if row < start:  # rows between windows belong to none
            oldest = row = start
        while row < start + request.size:
            window.insert(items[row])
            row += 1
        results.append(window.query())
    if pa.types.is_integer(logical):
        limits = np.iinfo(logical.to_pandas_dtype())  # doubles near the ends of the type round beyond them
        results = [None if r is None else max(int(limits.min), min(round(r), int(limits.max))) for r in results]
    return pa.array(results, logical)
