"""Permission for clients to request subscriptions and push, depending on a manual clock."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.telemetry.instances import NOBODY, ClientInstance, ClientInstances, Push
from kafka_compat.telemetry.subscriptions import DEFAULT_INTERVAL_MS, Client, subscription

CLIENT = Client("c", "s", "1", "127.0.0.1", "1")
ID, OTHER = UUID(int=7), UUID(int=8)
INTERVAL_MS = 1000
TOO_LATE = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
TOO_EARLY = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture
def instances() -> ClientInstances:
    ids: Iterator[UUID] = iter([NOBODY, UUID(int=1), ID, ID, OTHER])
    made = ClientInstances(lambda: next(ids), max_bytes=100, instances_max=3)
    made.subscribe([subscription({"metrics": "*", "interval.ms": str(INTERVAL_MS)})])
    return made


def _ask(instances: ClientInstances, now_ms: int, instance_id: UUID = ID) -> ClientInstance | ErrorCode:
    found_id, found = instances.ask(instance_id, CLIENT, now_ms)
    assert found_id == instance_id
    return found


def _subscribed(instances: ClientInstances, now_ms: int, instance_id: UUID = ID) -> int:
    found = _ask(instances, now_ms, instance_id)
    assert isinstance(found, ClientInstance)
    return found.wanted.subscription_id


def _push(
    instances: ClientInstances,
    now_ms: int,
    subscription_id: int,
    *,
    last: bool = False,
    codec: int = 0,
    size: int = 10,
) -> ErrorCode:
    known, error = instances.push(ID, CLIENT, Push(subscription_id, last, codec, size), now_ms)
    assert known is not None
    return error


def test_each_client_without_an_instance_id_gets_a_new_instance_id(instances: ClientInstances) -> None:
    first, found = instances.ask(NOBODY, CLIENT, 0)
    assert first == ID and isinstance(found, ClientInstance)
    assert found.wanted.metrics == ("*",) and found.wanted.interval_ms == INTERVAL_MS
    second, _ = instances.ask(NOBODY, CLIENT, 0)
    assert second == OTHER


def test_one_subscription_request_is_allowed_per_interval(instances: ClientInstances) -> None:
    _subscribed(instances, 0)
    assert _ask(instances, INTERVAL_MS - 1) == TOO_EARLY
    _subscribed(instances, INTERVAL_MS)


def test_one_push_is_allowed_per_interval_and_after_a_subscription_request(
    instances: ClientInstances,
) -> None:
    wanted = _subscribed(instances, 0)
    assert _push(instances, 1, wanted) == ErrorCode.NONE
    assert _push(instances, INTERVAL_MS, wanted) == TOO_EARLY
    assert _push(instances, INTERVAL_MS + 1, wanted) == ErrorCode.NONE
    # A client may send its last push at any time, and none afterwards.
    assert _push(instances, INTERVAL_MS + 2, wanted, last=True) == ErrorCode.NONE
    assert _push(instances, 9 * INTERVAL_MS, wanted) == ErrorCode.INVALID_REQUEST


def test_a_client_rejected_for_its_subscription_or_codec_can_resubscribe_immediately(
    instances: ClientInstances,
) -> None:
    wanted = _subscribed(instances, 0)
    assert _push(instances, 1, wanted + 1) == TOO_LATE
    assert _subscribed(instances, 2) == wanted
    # As in Kafka, a subscription request does not allow an earlier push.
    assert _push(instances, 3, wanted) == TOO_EARLY
    now_ms = 1 + INTERVAL_MS
    assert _push(instances, now_ms, wanted, codec=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    _subscribed(instances, now_ms + 1)
    now_ms += INTERVAL_MS
    assert _push(instances, now_ms, wanted, size=101) == ErrorCode.TELEMETRY_TOO_LARGE
    assert _ask(instances, now_ms + 1) == TOO_EARLY


def test_a_push_for_an_outdated_subscription_is_rejected(instances: ClientInstances) -> None:
    before = _subscribed(instances, 0)
    instances.subscribe([subscription({"metrics": "a."})])
    assert _push(instances, 1, before) == TOO_LATE
    after = _subscribed(instances, 2)
    assert after != before and _push(instances, 1 + DEFAULT_INTERVAL_MS, after) == ErrorCode.NONE


def test_a_push_needs_a_client_instance_id(instances: ClientInstances) -> None:
    for number in (0, 1):
        found = instances.push(UUID(int=number), CLIENT, Push(0, False, 0, 0), 0)
        assert found == (None, ErrorCode.INVALID_REQUEST)
    assert len(instances) == 0


def test_idle_client_instances_are_dropped(instances: ClientInstances) -> None:
    for number in range(10, 14):
        _subscribed(instances, number, UUID(int=number))
    assert len(instances) == 3
    # The least recently seen instance was dropped, so it is new.
    _subscribed(instances, 14, UUID(int=10))
    instances.forget(UUID(int=10))
    instances.forget(UUID(int=99))
    assert len(instances) == 2
    # Instances are kept for at least a minute, which is more than three intervals here.
    _subscribed(instances, 13 + 60_000, ID)
    assert len(instances) == 1
