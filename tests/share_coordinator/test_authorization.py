"""Only brokers, which have CLUSTER_ACTION, may use the share coordinator. Other clients get the responses of
Apache Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType
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
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

GUEST_HOST = "127.0.0.2"
DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_DENY, _ALLOW, _LITERAL = 2, 3, 3
_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StateClient, StateClient]]:
    """Clients of this broker and of Apache Kafka without CLUSTER_ACTION."""
    settings = SETTINGS | {"allow.everyone.if.no.acl.found": "true"}
    genuine = GenuineKafka(
        tmp_path_factory.mktemp("genuine"),
        settings | {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
        version=NEWEST_VERSION,
        mode="kraft",
    )
    ours = KafkaCompatBroker(
        tmp_path_factory.mktemp("ours"),
        settings | {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
    )
    genuine.launch()
    ours.start(_TIMEOUT_S)
    genuine.wait_ready(_TIMEOUT_S)
    yield _guest(ours), _guest(genuine)
    ours.stop()
    genuine.stop()


def _guest(server: Server) -> StateClient:
    admin = StateClient(server, {})
    rules = [(GUEST_HOST, Operation.CLUSTER_ACTION, _DENY), ("*", Operation.ALL, _ALLOW)]
    created = admin.ask(
        ApiKey.CREATE_ACLS,
        2,
        creations=[
            {
                "resource_type": ResourceType.CLUSTER,
                "resource_name": CLUSTER_NAME,
                "resource_pattern_type": _LITERAL,
                "principal": "User:ANONYMOUS",
                "host": host,
                "operation": operation,
                "permission_type": permission,
            }
            for host, operation, permission in rules
        ],
    )
    assert [result["error_code"] for result in created["results"]] == [0, 0]
    admin.close()
    guest = StateClient(server, {}, source=GUEST_HOST)
    wait_until(
        lambda: guest.find(guest.key("g", "unknown", 0))["error_code"] == DENIED, _TIMEOUT_S, "a denial"
    )
    return guest


@pytest.mark.parametrize("api_key", [INITIALIZE, READ, WRITE, DELETE, SUMMARY])
@pytest.mark.timeout(900)
def test_each_partition_is_denied_to_other_clients(
    guests: tuple[StateClient, StateClient], api_key: ApiKey
) -> None:
    request = part("g", "unknown", {"partition": 5}, {"partition": 3})
    mine, its = (guest.state(api_key, 0, request) for guest in guests)
    assert mine == its
    partitions: list[Plain] = mine["results"][0]["partitions"]
    assert [(found["partition"], found["error_code"]) for found in partitions] == [(5, DENIED), (3, DENIED)]


@pytest.mark.timeout(900)
def test_share_coordinators_are_not_told_to_other_clients(guests: tuple[StateClient, StateClient]) -> None:
    for key in (guests[0].key("g", "unknown", 0), "invalid"):
        mine, its = (guest.find(key) for guest in guests)
        assert mine == its
        assert mine["error_code"] == DENIED
