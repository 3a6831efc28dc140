"""Fetch sessions (KIP-227)."""

from __future__ import annotations

import pytest

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.messages.fetch import PartitionData
from kafka_compat.replication.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchPlan,
    FetchSessionCache,
    FetchTarget,
)


def target(topic: str, partition: int = 0, offset: int = 0) -> FetchTarget:
    return FetchTarget(topic, partition, offset, 1000)


def ask(
    cache: FetchSessionCache,
    session_id: int,
    epoch: int,
    *targets: FetchTarget,
    forget: tuple[tuple[str, int], ...] = (),
    now_ms: int = 0,
) -> FetchPlan:
    return cache.plan(session_id, epoch, list(targets), forget, False, now_ms)


def opened(
    cache: FetchSessionCache,
    *targets: FetchTarget,
    now_ms: int = 0,
    is_follower: bool = False,
    uses_topic_ids: bool = False,
) -> int:
    """Return the id of a new session, or 0 if none was created."""
    plan = cache.plan(0, INITIAL_EPOCH, list(targets), (), uses_topic_ids, now_ms)
    assert (plan.session_id, plan.wants_session) == (0, True)
    return cache.open(plan, now_ms, is_follower=is_follower)


def sent(
    plan: FetchPlan, item: FetchTarget, high_watermark: int, log_start_offset: int, size_bytes: int = 0
) -> bool:
    data = PartitionData(high_watermark=high_watermark, log_start_offset=log_start_offset)
    return plan.send(item, data, size_bytes)


def topics(plan: FetchPlan) -> list[str]:
    return [str(item.topic) for item in plan.targets]


def test_partitions_are_added_changed_and_removed() -> None:
    cache = FetchSessionCache(10, 1000)
    session_id = opened(cache, target("a"), target("b"))
    second = ask(cache, session_id, 1, target("c"), target("a", offset=7))
    assert second.session_id == session_id
    assert topics(second) == ["a", "b", "c"]
    assert second.targets[0].fetch_offset == 7
    third = ask(cache, session_id, 2, forget=(("b", 0),))
    assert topics(third) == ["a", "c"]


def test_only_changed_partitions_are_sent_and_those_with_records_move_to_the_end() -> None:
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"), target("b"))
    assert [sent(first, item, 5, 0) for item in first.targets] == [True, True]
    session_id = cache.open(first, 0, is_follower=False)
    second = ask(cache, session_id, 1)
    a, b = second.targets
    assert not sent(second, b, 5, 0)
    assert sent(second, a, 6, 0), "the high watermark moved"
    third = ask(cache, session_id, 2)
    assert topics(third) == ["a", "b"]
    assert sent(third, third.targets[0], 6, 0, 100), "the partition has records"
    assert sent(third, third.targets[1], 5, 1), "the log start moved"
    assert topics(ask(cache, session_id, 3)) == ["b", "a"]


