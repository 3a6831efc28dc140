"""`kafka-compat pipeline run` with the job `lag`, which needs no Spark: restarts, signals, and kills."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.pipelines.cluster import Cluster
from tests.pipelines.flow.service import Service
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    broker = KafkaCompatBroker(tmp_path / "broker")
    broker.start()
    yield Cluster(broker)
    broker.stop()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def checkpoint(directory: Path, topic: str) -> None:
    """Write a checkpoint as a query of Spark does that has read one record of the topic."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True)
    (directory / "offsets" / "0").write_text("v1\n{}\n" + json.dumps({topic: {"0": 1}}))
    (directory / "commits" / "0").write_text("v1\n{}")


def committed(cluster: Cluster, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.address, "group.id": group})
    found = consumer.committed([TopicPartition(topic, 0)], 30)
    consumer.close()
    offset: int = found[0].offset
    return offset


def write_flow(directory: Path, address: str, *checkpoints: str) -> str:
    lines = ["settings:", f"  bootstrap-server: {address}", "jobs:"]
    for name in checkpoints:
        lines += [f"  {name}:", "    job: lag", f"    checkpoint: ./{name}", f"    group: {name}"]
    (directory / "flow.yaml").write_text("\n".join(lines))
    return str(directory / "flow.yaml")


def test_jobs_are_restarted_and_stopped_together(cluster: Cluster, tmp_path: Path) -> None:
    """One job works, is killed with kill -9 and comes back. The other starts once its checkpoint exists."""
    topic = cluster.create_topic()
    cluster.fill(topic, 1, [(b"k", b"v", 1_700_000_000_000, [])])
    checkpoint(tmp_path / "well", topic)
    flow = write_flow(tmp_path, cluster.address, "well", "late")
    service = Service(flow, "--continuous", directory=tmp_path)
    late = service.await_state("late", "restarting")
    assert late["exit_code"] == 2
    assert late["message"] == "late is not the checkpoint of a streaming query."
    checkpoint(tmp_path / "late", topic)
    wait_until(lambda: committed(cluster, "well", topic) == 1, 30, "a commit of the job well")
    os.kill(
        next(each["pid"] for each in service.lines if each["name"] == "well" and each["pid"]), signal.SIGKILL
    )
    assert service.await_state("well", "restarting")["exit_code"] == 137
    service.await_state("well", "running", restarts=1)
    wait_until(lambda: committed(cluster, "late", topic) == 1, 30, "a commit of the job late")
    service.process.send_signal(signal.SIGTERM)
    code, last = service.finish()
    assert code == 0
    assert {name: line["state"] for name, line in last.items()} == {"well": "stopped", "late": "stopped"}
    assert not any(is_alive(line["pid"]) for line in service.lines if line["pid"])


def test_jobs_end_if_the_service_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    checkpoint(tmp_path / "well", topic)
    flow = write_flow(tmp_path, cluster.address, "well")
    service = Service(flow, "--continuous", directory=tmp_path)
    pid = service.await_state("well", "running")["pid"]
    service.process.kill()
    service.process.wait()
    wait_until(lambda: not is_alive(pid), 30, "the end of the job")


def test_without_continuous_each_job_runs_once_in_order(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic()
    cluster.fill(topic, 1, [(b"k", b"v", 1_700_000_000_000, [])])
    for name in ("one", "three"):
        checkpoint(tmp_path / name, topic)
    service = Service(write_flow(tmp_path, cluster.address, "one", "two", "three"), directory=tmp_path)
    code, last = service.finish()
    assert code == 1
    assert [(name, line["state"], line["exit_code"]) for name, line in last.items()] == [
        ("one", "done", 0),
        ("two", "failed", 2),
        ("three", "done", 0),
    ]
    assert last["one"]["report"]["group"] == "one"
    states = [(line["name"], line["state"]) for line in service.lines]
    assert states.index(("one", "done")) < states.index(("three", "running"))
    said = (tmp_path / "service.err").read_text()
    assert "two: kafka-compat pipeline lag: two is not the checkpoint of a streaming query." in said
