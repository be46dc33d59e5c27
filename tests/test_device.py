"""Devices: functions generated for them, every algorithm against the CPU, choices, errors, and what Oclgrind says.

``SASH_DEVICES`` names the devices to test (``all``); by default Oclgrind, which is slow and strict, and is the same everywhere.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sash
from sash import functions as S
from sash import windows as W
from sash.aggregates import named, registry
from sash.algorithms import blocks, reduce
from sash.algorithms.device import self_test
from sash.algorithms.device.runner import Limits, device_algorithms, pieces, run_on_device, shape_of
from sash.algorithms.rolling import Job, make_output, run
from sash.cli import app
from sash.errors import BrokenLaw, DeviceFailed, DeviceUnavailable, InvalidArgument, UncompilableFunction, UnknownName, UnlawfulAlgorithm
from sash.kernels import store
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate
from sash.kernels.opencl import programs
from sash.kernels.opencl.device_memory import DeviceMemory
from sash.kernels.opencl.device_module import device_module
from sash.kernels.opencl.devices import Device, devices
from sash.kernels.opencl.measurements import USUAL
from sash.plan.choices import device_choice
from sash.plan.choices.device_choice import DeviceFacts, choose_on_device, worth_the_way
from tests.device_cases import SHAPES, check, forms, job_of, same, small
from tests.own_aggregates import affine, mean

ROOT = Path(__file__).resolve().parent.parent
WANTED = os.environ.get("SASH_DEVICES", "oclgrind")
SEED = os.environ.get("SASH_SEED", "1")
FOUND = {d.name: d for d in devices()}
if WANTED == "all":
    NAMES = [n for n, d in FOUND.items() if self_test.self_test(d) is None]
else:
    NAMES = [n for n in WANTED.split(",") if n in FOUND]
ANY = Device("any", "cpu", "a model", "a platform", "a driver", 2, 1 << 15, 1 << 30, 1 << 28, 256, True, True)
pytestmark = pytest.mark.xdist_group("device")
every_device = pytest.mark.parametrize("name", NAMES)


@pytest.mark.skipif(sys.platform != "linux", reason="the packages with drivers are for Linux")
def test_there_is_a_device():
    assert NAMES, f"none of {WANTED} among {sorted(FOUND)}"


# Generated functions.

TYPES = [pa.bool_(), *(getattr(pa, f"{u}int{b}")() for u in ("", "u") for b in (8, 16, 32, 64)), pa.float32(), pa.float64()]
LAST_BITS = {"geometric_mean": 1e-7, "var_samp": 1e-13, "var_pop": 1e-13, "stddev_samp": 1e-13, "stddev_pop": 1e-13}


def all_forms():
    for name, kind in registry().items():
        aggregate = kind()
        if aggregate.kind != "fields":
            continue
        for t in TYPES if aggregate.arity else TYPES[:1]:
            types = [t] * aggregate.arity
            if aggregate.supports(*types):
                yield name, aggregate.form(*types)
                if aggregate.null_aware_inputs:
                    yield name, aggregate.form(*types, nullable=(True,) * aggregate.arity)


def extremes(machine, count, rng):
    """Random values of a machine type, with its extremes among them."""
    if machine == "bool":
        return rng.integers(0, 2, count).astype(np.uint8)
    if machine.startswith("float"):
        values = rng.normal(size=count).astype(machine)
        for place, value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
            values[place * 7 % count] = value
        return values
    limits = np.iinfo(machine)
    values = rng.integers(limits.min, limits.max, count, dtype=machine, endpoint=True)
    values[::3] = rng.integers(0, 9, len(values[::3]))
    values[:2] = limits.min, limits.max
    return values


def outputs(device, form, function, size, every, masked, columns, windows):
    """The results of one kernel, compiled for the CPU and generated for the device."""
    module = generate(function, form, masked=masked, known_rows=not masked)
    scratch = [np.zeros(size, np.uint8 if m == "bool" else m) for m in module.state] if function is blocks.slide else []
    known = [size] if form.counted and not masked else []
    wanted, found = make_output(form, module, windows), make_output(form, module, windows)
    for output in (wanted, found):
        for a in output.arguments():
            a[:] = 0
    compiled(module)(*columns, 0, windows, size, every, *scratch, *wanted.arguments(), *known)
    kernel = programs.built(device, device_module(module, scratch=("S",) if scratch else (), in_order=not form.commutative))
    with DeviceMemory(device) as memory:
        rows = [memory.copied(c) for c in columns]
        spare = [memory.copied(np.concatenate([s] * 3)) for s in scratch]
        results = [memory.copied(a) for a in found.arguments()]
        kernel(3, [*rows, 0, windows, size, every, *spare, *results, *known, -(-windows // 3), *([size] if scratch else [])])
        memory.finish()
        for a, b in zip(found.arguments(), results, strict=True):
            memory.into(a, b)
    return wanted, found


@every_device
def test_generated_functions_are_the_cpus(name):
    device, rng, count = FOUND[name], np.random.default_rng(3), 60
    seen = 0
    for title, form in [*all_forms(), ("affine", affine.form(pa.int64())), ("mean", mean.form(pa.int32()))]:
        for masked in (False, True):
            bits = np.concatenate([np.packbits(rng.random(count) < 0.7, bitorder="little"), np.zeros(8, np.uint8)])
            columns = [extremes(m, count, rng) for m in form.inputs if m != "position"]
            columns += [bits] * (len(form.null_aware_inputs) + masked)
            for function, size, every in ((reduce.windows, 3, 4), (blocks.slide, 11, 3)):
                wanted, found = outputs(device, form, function, size, every, masked, columns, (count - size) // every + 1)
                for a, b in zip(wanted.arguments(), found.arguments(), strict=True):
                    if title in LAST_BITS or (a.dtype.kind == "f" and function is blocks.slide):  # shares start blocks elsewhere
                        np.testing.assert_allclose(a, b, rtol=LAST_BITS.get(title, 1e-13), atol=1e-15, err_msg=title)
                    else:
                        np.testing.assert_array_equal(a, b, err_msg=f"{title} {form.inputs} {masked} {function.__name__}")
                seen += 1
    assert seen > 500


THIRD = 3
MIX = 0.5


def wrapped(x, by):
    while x >= by:
        x -= by
    return x


@sash.udaf(state=("int64", "float64", "bool", "int32"))
class peculiar:
    """What Python means: floors, shifts, choices between numbers, helpers, constants, loops, math."""

    identity = (0, 0.0, False, 0)

    def lift(v):
        q = (v - 7) // THIRD
        r = (v - 7) % -THIRD
        bits = 0
        for k in range(3):
            bits ^= (v >> k) << (k + 3)
        w = (v and bits) or 5
        while w > 1000:
            w //= 3
        root = math.sqrt(abs(v)) * MIX + math.floor(v / 7)
        return (q * 31 + r + wrapped(abs(v) % 17, 5) + min(v, 3, bits), root if not v < 0 else -root, v % 2 == 0 or v > 40, w % 97)

    def combine(a, b):
        total = (a[0] * 3 + b[0]) & 0xFFFF
        low, high = (a[1], b[1]) if a[1] < b[1] else (b[1], a[1])
        return (total, max(low, high) if a[2] else low, a[2] != b[2], b[3] if b[3] > a[3] else a[3])

    def lower(s):
        return s[0] * 1.5 + s[1] + s[3] if s[2] else -s[1]


@every_device
@given(values=st.lists(st.integers(-1000, 1000), min_size=4, max_size=20))
def test_python_s_meaning_is_kept(name, values):
    form = dataclasses.replace(peculiar.form(pa.int64()), outputs=("float64",))
    wanted, found = outputs(FOUND[name], form, reduce.windows, 3, 2, False, [np.array(values)], (len(values) - 3) // 2 + 1)
    np.testing.assert_allclose(wanted.values[0], found.values[0], rtol=1e-12)
    expected = []
    for j in range((len(values) - 3) // 2 + 1):
        s = peculiar.lift(values[2 * j])
        for v in values[2 * j + 1 : 2 * j + 3]:
            s = peculiar.combine(s, peculiar.lift(v))
        expected.append(peculiar.lower(s))
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-12)


def raises(v):
    if v < 0:
        raise ValueError("negative")
    return (v,)


def counts(v):
    return (len(str(v)),)


def slices(a, b):
    return a[:1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lift": raises}, r"in raises \(test_device.py, line \d+\), `raise .*`: devices cannot run functions that raise an error"),
        ({"lift": counts}, r"in counts \(test_device.py, line \d+\), `return .*`: devices cannot run calls of"),
        ({"combine": slices}, r"in slices \(test_device.py, line \d+\)"),
    ],
)
def test_what_cannot_be_generated_is_refused_with_function_and_line(change, message):
    form = dataclasses.replace(mean.form(pa.int64()), state=("int64",), identity=(0,), **change)
    form = dataclasses.replace(form, lower=first_field) if "combine" not in change else form
    module = generate(reduce.windows, form, known_rows=True)
    with pytest.raises(UncompilableFunction, match=message):
        device_module(module)


def first_field(s):
    return s[0]


# Algorithms.


@every_device
@pytest.mark.parametrize("algorithm", device_algorithms())
@pytest.mark.parametrize("by_items", [False, True])
@given(data=st.data())
def test_algorithms(name, algorithm, by_items, data):
    device = FOUND[name]
    _, form, kind = data.draw(st.sampled_from(list(forms())), "aggregate")
    size, every = data.draw(st.one_of(st.sampled_from(SHAPES), st.tuples(st.integers(1, 120), st.integers(1, 40))), "windows")
    masked = data.draw(st.booleans(), "masked")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rows = data.draw(st.integers(size, 260), "rows")
    limits = small(device, by_items=by_items)
    limits = dataclasses.replace(limits, group=data.draw(st.sampled_from([2, 8, 32]), "group"))
    check(device, form, job_of(form, kind, size, every, masked, rng, rows), algorithm, limits, data.draw(st.booleans(), "circular"))


@every_device
def test_arrays_larger_than_memory_go_in_pieces(name):
    device, rng = FOUND[name], np.random.default_rng(5)
    for _, form, kind in forms():
        for size, every, masked in ((50, 7, True), (64, 16, False), (10, 25, True)):
            job = job_of(form, kind, size, every, masked, rng, 6000)
            limits = small(device, by_items=True)
            limits = dataclasses.replace(limits, memory_bytes=16_000)
            parts = list(pieces(job, limits.memory_bytes, device))
            assert len(parts) > 2
            assert sum(count for _, count in parts) == job.windows
            wanted = run("blocks" if every < size else "reduce", job)
            assert same(run_on_device(device, job, "block_scan", None, limits), wanted), (form.name, size, every)


@every_device
def test_one_window_that_does_not_fit_is_refused(name):
    device, rng = FOUND[name], np.random.default_rng(5)
    _, form, kind = next(forms())
    job = job_of(form, kind, 1000, 1, False, rng, 2000)
    limits = dataclasses.replace(small(device), memory_bytes=2_000)
    with pytest.raises(
        DeviceUnavailable, match=r"one window of 1,000 rows needs about [\d,]+ bytes on .*, which has 2,000 to spare; use the CPU"
    ):
        run_on_device(device, job, "block_scan", None, limits)


def test_cards():
    for name, algorithm in device_algorithms().items():
        page = ROOT / "docs" / "algorithms" / f"{name}.md"
        text = page.read_text()
        for said in (algorithm.card.title, algorithm.card.paper, algorithm.card.work, algorithm.card.memory):
            assert said in text, (name, said)


# Choices.

GROUPS = Limits(128, 48 << 10, False, 80, 1 << 30)
ITEMS = Limits(128, 256 << 10, True, 2, 1 << 30)
EXPLAINED = {
    "windows_lie_apart": (GROUPS, "min", 10, 10),
    "short_slides_with_inverse": (ITEMS, "sum", 100, 2),
    "slices_with_inverse": (ITEMS, "sum", 4096, 64),
    "on_a_cpu": (ITEMS, "min", 4096, 64),
    "large_fan_out_with_inverse": (GROUPS, "sum", 1 << 20, 16),
    "within_shared_memory": (GROUPS, "min", 4096, 64),
    "larger_windows_with_inverse": (dataclasses.replace(GROUPS, local_bytes=4096), "sum", 1 << 16, 16),
    "anything_else": (GROUPS, "max_by", 1 << 16, 16),
}


def test_each_rule_has_its_explanation():
    """``SASH_GOLDEN=write`` after a change of words, and read the difference."""
    device = dataclasses.replace(ANY, kind="gpu", name="gpu", model="a GPU", platform="of nobody")
    lines = []
    assert list(EXPLAINED) == [r.__name__ for r in device_choice.RULES]
    for rule, (limits, aggregate, size, every) in EXPLAINED.items():
        chosen = named(aggregate)()
        form = chosen.positions(pa.int64()) if aggregate == "max_by" else chosen.form(pa.int32(), rows=size)
        facts = DeviceFacts(shape_of(form, size, every, False, device, limits), USUAL["cpu" if limits.by_items else "gpu"])
        decision = choose_on_device(form, facts)
        assert decision == getattr(device_choice, rule)(form, facts)
        lines += [f"{rule}: {aggregate} over {size} rows, every {every}: {decision.choice}", *(f"  {r}" for r in decision.reasons)]
    golden = ROOT / "tests" / "golden" / "device_choices.txt"
    if os.environ.get("SASH_GOLDEN") == "write":
        golden.write_text("\n".join(lines) + "\n")
    assert golden.read_text() == "\n".join(lines) + "\n"


def test_a_gpu_has_to_be_worth_the_way():
    some = ANY
    assert worth_the_way(dataclasses.replace(some, kind="cpu"), 10**9, 10**9, 10**9, 1.0).choice == "cpu"
    gpu = dataclasses.replace(some, kind="gpu", name="mine", driver="unmeasured")
    assert worth_the_way(gpu, 1000, 4000, 4000, 1.0).choice == "cpu"
    assert worth_the_way(gpu, 10**8, 4 * 10**8, 10**6, 1.0).choice == "mine"
    assert worth_the_way(gpu, 10**8, 4 * 10**8, 8 * 10**8, 0.05).choice == "cpu"


@every_device
def test_rolling(name):
    values = np.random.default_rng(1).integers(-99, 99, 300)
    for arguments in ({"agg": "min"}, {"agg": "sum", "every": 3}, {"agg": "avg"}, {"agg": affine}, {"agg": "max_by"}, {"agg": S.m4()}):
        np.testing.assert_array_equal(
            sash.rolling(values, 20, device=name, **arguments), sash.rolling(values, 20, device="cpu", **arguments)
        )
    nulls = pa.array([None if v < 0 else v / 2 for v in values.tolist()])
    for agg in ("sum", "first", "count", "var_samp", "product"):
        here, there = (sash.rolling(nulls, 3, agg=agg, device=d).to_pylist() for d in ("cpu", name))
        assert [None if v is None else round(v, 9) for v in here] == [None if v is None else round(v, 9) for v in there]
    series = sash.rolling(pl.Series("x", [1, None, 3, 4]), 2, agg="max", device=name)
    assert series.to_list() == [1, 3, 4]
    out = np.empty(281, np.int64)
    assert sash.rolling(values, 20, agg="max", device=name, out=out) is out
    np.testing.assert_array_equal(out, sash.rolling(values, 20, agg="max"))
    assert len(sash.rolling(values[:5], 20, device=name)) == 0
    with pytest.raises(sash.errors.IntegerOverflow):
        sash.rolling(np.full(40, 2**62), 20, agg="sum", device=name)
    assert not list(sash.rolling(np.array([1, 2]), 5, agg="min", device=name))


REQUESTS = {
    "sliding": W.sliding(50, every=7),
    "tumbling": W.tumbling(20),
    "sessions": W.session(3),
    "rows": W.rows(5, every=2),
    "last rows": W.last_rows(4, every=30),
    "nested": {"all": W.unbounded(), "wide": W.sliding(200, every=1), "narrow": W.band(10, 30)},
}
AGGS = [S.sum("v"), S.avg("v"), S.max_by("s", "x"), S.first("v"), S.count(), S.var_samp("x"), S.min("s").where("v > 0"), affine("i")]


@every_device
@pytest.mark.parametrize("name_of_request", REQUESTS)
@pytest.mark.parametrize("by", [None, "k"])
@given(seed=st.integers(0, 99), rows=st.integers(0, 150))
@settings(max_examples=5)
def test_tables(name, name_of_request, by, seed, rows):
    rng = np.random.default_rng(seed)
    values = [None if v < -70 else int(v) for v in rng.integers(-99, 99, rows)]
    texts = [f"{n % 7}" for n in range(rows)]
    columns = {
        "t": rng.integers(0, 300, rows),
        "k": rng.integers(0, 4, rows),
        "v": pa.array(values, pa.int64()),
        "i": rng.integers(0, 99, rows),
    }
    table = pa.table({**columns, "x": rng.normal(size=rows), "s": pa.array(texts, pa.string())})
    request = {"windows": REQUESTS[name_of_request], "aggs": AGGS, "by": by, "time": "t", "order_by": "x"}
    here, there = (sash.aggregate(table, device=d, **request) for d in ("cpu", name))
    assert here.schema == there.schema
    for one, other in zip(here.columns, there.columns, strict=True):
        if pa.types.is_floating(one.type):
            np.testing.assert_allclose(one.to_numpy(), other.to_numpy(), rtol=1e-9, atol=1e-12)
        else:
            assert one.equals(other)


@every_device
def test_tables_explained_and_refused(name, monkeypatch):
    table = pa.table({"t": [1, 2, 5, 12], "v": [3, 4, 5, 6]})
    request = {"windows": W.sliding(10, every=5), "aggs": [S.max("v")], "time": "t"}
    lines = str(sash.explain(table, device=name, **request))
    assert f"device: {FOUND[name].title}" in lines
    assert "slices: sort" in lines
    with pytest.raises(DeviceUnavailable, match="median keeps runs, and devices run aggregates of flat fields"):
        sash.aggregate(table, windows=W.tumbling(5), aggs=[S.median("v")], time="t", device=name)
    with pytest.raises(UnknownName, match="unknown device"):
        sash.aggregate(table, device="nobody", **request)


@every_device
def test_explain_names_the_kernels_that_run(name, monkeypatch):
    titles = []
    call = programs.DeviceKernel.__call__
    monkeypatch.setattr(programs.DeviceKernel, "__call__", lambda k, *a: titles.append(k.module.title) or call(k, *a))
    values = np.arange(400)
    for arguments in (
        {"agg": "min", "every": 8},
        {"agg": "sum"},
        {"agg": affine, "every": 3},
        *({"agg": "sum", "every": 4, "algorithm": a} for a in ("block_scan", "reduced_prefix", "coop_opt")),
    ):
        plan = sash.explain(values, 64, device=name, source=True, **arguments)
        titles.clear()
        sash.rolling(values, 64, device=name, **arguments)
        named_kernels = [line.partition("kernel: ")[2].rpartition(", groups of")[0] for line in plan.lines if "  kernel: " in line]
        assert titles == named_kernels
        assert all("__kernel" in text for text in plan.sources)


# What goes wrong.


def test_devices_that_do_not_exist():
    values = np.arange(10)
    with pytest.raises(UnknownName, match="unknown device 'oclgrnd': did you mean 'oclgrind'"):
        sash.rolling(values, 3, device="oclgrnd")
    with pytest.raises(InvalidArgument, match="device must be a name, not 3"):
        sash.rolling(values, 3, device=3)


@every_device
def test_what_a_device_does_not_do(name):
    values = np.arange(100)
    with pytest.raises(DeviceUnavailable, match="median keeps runs, and devices run aggregates of flat fields; use device='cpu'"):
        sash.rolling(values, 3, agg="median", device=name)
    with pytest.raises(UnlawfulAlgorithm, match="direct_prefix needs an exact inverse, which max over int64 has not"):
        sash.rolling(values, 3, agg="max", device=name, algorithm="direct_prefix")
    with pytest.raises(UnlawfulAlgorithm, match="gbl needs a partial of one field; that of sum has 2: int64, int64"):
        sash.rolling(values, 3, agg="sum", device=name, algorithm="gbl")
    with pytest.raises(UnlawfulAlgorithm, match="gbl needs an aggregate that is commutative"):
        sash.rolling(values, 3, agg="first", device=name, algorithm="gbl")
    with pytest.raises(UnlawfulAlgorithm, match=r"sh needs|a row's"):
        sash.rolling(np.arange(100_000, dtype=np.int32), 90_000, agg="min", device=name, algorithm="sh")
    with pytest.raises(UnknownName, match="unknown algorithm of devices 'blocks'"):
        sash.rolling(values, 3, device=name, algorithm="blocks")


def test_the_command_lists_devices():
    result = CliRunner().invoke(app, ["devices"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in NAMES)
    assert "self-test" in result.stdout


@every_device
def test_a_device_without_doubles(name):
    device = dataclasses.replace(FOUND[name], has_doubles=False)
    form = named("sum")().form(pa.float64())
    with pytest.raises(DeviceUnavailable, match="sum over float64 needs double floats, which .* has not; use the CPU"):
        run_on_device(device, Job(form, [np.zeros(9)], 9, 3, 1, False), "block_scan")


@every_device
def test_a_driver_that_fails_writes_nothing(name, monkeypatch):
    out = np.full(91, 7)
    calls = []

    def failing(memory):
        calls.append(memory)
        raise DeviceFailed("a kernel failed: out of resources")

    monkeypatch.setattr(DeviceMemory, "finish", failing)
    with pytest.raises(DeviceFailed, match="out of resources"):
        sash.rolling(np.arange(100), 10, agg="min", device=name, out=out)
    assert calls
    assert (out == 7).all()
    monkeypatch.undo()
    np.testing.assert_array_equal(sash.rolling(np.arange(100), 10, agg="min", out=out), np.arange(91))


@every_device
def test_a_device_that_lies_is_not_used(name, monkeypatch, tmp_path):
    monkeypatch.setenv("SASH_CACHE", str(tmp_path))
    monkeypatch.setattr(self_test, "_results", {})
    right = self_test.run_on_device

    def wrong(*arguments, **more):
        output = right(*arguments, **more)
        output.values[0][3] += 1
        return output

    monkeypatch.setattr(self_test, "run_on_device", wrong)
    assert "gave other results than the CPU" in self_test.self_test(FOUND[name])
    monkeypatch.setattr(self_test, "run_on_device", right)
    with pytest.raises(DeviceUnavailable, match="is not used, because it failed its self-test: .* gave other results than the CPU"):
        sash.rolling(np.arange(10), 3, device=name)  # the result is kept
    assert "gave other results" in {d.name: d.self_test for d in sash.devices()}[name]


def test_laws_are_checked_before_anything_is_built():
    @sash.udaf(state=("int64",))
    class wrong:
        identity = (0,)

        def lift(v):
            return (v,)

        def combine(a, b):
            return (a[0] - b[0],)

        def lower(s):
            return s[0]

    with pytest.raises(BrokenLaw):
        sash.rolling(np.arange(10), 3, agg=wrong, device=NAMES[0] if NAMES else "cpu")


# Programs on disk.


def test_programs_are_stored_and_damaged_ones_built_again(monkeypatch, tmp_path):
    fast = [d for n, d in FOUND.items() if d.kind == "cpu" and self_test.self_test(d) is None]
    if not fast:
        pytest.skip("Oclgrind's programs are not stored, and there is no other device")
    device = fast[0]
    monkeypatch.setenv("SASH_CACHE", str(tmp_path))
    programs.forget()
    form = named("min")().form(pa.int32(), rows=100)
    module = device_module(generate(reduce.windows, form, known_rows=True))
    assert not programs.is_built(device, module)
    programs.built(device, module)
    (path,) = tmp_path.glob("*.program")
    programs.forget()
    texts = []
    build = programs._from_text
    monkeypatch.setattr(programs, "_from_text", lambda *a: texts.append(a) or build(*a))
    assert programs.is_built(device, module)
    programs.built(device, module)
    assert not texts  # from disk
    path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
    programs.forget()
    programs.built(device, module)
    assert len(texts) == 1  # the digest does not fit: built again
    store.put(path.name, b"no program at all")
    programs.forget()
    programs.built(device, module)
    assert len(texts) == 2  # the driver does not take it: built again
    programs.forget()


# Oclgrind.

FINDINGS = re.compile(r"data race|[Ii]nvalid (read|write)|[Uu]ninitialized|divergence|Out of bounds")


def under_oclgrind(check, *words):
    """What Oclgrind says while cases run."""
    command = [sys.executable, "-m", "tests.device_cases", "oclgrind", *words]
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, check: "1"}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return int(ran.stdout.split()[0]), [line for line in ran.stderr.splitlines() if FINDINGS.search(line)]


@pytest.mark.skipif("oclgrind" not in FOUND, reason="there is no Oclgrind")
def test_oclgrind_finds_no_race_and_no_access_out_of_bounds():
    jobs, found = under_oclgrind("OCLGRIND_DATA_RACES", SEED, *([] if WANTED == "all" else ["few"]))
    assert jobs > 200
    assert not found, found[:5]


@pytest.mark.skipif("oclgrind" not in FOUND, reason="there is no Oclgrind")
@pytest.mark.parametrize("number", range(200 if WANTED == "all" else 13))
def test_oclgrind_finds_nothing_uninitialised(number):
    """A process for each job: where memory is used again, Oclgrind takes it for what it was before."""
    _, found = under_oclgrind("OCLGRIND_UNINITIALIZED", str(int(SEED) * 1000 + number), "one")
    assert not found, found[:5]
