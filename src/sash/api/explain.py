"""``sash.explain``: the plan, the algorithms, and the reasons for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy.typing as npt

from sash import threads
from sash.algorithms.device.runner import device_modules
from sash.algorithms.rolling import modules
from sash.api.explain_queries import explain_query
from sash.api.explain_tables import explain_request
from sash.api.places import DeviceName, place_of
from sash.api.rolling import checked, prepare, result_type, rolling
from sash.api.tables import aggregate, over
from sash.errors import InvalidArgument, unknown
from sash.functions.call import Agg
from sash.kernels.cpu.compiler import is_compiled
from sash.kernels.generate import Module
from sash.kernels.opencl.device_module import DeviceModule
from sash.kernels.opencl.devices import Device as OpenClDevice
from sash.plan.choices.device_choice import decide_on_device
from sash.plan.choices.rolling_choice import choose_holistic, decide
from sash.plan.clock import ProcessingTime
from sash.plan.options import Emit, Late, StreamOptions
from sash.plan.request import Aggs, By, Request, Windows
from sash.types import ArrowData, DurationLike, PandasFrame, PolarsFrame, SparkFrame, Values
from sash.windows.base import Window


@dataclass(frozen=True)
class Explanation:
    """A plan, as lines of text, and the text of its kernels; ``str()`` and printing show both."""

    lines: tuple[str, ...]
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self.lines, *(f"\n{text}" for text in self.sources)])

    __repr__ = __str__


@overload
def explain(
    data: npt.NDArray[Any] | Values,
    size: int,
    *,
    every: int = ...,
    agg: Agg = ...,
    algorithm: str = ...,
    device: DeviceName = ...,
    source: bool = ...,
) -> Explanation: ...
@overload
def explain(
    data: ArrowData | SparkFrame | PandasFrame | PolarsFrame,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = ...,
    order_by: str | Sequence[str] | None = ...,
    watermark: DurationLike | None = ...,
    lateness: DurationLike | None = ...,
    emit: Emit = ...,
    late: Late = ...,
    empty: bool = ...,
    idle: DurationLike | None = ...,
    max_ahead: DurationLike | None = ...,
    buckets: int | None = ...,
    plan: str = ...,
    flatten: bool = ...,
    device: DeviceName = ...,
) -> Explanation: ...
@overload
def explain(data: str, **arguments: Any) -> Explanation: ...
def explain(data: Any, size: int | None = None, **arguments: Any) -> Explanation:
    """The plan of a call of `sash.rolling`, `sash.aggregate`, `sash.over` or `sash.sql`: what it will do, with which algorithm, and why.

    It takes exactly the arguments of the call that it explains, and makes the same decisions as that call would.

    Args:
        data: The values of `sash.rolling`, the data of `sash.aggregate` or `sash.over`, or the text of `sash.sql`.
        size: The size of rolling windows.
        **arguments: The other arguments of the call. With `windows=` it is `sash.aggregate`, or `sash.over` for trailing windows. For
            `sash.rolling` there is also `source=True`, which shows the text of the kernels.

    Returns:
        The plan; printing shows it.

    Examples:
        >>> import numpy as np, sash
        >>> print(sash.explain(np.zeros(100), 10, agg="max"))
        rolling max(double) -> double: 91 windows of 10 rows, every 1, over 100 rows
          algorithm: blocks
            slide 1: two stacks, block by block
            no vector lanes: 100 rows are too few for windows of 10
          laws: associative, commutative, selective
          device: cpu, ... thread...

        >>> import pyarrow as pa
        >>> from sash import functions as S, windows as W
        >>> rows = pa.table({"t": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
        >>> print(sash.explain(rows, windows=W.sliding(10, every=5), aggs=[S.sum("cpu")], time="t"))
        aggregate 4 rows, 1 key, measured in int64
          window: sliding(10, every 5), context free
          slices: scatter
            edges are known and aggregates commute: each row is added to its slice, in any order
          sum(cpu) -> int64: prefixes over slices
          device: cpu, ... thread...
    """
    if isinstance(data, str) and size is None:
        return Explanation(tuple(explain_query(data, arguments)))
    if size is not None or "windows" not in arguments:
        return _explain_rolling(data, size, arguments)
    windows = arguments["windows"]
    specs = windows.values() if hasattr(windows, "values") else [windows]
    trailing = any(isinstance(w, Window) and w.is_trailing for w in specs)
    bound = _bound(over if trailing else aggregate, data, arguments)
    options = {name: bound[name] for name in inspect.signature(StreamOptions.of).parameters if name in bound}
    of_request = ("windows", "aggs", "by", "time", "order_by")
    request = Request.of(*(bound[name] for name in of_request), empty=bound.get("empty", False), trailing=trailing)
    return Explanation(tuple(explain_request(data, request, StreamOptions.of(**options), bound.get("device", "cpu"))))


def _bound(call: Callable[..., Any], data: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """All arguments of a call, with its defaults; raises for an unknown or a missing one."""
    signature = inspect.signature(call)
    accepted = list(signature.parameters)[1:]
    for name in arguments:
        if name not in accepted:
            raise unknown(f"argument of sash.{call.__name__}", name, accepted)
    missing = [n for n in accepted if signature.parameters[n].default is inspect.Parameter.empty and n not in arguments]
    if missing:
        raise InvalidArgument(f"explain takes the arguments of sash.{call.__name__}; {missing[0]} is missing")
    bound = signature.bind(data, **arguments)
    bound.apply_defaults()
    return bound.arguments


def _explain_rolling(values: Any, size: int | None, arguments: dict[str, Any]) -> Explanation:
    if size is None and not arguments:
        raise InvalidArgument("explain takes the arguments of sash.rolling (size=, ...), or of sash.aggregate or sash.over (windows=, ...)")
    source = arguments.pop("source", False)
    sized = arguments if size is None else {"size": size, **arguments}
    bound = _bound(rolling, values, sized)
    request = checked(values, *(bound[name] for name in ("size", "every", "agg", "algorithm", "device")))
    aggregate = request.aggregate
    lines = [
        f"rolling {aggregate.label}({request.type}) -> {result_type(request)}: {request.windows} windows of {request.size} rows, "
        f"every {request.every}, over {len(request.values)} rows"
    ]
    kernels: tuple[Module, ...] = ()
    on_device: list[DeviceModule] = []
    device: OpenClDevice | None = None
    why: tuple[str, ...] = ()
    if aggregate.kind == "fields":
        form, column, job = prepare(request)
        device, why = place_of(request.device, request.algorithm, job)
        if device is None or not job.windows:
            decision = decide(form, job, request.algorithm)
            kernels = modules(decision.choice, job)
        else:
            decision = decide_on_device(form, job, device, request.algorithm)
            on_device = device_modules(device, job, decision.choice)
        laws = ", ".join(["associative", *sorted(form.laws)])
        nulls = "nulls are skipped" if job.masked else "nulls are passed to the aggregate" if column.valid is not None else ""
        ranked = "values are replaced by their ranks" if column.ranked is not None else ""
    else:
        decision = choose_holistic(aggregate)
        laws, nulls, ranked = f"associative (partials: {aggregate.kind})", "", ""
    lines += [f"  algorithm: {decision.choice}", *(f"    {reason}" for reason in decision.reasons), f"  laws: {laws}"]
    lines += [f"  {note}" for note in (nulls, ranked) if note]
    if device is not None:
        lines.append(f"  device: {device.title}")
        lines += [f"    {reason}" for reason in why]
        lines += [f"  kernel: {m.title}, groups of {m.group}" for m in on_device] if source else []
        return Explanation(tuple(lines), tuple(m.text for m in on_device) if source else ())
    parts = len(threads.shares(0, request.windows, rows_each=request.every)) or 1
    lines.append(f"  device: cpu, {parts} thread{'s' * (parts > 1)}")
    for module in kernels if source else ():
        lines.append(f"  kernel: {module.title} ({'compiled' if is_compiled(module) else 'to be compiled'})")
    return Explanation(tuple(lines), tuple(module.text for module in kernels) if source else ())