def test_updating_a_partition_keeps_the_offsets_already_sent_to_the_client() -> None:
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"))
    sent(first, first.targets[0], 5, 0)
    second = ask(cache, cache.open(first, 0, is_follower=False), 1, target("a", offset=5))
    assert not sent(second, second.targets[0], 5, 0)


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [
        (99, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 5, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_unknown_sessions_and_wrong_epochs_are_rejected(
    session_id: int | None, epoch: int, code: ErrorCode
) -> None:
    cache = FetchSessionCache(10, 1000)
    known = opened(cache, target("a"))
    with pytest.raises(KafkaError) as refused:
        ask(cache, known if session_id is None else session_id, epoch)
    assert refused.value.code == code


def test_topic_ids_and_names_cannot_be_mixed_in_a_session() -> None:
    cache = FetchSessionCache(10, 1000)
    for uses_topic_ids in (False, True):
        session_id = opened(cache, target("a"), uses_topic_ids=uses_topic_ids)
        with pytest.raises(KafkaError) as refused:
            cache.plan(session_id, 1, [], (), not uses_topic_ids, 0)
        assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_a_full_fetch_request_closes_the_session_that_it_names(epoch: int) -> None:
    cache = FetchSessionCache(10, 1000)
    assert ask(cache, opened(cache, target("a")), epoch, target("a")).session_id == 0
    assert len(cache) == 0


def test_a_session_can_be_created_without_partitions() -> None:
    cache = FetchSessionCache(10, 1000)
    session_id = opened(cache)
    assert session_id != 0
    assert topics(ask(cache, session_id, 1, target("a"))) == ["a"]


def test_a_request_that_removes_all_partitions_is_served_and_closes_its_session() -> None:
    cache = FetchSessionCache(10, 1000)
    session_id = opened(cache, target("a"), target("b"))
    last = ask(cache, session_id, 1, target("a", offset=2), forget=(("a", 0), ("b", 0)))
    assert (last.session_id, last.wants_session, len(cache)) == (0, False, 0)
    assert [(item.topic, item.fetch_offset) for item in last.targets] == [("a", 2)]
    assert sent(last, last.targets[0], -1, -1), "a full response contains all partitions"


def test_a_later_request_in_a_session_invalidates_the_earlier_request() -> None:
    cache = FetchSessionCache(10, 1000)
    session_id = opened(cache, target("a"))
    first = ask(cache, session_id, 1)
    assert not first.is_outdated
    ask(cache, session_id, 2)
    assert first.is_outdated


def test_a_session_unused_for_the_eviction_time_is_evicted_for_any_new_session() -> None:
    cache = FetchSessionCache(2, 1000)
    idle = opened(cache, target("a"), target("b"), is_follower=True)
    used = opened(cache, target("a"))
    ask(cache, used, 1, now_ms=1000)
    assert opened(cache, target("b"), now_ms=1000) == 0, "the eviction time has not passed"
    assert opened(cache, target("b"), now_ms=1001) != 0
    assert cache.evictions == 1
    assert not cache.targets(idle)
    assert cache.targets(used)


def test_a_client_session_evicts_an_old_session_of_at_most_the_same_size() -> None:
    cache = FetchSessionCache(2, 1000)
    small, large = opened(cache, target("a"), target("b")), opened(cache, *map(target, "abcd"))
    for session_id in (small, large):
        ask(cache, session_id, 1, now_ms=900)
    assert opened(cache, *map(target, "abcdef"), now_ms=1001) == 0, "no session is old"
    for session_id in (small, large):
        ask(cache, session_id, 2, now_ms=1001)
    assert opened(cache, target("a"), now_ms=1002) == 0, "the new session is smaller"
    newest = opened(cache, *map(target, "abc"), now_ms=1002)
    assert newest != 0
    assert not cache.targets(small)
    assert opened(cache, *map(target, "abc"), now_ms=1003) == 0, "one session is larger, the other is new"
    assert opened(cache, *map(target, "abcdef"), now_ms=1003) != 0
    assert not cache.targets(large)


def test_eviction_compares_current_session_sizes() -> None:
    cache = FetchSessionCache(1, 1000)
    session_id = opened(cache, *map(target, "abc"))
    ask(cache, session_id, 1, now_ms=1001, forget=(("a", 0), ("b", 0)))
    assert opened(cache, target("a"), target("b"), now_ms=1002) != 0


def test_a_follower_session_evicts_client_sessions_and_smaller_old_follower_sessions() -> None:
    cache = FetchSessionCache(3, 1000)
    clients = [opened(cache, *map(target, "abc"[: 1 + number])) for number in range(3)]
    followers: list[int] = []
    for number, evicted in enumerate(clients):
        follower = opened(cache, *map(target, "ab"), now_ms=number, is_follower=True)
        assert follower != 0
        followers.append(follower)
        assert not cache.targets(evicted), "the smallest session is evicted first"
    assert opened(cache, *map(target, "abcd"), now_ms=3, is_follower=True) == 0
    for session_id in followers:
        ask(cache, session_id, 1, now_ms=900)
    ask(cache, follower, 2, now_ms=1003)
    assert opened(cache, *map(target, "abcd"), now_ms=1003) == 0, "clients evict only old sessions of clients"
    assert opened(cache, target("a"), now_ms=1003, is_follower=True) == 0, "the new session is smaller"
    assert opened(cache, *map(target, "abcd"), now_ms=1003, is_follower=True) != 0
    assert not cache.targets(follower)


def test_no_session_is_created_if_the_cache_has_no_slots() -> None:
    assert opened(FetchSessionCache(0, 1000), target("a"), is_follower=True) == 0


def test_previewing_a_response_does_not_change_the_session() -> None:
    """A client above its quota gets an empty response, so no state was sent, and the order of the partitions
    must not change.
    """
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"), target("b"), target("c"))
    for item in first.targets:
        sent(first, item, 5, 0)
    session_id = cache.open(first, 0, is_follower=False)
    for epoch in (1, 2):
        plan = ask(cache, session_id, epoch)
        assert topics(plan) == ["a", "b", "c"]
        news = PartitionData(high_watermark=6, log_start_offset=1)
        same = PartitionData(high_watermark=5, log_start_offset=0)
        assert [plan.would_send(item, news, 100) for item in plan.targets] == [True, True, True]
        assert [plan.would_send(item, same, 0) for item in plan.targets] == [False, False, False]
