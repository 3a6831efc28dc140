"""Broker processes on a ZooKeeper: the web console of each broker shows the whole cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.metrics.groups import commit, produce, transaction
from tests.page.site import PAGE, Site
from tests.support.process import wait_until

PARTITIONS = 6
GROUPS = [f"group-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    overrides = {**PAGE, "kafka.compat.http.listener": "http://127.0.0.1:0"}
    folder: Path = tmp_path_factory.mktemp("cluster")
    with FaultCluster(folder, overrides=overrides, session_timeout_ms=30_000) as running:
        running.create_topic("t", PARTITIONS)
        for partition in range(PARTITIONS):
            produce(running.bootstrap_servers, "t", [1_000] * 3, partition=partition)
        for group in GROUPS:
            committed = {("t", partition): 1 for partition in range(PARTITIONS)}
            commit(running.bootstrap_servers, group, committed)
        yield running
        for broker in running.brokers.values():
            assert "Traceback" not in broker.log.read_text()


@pytest.fixture(scope="module")
def sites(cluster: FaultCluster) -> dict[int, Site]:
    found = {}
    for broker_id in BROKER_IDS:
        told = re.search(r"^HTTP on (\S+)$", cluster.brokers[broker_id].log.read_text(), re.MULTILINE)
        assert told is not None
        found[broker_id] = Site(told[1])
    return found


def test_each_process_shows_partitions_led_by_other_processes(sites: dict[int, Site]) -> None:
    for site in sites.values():
        topic = site.data("topic", name="t")
        assert topic["records"] == 3 * PARTITIONS and topic["size_bytes"] > PARTITIONS * 60
        assert {row["leader"] for row in topic["list"]["rows"]} == set(BROKER_IDS)
        assert all((row["start_offset"], row["end_offset"]) == (0, 3) for row in topic["list"]["rows"])
        assert topic["missing"] == []
        overview = site.data("overview")
        assert (overview["brokers"], overview["is_well"]) == (len(BROKER_IDS), True)
        assert {disk["broker"] for disk in overview["disks"]} == set(BROKER_IDS)


def test_each_process_shows_groups_coordinated_by_other_processes(sites: dict[int, Site]) -> None:
    for broker_id, site in sites.items():
        rows = site.rows("groups", "groups")
        assert [row["name"] for row in rows] == GROUPS
        assert {row["lag"] for row in rows} == {2 * PARTITIONS}
        assert len({row["coordinator"] for row in rows}) > 1
        for row in rows:
            group = site.data("group", name=row["name"])
            assert group["lag"] == 2 * PARTITIONS
            # Only the coordinator knows the age of the first uncommitted record.
            assert (group["lag_seconds"] is not None) == (row["coordinator"] == broker_id)


def test_each_process_shows_transactions_coordinated_by_other_processes(
    cluster: FaultCluster, sites: dict[int, Site]
) -> None:
    producer = transaction(cluster.bootstrap_servers, "t", [1_000], end="open")
    for site in sites.values():
        (row,) = site.rows("transactions", "transactions")
        assert (row["state"], row["epoch"]) == ("Ongoing", 0)
        assert row["partitions"] == [{"topic": "t", "partitions": [0]}]
    producer.abort_transaction(30)


def test_a_broker_that_does_not_respond_is_reported_by_name(
    cluster: FaultCluster, sites: dict[int, Site]
) -> None:
    first, *_, last = BROKER_IDS
    with cluster.paused(last):
        missing = [
            f"broker {last} did not report {what}"
            for what in ("its disks", "the groups that it coordinates", "the partitions that it leads")
        ]
        # Recent reports are cached for a short time.
        wait_until(
            lambda: sites[first].data("overview")["missing"] == missing,
            30,
            "the paused broker in the list of missing brokers",
        )
        topic = sites[first].data("topic", name="t")
        known = {row["leader"]: row["end_offset"] for row in topic["list"]["rows"]}
        assert known[last] is None and known[first] == 3
        assert f"broker {last} did not report" in sites[first].get("topics").shown
