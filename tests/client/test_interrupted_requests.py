"""Requests that Ctrl-C or a signal interrupts."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.connection import Connection
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import KafkaBroker


def test_the_next_request_does_not_get_the_response_to_an_interrupted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receive = Connection.receive

    def interrupted(*_: Any) -> Any:
        monkeypatch.setattr(Connection, "receive", receive)
        raise KeyboardInterrupt

    with KafkaBroker() as broker, Cluster(broker.bootstrap_servers, {}) as cluster:
        cluster.metadata([])
        (node_id,) = (each for each in cluster.nodes if each >= 0)
        cluster.ask_broker(node_id, ApiKey.LIST_GROUPS, "listGroups")
        monkeypatch.setattr(Connection, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cluster.ask_broker(node_id, ApiKey.DESCRIBE_CLUSTER, "describeCluster")
        assert cluster.ask_broker(node_id, ApiKey.LIST_GROUPS, "listGroups").groups == []
