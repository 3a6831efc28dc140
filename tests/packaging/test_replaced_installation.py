"""A running broker whose installation is removed or replaced (`pip install -U`) continues to work, like
Apache Kafka.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.handlers.served import SERVED
from kafka_compat.kept_modules import PACKAGE
from tests.support.compiled import COMPILED
from tests.support.ports import free_port
from tests.support.process import Process, wait_until
from tests.support.servers import PROJECT

_COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}


def _install(folder: Path) -> Path:
    """Copy the package, as pip would install it."""
    source = PROJECT / ".compiled" / PACKAGE if COMPILED else PROJECT / PACKAGE
    package = folder / PACKAGE
    ignored = shutil.ignore_patterns("__pycache__", "storage", "coordination")
    shutil.copytree(source, package, ignore=None if COMPILED else ignored)
    if not COMPILED:
        for room in ("storage", "coordination"):
            shutil.copytree(PROJECT / room, package / room, ignore=shutil.ignore_patterns("__pycache__"))
    return package


class _Broker:
    """A broker running from the copy."""

    def __init__(self, folder: Path, *given: str) -> None:
        self.package = _install(folder / "site")
        self.port = free_port()
        settings = ["--override=kafka.compat.log.level=INFO,kafka_compat.kept_modules=DEBUG"]
        settings += [f"--override=log.dirs={folder}/data", "--override=log.cleaner.backoff.ms=100", *given]
        # Use the tests' Python, which has the libraries, but import this copy instead of the checkout.
        self.process = Process(
            [sys.executable, "-P", "-m", PACKAGE, "serve", "--port", str(self.port), *settings],
            folder / "log",
            "Copied kafka-compat's modules",
            environment={"PYTHONPATH": str(folder / "site"), "PYTHONSAFEPATH": "1"},
            directory=Path("/"),
        )
        self.process.start()
        self.address = f"127.0.0.1:{self.port}"

    def log(self) -> str:
        return self.process.log.read_text()


def _use_everything(broker: _Broker) -> None:
    """Send a request without a body to each API, and run common operations with real clients."""
    for key, (low, _) in SERVED.items():
        with socket.create_connection(("127.0.0.1", broker.port), 10) as connection:
            header = struct.pack(">hhih", key, low, 1, -1)
            connection.sendall(struct.pack(">i", len(header)) + header)
            connection.settimeout(5)
            with contextlib.suppress(TimeoutError, ConnectionError):
                connection.recv(100)
    at: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.address}
    admin = AdminClient(at)
    topics = [NewTopic("plain", 1, 1), NewTopic("compacted", 1, 1, config=_COMPACTED)]
    for future in admin.create_topics(topics).values():
        future.result(20)
    producer = Producer({**at, "transactional.id": "t", "compression.type": "zstd"})
    producer.init_transactions(20)
    producer.begin_transaction()
    for number in range(100):
        producer.produce("plain", str(number))
    producer.commit_transaction(20)
    keyed = Producer({**at, "compression.type": "lz4", "linger.ms": 0})
    for number in range(20):
        keyed.produce("compacted", str(number), "key")
        keyed.flush(20)
    consumer = Consumer({**at, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    found = 0
    while found < 100:
        messages = consumer.consume(100 - found, 20)
        assert messages, f"only {found} records received"
        found += len(messages)
    consumer.commit(asynchronous=False)
    assert consumer.committed([TopicPartition("plain", 0)], 20)[0].offset > 0
    consumer.close()
    admin.list_consumer_groups().result(20)


@pytest.mark.parametrize("by", ["removed", "replaced"])
def test_all_apis_are_served_after_the_installation_is_removed_or_replaced(tmp_path: Path, by: str) -> None:
    broker = _Broker(tmp_path)
    try:
        shutil.rmtree(broker.package)
        if by == "replaced":
            for name in ("", "handlers", "groups", "transactions", "storage", "coordination", "protocol"):
                (broker.package / name).mkdir()
                (broker.package / name / "__init__.py").write_text(
                    "raise ImportError('of a newer version')\n"
                )
        _use_everything(broker)
        wait_until(lambda: "Cleaned compacted-0 up to" in broker.log(), 30, "compaction of a log")
        assert broker.process.stop() == 0
    finally:
        broker.process.kill()
    log = broker.log()
    assert "ImportError" not in log and "ModuleNotFoundError" not in log and "Traceback" not in log, log
