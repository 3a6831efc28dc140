"""Actions of clients of share groups (KIP-932) that create and remove state on a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.wire import Connection, Plain
from tests.memory.client_actions import GROUP, TOPIC, Act, Place, connect, produce, settled, topic
from tests.memory.leftover_objects import MARK
from tests.support.process import wait_until

PATIENCE_S = 20
_MEMBER = f"{MARK}-member"
_GROUP_ID_NOT_FOUND = 69
_UNKNOWN_MEMBER_ID = 25


def _heartbeat(connection: Connection, epoch: int, topics: list[str] | None, error: int = 0) -> Plain:
    request = {
        "group_id": GROUP,
        "member_id": _MEMBER,
        "member_epoch": epoch,
        "subscribed_topic_names": topics,
    }
    accepted = (error,)
    return settled(connection, ApiKey.SHARE_GROUP_HEARTBEAT, 1, request, accepted=accepted)


def _delete_group(connection: Connection, accepted: tuple[int, ...] = (0,)) -> None:
    request = {"groups_names": [GROUP]}
    settled(connection, ApiKey.DELETE_GROUPS, 1, request, "results", 0, accepted=accepted)


def _joined(connection: Connection) -> int:
    """Join the group, wait until partitions are assigned, and return the member's epoch."""
    settled(connection, ApiKey.FIND_COORDINATOR, 2, {"key": GROUP, "key_type": 0})
    found = _heartbeat(connection, 0, [TOPIC])

    def is_assigned() -> bool:
        found.update(_heartbeat(connection, found["member_epoch"], [TOPIC]))
        return bool(found["assignment"] and found["assignment"]["topic_partitions"])

    wait_until(is_assigned, PATIENCE_S, "an assignment", 0.05)
    epoch: int = found["member_epoch"]
    return epoch


def _alter_offsets(connection: Connection) -> UUID:
    """Make a group without members, with states for the topic. Return the topic ID."""
    settled(connection, ApiKey.FIND_COORDINATOR, 2, {"key": GROUP, "key_type": 0})
    parts = [{"partition_index": number, "start_offset": 0} for number in range(2)]
    request = {"group_id": GROUP, "topics": [{"topic_name": TOPIC, "partitions": parts}]}
    answer = settled(connection, ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, request)
    assert [part["error_code"] for part in answer["responses"][0]["partitions"]] == [0, 0], answer
    topic_id: UUID = answer["responses"][0]["topic_id"]
    return topic_id


def _fetch_request(topic_id: UUID, epoch: int, max_wait_ms: int = 10_000, **more: object) -> Plain:
    parts = [{"partition_index": number} for number in range(2)]
    return {
        "group_id": GROUP,
        "member_id": _MEMBER,
        "share_session_epoch": epoch,
        "max_wait_ms": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 100,
        "batch_size": 100,
        "topics": [{"topic_id": topic_id, "partitions": parts}],
        **more,
    }


def _acquired(connection: Connection, topic_id: UUID) -> None:
    answer = connection.ask(ApiKey.SHARE_FETCH, 2, _fetch_request(topic_id, 0))
    parts = [part for topic in answer["responses"] for part in topic["partitions"]]
    assert sum(len(part["acquired_records"]) for part in parts) == 1, answer


def _acknowledge(connection: Connection, topic_id: UUID, epoch: int) -> None:
    batches = [{"first_offset": n, "last_offset": n, "acknowledge_types": [n]} for n in (1, 2)]
    parts = [{"partition_index": 0, "acknowledgement_batches": batches}]
    request = {
        "group_id": GROUP,
        "member_id": _MEMBER,
        "share_session_epoch": epoch,
        "topics": [{"topic_id": topic_id, "partitions": parts}],
    }
    answer = connection.ask(ApiKey.SHARE_ACKNOWLEDGE, 2, request)
    assert answer["responses"][0]["partitions"][0]["error_code"] == 0, answer


@contextmanager
def _states(place: Place) -> Iterator[UUID]:
    """The topic with records, and a group with states for it, which is deleted first."""
    with connect(place) as admin, topic(admin):
        produce(admin, batch(5))
        try:
            yield _alter_offsets(admin)
        finally:
            _delete_group(admin)


def a_share_group_whose_member_leaves(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        _joined(connection)
        _heartbeat(connection, -1, None)
        _delete_group(connection)


def a_share_group_whose_member_expires(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        _joined(connection)
        # Meanwhile, the group is not empty, and the request is repeated.
        _delete_group(connection)


def a_share_session(place: Place) -> None:
    with _states(place) as topic_id, connect(place) as connection:
        _acquired(connection, topic_id)
        _acknowledge(connection, topic_id, 1)
        end = _fetch_request(topic_id, -1)
        assert connection.ask(ApiKey.SHARE_FETCH, 2, end)["error_code"] == 0


def a_share_session_of_a_client_that_leaves(place: Place) -> None:
    with _states(place) as topic_id:
        with connect(place) as connection:
            _acquired(connection, topic_id)
        with connect(place) as connection:
            _acquired(connection, topic_id)
            # It waits for further records.
            connection.begin(ApiKey.SHARE_FETCH, 2, _fetch_request(topic_id, 1, 60_000))


def a_share_session_that_is_replaced(place: Place) -> None:
    with _states(place) as topic_id, connect(place) as old, connect(place) as new:
        _acquired(old, topic_id)
        assert new.ask(ApiKey.SHARE_FETCH, 2, _fetch_request(topic_id, 0, 50))["error_code"] == 0


def refused_requests_to_share_groups(place: Place) -> None:
    with connect(place) as connection:
        settled(connection, ApiKey.FIND_COORDINATOR, 2, {"key": GROUP, "key_type": 0})
        _heartbeat(connection, 5, [TOPIC], _GROUP_ID_NOT_FOUND)
        request = _fetch_request(UUID(int=5), 0, 0)
        assert connection.ask(ApiKey.SHARE_FETCH, 2, request)["responses"][0]["partitions"][0]["error_code"]
        assert connection.ask(ApiKey.SHARE_FETCH, 2, _fetch_request(UUID(int=5), 7, 0))["error_code"]


def a_topic_that_is_deleted_under_a_share_group(place: Place) -> None:
    with connect(place) as waiting, connect(place) as admin:
        with topic(admin):
            produce(admin, batch(5))
            topic_id = _alter_offsets(admin)
            _acquired(waiting, topic_id)
            waiting.begin(ApiKey.SHARE_FETCH, 2, _fetch_request(topic_id, 1, 60_000))
        waiting.close()
        _delete_group(admin)


def a_topic_that_is_deleted_under_a_member(place: Place) -> None:
    with connect(place) as connection:
        with topic(connection):
            epoch = _joined(connection)
        _heartbeat(connection, epoch, None)
        _heartbeat(connection, -1, None)
        _delete_group(connection)


SHARE_ACTS: list[Act] = [
    a_share_group_whose_member_leaves,
    a_share_group_whose_member_expires,
    a_share_session,
    a_share_session_of_a_client_that_leaves,
    a_share_session_that_is_replaced,
    refused_requests_to_share_groups,
    a_topic_that_is_deleted_under_a_share_group,
    a_topic_that_is_deleted_under_a_member,
]
