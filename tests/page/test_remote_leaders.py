"""Broker processes on a ZooKeeper: the web console of each broker shows and changes partitions led by other
brokers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.metrics.groups import commit
from tests.metrics.http_address import url
from tests.page.browsing import WRITING, Asked
from tests.support.process import wait_until
from tests.transactions.programs import committed_offset

T0_MS = 1_700_000_000_000
PARTITIONS = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    overrides = {**WRITING, "kafka.compat.http.listener": "http://127.0.0.1:0"}
    with FaultCluster(
        tmp_path_factory.mktemp("cluster"), overrides=overrides, session_timeout_ms=30_000
    ) as running:
        yield running
        for broker in running.brokers.values():
            assert "Traceback" not in broker.log.read_text()


@pytest.fixture(scope="module")
def pages(cluster: FaultCluster) -> list[Asked]:
    return [Asked(url(cluster, broker_id)) for broker_id in BROKER_IDS]


def keys(records: list[dict[str, dict[str, str]]]) -> list[str]:
    return [each["key"]["text"] for each in records]


def test_messages_are_shown_for_partitions_of_all_leaders(cluster: FaultCluster, pages: list[Asked]) -> None:
    cluster.create_topic("far", PARTITIONS)
    client = Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": "zstd"})
    for number in range(60):
        client.produce("far", b"v", f"{number}", number % PARTITIONS, timestamp=T0_MS + 1000 * number)
    assert client.flush(30) == 0
    for end in ("commit", "abort"):
        transactional = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"far-{end}"}
        )
        transactional.init_transactions(30)
        transactional.begin_transaction()
        for partition in range(PARTITIONS):
            transactional.produce("far", b"v", end, partition, timestamp=T0_MS + 100_000)
        if end == "commit":
            transactional.commit_transaction(30)
        else:
            transactional.flush(30)
            transactional.abort_transaction(30)
    in_order = [str(number) for number in range(60)] + ["commit"] * PARTITIONS
    for page in pages:
        assert keys(page.all_messages(name="far", order="oldest", limit=17)) == in_order
        assert keys(page.all_messages(name="far", limit=500)) == in_order[::-1]
        uncommitted = keys(page.all_messages(name="far", isolation="read_uncommitted", limit=500))
        assert uncommitted.count("abort") == PARTITIONS
        found = page.all_messages(
            name="far", order="oldest", **{"from": T0_MS + 30_000, "to": T0_MS + 35_000}
        )
        assert keys(found) == ["30", "31", "32", "33", "34"]
        assert keys(page.all_messages(name="far", key="42", key_how="is")) == ["42"]
        for partition in range(PARTITIONS):
            one = page.data("message", name="far", partition=partition, offset=2)
            assert one["key"]["text"] == str(12 + partition) and one["batch"]["codec"] == "zstd"


def test_records_are_produced_to_partitions_of_all_leaders(cluster: FaultCluster, pages: list[Asked]) -> None:
    cluster.create_topic("to-far", PARTITIONS)

    def is_known() -> bool:
        return all(page.try_data("topic", name="to-far")[0] == 200 for page in pages)

    wait_until(is_known, 30, "the new topic on every broker")
    for number, page in enumerate(pages):
        for partition in range(PARTITIONS):
            told = page.act("produce", name="to-far", key="k", value="v", partition=partition)
            assert told == {"name": "to-far", "partition": partition, "offset": number}
    status, told = pages[0].try_act(
        "produce", name="to-far", value="v" * 900_000 + "w" * 200_000, partition=0
    )
    assert status in (400, 409, 413)


def test_offsets_are_changed_on_all_coordinators(cluster: FaultCluster, pages: list[Asked]) -> None:
    for number, page in enumerate(pages):
        group = f"far-{number}"
        commit(cluster.bootstrap_servers, group, {("far", partition): 5 for partition in range(PARTITIONS)})
        for other in pages:
            plan = other.act("offsets-plan", name=group, to="time", value=f"{T0_MS + 30_000}")
            assert [each["new_offset"] for each in plan["partitions"]] == [5] * PARTITIONS
        plan = page.act("offsets-plan", name=group, to="shift", value="-3")
        assert [each["new_offset"] for each in plan["partitions"]] == [2] * PARTITIONS
        page.act("offsets", name=group, offsets=plan["offsets"])
        assert committed_offset(cluster.bootstrap_servers, group, "far") == 2


def test_every_broker_can_copy_a_topic(cluster: FaultCluster, pages: list[Asked]) -> None:
    page = pages[1]
    page.act("copy", name="far", target="near")

    def done() -> bool:
        (copy,) = page.data("copy", name="far")["copies"]
        assert copy["state"] != "failed", copy
        return bool(copy["state"] == "done")

    wait_until(done, 30, "the copy of the topic", 0.05)
    wanted = keys(pages[0].all_messages(name="far", order="oldest", limit=500))
    assert keys(pages[2].all_messages(name="near", order="oldest", limit=500)) == wanted


def test_an_offline_leader_is_reported(cluster: FaultCluster, pages: list[Asked]) -> None:
    away = BROKER_IDS[2]
    reason = f"broker {away}, does not respond"
    with cluster.paused(away):
        told = pages[0].data("messages", name="far")
        reasons = [each["reason"] for each in told["problems"]]
        assert reasons and all(reason in each for each in reasons)
        assert told["records"]
