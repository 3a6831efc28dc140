"""The workers in docs/share-groups.md process a queue as the page describes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.markdown import blocks
from tests.docs.write import DOCS
from tests.share_groups.share_members import configure_group
from tests.support import campaign, kafka_jars
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

JOBS = ("resize photo", "broken job", "busy server")
PRINTED = sorted([*(f"attempt 1: {job}" for job in JOBS), *(f"attempt {n}: {JOBS[2]}" for n in range(2, 6))])
MODULE = Path(__file__).resolve().parents[1] / "clients" / "go"


def program(language: str, address: str) -> str:
    """Return the program of the page, for a broker at this address."""
    page = (DOCS / "share-groups.md").read_text()
    (found,) = (block.text for block in blocks(page) if block.language == language)
    return found.replace("localhost:9092", address)


def python(directory: Path, text: str) -> list[str]:
    (directory / "worker.py").write_text(text)
    return [sys.executable, "worker.py"]


def java(directory: Path, text: str) -> list[str]:
    (directory / "Worker.java").write_text(text)
    return ["java", "-Xmx256M", "-cp", kafka_jars.class_path(NEWEST_VERSION), "Worker.java"]


def go(directory: Path, text: str) -> list[str]:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed: install Go 1.26 (https://go.dev/dl)")
    (directory / "main.go").write_text(text)
    for name in ("go.mod", "go.sum"):
        shutil.copy(MODULE / name, directory / name)
    command = ["go", "build", "-mod=mod", "-o", "worker", "."]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ["./worker"]


@contextmanager
def running(command: list[str], directory: Path) -> Iterator[Path]:
    """Run a worker until the end of the block, and yield the file with its output."""
    printed = directory / "printed"
    with printed.open("wb") as output:
        worker = subprocess.Popen(command, cwd=directory, stdout=output, stderr=output, env=os.environ)
        try:
            yield printed
            worker.send_signal(signal.SIGINT)
            worker.wait(60)
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", ["python", *(["java", "go"] if campaign.enabled() else [])])
def test_the_documented_worker_processes_a_queue_with_retries_and_dead_letters(
    tmp_path: Path, language: str
) -> None:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    writers: dict[str, Callable[[Path, str], list[str]]] = {"python": python, "java": java, "go": go}
    server = KafkaCompatBroker(tmp_path / "broker", {})
    server.start(60)
    try:
        client: dict[str, str | int | float | bool] = {"bootstrap.servers": server.address}
        allowed = {"errors.deadletterqueue.group.enable": "true"}
        topics = [NewTopic("jobs", 3, 1), NewTopic("dlq.jobs", 1, 1, config=allowed)]
        admin = AdminClient(client)
        for created in admin.create_topics(topics).values():
            created.result(60)
        settings = {
            "share.auto.offset.reset": "earliest",
            "errors.deadletterqueue.topic.name": "dlq.jobs",
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        configure_group(server.address, "workers", settings)
        producer = Producer(client)
        for job in JOBS:
            producer.produce("jobs", job.encode())
        assert producer.flush(60) == 0
        command = writers[language](tmp_path, program(language, server.address))
        with running(command, tmp_path) as printed:
            wait_until(
                lambda: printed.read_bytes().count(b"attempt") >= len(PRINTED), 120, "all attempts", 0.1
            )
            consumer = Consumer({**client, "group.id": "letters", "auto.offset.reset": "earliest"})
            consumer.subscribe(["dlq.jobs"])
            letters = consumer.consume(2, 60)
            consumer.close()
        lines = printed.read_text().splitlines()
        assert sorted(line for line in lines if line.startswith("attempt")) == PRINTED
        assert {letter.value() for letter in letters} == {job.encode() for job in JOBS[1:]}
    finally:
        server.stop()
