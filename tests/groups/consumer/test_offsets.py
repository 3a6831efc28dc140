"""Offsets of consumer groups: which members may commit and fetch them (KIP-848, KIP-1251).
tests/conformance/test_offsets_of_members.py compares the same rules with Apache Kafka.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.requests import Commit, OffsetAndMetadata, PartitionErrors
from tests.groups.consumer.topics import topic, topic_id
from tests.groups.memory import Coordinator, position
from tests.support.steps import result_of

GROUP = "g"
MEMBER = "m"
PARTITION = ("topic", 0)
PRODUCER = TransactionalProducer(7, 0)


def heartbeat(coordinator: Coordinator, epoch: int, **more: Any) -> HeartbeatResult:
    answers: list[HeartbeatResult] = []
    if epoch == 0:
        more = {"rebalance_timeout_ms": 60_000, "topic_names": ("topic",), "owned": {}, **more}
    coordinator.consumer.heartbeat(GROUP, Heartbeat(MEMBER, epoch, "c", "/h", **more), answers.append)
    (answer,) = answers
    assert not answer.error, answer
    return answer


def joined() -> Coordinator:
    """Return a coordinator of a group whose only member has epoch 2 and all partitions of "topic"."""
    coordinator = Coordinator()
    assert heartbeat(coordinator, 0).member_epoch == 2
    return coordinator


def with_later_epoch() -> Coordinator:
    """Return the same, after the member has also subscribed to "other". Its epoch is 3."""
    coordinator = joined()
    coordinator.scheduler.advance(2_000)
    assert heartbeat(coordinator, 2, topic_names=("topic", "other")).member_epoch == 3
    return coordinator


def commit(
    coordinator: Coordinator, epoch: int, member_id: str = MEMBER, *partitions: tuple[str, int], **more: Any
) -> list[ErrorCode]:
    answers: list[PartitionErrors] = []
    offsets = dict.fromkeys(partitions or (PARTITION,), position(5))
    request = Commit(epoch, member_id, more.pop("instance_id", None), more.pop("offsets", offsets), **more)
    result_of(coordinator.offsets.commit(GROUP, request, answers.append))
    return list(answers[0].values())


def fetch(coordinator: Coordinator, member_id: str | None, epoch: int) -> ErrorCode:
    error, _ = coordinator.offsets.fetch(
        GROUP, [PARTITION], require_stable=False, member_id=member_id, member_epoch=epoch
    )
    return error


@pytest.mark.parametrize(
    ("epoch", "member_id", "error"),
    [
        (2, MEMBER, ErrorCode.NONE),
        (3, MEMBER, ErrorCode.STALE_MEMBER_EPOCH),
        (1, MEMBER, ErrorCode.STALE_MEMBER_EPOCH),
        (-1, MEMBER, ErrorCode.STALE_MEMBER_EPOCH),
        (2, "stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_needs_the_epoch_of_its_member(epoch: int, member_id: str, error: ErrorCode) -> None:
    assert commit(joined(), epoch, member_id) == [error]


def test_a_commit_without_member_epochs_is_unsupported() -> None:
    for epoch in (1, 2, 3):
        assert commit(joined(), epoch, has_member_epochs=False) == [ErrorCode.UNSUPPORTED_VERSION]


def test_a_commit_with_a_former_epoch_needs_all_partitions_since_then() -> None:
    coordinator = with_later_epoch()
    other = ("other", 0)
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert commit(coordinator, 2) == [ErrorCode.NONE]
    assert commit(coordinator, 2, MEMBER, PARTITION, other) == [stale, stale]
    assert commit(coordinator, 1) == [stale]
    assert commit(coordinator, 3, MEMBER, PARTITION, other) == [ErrorCode.NONE, ErrorCode.NONE]


def test_offsets_with_too_much_metadata_are_not_checked_for_epochs() -> None:
    too_long = position(1, "x" * 5000)
    offsets = {PARTITION: position(5), ("other", 0): too_long}
    assert commit(with_later_epoch(), 2, offsets=offsets) == [
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    ]


def test_a_static_member_that_left_temporarily_may_commit_with_any_former_epoch() -> None:
    coordinator = Coordinator()
    heartbeat(coordinator, 0, instance_id="i")
    assert commit(coordinator, 1) == [ErrorCode.STALE_MEMBER_EPOCH]
    heartbeat(coordinator, -2, instance_id="i")
    assert commit(coordinator, 2) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert heartbeat(coordinator, 0, instance_id="i").member_epoch == 2
    assert commit(coordinator, 1) == [ErrorCode.NONE]
    assert commit(coordinator, 0) == [ErrorCode.NONE]
    assert commit(coordinator, -1) == [ErrorCode.STALE_MEMBER_EPOCH]


@pytest.mark.parametrize(
    ("epoch", "member_id", "error", "old_error"),
    [
        (2, MEMBER, ErrorCode.NONE, ErrorCode.NONE),
        (3, MEMBER, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION),
        (1, MEMBER, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION),
        (-1, "", ErrorCode.NONE, ErrorCode.NONE),
        (-2, "", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (2, "stranger", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_transactional_commit_needs_the_epoch_of_its_member(
    epoch: int, member_id: str, error: ErrorCode, old_error: ErrorCode
) -> None:
    for has_member_epochs, expected in ((True, error), (False, old_error)):
        found = commit(joined(), epoch, member_id, producer=PRODUCER, has_member_epochs=has_member_epochs)
        assert found == [expected]


def test_a_commit_to_a_missing_group_has_the_error_code_of_its_request() -> None:
    for error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.ILLEGAL_GENERATION):
        assert commit(Coordinator(), 0, missing_group_error=error) == [error]
    assert commit(Coordinator(), -1) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, ErrorCode.NONE),
        (MEMBER, 2, ErrorCode.NONE),
        (MEMBER, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (MEMBER, -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", 2, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_fetches_offsets_with_its_epoch(member_id: str | None, epoch: int, error: ErrorCode) -> None:
    assert fetch(joined(), member_id, epoch) is error
    assert fetch(Coordinator(), member_id, epoch) is ErrorCode.NONE


def test_offsets_of_topics_to_which_a_member_subscribes_are_not_deleted() -> None:
    coordinator = joined()
    other = ("other", 0)
    assert commit(coordinator, 2, MEMBER, PARTITION, other) == [ErrorCode.NONE, ErrorCode.NONE]
    answers: list[PartitionErrors | ErrorCode] = []
    result_of(coordinator.offsets.delete(GROUP, [PARTITION, other], answers.append))
    assert answers == [{PARTITION: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, other: ErrorCode.NONE}]


def test_a_deleted_topic_leaves_the_offsets_of_its_successor() -> None:
    coordinator = Coordinator()
    stored = {
        ("topic", 0): OffsetAndMetadata(1, -1, "", 1, -1, topic_id("former")),
        ("topic", 1): OffsetAndMetadata(2, -1, "", 1, -1, topic_id("topic")),
        ("topic", 2): OffsetAndMetadata(3, -1, "", 1, -1),
    }
    assert commit(coordinator, -1, "", offsets=stored) == [ErrorCode.NONE] * 3
    coordinator.offsets.forget_topic(topic("topic", 3)._replace(topic_id=topic_id("former")))
    for restarted in (coordinator, Coordinator(coordinator.log)):
        _, fetched = restarted.offsets.fetch(GROUP, None, require_stable=False)
        assert list(fetched) == [("topic", 1)]


def test_copied_offsets_have_the_topic_id_of_their_target() -> None:
    coordinator = Coordinator()
    stored = {("former", 0): OffsetAndMetadata(1, -1, "", 1, -1, topic_id("former"))}
    assert commit(coordinator, -1, "", offsets=stored) == [ErrorCode.NONE]
    assert coordinator.offsets.copy("former", "topic", None, lambda group, error: None) == [GROUP]
    _, fetched = coordinator.offsets.fetch(GROUP, [PARTITION], require_stable=False)
    copied, _ = fetched[PARTITION]
    assert copied is not None
    assert copied.topic_id == topic_id("topic")
