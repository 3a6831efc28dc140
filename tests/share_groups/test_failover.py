"""No record of a share group is lost if three brokers on ZooKeeper fail under load: leaders of partitions,
share coordinators and the group's coordinator move. Each record is accepted or rejected, or released at the
delivery count limit, and its delivery counts follow the rules.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from tests.faults.cluster import BROKER_IDS
from tests.share_groups.brokers import ShareBrokers
from tests.share_groups.load import Load, check
from tests.share_groups.share_members import Deliveries, ShareMembers, configure_group
from tests.support import campaign

TOPIC = GROUP = "moving"
PARTITIONS = 3
LIMIT = 10
RECORDS = campaign.rounds(1_000, 50_000)
FAULTS = ("kill", "expire", *(("pause", "stop") if campaign.enabled() else ())) * campaign.rounds(1, 10)
"""kill: kill -9 of a broker. expire: its ZooKeeper session ends while clients still reach it. pause: it
stands still until another broker has taken over. stop: a clean stop. Normal runs test the first two.
"""
MEMBER_KILLS = campaign.rounds(1, 30)
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
}
GROUP_SETTINGS = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}


def _fail(cluster: ShareBrokers, kind: str, broker_id: int) -> None:
    """Let a broker fail until others have taken over, and recover."""
    if kind in ("kill", "stop"):
        if kind == "kill":
            cluster.brokers[broker_id].kill()
        else:
            cluster.brokers[broker_id].process.stop()
        cluster.wait_without(broker_id, TOPIC)
        cluster.wait_without(broker_id, SHARE_STATE_TOPIC)
        cluster.start(broker_id)
    elif kind == "pause":
        with cluster.paused(broker_id):
            cluster.wait_without(broker_id, TOPIC)
    else:
        cluster.proxies[broker_id].silence()
        cluster.wait_without(broker_id, TOPIC)
        cluster.proxies[broker_id].resume()
    cluster.wait_in_sync(TOPIC)
    cluster.wait_in_sync(SHARE_STATE_TOPIC)


@pytest.mark.timeout(3600)
def test_failing_brokers_lose_no_record_and_no_acknowledgement(tmp_path: Path) -> None:
    choose = random.Random(3)
    deliveries = Deliveries(LIMIT)
    with ShareBrokers(tmp_path, session_timeout_ms=2_000, proxied=True, overrides=SETTINGS) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        configure_group(cluster.address, GROUP, GROUP_SETTINGS)

        def members() -> ShareMembers:
            return ShareMembers(
                cluster.bootstrap_servers,
                TOPIC,
                GROUP,
                tmp_path / "members.log",
                deliveries,
                acquire_mode=choose.choice(("batch_optimized", "record_limit")),
                max_poll_records=choose.choice((10, 100)),
            )

        running = [members() for _ in range(2)]
        try:
            load = Load(cluster.bootstrap_servers, TOPIC, PARTITIONS, RECORDS, 0.015)
            events = [*FAULTS, *["member"] * MEMBER_KILLS]
            choose.shuffle(events)
            for event in events:
                load.await_progress(deliveries)
                if event == "member":
                    running[0].kill()
                    running[0] = members()
                else:
                    leaders = [each.leader for each in cluster.states(TOPIC).values()]
                    _fail(cluster, event, choose.choice((*leaders, *BROKER_IDS)))
            load.await_delivery(GROUP, [each.address for each in cluster.brokers.values()])
            for each in running:
                each.stop()
        finally:
            for each in running:
                with suppress(ValueError):
                    each.__exit__()
        for broker in cluster.brokers.values():
            assert "Traceback" not in broker.log.read_text(errors="replace")
    # A partition may get a new leader twice for each fault: the preferred leader returns.
    check(deliveries, RECORDS, terms=1 + 2 * len(FAULTS), failures=MEMBER_KILLS + len(FAULTS))
