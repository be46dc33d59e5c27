"""Kernels: the generated text, the compiler's errors, the cache on disk, and every kernel over many keys' data at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.aggregates import named
from sash.algorithms import blocks, flat_fat, reduce, running
from sash.algorithms.rolling import make_output
from sash.errors import RefusedCache, UncompilableFunction, UserFunctionFailed
from sash.kernels import sources, store
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import WORDS, generate, interpret, vector_reason, vector_width
from sash.kernels.vocabulary import Index, Results, Rows, emit, lift
from sash.types import dtype
from tests.own_aggregates import affine, affine_of

AFFINE = affine.form(pa.int64())


# Kernels over slices and ranges, many keys at once.

segments = st.lists(st.lists(st.integers(-50, 50), max_size=40), min_size=1, max_size=6)


def flattened(parts):
    return np.array([v for p in parts for v in p], np.int64), np.cumsum([0, *map(len, parts)])


@given(parts=segments)
def test_segmented_reduction_keeps_order(parts):
    rows, offsets = flattened(parts)
    module = generate(reduce.segments, AFFINE)
    state = [np.zeros(len(parts), dtype(m)) for m in module.state]
    compiled(module)(rows, offsets, 0, len(parts), *state)
    assert [int(a * 1009 + b) for a, b in zip(*state, strict=True)] == [affine_of(p) for p in parts]


@given(parts=segments, data=st.data())
def test_segmented_reduction_in_lanes(parts, data):
    rows, offsets = flattened(parts)
    form = named("sum")().form(pa.int64())
    masked = data.draw(st.booleans())
    module = generate(reduce.segments_in_lanes, form, masked=masked, lanes=vector_width(form))
    state = [np.zeros(len(parts), dtype(m)) for m in module.state]
    flags = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
    bits = [np.concatenate([np.packbits(flags, bitorder="little"), np.zeros(8, np.uint8)])] if masked else []
    compiled(module)(rows, *bits, offsets, 0, len(parts), *state)
    kept = np.where(flags, rows, 0) if masked else rows
    expected = [int(kept[a:b].sum()) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    assert [(int(h) << 62) + int(low) for h, low in zip(*state, strict=True)] == expected


def monotone_ranges(draw, offsets):
    """Ranges of several keys, one after the other; within a key their ends only advance."""
    lo, hi = [], []
    for a, b in zip(offsets[:-1], offsets[1:], strict=True):
        ends = sorted(draw(st.lists(st.integers(a, b), max_size=12)))
        starts = sorted(draw(st.lists(st.integers(a, b), min_size=len(ends), max_size=len(ends))))
        for s, e in zip(starts, ends, strict=True):
            if s < e:
                lo.append(s)
                hi.append(e)
    return np.array(lo, np.int64), np.array(hi, np.int64)


@given(parts=segments, data=st.data())
def test_ranges_whose_ends_advance(parts, data):
    rows, offsets = flattened(parts)
    lo, hi = monotone_ranges(data.draw, offsets.tolist())
    module = generate(blocks.ranges, AFFINE)
    output = make_output(AFFINE, module, len(lo))
    scratch = [np.zeros(max(1, len(rows)), dtype(m)) for m in module.state]
    compiled(module)(rows, lo, hi, 0, len(lo), *scratch, *output.arguments())
    assert output.values[0].tolist() == [affine_of(rows[a:b].tolist()) for a, b in zip(lo, hi, strict=True)]


@given(rows=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=40), data=st.data())
def test_prefix_differences(rows, data):
    form = named("sum")().form(pa.int64())
    pairs = data.draw(st.lists(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows))), max_size=10))
    pairs = [(min(p), max(p)) for p in pairs if -(2**63) <= sum(rows[min(p) : max(p)]) < 2**63]
    prefixes = generate(running.prefixes, form)
    state = [np.zeros(len(rows) + 1, dtype(m)) for m in prefixes.state]
    compiled(prefixes)(np.array(rows), len(rows), *state)
    differences = generate(running.differences, form)
    output = make_output(form, differences, len(pairs))
    lo, hi = (np.array([p[k] for p in pairs], np.int64) for k in (0, 1))
    compiled(differences)(*state, lo, hi, 0, len(pairs), *output.arguments())
    assert output.values[0].tolist() == [sum(rows[a:b]) for a, b in pairs]
    assert output.misfit is not None
    assert not output.misfit[0]


@given(rows=st.lists(st.integers(-50, 50), min_size=1, max_size=40), data=st.data())
def test_ranges_of_any_shape(rows, data):
    """FlatFAT over the rows, asked in any order."""
    n = 1 << max(0, len(rows) - 1).bit_length()
    pairs = data.draw(st.lists(st.tuples(st.integers(0, len(rows) - 1), st.integers(0, len(rows) - 1)), max_size=10))
    lo, hi = (np.array([sorted(p)[k] for p in pairs], np.int64) for k in (0, 1))
    fill = generate(flat_fat.fill, AFFINE)
    tree = [np.zeros(2 * n, dtype(m)) for m in fill.state]
    compiled(fill)(np.array(rows), len(rows), *tree, n)
    ask = generate(flat_fat.ranges, AFFINE)
    output = make_output(AFFINE, ask, len(pairs))
    compiled(ask)(*tree, n, lo, hi + 1, 0, len(pairs), *output.arguments())
    assert output.values[0].tolist() == [affine_of(rows[a : b + 1]) for a, b in zip(lo, hi, strict=True)]


# Lanes.

SIZES = [1, 5, 31, 32, 33, 64, 100, 511, 512, 513, 1000, 1024, 4096, 4099, 9000]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("min", "int32"),
        ("max", "float64"),
        ("sum", "float64"),
        ("avg", "int32"),
        ("max_by", "float64"),
        ("var_samp", "float64"),
        ("first", "int16"),
    ],
)
def test_lanes_agree_with_single_values(name, kind):
    rng = np.random.default_rng(7)
    x = rng.integers(-1000, 1000, 40_000).astype(kind)
    if kind == "float64":
        x[rng.integers(0, len(x), 30)] = np.nan
    for size in SIZES:
        lanes = sash.rolling(x, size, agg=name, algorithm="lanes")
        plain = sash.rolling(x, size, agg=name, algorithm="blocks")
        np.testing.assert_allclose(lanes, plain, rtol=1e-9, equal_nan=True, err_msg=f"{size}")
        unaligned = np.empty(len(lanes) + 1, lanes.dtype)[1:]
        again = sash.rolling(x, size, agg=name, algorithm="lanes", out=unaligned)
        np.testing.assert_allclose(again, lanes, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(("name", "kind"), [("sum", "int16"), ("sum", "int64"), ("avg", "int32"), ("count", "float64"), ("avg", "int64")])
def test_tiles_agree_with_single_values(name, kind):
    rng = np.random.default_rng(9)
    x = rng.integers(-(2**15), 2**15, 70_003).astype(kind) * (2**30 if kind == "int64" else 1)
    for values in (x, pa.array(x, mask=rng.random(len(x)) < 0.3)):
        for size in (1, 7, 1000, 5000, 69_000, 69_999, 70_003):
            plain = sash.rolling(values, size, agg=name, algorithm="running")
            tiles = sash.rolling(values, size, agg=name, algorithm="tiles")
            np.testing.assert_array_equal(np.asarray(tiles), np.asarray(plain), err_msg=f"{size}")
    unaligned = np.empty(len(x) - 4999 + 1, sash.rolling(x[:10], 2, agg=name).dtype)[1:]
    np.testing.assert_array_equal(
        sash.rolling(x, 5000, agg=name, algorithm="tiles", out=unaligned), sash.rolling(x, 5000, agg=name, algorithm="running")
    )


def test_averages_with_nulls_of_extreme_narrow_integers():
    """Sum and count share a field for short windows; both ends of the type, and windows on either side of the limit."""
    rng = np.random.default_rng(12)
    values = rng.choice(np.array([-(2**31), 2**31 - 1, 0, -1], np.int32), 80_000)
    valid = rng.random(len(values)) < 0.7
    holes = pa.array(values, mask=~valid)
    sums = np.concatenate([[0], np.cumsum(np.where(valid, values, 0).astype(np.int64))])
    counts = np.concatenate([[0], np.cumsum(valid)])
    for size in (1, 3, 1000, 32767, 32768):
        expected = (sums[size:] - sums[:-size]) / np.maximum(counts[size:] - counts[:-size], 1)
        for algorithm in ("lanes", "running", "tiles"):
            ours = sash.rolling(holes, size, agg="avg", algorithm=algorithm)
            held = np.flatnonzero(counts[size:] > counts[:-size])
            assert ours.null_count == len(ours) - len(held)
            np.testing.assert_array_equal(ours.to_numpy(zero_copy_only=False)[held], expected[held])


@pytest.mark.parametrize("name", ["min", "sum", "avg", "count", "last", "max_count"])
def test_lanes_with_nulls(name):
    rng = np.random.default_rng(8)
    values = pa.array(rng.integers(-1000, 1000, 20_000).astype(np.int32), mask=rng.random(20_000) < 0.4)
    holes = pa.concat_arrays([values, pa.nulls(1500, pa.int32()), values.slice(3)])
    for part in (holes, holes.slice(5), holes.slice(64, 39_000)):  # bitmaps that begin at, and end within, any place of a word
        for size in (5, 40, 1000, 5000):
            assert sash.rolling(part, size, agg=name, algorithm="lanes") == sash.rolling(part, size, agg=name, algorithm="blocks")


def test_lanes_keep_order():
    x = np.random.default_rng(9).integers(0, 1000, 20_000)
    for size in (10, 64, 700, 5000):
        lanes = sash.rolling(x, size, agg=affine, algorithm="lanes")
        np.testing.assert_array_equal(lanes, sash.rolling(x, size, agg=affine, algorithm="blocks"))


def test_slices_in_lanes():
    x = np.random.default_rng(10).integers(-1000, 1000, 50_000).astype(np.int32)
    for name in ("min", "sum", "avg", "var_pop"):
        for size, every in ((1024, 16), (1024, 64), (96, 48), (90, 9), (1024, 1024), (64, 100)):
            expected = sash.rolling(x, size, every=every, agg=name, algorithm="two_stacks")
            np.testing.assert_allclose(sash.rolling(x, size, every=every, agg=name), expected, rtol=1e-9)


def test_threads_agree(monkeypatch):
    x = np.random.default_rng(11).normal(size=1_200_000)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SASH_THREADS", threads)
        results = [sash.rolling(x, 1000, every=every, agg=name) for every, name in ((1, "max"), (7, "min"), (1000, "max"), (1, "median"))]
        if threads == "1":
            first = results
        for a, b in zip(first, results, strict=True):
            np.testing.assert_array_equal(a, b)


# The generator.


def total(X: Rows, count: int, out: Index, R: Results) -> int:
    out[0] = count
    for i in range(count):
        emit(R, i, lift(X, i))
    return 7


def test_interpreted_and_compiled_agree():
    form = named("avg")().form(pa.int64())
    module = generate(total, form)
    for call in (compiled(module), interpret(module)):
        out, result = np.zeros(1, np.int64), np.zeros(3)
        assert call(np.array([5, -(2**63), 7]), 3, out, result) == 7
        assert (out.tolist(), result.tolist()) == ([3], [5.0, -(2.0**63), 7.0])


def test_the_text_reads_like_code():
    text = str(sash.explain(np.zeros(9), 3, agg="max", source=True))
    assert "def slide_by_one(X, begin, end, size, S, R):" in text
    assert "return (larger(a[0], b[0]),)" in text
    compile(text[text.index("# blocks") :], "text", "exec")


def branchy(a, b):
    if a[0] < b[0]:
        best = a[0]
    elif not a[0] > 5 and b[0] > 2:
        return (b[0] + 1,)
    else:
        best = b[0]
    return (best,)


def test_branches_become_choices():
    source = sources.branch_free(sources.read(branchy, "f"), "f")
    assert "if" not in source.text.replace("def f", "")
    names: dict = {"where": lambda m, a, b: a if m else b, "both": lambda a, b: a and b, "negate": lambda a: not a}
    exec(source.text, names)
    for a in range(8):
        for b in range(8):
            assert names["f"]((a,), (b,)) == branchy((a,), (b,))


def test_loops_have_no_vector_form():
    @sash.udaf(state=("float64",))
    class powers:
        identity = (0.0,)
        commutative = True

        def lift(v):
            for _ in range(2):
                v = v * 0.5
            return (v,)

        def combine(a, b):
            return (a[0] + b[0],)

        def lower(s):
            return s[0]

    assert "lift has no branch-free form" in (vector_reason(powers.form(pa.float64())) or "")
    np.testing.assert_array_equal(sash.rolling(np.full(5, 4.0), 2, agg=powers), [2.0] * 4)


def make(**changes):
    members = {
        "identity": (0.0,),
        "lift": lambda v: (v,),
        "combine": lambda a, b: (a[0] + b[0],),
        "lower": lambda s: s[0],
    }
    return sash.udaf(state=("float64",))(type("own", (), {**members, **changes}))


def uses_a_set(s):
    return len({s[0], 1.0}) + open


def test_what_numba_cannot_compile_is_named():
    def lift(v):
        return (v,)

    def combine(a, b):
        return (a[0] + b[0],)

    def lower(s):
        return str(s[0]).nothing()

    own = make(lift=lift, combine=combine, lower=lower)
    with pytest.raises(
        UncompilableFunction, match=r"lower \(test_kernels.py, line \d+\), `return str\(s\[0\]\).nothing\(\)`: numba cannot"
    ):
        sash.rolling(np.zeros(5), 2, agg=own)
    with pytest.raises(UncompilableFunction, match="not as a lambda"):
        sash.rolling(np.zeros(5), 2, agg=make())
    own = make(lift=lift, combine=combine, lower=uses_a_set)
    with pytest.raises(UncompilableFunction, match=r"uses_a_set \(test_kernels.py, line \d+\)"):
        sash.rolling(np.zeros(5), 2, agg=own)


def test_functions_may_have_positional_only_parameters():
    def lift(v, /):
        return (v,)

    def combine(a, b, /):
        return (a[0] + b[0],)

    def lower(s, /):
        return s[0]

    assert sash.rolling(np.arange(5), 2, agg=make(lift=lift, combine=combine, lower=lower)).tolist() == [1, 3, 5, 7]


def test_a_function_that_fails_while_it_runs_is_not_called_uncompilable():
    def lift(v):
        if v == 3:
            raise ValueError("three")
        return (v,)

    def combine(a, b):
        return (a[0] + b[0],)

    def lower(s):
        return s[0]

    own = make(lift=lift, combine=combine, lower=lower)
    assert sash.rolling(np.arange(3), 2, agg=own).tolist() == [1, 3]
    with pytest.raises(UserFunctionFailed, match="own.*raised an error while it ran"):
        sash.rolling(np.arange(5), 2, agg=own)


def scaled(x, k=3):
    return x * k


def test_what_functions_may_use():
    from math import sqrt as root

    @sash.udaf(state=("float64",))
    class odd:
        identity = (0.0,)
        commutative = True

        def lift(v):
            return (scaled(root(v)) + (v or 7.0),)

        def combine(a, b):
            return (a[0] + b[0],)

        def lower(s):  # noqa: RET503 - falling off the end is what is tested
            if s[0] > 10:
                return s[0]

    x = np.arange(40_000.0) % 9
    expected = [3 * v**0.5 + (v or 7.0) for v in x.tolist()]
    plain = [a + b if a + b > 10 else np.nan for a, b in zip(expected[:-1], expected[1:], strict=True)]
    for algorithm in ("lanes", "blocks"):
        np.testing.assert_allclose(sash.rolling(x, 2, agg=odd, algorithm=algorithm), plain)


def test_numpy_has_no_null_for_integers():
    @sash.udaf(state=("int64",))
    class even:
        identity = (0,)

        def lift(v):
            return (v,)

        def combine(a, b):
            return (a[0] + b[0],)

        def lower(s):
            if s[0] % 2 == 1:
                return None
            return s[0]

    assert sash.rolling([1, 2, 4], 2, agg=even).to_pylist() == [None, 6]
    with pytest.raises(sash.errors.InvalidArgument, match="may return None"):
        sash.rolling(np.arange(4), 2, agg=even)


# The cache on disk.

SCRIPT = """
import sys, numpy as np, sash
from sash.kernels.cpu import compiler
result = sash.rolling(np.arange(1000.0), 10, agg="{agg}")
print(float(result.sum()), compiler.compile_seconds() > 0, "numba" in sys.modules)
"""


def run_process(folder, agg="max"):
    environment = {**os.environ, "SASH_CACHE": str(folder)}
    return subprocess.Popen([sys.executable, "-c", SCRIPT.format(agg=agg)], env=environment, stdout=subprocess.PIPE, text=True)


def output_of(process):
    out, _ = process.communicate()
    assert process.returncode == 0
    total, was_compiled, has_numba = out.split()
    return float(total), was_compiled == "True", has_numba == "True"


EXPECTED = float(np.arange(9.0, 1000.0).sum())


def test_several_processes_on_an_empty_cache(tmp_path):
    processes = [run_process(tmp_path) for _ in range(4)]
    outputs = [output_of(p) for p in processes]
    assert {total for total, _, _ in outputs} == {EXPECTED}
    assert sum(was_compiled for _, was_compiled, _ in outputs) == 1  # one made it, the others waited


def test_a_warm_kernel_needs_no_numba(tmp_path):
    assert output_of(run_process(tmp_path)) == (EXPECTED, True, True)
    assert output_of(run_process(tmp_path)) == (EXPECTED, False, False)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_made_again(tmp_path, damage):
    output_of(run_process(tmp_path))
    (file,) = tmp_path.glob("*.kernel")
    data = bytearray(file.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[len(data) // 2] ^= 0xFF
    else:
        data = bytearray()
    file.write_bytes(bytes(data))
    assert output_of(run_process(tmp_path)) == (EXPECTED, True, True)
    assert output_of(run_process(tmp_path)) == (EXPECTED, False, False)


def test_a_cache_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert output_of(run_process(blocked / "cache")) == (EXPECTED, True, True)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere; the case above stands in for it")
def test_a_read_only_cache(tmp_path):
    output_of(run_process(tmp_path))
    tmp_path.chmod(0o500)
    assert output_of(run_process(tmp_path)) == (EXPECTED, False, False)
    assert output_of(run_process(tmp_path, "min"))[1]


def test_the_store_refuses_what_it_did_not_write(tmp_path, monkeypatch):
    monkeypatch.setenv("SASH_CACHE", str(tmp_path))
    assert store.put("a", b"body")
    assert store.get("a") == b"body"
    (tmp_path / "b").write_bytes(b"something else")
    assert store.get("b") is None
    assert not (tmp_path / "b").exists()
    assert store.get("c") is None


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    monkeypatch.setenv("SASH_CACHE", str(folder))
    assert store.put("a", b"body")
    assert store.put("b", b"other")
    return folder


posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX")


@posix
def test_what_is_stored_is_private(cache):
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in cache.iterdir()} == {0o600}


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_not_loaded(cache, mode):
    (cache / "a").chmod(mode)
    assert store.get("a") is None
    assert not store.has("a")
    assert store.put("a", b"body")  # it is made again
    assert store.get("a") == b"body"


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused_with_the_reason(cache, mode):
    cache.chmod(mode)
    with pytest.raises(RefusedCache, match="native code and others can write to it .mode"):
        store.get("a")
    with pytest.raises(PermissionError):
        sash.rolling(np.arange(10.0), 3, agg="product")  # before any work
    cache.chmod(0o755)  # others may read
    assert store.get("a") == b"body"


@posix
def test_links_and_other_names_are_not_loaded(cache, tmp_path):
    (tmp_path / "elsewhere").write_bytes((cache / "a").read_bytes())
    (cache / "linked").symlink_to(tmp_path / "elsewhere")
    assert store.get("linked") is None
    os.replace(cache / "b", cache / "a")  # a kernel under another's name
    assert store.get("a") is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_files_and_folders_of_other_users_are_not_loaded(cache):
    os.chown(cache / "a", 12345, 12345)
    assert store.get("a") is None
    os.chown(cache, 12345, 12345)
    with pytest.raises(RefusedCache, match="belongs to another user .uid 12345"):
        store.get("b")


@posix
def test_the_users_own_folder_is_made_private(tmp_path, monkeypatch):
    monkeypatch.delenv("SASH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.put("a", b"body")
    (tmp_path / "sash").chmod(0o775)  # as older versions made it, where the umask allowed
    assert store.get("a") == b"body"
    assert stat.S_IMODE((tmp_path / "sash").stat().st_mode) == 0o700
    if os.geteuid() == 0:
        os.chown(tmp_path / "sash", 12345, 12345)
        with pytest.warns(RuntimeWarning, match="belongs to another user"):
            assert store.get("a") is None


def test_without_a_home_kernels_are_not_kept(monkeypatch):
    monkeypatch.delenv("SASH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(store.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert store.folder() is None
    assert not store.put("a", b"body")
    assert store.get("a") is None


def test_sources_are_read_by_several_threads_at_once():
    """Python 3.11 raises a SystemError where two threads make syntax trees at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    def read(_):
        return sources.read(blocks.ranges, "ranges", {"LANES": 0}, WORDS).name

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(400))) == {"ranges"}


@sash.udaf(state=("int64",))
class largest:
    """The largest value, of windows that hold no zero."""

    identity = (-(2**62),)
    commutative = True
    returns = "int64"

    def lift(v):
        return (v,)

    def combine(a, b):
        return (max(a[0], b[0]),)

    def lower(s):
        if s[0] == 0:
            raise ValueError("no window holds a zero")
        return s[0]


def test_lanes_lower_only_windows_that_there_are():
    """A user's lower may not bear what no window holds."""
    x = np.random.default_rng(3).integers(1, 1000, 5000)
    for size in (32, 100, 500, 1000):
        lanes = sash.rolling(x, size, agg=largest, algorithm="lanes")
        np.testing.assert_array_equal(lanes, sash.rolling(x, size, agg="max"))


def test_the_first_stored_kernel_may_need_a_symbol(tmp_path):
    text = "import numpy as np, sash; print(sash.rolling(np.arange(790.0), 33, agg='stddev_pop', algorithm='blocks')[0])"
    said = [
        subprocess.run([sys.executable, "-c", text], env={**os.environ, "SASH_CACHE": str(tmp_path)}, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [s.returncode for s in said] == [0, 0], said[1].stderr[-500:]
    assert said[0].stdout == said[1].stdout
