"""Callers of the request API: requests from sockets, the web console, the control API and tests get the same
responses, authorization, quotas and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from kafka_compat.api.caller import Caller
from kafka_compat.api.stages import Served
from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.page.visit import CLIENT_ID as PAGE
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import request_class
from tests.authorization.guest_requests import codes_in
from tests.authorization.policies import ADMIN_HOST, GUEST_HOST, GuestAuthorizer
from tests.conformance.batches import batch
from tests.conformance.wire import CLIENT_ID, Connection, Plain, build, plain

TOPICS: Plain = {"topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]}
PRODUCE: Plain = {
    "acks": -1,
    "timeout_ms": 9000,
    "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": batch(1)}]}],
}
MEMBER: Plain = {"group_id": "g", "generation_id": 1, "member_id": "m"}
REQUESTS: dict[ApiKey, tuple[int, Plain]] = {
    ApiKey.PRODUCE: (9, PRODUCE),
    ApiKey.FETCH: (
        12,
        {
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "session_epoch": -1,
            "topics": [
                {
                    "topic": "t",
                    "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9999}],
                }
            ],
        },
    ),
    ApiKey.LIST_OFFSETS: (
        5,
        {
            "replica_id": -1,
            "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        },
    ),
    ApiKey.METADATA: (9, {"topics": [{"name": "t"}]}),
    ApiKey.OFFSET_COMMIT: (
        5,
        {
            "group_id": "g",
            "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
        },
    ),
    ApiKey.OFFSET_FETCH: (5, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}),
    ApiKey.FIND_COORDINATOR: (3, {"key": "g"}),
    ApiKey.JOIN_GROUP: (4, {"group_id": "h", "session_timeout_ms": 9000, "protocol_type": "consumer"}),
    ApiKey.HEARTBEAT: (3, MEMBER),
    ApiKey.LEAVE_GROUP: (3, {"group_id": "g", "members": [{"member_id": "m"}]}),
    ApiKey.SYNC_GROUP: (3, MEMBER),
    ApiKey.DESCRIBE_GROUPS: (4, {"groups": ["g"]}),
    ApiKey.LIST_GROUPS: (3, {}),
    ApiKey.CREATE_TOPICS: (
        5,
        {"validate_only": True, "topics": [{"name": "n", "num_partitions": 1, "replication_factor": 1}]},
    ),
    ApiKey.DELETE_TOPICS: (5, {"topic_names": ["absent"], "timeout_ms": 9000}),
    ApiKey.DELETE_RECORDS: (
        1,
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "offset": 0}]}], "timeout_ms": 9000},
    ),
    ApiKey.INIT_PRODUCER_ID: (3, {"transactional_id": None}),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        3,
        {"replica_id": -1, "topics": [{"topic": "t", "partitions": [{"partition": 0, "leader_epoch": 0}]}]},
    ),
    ApiKey.DESCRIBE_CONFIGS: (2, {"resources": [{"resource_type": 2, "resource_name": "t"}]}),
    ApiKey.DESCRIBE_LOG_DIRS: (3, {"topics": None}),
    ApiKey.DELETE_GROUPS: (1, {"groups_names": ["absent"]}),
    ApiKey.DESCRIBE_CLUSTER: (0, {}),
    ApiKey.DESCRIBE_PRODUCERS: (0, {"topics": [{"name": "t", "partition_indexes": [0]}]}),
    ApiKey.LIST_TRANSACTIONS: (0, {}),
    ApiKey.API_VERSIONS: (3, {"client_software_name": "test", "client_software_version": "1"}),
}
DENIED = {ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_CLUSTER, ApiKey.LIST_TRANSACTIONS, ApiKey.API_VERSIONS}
"""APIs that filter their response for an unauthorized client instead of returning an error."""
AUTHORIZATION_FAILED = {29, 30, 31, 53}

Ask = Callable[[ApiKey, int, Plain], Awaitable[Plain]]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "kafka.compat.http.listener": "http://127.0.0.1:0",
        "offsets.topic.num.partitions": "1",
    }
    running = standalone_broker(BrokerConfig.from_properties(settings))
    await running.start()
    await running.services.topics.ensure("t", 1, 1, {})
    await running.services.topics.ensure_internal("__consumer_offsets")
    running.services.authorizer = GuestAuthorizer()
    yield running
    await running.stop()


def by_call(broker: Broker, caller: Caller) -> Ask:
    async def ask(key: ApiKey, version: int, request: Plain) -> Plain:
        message = build(request_class(key), request)
        if key is ApiKey.PRODUCE:
            message.topic_data[0].partition_data[0].records = memoryview(bytearray(batch(1)))
        response = await broker.calls.ask(caller, key, version, message)
        found: Plain = plain(response)
        return found

    return ask


def by_socket(connection: Connection) -> Ask:
    async def ask(key: ApiKey, version: int, request: Plain) -> Plain:
        return await asyncio.to_thread(connection.ask, key, version, request)

    return ask


def socket_of(broker: Broker, host: str, client_id: str = CLIENT_ID) -> Connection:
    return Connection("{}:{}".format(*broker.addresses["PLAINTEXT"]), client_id=client_id, source=host)


def inside(host: str, client_id: str = CLIENT_ID, *, is_trusted: bool = False) -> Caller:
    """Return a caller inside the broker process. The control API's caller is trusted; the web console's is
    not.
    """
    return Caller(host=host, listener_name="PLAINTEXT", client_id=client_id, is_trusted=is_trusted)


async def codes(ask: Ask) -> dict[ApiKey, set[int]]:
    return {
        key: set(codes_in(await ask(key, version, dict(request))))
        for key, (version, request) in REQUESTS.items()
    }


async def test_all_callers_get_the_same_responses(broker: Broker) -> None:
    assert len(REQUESTS) >= 20
    with socket_of(broker, ADMIN_HOST) as connection:
        by_client = await codes(by_socket(connection))
    assert not any(found & AUTHORIZATION_FAILED for found in by_client.values())
    for caller in (inside(ADMIN_HOST, PAGE), inside(GUEST_HOST, "control", is_trusted=True)):
        assert await codes(by_call(broker, caller)) == by_client
    counted = {key: count for key, _, count in broker.calls.counts.requests}
    assert counted == {**dict.fromkeys(REQUESTS, 3)}
    errors = broker.calls.counts.codes[ApiKey.HEARTBEAT].errors
    assert list(errors.values()) == [3], "errors are counted for every caller"


async def test_the_authorizer_applies_to_all_callers(broker: Broker) -> None:
    with socket_of(broker, GUEST_HOST) as connection:
        by_client = await codes(by_socket(connection))
    by_page = await codes(by_call(broker, inside(GUEST_HOST)))
    assert by_page == by_client
    for key in REQUESTS.keys() - DENIED:
        assert by_page[key] & AUTHORIZATION_FAILED, key.name


async def test_quotas_apply_to_all_callers(broker: Broker) -> None:
    entity = [{"entity_type": "client-id", "entity_name": None}]
    quota = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1.0}]}
    await by_call(broker, inside(ADMIN_HOST, is_trusted=True))(
        ApiKey.ALTER_CLIENT_QUOTAS, 0, {"entries": [quota]}
    )
    version, request = REQUESTS[ApiKey.PRODUCE]
    throttled: list[int] = []
    with socket_of(broker, ADMIN_HOST, "socket") as connection:
        for ask in (
            by_socket(connection),
            by_call(broker, inside(ADMIN_HOST, "page")),
            by_call(broker, inside(ADMIN_HOST, "control", is_trusted=True)),
        ):
            answer = await ask(ApiKey.PRODUCE, version, dict(request))
            throttled.append(answer["throttle_time_ms"])
    assert all(throttle_time_ms > 0 for throttle_time_ms in throttled), throttled


async def test_requests_from_all_callers_are_counted(broker: Broker) -> None:
    seen: list[Served] = []
    broker.calls.add_account(seen.append)
    version, request = REQUESTS[ApiKey.FETCH]
    with socket_of(broker, ADMIN_HOST) as connection:
        await by_socket(connection)(ApiKey.FETCH, version, dict(request))
    await by_call(broker, inside(ADMIN_HOST, PAGE))(ApiKey.FETCH, version, dict(request))
    assert [(each.api_key, each.client_id) for each in seen] == [
        (ApiKey.FETCH, CLIENT_ID),
        (ApiKey.FETCH, PAGE),
    ]
    assert seen[0].request_bytes > 0 and seen[1].request_bytes == 0


async def test_a_fetch_is_canceled_when_its_caller_stops_waiting(broker: Broker) -> None:
    version, request = REQUESTS[ApiKey.FETCH]
    waiting = {**request, "max_wait_ms": 60_000, "min_bytes": 1 << 20}
    ask = by_call(broker, inside(ADMIN_HOST))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await ask(ApiKey.FETCH, version, waiting)
    assert not broker.services.replicas.delayed_fetches
