"""Responses to OffsetCommit and TxnOffsetCommit: partitions that the group does not see come first."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.commit_order import in_response_order
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from tests.support.steps import result_of


def test_partitions_that_are_not_passed_to_the_group_come_first() -> None:
    errors = {
        ("t", 0): ErrorCode.NONE,
        ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("denied", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ("", 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }
    ordered = result_of(in_response_order([(ZERO_UUID, *key) for key in errors], errors))
    assert [key[1:] for key in ordered] == [("t", 9), ("denied", 0), ("", 0), ("t", 0), ("t", 1)]
