"""No record of a share group is lost if members and the broker are killed with kill -9 under load: each is
accepted or rejected, or released at the delivery count limit, and its delivery counts follow the rules.

Members acknowledge as share_members.py describes. The limit is so high that kills alone never reach it.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.share_groups.load import Load, check
from tests.share_groups.share_members import Deliveries, ShareMembers, configure_group, create_topic
from tests.support import campaign
from tests.support.servers import StartBroker

TOPIC = GROUP = "killed"
PARTITIONS = 3
LIMIT = 10
PROCESSES = 3
RECORDS = campaign.rounds(1_500, 100_000)
MEMBER_KILLS = campaign.rounds(3, 200)
BROKER_KILLS = campaign.rounds(2, 20)
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
GROUP_SETTINGS = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}


@pytest.mark.timeout(3600)
def test_kills_of_members_and_brokers_lose_no_record(start_broker: StartBroker, tmp_path: Path) -> None:
    choose = random.Random(1)
    broker = start_broker(SETTINGS)
    create_topic(broker.address, TOPIC, PARTITIONS)
    configure_group(broker.address, GROUP, GROUP_SETTINGS)
    deliveries = Deliveries(LIMIT)

    def members() -> ShareMembers:
        mode = choose.choice(("batch_optimized", "record_limit"))
        return ShareMembers(
            broker.address,
            TOPIC,
            GROUP,
            tmp_path / "members.log",
            deliveries,
            acquire_mode=mode,
            max_poll_records=choose.choice((10, 50, 500)),
        )

    running = [members() for _ in range(PROCESSES)]
    try:
        load = Load(broker.address, TOPIC, PARTITIONS, RECORDS, 0.01)
        kills = ["member"] * MEMBER_KILLS + ["broker"] * BROKER_KILLS
        choose.shuffle(kills)
        for kill in kills:
            load.await_progress(deliveries)
            if kill == "broker":
                broker.restart(kill=True)
            else:
                number = choose.randrange(PROCESSES)
                running[number].kill()
                running[number] = members()
        load.await_delivery(GROUP, [broker.address])
        for each in running:
            each.stop()
    finally:
        for each in running:
            with suppress(ValueError):
                each.__exit__()
    check(deliveries, RECORDS, terms=1 + BROKER_KILLS, failures=MEMBER_KILLS + BROKER_KILLS)
