"""A sample of the cases over Spark Connect, with a server of its own on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.xdist_group("spark")
def test_the_same_over_connect():
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.connect.grpc.binding.address=127.0.0.1 pyspark-shell",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.connect_cases", "local[2]"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.stdout.count("ok ") >= 20
