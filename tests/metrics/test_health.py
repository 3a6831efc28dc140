"""/live and /ready, for healthy and for unhealthy brokers."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from kafka_compat.coordination.store.metadata_store import SessionState
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metrics.health import reasons_against
from kafka_compat.testing import KafkaBroker, KafkaCluster
from kafka_compat.testing.control import Control
from tests.metrics.scraping import get, get_json
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker
from tests.support.steps import result_of
from tests.transactions.programs import create_topic


@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_healthy_brokers_are_ready(kind: type[KafkaBroker]) -> None:
    with kind() as broker:
        assert get_json(broker.control.url, "/live") == (200, {"live": True})
        assert get_json(broker.control.url, "/ready") == (200, {"ready": True})


def test_health_and_metrics_paths_accept_head_requests() -> None:
    with KafkaBroker() as broker:
        connection = HTTPConnection(broker.control.url.removeprefix("http://"), timeout=20)
        for path in ("/live", "/ready", "/metrics", "/public_metrics"):
            seen = []
            for method in ("GET", "HEAD"):
                connection.request(method, path)
                with connection.getresponse() as response:
                    seen.append((response.status, response.headers.get_content_type()))
                    assert bool(response.read()) == (method == "GET")
            assert seen[0] == seen[1] and seen[0][0] == 200
        connection.close()


def test_a_broker_without_the_metadata_store_is_not_ready() -> None:
    with KafkaCluster() as cluster:
        url = cluster.control.url
        cluster.control.cut_coordination(2)
        wait_until(lambda: get(url, "/ready")[0] == 503, 10, "an unready broker", 0.05)
        _, told = get_json(url, "/ready")
        assert told["ready"] is False
        assert told["reasons"] and all(reason.startswith("broker 2: ") for reason in told["reasons"])
        assert "its session with the metadata store is" in told["reasons"][0]
        assert get(url, "/live")[0] == 200
        cluster.control.mend(2)
        wait_until(lambda: get(url, "/ready")[0] == 200, 30, "readiness of all brokers", 0.05)


def test_a_failed_log_directory_is_reported(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in "ab"]
    url = f"http://127.0.0.1:{free_port()}"
    settings = {
        "kafka.compat.http.listener": url,
        "kafka.compat.control.enable": "true",
        "log.dirs": ",".join(folders),
    }
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        control = Control(url)
        control.break_disks(log_dir=folders[1], failed=True)
        create_topic(broker.address, "t", 4)
        wait_until(lambda: get(url, "/ready")[0] == 503, 10, "the failed log directory", 0.05)
        (reason,) = get_json(url, "/ready")[1]["reasons"]
        assert reason.endswith(": 1 of its 2 log directories have failed")
    finally:
        broker.stop()


def test_health_endpoints_do_not_require_a_token(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "kafka.compat.http.listener": f"http://0.0.0.0:{port}",
        "kafka.compat.http.token": "a secret token",
    }
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        url = f"http://127.0.0.1:{port}"
        assert get(url, "/live")[0] == get(url, "/ready", Host="10.1.2.3:8080")[0] == 200
        assert get(url, "/")[0] == get(url, "/metrics")[0] == 401
        status, body, _ = get(url, "/ready/")
        assert status == 401 and json.loads(body)["status"] == 401
    finally:
        broker.stop()


def test_the_response_lists_the_reasons_why_a_broker_is_not_ready() -> None:
    metadata = MetadataCache("c", 1)
    partitions = tuple(PartitionMetadata(number, 2, 0, (1, 2), (2,)) for number in range(5))
    held = {("t", 0): object()}
    services = SimpleNamespace(
        metadata=metadata,
        store=SimpleNamespace(state=SessionState.EXPIRED),
        log_dirs=SimpleNamespace(offline=set[str]()),
        replicas=SimpleNamespace(
            get=lambda topic, partition: held.get((topic, partition)),
            missing=lambda topic, partition: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ),
    )
    metadata.put_topic(TopicMetadata("t", uuid4(), partitions))
    metadata.put_topic(TopicMetadata("elsewhere", uuid4(), (PartitionMetadata(0, 2, 0, (2,), (2,)),)))
    assert result_of(reasons_against(services)) == [  # type: ignore[arg-type]
        "its session with the metadata store is expired",
        "the controller does not list it as a live broker",
        "no controller is known",
        "4 of its partitions are not ready yet",
    ]
    services.store.state = SessionState.CONNECTED
    metadata.brokers[1] = BrokerMetadata(1, {})
    metadata.controller_id = 2
    held.update({("t", number): object() for number in range(5)})
    assert result_of(reasons_against(services)) == []  # type: ignore[arg-type]
