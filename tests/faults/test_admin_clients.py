"""Clients that were opened before the controller of a quorum was killed, with kill -9."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.cluster import BROKER_IDS
from tests.faults.quorum_cluster import QuorumFaultCluster
from tests.support import campaign
from tests.support.process import wait_until

_KILLS = 3
_CLIENTS = 6
_REQUEST_S = 10.0


@pytest.mark.skipif(not campaign.enabled(), reason="takes a minute: with --campaign")
@pytest.mark.timeout(900)
def test_an_open_client_creates_a_topic_unless_the_broker_that_it_takes_for_the_controller_was_killed(
    tmp_path: Path,
) -> None:
    """The other clients have to wait for their request timeout, as with Apache Kafka: librdkafka does not ask
    again who the controller is. There are few of them, because each broker names itself.
    """
    with QuorumFaultCluster(tmp_path) as cluster:
        for kill in range(_KILLS):
            clients = [AdminClient({"bootstrap.servers": cluster.bootstrap_servers}) for _ in range(_CLIENTS)]
            named = [client.list_topics(timeout=20).controller_id for client in clients]
            assert set(named) <= set(cluster.brokers)
            killed = cluster.controller() if kill % 2 == 0 else cluster.quorum_leader()
            assert killed is not None
            cluster.brokers[killed].kill()
            time.sleep(0.2)  # the clients notice that the connection is closed
            created = [
                client.create_topics(
                    [NewTopic(f"topic-{kill}-{number}", 1, 2)], request_timeout=_REQUEST_S
                ).popitem()[1]
                for number, client in enumerate(clients)
                if named[number] != killed
            ]
            for each in created:
                each.result(_REQUEST_S)
            cluster.start(killed)
            wait_until(lambda: cluster.registered() == set(BROKER_IDS), 60, "registration of all brokers")
