"""`kafka-compat fork`: topics of a running broker, and log directories of a stopped one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafka_compat.testing import KafkaBroker
from tests.control.contents import commit_position, fill, held
from tests.support.servers import KafkaCompatBroker, run_kafka_compat


def test_a_topic_of_a_running_broker_is_forked() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        fill(broker, "t", 10)
        commit_position(broker, "g", "t", 3)
        url = broker.control.url
        result = run_kafka_compat("fork", "--http", url, "t", "u", "--groups", "all")
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("forked t to u, with the committed offsets of g (")
        assert held(broker, "u") == held(broker, "t")
        result = run_kafka_compat("fork", "--http", url, "t", "v", "--json")
        assert json.loads(result.stdout)["partitions"] == 1
        result = run_kafka_compat("fork", "--http", url, "t", "u")
        assert (result.returncode, "TOPIC_ALREADY_EXISTS" in result.stderr) == (1, True)


@pytest.mark.parametrize("killed", [False, True])
def test_a_data_directory_of_a_stopped_broker_is_forked(tmp_path: Path, killed: bool) -> None:
    broker = KafkaCompatBroker(tmp_path / "a", {"log.segment.bytes": "16384"})
    other = KafkaCompatBroker(tmp_path / "b")
    arguments = ("fork", "--data", str(broker.log_dir), "--to", str(other.log_dir))
    broker.start()
    try:
        fill(broker, "t")
        before = held(broker, "t")
        result = run_kafka_compat(*arguments)
        assert (result.returncode, "a broker uses" in result.stderr) == (1, True)
        if killed:
            broker.kill()
        else:
            broker.stop()
        result = run_kafka_compat(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        # The count includes the partitions of __consumer_offsets.
        assert json.loads(result.stdout)["logs"] == 51
        assert [path for path in other.log_dir.glob("t-*/*.log") if os.stat(path).st_nlink == 2]
        broker.start()
        other.start()
        assert held(other, "t") == held(broker, "t") == before
        fill(other, "t", 50, 1000)
        fill(broker, "t", 20, 2000)
        other.restart(kill=True)
        assert (len(held(other, "t")), len(held(broker, "t"))) == (350, 320)
    finally:
        other.stop()
        broker.stop()


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    for arguments in (["t"], ["--data", "d"], ["--data", "d", "--to", "e", "t"], ["--http", "x", "t"]):
        result = run_kafka_compat("fork", *arguments)
        assert (result.returncode, "expected --http URL TOPIC NAME" in result.stderr) == (2, True)
    result = run_kafka_compat("fork", "--data", str(tmp_path), "--to", str(tmp_path / "x"))
    assert (result.returncode, "is not a broker's data directory" in result.stderr) == (1, True)
    result = run_kafka_compat("fork", "--http", "nowhere", "t", "u")
    assert (result.returncode, "expected http://HOST:PORT" in result.stderr) == (2, True)
