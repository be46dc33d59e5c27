"""The package from outside: imports, the wheel, the command line, the docs that are made from the code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(script, **environment):
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **environment}, cwd="/")
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_is_quick_and_light():
    """The modules that cost time are not loaded; `make bench NAME=rolling` measures the time."""
    script = "import sys, numpy, pyarrow; before = set(sys.modules); import sash; print(' '.join(set(sys.modules) - before))"
    loaded = run(script).split()
    assert not {m.partition(".")[0] for m in loaded} & {
        "numba",
        "llvmlite",
        "pyspark",
        "pyopencl",
        "pandas",
        "polars",
        "matplotlib",
    }
    assert len(loaded) < 10


def test_functions_and_algorithms_do_not_load_numba():
    script = "import sys, sash; from sash import functions, algorithms; sash.rolling; sash.udaf; print('numba' in sys.modules)"
    assert run(script) == "False"


def test_the_wheel_runs_outside_the_checkout(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT)], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("sash-*.whl")
    target = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    script = (
        "import numpy as np, sash, pathlib\n"
        "folder = pathlib.Path(sash.__file__).parent\n"
        f"print(folder.is_relative_to(pathlib.Path({str(target)!r})), (folder / 'py.typed').exists())\n"
        "print(sash.rolling(np.array([3, 1, 2]), 2, agg='max').tolist())"
    )
    assert run(script, PYTHONPATH=str(target), SASH_CACHE=str(tmp_path / "cache")) == "True True\n[3, 2]"


def test_the_reference_pages_are_up_to_date():
    from sash.testing.reference import pages

    for path, text in pages().items():
        assert (ROOT / "docs" / path).read_text() == text, f"docs/{path}: run `make docs`"


def test_the_command_line():
    from typer.testing import CliRunner

    from sash.cli import app

    result = CliRunner().invoke(app, ["bench", "nothing"])
    assert result.exit_code == 2
    assert "rolling" in result.output
    result = CliRunner().invoke(app, ["--help"])
    assert "demo" in result.output
    assert "bench" in result.output


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs/architecture.md", "docs/benchmarks.md"])
def test_pages_exist(name):
    assert len((ROOT / name).read_text()) > 200
