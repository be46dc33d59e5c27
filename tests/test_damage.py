"""Snapshots and stored values that were damaged, with their digests made again; ``make soak`` works through a hundred thousand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = int(os.environ.get("SASH_DAMAGE", "1500"))
SEED = int(os.environ.get("SASH_SEED", "20261118"))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what a process has allocated is read from /proc")
def test_damaged_state_is_refused_or_sound():
    """In a process of its own: a crash would take the others along, and its memory is limited."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.damage", str(CASES), str(SEED)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert "none crashed" in run.stdout
