"""A real cluster: executors that lack sash, shipping, a killed executor, and Connect in front of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.cluster import ROOT, Cluster

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def driver(cluster, *command):
    """Run a driver; whenever it asks for it, kill an executor."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=cluster.environment()
    )
    asked, killed = cluster.home / "kill", []

    def watch():
        while process.poll() is None:
            if asked.exists():
                victims = cluster.executors()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victims[0], signal.SIGKILL)
                killed.append(victims[0])
                asked.unlink()
            time.sleep(0.05)

    thread = threading.Thread(target=watch)
    thread.start()
    out, error = process.communicate()
    thread.join()
    assert process.returncode == 0, out[-5000:] + error[-3000:]
    return out, killed


def test_classic(cluster):
    out, killed = driver(cluster, "tests.cluster_cases", cluster.master, str(cluster.home))
    assert len(killed) == 1
    assert "ok lacks" in out
    assert "ok killed executor" in out
    assert "FAILED" not in out


def test_connect(cluster):
    out, _ = driver(cluster, "tests.connect_cases", cluster.connect_server(), "--ship", "--few")
    assert out.count("ok ") >= 8
