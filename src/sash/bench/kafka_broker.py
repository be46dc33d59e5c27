"""A Kafka broker on loopback, for benchmarks and tests: one node, in a folder of its own, from the jars that ``make kafka`` fetches."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sash.errors import MissingPackage

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def jars() -> Path | None:
    """The folder with the broker's jars and the connector's; None if ``make kafka`` has not fetched them."""
    folder = Path(os.environ.get("SASH_KAFKA", ".kafka")).absolute()
    return folder if (folder / ".ready").exists() else None


def connector() -> str:
    """Spark's setting ``spark.jars`` for the connector."""
    folder = jars()
    if folder is None:
        raise MissingPackage("Kafka's jars are missing: make kafka")
    return ",".join(str(path) for path in sorted((folder / "connector").glob("*.jar")))


class Broker:
    """A broker; use it as a context manager."""

    def __init__(self, home: Path) -> None:
        folder = jars()
        if folder is None:
            raise MissingPackage("Kafka's jars are missing: make kafka")
        self.home = home
        self.port, self._controller = _free_port(), _free_port()
        self._classpath = f"{folder / 'broker'}/*"
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)
        (home / "server.properties").write_text(self._settings())

    @property
    def servers(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"

    def _settings(self) -> str:
        one = ["offsets.topic.replication.factor", "transaction.state.log.replication.factor", "transaction.state.log.min.isr"]
        one += ["offsets.topic.num.partitions", "transaction.state.log.num.partitions", "share.coordinator.state.topic.replication.factor"]
        lines = [
            "process.roles=broker,controller", "node.id=1", f"controller.quorum.voters=1@127.0.0.1:{self._controller}",
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}", "controller.listener.names=CONTROLLER",
            f"log.dirs={self.home / 'logs'}", "group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false",
            *(f"{name}=1" for name in one),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _java(self, *words: str) -> list[str]:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *options, "-cp", self._classpath, *words]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = str(self.home / "server.properties")
        if not (self.home / "logs" / "meta.properties").exists():
            words = self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", settings)
            subprocess.run(words, check=True, capture_output=True)
        with (self.home / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(self._java("kafka.Kafka", settings), stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise RuntimeError(f"the broker ended: {(self.home / 'broker.log').read_text()[-2000:]}")
            try:
                self._admin().list_topics(timeout=2)
            except Exception:
                time.sleep(0.2)
            else:
                return
        raise RuntimeError("the broker does not answer")

    def stop(self) -> None:
        """Stop it; its topics stay."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def create(self, topic: str, partitions: int = 2) -> None:
        """A new topic."""
        from confluent_kafka import admin

        client = self._admin()
        for made in client.create_topics([admin.NewTopic(topic, partitions, 1)]).values():  # type: ignore[attr-defined]
            made.result(30)

    def send(self, topic: str, values: Iterable[bytes | str], keys: Iterable[str] | None = None) -> None:
        """Send messages, and wait until the broker has them."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
        named: Iterator[str | None] = iter(keys) if keys is not None else iter(lambda: None, 0)
        for value in values:
            producer.produce(topic, value, key=next(named))
            producer.poll(0)
        producer.flush(60)

    def messages(self, topic: str, *, quiet: float = 2.0) -> list[Any]:
        """All messages of a topic, as JSON, until none comes for a while."""
        from confluent_kafka import Consumer

        settings = {"bootstrap.servers": self.servers, "group.id": f"reader-{time.time_ns()}", "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "log_level": 0})
        consumer.subscribe([topic])
        found: list[Any] = []
        until = time.monotonic() + 30
        while time.monotonic() < until:
            batch = consumer.consume(10_000, 0.5)
            found += [json.loads(m.value() or b"null") for m in batch if not m.error()]
            if batch:
                until = time.monotonic() + quiet
        consumer.close()
        return found


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
