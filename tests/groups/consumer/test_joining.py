"""Which heartbeats join a consumer group, with the error codes and epochs of Apache Kafka 4.4.0."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.consumer.regular_expressions import problem
from tests.groups.consumer.topics import topic_id
from tests.groups.memory import Coordinator

GROUP = "g"


def heartbeat(coordinator: Coordinator, member: str, epoch: int = 0, **more: Any) -> HeartbeatResult:
    answers: list[HeartbeatResult] = []
    if epoch == 0:
        more = {"rebalance_timeout_ms": 60_000, "topic_names": ("topic",), "owned": {}, **more}
    coordinator.consumer.heartbeat(GROUP, Heartbeat(member, epoch, "c", "/h", **more), answers.append)
    (answer,) = answers
    return answer


@pytest.mark.parametrize(
    "names, regex, error",
    [
        ((), None, ErrorCode.NONE),
        ((), "", ErrorCode.NONE),
        (None, "", ErrorCode.NONE),
        (None, None, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_subscription_without_topics_is_valid(
    names: tuple[str, ...] | None, regex: str | None, error: ErrorCode
) -> None:
    result = heartbeat(Coordinator(), "m", topic_names=names, topic_regex=regex)
    assert result.error is error
    if not error:
        assert (result.member_epoch, result.assignment) == (1, {})


@pytest.mark.parametrize("member", ["", " ", "\t\0"])
def test_a_member_id_must_not_be_blank(member: str) -> None:
    coordinator = Coordinator()
    assert heartbeat(coordinator, member).error is ErrorCode.INVALID_REQUEST
    assert coordinator.group_ids() == []


@pytest.mark.parametrize("instance, error", [("\0", ErrorCode.INVALID_REQUEST), ("\u00a0", ErrorCode.NONE)])
def test_blank_texts_consist_of_spaces_and_control_characters(instance: str, error: ErrorCode) -> None:
    assert heartbeat(Coordinator(), "m", instance_id=instance).error is error


def test_a_member_that_becomes_static_keeps_its_epoch_and_its_partitions() -> None:
    coordinator = Coordinator()
    assert heartbeat(coordinator, "m").member_epoch == 2
    result = heartbeat(coordinator, "m", instance_id="i")
    assert (result.error, result.member_epoch) == (ErrorCode.NONE, 2)
    assert result.assignment is not None
    assert list(result.assignment[topic_id("topic")]) == list(range(10))
    assert heartbeat(coordinator, "m", 2, instance_id="i").error is ErrorCode.NONE


@pytest.mark.parametrize(
    "request_fields, error",
    [
        ({"topic_names": None, "topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"server_assignor": "unknown"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    ],
)
def test_a_rejected_member_leaves_no_group(request_fields: dict[str, Any], error: ErrorCode) -> None:
    coordinator = Coordinator()
    assert heartbeat(coordinator, "m", **request_fields).error is error
    assert coordinator.group_ids() == []


def test_a_member_that_cannot_be_stored_leaves_no_group() -> None:
    coordinator = Coordinator()
    coordinator.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
    assert heartbeat(coordinator, "m").error
    assert coordinator.group_ids() == []
    coordinator.log.refuse = None
    assert heartbeat(coordinator, "m").member_epoch == 2


def test_regular_expressions_must_not_match_single_bytes() -> None:
    assert problem(r"a\C") is not None
    assert problem(r"a\\\C") is not None
    assert problem(r"a\\C") is None


def test_a_clock_that_is_set_back_does_not_delay_assignments() -> None:
    coordinator = Coordinator()
    assert heartbeat(coordinator, "m").member_epoch == 2
    coordinator.wall_ms -= 3_600_000
    heartbeat(coordinator, "n")
    _, view = coordinator.consumer.describe(GROUP)
    assert view is not None
    assert (view.epoch, view.target_epoch) == (3, 3)


def test_a_clock_that_is_set_back_does_not_delay_regular_expressions() -> None:
    coordinator = Coordinator()
    heartbeat(coordinator, "m", topic_names=None, topic_regex="to.*")
    coordinator.scheduler.advance(1)
    coordinator.wall_ms -= 3_600_000
    heartbeat(coordinator, "n", topic_names=None, topic_regex="t.*c")
    coordinator.scheduler.advance(1)
    _, view = coordinator.consumer.describe(GROUP)
    assert view is not None
    assert view.epoch == 3
