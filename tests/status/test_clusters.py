"""kafka-compat status of three brokers, ours and genuine Kafka 3.9.1: well, and with one of them stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.pair import SETTLE_S, Pair, Side, running
from tests.status import world
from tests.status.world import one, status
from tests.support.servers import run_kafka_compat

TOPICS = {
    "everywhere": ([[1, 2, 3], [2, 3, 1], [3, 1, 2]], {}),
    "careful": ([[1, 3]], {"min.insync.replicas": "2"}),
    "lost": ([[3], [1]], {}),
}
"""The brokers of each partition's replicas, the first leader first, and settings."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    settings = {"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "3"}
    with running(tmp_path_factory.mktemp("status"), settings) as found:
        found.both(_prepare)
        yield found


def _prepare(side: Side) -> None:
    for name, (places, settings) in TOPICS.items():
        world.make_topic(side.alive, name, places, **settings)
    world.write(side.alive, "everywhere")
    world.commit(side.alive, "billing", "everywhere", 3)


def _until(side: Side, kinds: list[str]) -> dict[str, Any]:
    """What it tells once these are its problems; what it told at the end, otherwise."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        code, found = status(side.alive)
        if [each["kind"] for each in found["problems"]] == kinds or time.monotonic() > deadline:
            assert code == bool(found["problems"])
            return found


def _without_what_differs(found: dict[str, Any]) -> dict[str, Any]:
    """Ports, times, folders and sizes on disks are a cluster's own."""
    topics = [
        {
            "name": topic["name"],
            "records": topic["records"],
            "min_insync_replicas": topic["min_insync_replicas"],
            "partitions": [
                {key: value for key, value in each.items() if not key.endswith("_bytes")}
                for each in topic["partitions"]
            ],
        }
        for topic in found["topics"]
        if topic["name"] in TOPICS
    ]
    return {
        "problems": found["problems"],
        "brokers": [(each["id"], each["is_up"], each["fault"]) for each in found["brokers"]],
        "topics": topics,
        "groups": [(each["group"], each["state"], each["lag"]) for each in found["groups"]],
    }


def test_the_status_of_a_cluster_reflects_a_lost_broker(pair: Pair) -> None:
    """Well; without broker 3; well again."""
    ours, genuine = pair.both(lambda side: _until(side, []))
    assert ours["problems"] == []
    assert _without_what_differs(ours) == _without_what_differs(genuine)
    assert one(ours["groups"], "group", "billing")["lag"] == 7
    everywhere = one(ours["topics"], "name", "everywhere")
    assert everywhere["disk_bytes"] == 3 * everywhere["size_bytes"] > 0
    assert {each["broker"] for each in ours["log_dirs"]} == {1, 2, 3}

    pair.both(lambda side: side.brokers[3].stop())
    kinds = ["broker-not-up", "no-leader", "under-min-isr", "under-replicated"]
    ours, genuine = pair.both(lambda side: _until(side, kinds))
    assert _without_what_differs(ours) == _without_what_differs(genuine)
    assert [each["kind"] for each in ours["problems"]] == kinds
    texts = [each["text"] for each in ours["problems"]]
    assert texts[0].startswith("broker 3 is down: it is not in the cluster; ")
    assert texts[1] == (
        "1 partition of lost has no leader and cannot be written or read (partition 0); "
        "broker 3 can become leader again once available"
    )
    assert [each["subjects"] for each in ours["problems"]][:3] == [["3"], ["lost-0"], ["careful-0"]]
    assert {"everywhere-0", "everywhere-1", "everywhere-2"} <= set(ours["problems"][3]["subjects"])

    for side in pair.sides:
        done = run_kafka_compat("status", "--bootstrap-server", side.alive)
        assert done.returncode == 1 and done.stdout.splitlines()[2] == "4 problems:", side.name
        assert max(map(len, done.stdout.splitlines())) <= 80

    pair.both(lambda side: side.brokers[3].start())
    ours, _ = pair.both(lambda side: _until(side, []))
    assert ours["problems"] == []


def test_a_hanging_broker_delays_the_status_only_by_the_timeout(pair: Pair) -> None:
    import os
    import signal

    side = pair.ours
    others = f"{side.brokers[1].address},{side.brokers[2].address}"
    os.kill(side.brokers[3].pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        code, found = status(others, "--timeout", "1")
        took_s = time.monotonic() - began
    finally:
        os.kill(side.brokers[3].pid, signal.SIGCONT)
    told = one(found["brokers"], "id", 3)
    assert code == 1 and told["fault"] in ("no response in time", "it is not in the cluster")
    assert one(found["topics"], "name", "everywhere")["partitions"][0]["end_offset"] == world.RECORDS
    assert took_s < 20
    _until(side, [])
