"""Share sessions: epochs, limits, and the partitions that a response contains."""

from uuid import UUID

import pytest

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.share_partitions.share_session import (
    FINAL_EPOCH,
    SessionKey,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
)

KEY = SessionKey("group", "member")
PARTITIONS = [TopicIdPartition(UUID(int=1), number) for number in range(3)]


def code_of(sessions: ShareSessions, epoch: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        sessions.advance(KEY, epoch)
    return caught.value.code


def test_each_request_contains_the_next_epoch() -> None:
    sessions = ShareSessions()
    assert code_of(sessions, 1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    sessions.open(KEY, "connection", 10)
    assert sessions.advance(KEY, 1).epoch == 2
    assert code_of(sessions, 1) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.advance(KEY, FINAL_EPOCH).epoch == 2
    assert next_epoch(2**31 - 1) == 1


def test_sessions_above_the_limit_are_rejected_but_may_be_replaced() -> None:
    sessions = ShareSessions()
    sessions.open(KEY, "connection", 1)
    sessions.open(KEY, "connection", 1)
    with pytest.raises(KafkaError) as caught:
        sessions.open(SessionKey("group", "other"), "connection", 1)
    assert caught.value.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert len(sessions) == 1


def test_a_session_belongs_to_the_connection_that_opened_it_last() -> None:
    sessions = ShareSessions()
    sessions.open(KEY, "old", 10)
    session = sessions.open(KEY, "new", 10)
    assert sessions.of_connection("old") == []
    assert sessions.of_connection("new") == [KEY]
    assert sessions.has_members("group")
    assert sessions.end(KEY) is session
    assert sessions.of_connection("new") == []
    assert not sessions.has_members("group")


def test_each_request_begins_with_a_different_partition() -> None:
    session = ShareSessions().open(KEY, "connection", 10)
    session.add(PARTITIONS, is_new=False)
    assert [each.partition for each in session.rotated(0)] == [0, 1, 2]
    assert [each.partition for each in session.rotated(1)] == [1, 2, 0]
    assert [each.partition for each in session.rotated(5)] == [2, 0, 1]


def test_a_response_contains_what_is_new_has_records_or_failed() -> None:
    session = ShareSessions().open(KEY, "connection", 10)
    session.add(PARTITIONS[:1], is_new=False)
    session.add(PARTITIONS[:2], is_new=True)
    assert not session.must_send(PARTITIONS[0], ErrorCode.NONE, False)
    assert session.must_send(PARTITIONS[0], ErrorCode.NONE, True)
    assert session.must_send(PARTITIONS[1], ErrorCode.NONE, False)
    assert not session.must_send(PARTITIONS[1], ErrorCode.NONE, False)
    assert session.must_send(PARTITIONS[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, False)
    assert session.must_send(PARTITIONS[1], ErrorCode.NONE, False)
    assert not session.must_send(PARTITIONS[1], ErrorCode.NONE, False)
    session.forget(PARTITIONS[0].topic_id, [0])
    assert not session.must_send(PARTITIONS[0], ErrorCode.NONE, True)


def test_partitions_with_records_move_to_the_end_of_the_session() -> None:
    session = ShareSessions().open(KEY, "connection", 10)
    session.add(PARTITIONS, is_new=False)
    for each, has_records in zip(PARTITIONS, (True, False, True), strict=True):
        session.must_send(each, ErrorCode.NONE, has_records)
    assert [each.partition for each in session.rotated(0)] == [1, 0, 2]
