"""Every algorithm of devices over small jobs, against the CPU: ``python -m tests.device_cases DEVICE SEED [few|one]``."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pyarrow as pa

from sash.aggregates import named
from sash.algorithms.device import block_scan
from sash.algorithms.device.runner import Limits, device_algorithms, run_on_device, shape_of
from sash.algorithms.device.work import Work
from sash.algorithms.rolling import Job, run
from sash.kernels.opencl.devices import device_named
from tests.own_aggregates import affine, mean

SHAPES = [(1, 1), (7, 1), (8, 8), (16, 4), (64, 16), (65, 16), (50, 7), (10, 25), (90, 3), (33, 32), (200, 1)]
ROWS = 200
block_scan.FEWEST_FOR_LANES = 0  # vectors for small jobs too


def forms():
    """Aggregates with each kind of partial: one field and several, with an inverse and without, in order and not."""
    yield "sum", named("sum")().form(pa.int32(), rows=ROWS), np.int32
    yield "sum", named("sum")().form(pa.int64()), np.int64
    yield "sum", named("sum")().form(pa.float64()), np.float64
    yield "min", named("min")().form(pa.int16()), np.int16
    yield "max", named("max")().form(pa.float32()), np.float32
    yield "count", named("count")().form(), None
    yield "avg", named("avg")().form(pa.int32(), rows=ROWS), np.int32
    yield "var_samp", named("var_samp")().form(pa.float64()), np.float64
    yield "first", named("first")().form(pa.int64()), np.int64
    yield "m4", named("m4")().form(pa.float64()), np.float64
    yield "max_by", named("max_by")().positions(pa.int64()), np.int64
    yield "affine", affine.form(pa.int64()), np.int64
    yield "mean", mean.form(pa.int64()), np.int64


def values_of(kind, rng, rows=ROWS):
    if np.dtype(kind).kind == "f":
        values = (rng.normal(size=rows) * 100).astype(kind)
        values[rng.integers(0, rows, rows // 20)] = np.nan
        return values
    return rng.integers(-90, 90, rows).astype(kind)


def job_of(form, kind, size, every, masked, rng, rows=ROWS):
    columns = [] if kind is None else [values_of(kind, rng, rows)]
    if masked:
        columns.append(np.concatenate([np.packbits(rng.random(rows) < 0.6, bitorder="little"), np.zeros(8, np.uint8)]))
    return Job(form, columns, rows, size, every, masked)


def same(one, other):
    """Whether two outputs are equal, floats up to the last bits."""
    pairs = zip(one.arguments(), other.arguments(), strict=True)
    return all(np.allclose(a, b, rtol=1e-9, equal_nan=True) if a.dtype.kind == "f" else np.array_equal(a, b) for a, b in pairs)


def small(device, **changes):
    """Limits that leave little room, so that every path is taken on small data."""
    usual = Limits.of(device)
    return dataclasses.replace(usual, group=8, local_bytes=1024, units=2, **changes)


def check(device, form, job, name, limits, circular=True):
    """Run a job with one algorithm; returns what is missing, if it cannot."""
    missing = device_algorithms()[name].missing(form, shape_of(form, job.size, job.every, job.masked, device, limits))
    if missing is None:
        wanted = run("blocks" if job.every < job.size else "reduce", job)
        found = run_on_device(device, job, name, None, limits, circular)
        assert same(found, wanted), (form.name, form.inputs, name, job.size, job.every, job.masked, limits, found.values, wanted.values)
    return missing


def one(name, seed):
    """A single job, without vectors, on which Oclgrind's search for uninitialised values crashes."""
    Work.lanes = lambda work: 0
    device, rng = device_named(name), np.random.default_rng(seed)
    known = list(forms())
    _, form, kind = known[seed % len(known)]
    size, every = SHAPES[int(rng.integers(len(SHAPES)))]
    job = job_of(form, kind, size, every, bool(rng.integers(2)), rng)
    for algorithm in rng.permutation(list(device_algorithms())):
        if check(device, form, job, str(algorithm), small(device, by_items=bool(rng.integers(2)))) is None:
            break
    print("1 jobs")


def main(name, seed, *, few=False):
    """Some or all jobs."""
    device = device_named(name)
    rng = np.random.default_rng(seed)
    count = 0
    for _, form, kind in forms():
        for masked in (False, True):
            shapes = [SHAPES[k] for k in rng.choice(len(SHAPES), 2, replace=False)] if few else SHAPES
            for size, every in shapes:
                for by_items in (False, True):
                    job = job_of(form, kind, size, every, masked, rng)
                    for algorithm in device_algorithms():
                        count += check(device, form, job, algorithm, small(device, by_items=by_items), bool(rng.integers(2))) is None
    print(f"{count} jobs")


if __name__ == "__main__":
    if "one" in sys.argv:
        one(sys.argv[1], int(sys.argv[2]))
    else:
        main(sys.argv[1], int(sys.argv[2]), few="few" in sys.argv)
