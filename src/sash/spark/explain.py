"""What ``sash.aggregate`` and ``sash.over`` will do with a Spark frame."""

from __future__ import annotations

from typing import Any

from sash.plan.logical import output_type
from sash.spark.frames import is_connect
from sash.spark.prepare import prepare
from sash.spark.requests import Request

STAGES = {
    "plain": ("rows -> Catalyst: key, window -> shuffle -> results",),
    "catalyst": ("rows -> Catalyst: key, slice -> shuffle -> partials per slice", "slices -> shuffle by key -> Arrow: windows"),
    "fragments": ("rows -> Arrow: partials per key and slice of each partition", "slices -> shuffle by key -> Arrow: windows"),
    "rows": ("rows -> shuffle by key -> Arrow: sorted by time, windows",),
}


def explain_frame(frame: Any, request: Request, asked: str = "auto") -> list[str]:
    """The plan as lines of text; no job runs."""
    prepared = prepare(frame, request, asked)
    plan, choice = prepared.plan, prepared.choice
    what = "over" if request.trailing else "aggregate"
    lines = [f"{what} on Spark ({'Connect' if is_connect(frame) else 'classic'}), measured in {plan.measure.type}"]
    lines += [f"  {q.name}: {q.window!r}, {'a window for each row' if request.trailing else q.window.context}" for q in plan.queries]
    lines += [f"  plan: {choice.way}", *(f"    {reason}" for reason in choice.reasons)]
    lines += [f"  stage {k}: {stage}" for k, stage in enumerate(STAGES[choice.way], start=1)]
    return [*lines, *(f"  {call!r} -> {output_type(c)}" for call, c in zip(prepared.calls, plan.columns, strict=True))]
