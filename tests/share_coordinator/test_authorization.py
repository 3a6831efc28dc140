"""Only brokers, which have CLUSTER_ACTION, may use the share coordinator."""

from __future__ import annotations

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Plain
from tests.share_coordinator.state_requests import (
    DELETE,
    INITIALIZE,
    READ,
    SETTINGS,
    SUMMARY,
    WRITE,
    StateClient,
    part,
)
from tests.support.servers import StartBroker

DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.fixture
def client(start_broker: StartBroker) -> StateClient:
    authorizer = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    return StateClient(start_broker(SETTINGS | authorizer), {})


@pytest.mark.parametrize("api_key", [INITIALIZE, READ, WRITE, DELETE, SUMMARY])
def test_each_partition_is_denied_to_other_clients(client: StateClient, api_key: ApiKey) -> None:
    response = client.state(api_key, 0, part("g", "unknown", {"partition": 5}, {"partition": 3}))
    partitions: list[Plain] = response["results"][0]["partitions"]
    assert [(found["partition"], found["error_code"], found["error_message"]) for found in partitions] == [
        (5, DENIED, "Cluster authorization failed."),
        (3, DENIED, "Cluster authorization failed."),
    ]
    client.close()


def test_share_coordinators_are_not_told_to_other_clients(client: StateClient) -> None:
    found = client.find(client.key("g", "unknown", 0))
    assert (found["error_code"], found["node_id"]) == (DENIED, -1)
    client.close()
