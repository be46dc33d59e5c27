"""Which device does the work, and with which of its algorithms: Slider's choice, with BLOCK-SCAN where the paper falls back to GBL.

Rules are tried from top to bottom; each is a function of the aggregate and of the windows' shape. They rest on numbers that are measured
once for each device and driver (``sash devices --measure``), or on the usual ones for its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sash.algebra import Form
from sash.algorithms.device.algorithm import Shape
from sash.algorithms.device.device_ranges import BY_TREE, BY_TWO_STACKS
from sash.algorithms.device.runner import device_algorithms, shape_of
from sash.algorithms.rolling import Job
from sash.errors import UnlawfulAlgorithm, unknown
from sash.kernels.opencl.devices import Device
from sash.kernels.opencl.measurements import Rates, rates_of
from sash.plan.choices.decision import Decision
from sash.plan.choices.range_choice import RangeFacts

COOP_OPT, DIRECT, REDUCED, BLOCKS = "coop_opt", "direct_prefix", "reduced_prefix", "block_scan"
LARGEST_FAN_OUT = 8192
"""Beyond it the paper leaves COOP-OPT for prefixes, a little before the memory of a group is full."""
FEWEST_ROWS = 1 << 22
"""Fewer rows are not worth the way to a device, whatever it costs."""


@dataclass(frozen=True)
class DeviceFacts:
    """What decides which algorithm a device runs."""

    shape: Shape
    rates: Rates

    @property
    def fan_out(self) -> int:
        return self.shape.cut.span


Rule = Callable[[Form, DeviceFacts], Decision | None]


def windows_lie_apart(form: Form, facts: DeviceFacts) -> Decision | None:
    if facts.shape.every < facts.shape.size:
        return None
    return Decision(COOP_OPT, (f"every {facts.shape.every} ≥ size {facts.shape.size}: a window is one slice, and its rows are read once",))


def short_slides_with_inverse(form: Form, facts: DeviceFacts) -> Decision | None:
    """On a CPU: to subtract rows again costs less than to store slices."""
    if not facts.shape.by_items or not form.invertible:
        return None
    every, rates = facts.shape.every, facts.rates
    direct, sliced = every * rates.direct_ns, every * rates.slice_ns + rates.store_ns
    if direct > sliced and every > 1:
        return None
    return Decision(
        DIRECT,
        (
            f"{form.name} has an exact inverse: each item adds what enters its window and subtracts what leaves",
            f"a slide of {every} costs {direct:.2f} ns so, and {sliced:.2f} ns through a stored slice ({rates.source})",
        ),
    )


def slices_with_inverse(form: Form, facts: DeviceFacts) -> Decision | None:
    if not facts.shape.by_items or not form.invertible:
        return None
    what = f"{form.name} has an exact inverse: rows become slices, and a window is the one before it with a slice added and one subtracted"
    return Decision(REDUCED, (what, *_cut(facts)))


def on_a_cpu(form: Form, facts: DeviceFacts) -> Decision | None:
    if not facts.shape.by_items:
        return None
    how = "suffixes and prefixes of blocks, in order"
    return Decision(BLOCKS, (f"a CPU, and no exact inverse: {how}", *_cut(facts)))


def large_fan_out_with_inverse(form: Form, facts: DeviceFacts) -> Decision | None:
    if not form.invertible or facts.fan_out <= LARGEST_FAN_OUT:
        return None
    what = f"fan-out {facts.fan_out:,} > {LARGEST_FAN_OUT:,} and an exact inverse: differences of prefixes, whatever the fan-out"
    return Decision(DIRECT if facts.shape.every == 1 else REDUCED, (what, *_cut(facts)))


def within_shared_memory(form: Form, facts: DeviceFacts) -> Decision | None:
    if device_algorithms()[COOP_OPT].missing(form, facts.shape) is not None or facts.fan_out > _most_in_order(form, facts):
        return None
    what = f"the {facts.fan_out:,} slices of a window fit into the {facts.shape.local_bytes:,} bytes that a group shares"
    return Decision(COOP_OPT, (what, "one pass over the rows"))


def _most_in_order(form: Form, facts: DeviceFacts) -> int:
    """The largest fan-out for CoopExp: with atomics updates are shared out; by owner each window combines all of its slices."""
    return LARGEST_FAN_OUT if form.commutative and len(facts.shape.fields) == 1 else 64


def larger_windows_with_inverse(form: Form, facts: DeviceFacts) -> Decision | None:
    if not form.invertible:
        return None
    what = f"a window's {facts.fan_out:,} slices are too many for the memory of a group, and the inverse is exact: differences of prefixes"
    return Decision(DIRECT if facts.shape.every == 1 else REDUCED, (what, *_cut(facts)))


def anything_else(form: Form, facts: DeviceFacts) -> Decision | None:
    what = f"no exact inverse, and a fan-out of {facts.fan_out:,}: suffixes and prefixes of blocks, in order (the paper: GBL)"
    return Decision(BLOCKS, (what, *_cut(facts)))


def _cut(facts: DeviceFacts) -> tuple[str, ...]:
    cut = facts.shape.cut
    if cut.every == 1:
        return ()
    each = f"slices of {cut.first} rows" if cut.per == 1 else f"slices of {cut.first} and {cut.second} rows, between the edges of windows"
    return (f"{each}, {cut.span} of them in a window",)


RULES: tuple[Rule, ...] = (
    windows_lie_apart,
    short_slides_with_inverse,
    slices_with_inverse,
    on_a_cpu,
    large_fan_out_with_inverse,
    within_shared_memory,
    larger_windows_with_inverse,
    anything_else,
)


def choose_on_device(form: Form, facts: DeviceFacts) -> Decision:
    """The algorithm for an aggregate of flat fields."""
    for rule in RULES:
        decision = rule(form, facts)
        if decision is not None:
            return decision
    raise AssertionError("the last rule always applies")


def forced_on_device(algorithm: str, form: Form, shape: Shape) -> Decision:
    """The algorithm that was requested, if nothing that it needs is missing."""
    known = device_algorithms()
    if algorithm not in known:
        raise unknown("algorithm of devices", algorithm, ("auto", *known))
    missing = known[algorithm].missing(form, shape)
    if missing is not None:
        raise UnlawfulAlgorithm(f"{algorithm} needs {missing}")
    return Decision(algorithm, ("requested",))


def decide_on_device(form: Form, job: Job, device: Device, algorithm: str = "auto") -> Decision:
    """The decision for a job: what :func:`sash.rolling` runs on the device, and what ``sash.explain`` prints."""
    shape = shape_of(form, job.size, job.every, job.masked, device)
    if algorithm != "auto":
        return forced_on_device(algorithm, form, shape)
    return choose_on_device(form, DeviceFacts(shape, rates_of(device)))


def choose_ranges_on_device(device: Device, ranges: RangeFacts) -> Decision:
    """How ranges of slices are aggregated on a device."""
    if device.kind == "cpu" and ranges.only_advance:
        return Decision(BY_TWO_STACKS, ("starts and ends only advance: two stacks, block by block, each item with its share",))
    if device.kind == "cpu":
        return Decision(BY_TREE, ("ranges lie within each other: a tree over all slices",))
    return Decision(BY_TREE, ("a range for each item: a tree over all slices",))


def worth_the_way(device: Device, rows: int, bytes_in: int, bytes_out: int, cpu_ns_per_row: float) -> Decision:
    """For ``device="auto"``: whether a GPU is quicker than the CPU, the way there and back included."""
    if device.kind not in ("gpu", "accelerator"):
        return Decision("cpu", (f"{device.title} is no GPU",))
    if rows < FEWEST_ROWS:
        return Decision("cpu", (f"{rows:,} rows are too few for the way to a device (from {FEWEST_ROWS:,} on)",))
    rates = rates_of(device)
    way = (bytes_in + bytes_out) / rates.transfer_gbs
    there = way + 2 * bytes_in / rates.copy_gbs
    here = rows * cpu_ns_per_row
    numbers = f"{there / 1e6:.1f} ms there, {way / 1e6:.1f} of them the way, against {here / 1e6:.1f} ms here ({rates.source})"
    return Decision(device.name if there < here else "cpu", (numbers,))
