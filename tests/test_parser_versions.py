"""The oldest and the newest release of the parser that the package allows give expressions the same meaning."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
PROGRAM = """
import sqlglot
from tests.expression_cases import Generator, table
from tests.expression_diff import Error, ours, shown
print(sqlglot.__version__)
rows = table(1)
generator = Generator(1)
for text in dict.fromkeys(generator.one() for _ in range(1500)):
    found = ours(text, rows)
    print(text, "->", ("refused" if found.refused else "undefined") if isinstance(found, Error) else shown(found))
"""


def allowed() -> tuple[str, str]:
    """The oldest release, and what the newest comes before."""
    (given,) = [r for r in importlib.metadata.requires("sash") or [] if r.startswith("sqlglot")]
    oldest, newest = re.search(r">=\s*([\d.]+)", given), re.search(r"<\s*([\d.]+)", given)
    assert oldest, given
    assert newest, f"{given}: what comes after is not known to mean the same"
    return oldest[1], newest[1]


def results(folder: Path, requirement: str) -> list[str]:
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        folder,
        requirement,
    ]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("no package index can be reached")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(HOME)])}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=HOME, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_the_ends_of_the_range_mean_the_same(tmp_path):
    oldest, before = allowed()
    old = results(tmp_path / "old", f"sqlglot=={oldest}.*" if oldest.count(".") < 2 else f"sqlglot=={oldest}")
    new = results(tmp_path / "new", f"sqlglot<{before}")
    assert old[0] != new[0]
    assert [(a, b) for a, b in zip(old[1:], new[1:], strict=True) if a != b] == []
