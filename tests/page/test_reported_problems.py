"""Problems in a cluster, as reported on the overview page."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_compat.testing import KafkaBroker, KafkaCluster
from kafka_compat.testing.control import Control
from tests.metrics.groups import commit, create_topic, produce
from tests.page.site import PAGE, Site
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(2, PAGE) as running:
        yield running
        assert "Traceback" not in running.log


def test_out_of_sync_replicas_are_reported(cluster: KafkaCluster) -> None:
    site = Site.of(cluster)
    cluster.create_topic("t", replication_factor=2, config={"min.insync.replicas": 2})
    assert site.data("overview")["is_well"]
    leader = cluster.control.partition("t")["leader"]
    cluster.control.shrink_isr("t", broker=3 - leader)
    wait_until(lambda: not site.data("overview")["is_well"], 20, "a reported problem")
    (problem,) = site.data("overview")["problems"]
    assert (problem["kind"], problem["subjects"]) == ("under-min-isr", ["t-0"])
    assert "fewer in-sync replicas than min.insync.replicas" in site.get("overview").shown
    assert "1 under-replicated" in site.get("topics").shown
    brokers = {each["id"]: each for each in site.data("brokers")["brokers"]}
    assert brokers[3 - leader]["replicas_not_in_sync"] == 1
    cluster.control.restore_isr("t", broker=3 - leader)
    wait_until(lambda: site.data("overview")["is_well"], 20, "a healthy cluster")


def test_a_lost_broker_is_reported() -> None:
    with KafkaCluster(2, {**PAGE, "log.flush.interval.messages": "1"}) as cluster:
        site = Site.of(cluster)
        cluster.create_topic("t", replication_factor=2)
        cluster.control.break_disks(broker=2, failed=True)
        # The broker detects the failure at the next write.
        produce(cluster.bootstrap_servers, "t", [1_000])
        wait_until(lambda: site.data("overview")["brokers"] == 1, 30, "the shutdown of the broker")
        wait_until(lambda: not site.data("overview")["is_well"], 30, "a reported problem")
        problems = {each["kind"]: each for each in site.data("overview")["problems"]}
        assert problems["broker-not-up"]["subjects"] == ["2"]
        assert "t-0" in problems["under-replicated"]["subjects"]
        (gone,) = (each for each in site.data("brokers")["brokers"] if not each["is_up"])
        assert gone["id"] == 2 and "not in the cluster" in site.get("brokers").shown
        cluster.kill()


def test_a_failed_log_directory_is_reported(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    folders = [str(tmp_path / name) for name in ("one", "two")]
    settings = {
        **PAGE,
        "log.dirs": ",".join(folders),
        "kafka.compat.http.listener": url,
        "kafka.compat.control.enable": "true",
    }
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        site = Site(url)
        assert site.data("overview")["is_well"]
        Control(url).break_disks(log_dir=folders[1], failed=True)
        create_topic(broker.address, "t", 4)
        wait_until(lambda: site.data("overview")["not_ready"], 30, "a reported problem")

        def kinds() -> list[str]:
            return [each["kind"] for each in site.data("overview")["problems"]]

        # Partitions that would have been created in the failed directory have no leader.
        wait_until(lambda: kinds() == ["no-leader", "log-dir-failed"], 30, "both problems")
        told = site.data("overview")
        assert told["not_ready"] == ["broker 1: 1 of its 2 log directories have failed"]
        assert "failed: KAFKA_STORAGE_ERROR" in site.get("disks").shown
    finally:
        broker.stop()


def test_committed_offsets_beyond_the_log_end_are_reported(cluster: KafkaCluster) -> None:
    site = Site.of(cluster)
    cluster.create_topic("v")
    commit(cluster.bootstrap_servers, "ahead", {("v", 0): 7})
    kinds = {each["kind"]: each for each in site.data("overview")["problems"]}
    assert kinds["committed-beyond-end"]["subjects"] == ["ahead"]


def test_the_web_console_shows_the_state_of_a_restored_broker() -> None:
    """After a snapshot is restored, the web console shows the restored state."""
    with KafkaBroker(PAGE) as broker:
        site = Site.of(broker)
        broker.create_topic("before")
        broker.control.snapshot("s")
        broker.create_topic("after")
        assert [row["name"] for row in site.rows("topics", "topics")] == ["after", "before"]
        broker.control.restore("s")
        assert [row["name"] for row in site.rows("topics", "topics")] == ["before"]
        assert site.data("overview")["is_well"]

        def is_noticed() -> bool:
            with socket.create_connection((broker.host, broker.port), 20) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                with suppress(ConnectionError):
                    stranger.recv(100)
            return bool(site.rows("refused", "refused"))

        wait_until(is_noticed, 30, "the rejected connection")
        assert "Traceback" not in broker.log
