"""The public surface under ``mypy --strict``, as a user's checker sees it."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

FOLDER = Path(__file__).parent / "typing"
CACHE = FOLDER.parent.parent / ".mypy_cache" / "typing"


def checked(name):
    """What mypy says of a file: (line, text) pairs."""
    options = ["--strict", "--no-error-summary", "--no-color-output", "--config-file", "", "--cache-dir", str(CACHE)]
    command = [sys.executable, "-m", "mypy", *options, str(FOLDER / name)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = [re.match(r"(.*?):(\d+): (error|note): (.*)", line) for line in done.stdout.splitlines()]
    return [(int(m[2]), m[3], m[4]) for m in said if m and Path(m[1]).name == name]


def expected(name):
    lines = enumerate((FOLDER / name).read_text().splitlines(), start=1)
    return {number: line.rpartition("  # ")[2] for number, line in lines if "  # " in line}


def test_what_is_right_passes_and_keeps_its_types():
    said = checked("right.py")
    assert not [s for s in said if s[1] == "error"]
    revealed = {line: re.search(r'Revealed type is "(.*)"', text)[1] for line, _, text in said if "Revealed" in text}
    wanted = expected("right.py")
    assert set(revealed) == set(wanted)
    for line, pattern in wanted.items():
        assert fnmatch.fnmatch(revealed[line], pattern.replace("[", "[[]")), (line, revealed[line], pattern)


def test_what_is_wrong_is_refused():
    errors = {}
    for line, kind, text in checked("wrong.py"):
        if kind == "error":
            errors.setdefault(line, re.search(r"\[([\w-]+)\]$", text)[1])
    assert errors == expected("wrong.py")
