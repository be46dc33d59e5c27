"""A standalone Spark cluster on loopback: a master and two workers, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait(what, ready, seconds=90):
    """Until ``ready`` says so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            if ready():
                return
        time.sleep(0.3)
    raise TimeoutError(f"{what} did not come up")


class Cluster:
    """Executors run a Python that has everything but sash."""

    def __init__(self, home: Path) -> None:
        import pyspark

        self.home, self.spark_home = home, Path(pyspark.__file__).parent
        self.port, self.web = free_port(), free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.python = home / "python-without-sash"
        # Without the site module an editable install is not seen, other packages are by their folder.
        self.python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{sysconfig.get_path("purelib")}" exec {sys.executable} -S "$@"\n')
        self.python.chmod(0o755)

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ, "SPARK_HOME": str(self.spark_home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
            "SPARK_PUBLIC_DNS": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false", "SPARK_DAEMON_MEMORY": "1g",
            "PYSPARK_PYTHON": str(self.python), "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_DIRS": str(self.home), **more,
        }  # fmt: skip

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.home / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment(), cwd=self.home, start_new_session=True)
        self.processes.append(started)
        return started

    def __enter__(self) -> Cluster:
        run = str(self.spark_home / "bin" / "spark-class")
        master = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self.web)]
        self.start("master", run, "org.apache.spark.deploy.master.Master", *master)
        wait("the master", lambda: bool(self.state()))
        self.workers = [
            self.start(
                f"worker{k}", run, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", str(free_port()),
                "-c", "1", "-m", "2g", "-d", str(self.home / f"worker{k}"), self.master,
            )
            for k in (1, 2)
        ]  # fmt: skip
        wait("the workers", lambda: self.state()["aliveworkers"] == 2)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def state(self):
        """What the master knows."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.web}/json/", timeout=5) as answer:
            return json.load(answer)

    def executors(self) -> list[int]:
        """The process ids of the executors that this cluster started."""
        found = []
        for worker in self.workers:
            for status in Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError):
                    fields = status.read_text().rpartition(")")[2].split()
                    is_executor = b"CoarseGrainedExecutorBackend" in (status.parent / "cmdline").read_bytes()
                    if is_executor and int(fields[1]) == worker.pid:
                        found.append(int(status.parent.name))
        return found

    def connect_server(self) -> str:
        """A Connect server in front of the cluster; its address."""
        port = free_port()
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port), "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "1g",
        }  # fmt: skip
        conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        submit = str(self.spark_home / "bin" / "spark-submit")
        kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
        self.start("connect", submit, "--class", kind, "--master", self.master, *conf, "spark-internal")

        def listens() -> bool:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return True

        wait("the Connect server", listens)
        return f"sc://127.0.0.1:{port}"
