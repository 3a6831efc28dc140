"""Responses to a guest with some permissions, compared with Apache Kafka 3.9.1 with its AclAuthorizer.

Every API is requested for resources that the guest may use, may partly use or may not use, with random
policies. All fields of the responses are compared.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from kafka_compat.handlers.served import CLUSTER_SERVED
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import Operation, ResourceType
from tests.authorization.fetch_sessions import Session
from tests.authorization.guest_requests import METRICS_CONFIG, Ask, codes_in, everything, prepare
from tests.authorization.policies import Policy, Resource
from tests.authorization.servers import Denials, World
from tests.conformance.batches import batch
from tests.conformance.comparison import differences, neutral
from tests.support import campaign

_DENIED = {29, 30, 31, 53}
_ASKS_NOBODY = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
"""APIs that do not consult the authorizer here. Clients on PLAINTEXT listeners get no delegation tokens,
whatever their permissions."""
_LEAVES_OUT = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_CLUSTER}
"""APIs that omit denied resources instead of returning an error."""
_ELSEWHERE = {
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
}
"""APIs that other tests cover: the ACL store is tested separately, and ZooKeeper mode has neither
DescribeTopicPartitions nor ListConfigResources nor consumer groups nor share groups."""
_SHARES = (0.0, 1.0, 0.25, 0.5, 0.1, 0.6)


def test_every_response_matches_apache_kafkas(brokers: World) -> None:
    chance = random.Random(39)
    refused: set[ApiKey] = set()
    served: set[ApiKey] = set()
    found: list[str] = []
    for number in range(campaign.rounds(6, 60)):
        names = prepare(brokers.admin)
        share = _SHARES[number % len(_SHARES)]
        policy = Policy.random(names.resources(), chance, share)
        brokers.set_policy(policy)
        brokers.denied_aloud()
        aloud: Denials = {}
        for ask in everything(names):
            versions = _versions(brokers, ask)
            # Use the newest version if the policy grants everything or nothing, because old versions cannot
            # return every error.
            version = versions[-1] if share in (0, 1) else chance.choice(versions)
            brokers.authorizer.denied_aloud.clear()
            lines, codes = _compare(brokers, ask, version)
            (refused if codes & _DENIED else served).add(ask.api_key)
            found += [f"round {number} {line}" for line in lines]
            if brokers.authorizer.denied_aloud:
                name = ask.api_key.name.replace("_", "").lower()
                aloud.setdefault(name, set()).update(brokers.authorizer.denied_aloud)
        found += [f"round {number} {line}" for line in _audited(aloud, brokers.denied_aloud())]
        if found:
            found.append(f"with {policy}")
            break
    assert not found, "\n".join(found[:80])
    asked = CLUSTER_SERVED.keys() - _ASKS_NOBODY - _ELSEWHERE
    assert served >= asked, "some APIs were always denied"
    assert refused >= asked - _LEAVES_OUT, "some APIs were never denied"


def _versions(brokers: World, ask: Ask) -> range:
    versions = brokers.guest.versions(ask.api_key, ask.low, ask.high)
    assert versions, f"{ask.api_key.name} {ask.low}-{ask.high}: not supported by Apache Kafka"
    return versions


def _compare(brokers: World, ask: Ask, version: int) -> tuple[list[str], set[int]]:
    """Return the differences, and the error codes of our response."""
    ours, genuine = brokers.guest.both(ask.api_key, version, ask.request)
    codes = set(codes_in(ours))
    mine, theirs = (neutral(ask.neutral(answer), ask.api_key) for answer in (ours, genuine))
    shown = differences(mine, theirs, ask.api_key)
    return [f"{ask.api_key.name} {ask.what} v{version}{line}" for line in shown], codes


def _audited(ours: Denials, genuine: Denials) -> Iterator[str]:
    """Yield the differences between the audit logs of a round."""
    for api in sorted(ours.keys() | genuine.keys()):
        mine, theirs = ours.get(api, set()), genuine.get(api, set())
        if mine != theirs:
            yield f"{api}: only in ours: {sorted(mine - theirs)}, only in Kafka's: {sorted(theirs - mine)}"


def test_telemetry_subscriptions_need_permission_on_the_cluster(brokers: World) -> None:
    """The permissions are those of KRaft brokers. Apache Kafka is not compared, because ZooKeeper mode has no
    telemetry subscriptions.
    """
    ours = brokers.guest.sides["ours"]
    metrics = {"resource_type": METRICS_CONFIG, "resource_name": "x", "configs": []}
    change = {"resources": [metrics], "validate_only": True}

    def codes() -> list[int]:
        altered = ours.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change)["responses"][0]["error_code"]
        listed = ours.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": []})["error_code"]
        return [altered, listed]

    cluster = Resource(ResourceType.CLUSTER, "kafka-cluster")
    brokers.set_policy(Policy())
    assert codes() == [31, 31]
    brokers.set_policy(Policy({cluster: [Operation.DESCRIBE_CONFIGS]}))
    assert codes() == [31, 0]
    brokers.set_policy(Policy({cluster: [Operation.ALTER_CONFIGS]}))
    assert codes() == [0, 0], "permission to alter implies permission to describe"


def reading(*topics: str) -> Policy:
    return Policy({Resource(ResourceType.TOPIC, topic): [Operation.READ] for topic in topics})


@pytest.mark.parametrize("version", [7, 11, 12, 13, 16])
def test_denied_partitions_remain_in_the_fetch_session(brokers: World, version: int) -> None:
    guest, admin = brokers.guest, brokers.admin
    kept, lost = admin.topic(), admin.topic()
    brokers.set_policy(reading(kept, lost))
    records = [{"name": lost, "partition_data": [{"index": 0, "records": batch(1)}]}]
    produced = {"acks": -1, "timeout_ms": 9000, "topic_data": records}
    admin.same(ApiKey.PRODUCE, produced, (8,))
    session = Session(guest, version, {kept: 0, lost: 1})
    assert session.told == {kept: 0, lost: 0}
    assert session.again() == {}, "an incremental fetch without changes is empty"
    brokers.set_policy(reading(kept))
    assert session.again() == {lost: 29}
    assert session.again() == {lost: 29}, "the error is repeated in every fetch"
    admin.same(ApiKey.PRODUCE, produced, (8,))
    assert session.again() == {lost: 29}
    brokers.set_policy(reading(kept, lost))
    assert session.again() == {lost: 0}, "the record written while access was denied is returned"
    brokers.set_policy(Policy())
    assert session.again() == {kept: 29, lost: 29}


@pytest.mark.parametrize("version", [4, 11, 13])
def test_denied_partitions_do_not_complete_a_waiting_fetch(brokers: World, version: int) -> None:
    """If a denied partition completed the fetch, a consumer of both partitions would send fetch requests in a
    tight loop.
    """
    may, must_not = brokers.admin.topic(), brokers.admin.topic()
    brokers.set_policy(reading(may))
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9999}
    request = {"replica_id": -1, "max_wait_ms": 300, "min_bytes": 1, "max_bytes": 9999, "session_epoch": -1}
    for side, connection in brokers.guest.sides.items():
        took_s = {}
        for topics in ((may, must_not), (must_not,)):
            wanted = [
                {"topic": name, "topic_id": brokers.admin.ids(name)[side], "partitions": [partition]}
                for name in topics
            ]
            began_s = time.monotonic()
            answer = connection.ask(ApiKey.FETCH, version, {**request, "topics": wanted})
            took_s[topics] = time.monotonic() - began_s
            codes = sorted(item["partitions"][0]["error_code"] for item in answer["responses"])
            assert codes == [0, 29][-len(topics) :], (side, answer)
        assert took_s[may, must_not] >= 0.3, side
        assert took_s[must_not,] < 0.3, side
