"""ACLs of a standalone broker, which survive a stop, and kill -9 right after the response."""

from __future__ import annotations

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.logs.reading import wait_for
from tests.support.acl_requests import ALL, AUTHORIZER, CLUSTER, DENY, PREFIXED, acl, taking
from tests.support.servers import KafkaCompatBroker, StartBroker


def create(broker: KafkaCompatBroker, *acls: dict[str, object]) -> list[int]:
    with Connection(broker.address) as connection:
        answer = connection.ask(ApiKey.CREATE_ACLS, 3, {"creations": list(acls)})
    return [item["error_code"] for item in answer["results"]]


def names(broker: KafkaCompatBroker) -> set[str]:
    with Connection(broker.address) as connection:
        answer = connection.ask(ApiKey.DESCRIBE_ACLS, 3, taking())
    assert answer["error_code"] == ErrorCode.NONE
    return {item["resource_name"] for item in answer["resources"]}


@pytest.mark.parametrize("kill", [False, True])
def test_acls_survive_a_shutdown_and_a_kill(start_broker: StartBroker, kill: bool) -> None:
    broker = start_broker(AUTHORIZER)
    expected = set()
    for number in range(3):
        added = [acl(f"topic-{number}"), acl(f"prefix-{number}", resource_pattern_type=PREFIXED)]
        assert create(broker, *added) == [ErrorCode.NONE] * 2
        expected |= {f"topic-{number}", f"prefix-{number}"}
        broker.restart(kill=kill)
        assert names(broker) == expected
    with Connection(broker.address) as connection:
        wanted = taking(resource_name_filter="topic-1")
        (found,) = connection.ask(ApiKey.DELETE_ACLS, 3, {"filters": [wanted]})["filter_results"]
    assert len(found["matching_acls"]) == 1
    broker.restart(kill=kill)
    assert names(broker) == expected - {"topic-1"}


def test_a_locked_out_user_stays_locked_out_unless_made_a_super_user(start_broker: StartBroker) -> None:
    broker = start_broker(AUTHORIZER)
    denied = acl(
        "kafka-cluster", resource_type=CLUSTER, operation=ALL, permission_type=DENY, principal="User:*"
    )
    assert create(broker, denied) == [ErrorCode.NONE]
    assert create(broker, acl("orders")) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    broker.restart(kill=True)
    assert create(broker, acl("orders")) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    wait_for(broker, "User:ANONYMOUS")
    told = [line for line in broker.log.read_text().splitlines() if "User:ANONYMOUS is Denied" in line]
    assert "Operation = Alter from host = 127.0.0.1 on resource = Cluster:LITERAL:kafka-cluster" in told[0]
    broker.overrides["super.users"] = "User:ANONYMOUS"
    broker.restart()
    assert create(broker, acl("orders")) == [ErrorCode.NONE]
    assert names(broker) == {"orders", "kafka-cluster"}
