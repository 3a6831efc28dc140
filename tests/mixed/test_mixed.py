"""Our brokers and Apache Kafka 3.9.1's in one cluster: kills, controllers of both kinds, and brokers replaced
by the other kind on the same log directory, under acks=all load with a group and transactions.

Normal runs use one of our brokers and two of Apache Kafka's, and kill one of each kind under a controller of
the other kind. `--campaign` also kills our controller, and replaces every broker of Apache Kafka with ours
and back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.cluster import BROKER_IDS
from tests.mixed.cluster import GENUINE, OURS, MixedCluster
from tests.mixed.load import running
from tests.mixed.steps import Steps, check
from tests.support import campaign

pytestmark = pytest.mark.timeout(3000)


def test_killing_our_and_apache_kafkas_brokers_does_not_lose_acknowledged_records(tmp_path: Path) -> None:
    kinds = {1: OURS, 2: GENUINE, 3: GENUINE}
    with (
        MixedCluster(tmp_path, kinds, session_timeout_ms=3000) as cluster,
        running(
            cluster, tmp_path, clients=["confluent"], copier="librdkafka", total=1200, seconds=30
        ) as load,
    ):
        steps = Steps(cluster, load)
        steps.controller(OURS)
        steps.kill(2)
        if campaign.enabled():
            steps.kill(1)
        steps.controller(GENUINE)
        steps.kill(1)
        check(cluster, load)


@pytest.mark.skipif(not campaign.enabled(), reason="takes a quarter of an hour: with --campaign")
@pytest.mark.parametrize("copier", ["java-3.9.1", "librdkafka"])
def test_apache_kafka_brokers_can_be_replaced_one_by_one_with_ours_and_back(
    tmp_path: Path, copier: str
) -> None:
    with (
        MixedCluster(tmp_path, dict.fromkeys(BROKER_IDS, GENUINE)) as cluster,
        running(
            cluster, tmp_path, clients=["confluent", "java"], copier=copier, total=10_000, seconds=420
        ) as load,
    ):
        steps = Steps(cluster, load)
        for kind in (OURS, GENUINE):
            for count, broker_id in enumerate(BROKER_IDS, 1):
                steps.change(broker_id, kind)
                if count < len(BROKER_IDS):
                    # The cluster is mixed: with a controller of each kind, kill a broker of each kind.
                    for controller_kind in (OURS, GENUINE):
                        controller_id = steps.controller(controller_kind)
                        steps.kill(controller_id)
                        other = GENUINE if controller_kind == OURS else OURS
                        steps.kill(cluster.of_kind(other)[0])
            if kind == OURS:
                steps.kill(cluster.controller() or 1)
        check(cluster, load)
