"""Fetch sessions as KIP-227 tells them."""

from __future__ import annotations

import pytest

from kafka_compat.errors import ErrorCode, KafkaError
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


def topics(plan: FetchPlan) -> list[str]:
    return [str(item.topic) for item in plan.targets]


def test_a_session_adds_changes_and_forgets() -> None:
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"), target("b"))
    assert first.session_id != 0
    assert not first.incremental
    second = ask(cache, first.session_id, 1, target("c"), target("a", offset=7))
    assert second.incremental
    assert topics(second) == ["a", "b", "c"]
    assert second.targets[0].fetch_offset == 7
    third = ask(cache, first.session_id, 2, forget=(("b", 0),))
    assert topics(third) == ["a", "c"]


def test_only_news_are_answered_and_go_to_the_end() -> None:
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"), target("b"))
    assert [first.must_answer(item, 5, 0, False) for item in first.targets] == [True, True]
    second = ask(cache, first.session_id, 1)
    a, b = second.targets
    assert not second.must_answer(b, 5, 0, False)
    assert second.must_answer(a, 6, 0, False), "the high watermark moved"
    third = ask(cache, first.session_id, 2)
    assert topics(third) == ["b", "a"]
    assert third.must_answer(third.targets[0], 5, 1, False), "the log start moved"
    assert third.must_answer(third.targets[1], 6, 0, True), "there are records"


def test_a_changed_partition_remembers_what_the_client_was_told() -> None:
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"))
    first.must_answer(first.targets[0], 5, 0, False)
    second = ask(cache, first.session_id, 1, target("a", offset=5))
    assert not second.must_answer(second.targets[0], 5, 0, False)


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [
        (99, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 5, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_wrong_sessions_are_told_so(session_id: int | None, epoch: int, code: ErrorCode) -> None:
    cache = FetchSessionCache(10, 1000)
    opened = ask(cache, 0, INITIAL_EPOCH, target("a"))
    with pytest.raises(KafkaError) as refused:
        ask(cache, opened.session_id if session_id is None else session_id, epoch)
    assert refused.value.code == code


def test_topic_ids_and_names_do_not_mix() -> None:
    cache = FetchSessionCache(10, 1000)
    opened = ask(cache, 0, INITIAL_EPOCH, target("a"))
    with pytest.raises(KafkaError) as refused:
        cache.plan(opened.session_id, 1, [], (), True, 0)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_ends_the_session() -> None:
    cache = FetchSessionCache(10, 1000)
    opened = ask(cache, 0, INITIAL_EPOCH, target("a"))
    assert ask(cache, opened.session_id, FINAL_EPOCH, target("a")).session_id == 0
    assert len(cache) == 0


def test_a_session_that_forgets_everything_is_over() -> None:
    cache = FetchSessionCache(10, 1000)
    opened = ask(cache, 0, INITIAL_EPOCH, target("a"))
    assert ask(cache, opened.session_id, 1, forget=(("a", 0),)).session_id == 0
    assert len(cache) == 0


def test_a_full_cache_evicts_only_sessions_that_were_idle() -> None:
    cache = FetchSessionCache(1, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"), now_ms=0)
    assert ask(cache, 0, INITIAL_EPOCH, target("b"), now_ms=999).session_id == 0
    second = ask(cache, 0, INITIAL_EPOCH, target("b"), now_ms=1000)
    assert second.session_id not in (0, first.session_id)
    assert len(cache) == 1


def test_what_was_to_be_told_is_taken_back() -> None:
    """A client over its quota gets an empty answer: it has heard of nothing, and nobody lost a turn."""
    cache = FetchSessionCache(10, 1000)
    first = ask(cache, 0, INITIAL_EPOCH, target("a"), target("b"), target("c"))
    for item in first.targets:
        first.must_answer(item, 5, 0, False)
    second = ask(cache, first.session_id, 1)
    before = second.told()
    assert second.must_answer(second.targets[0], 6, 0, True)
    assert second.must_answer(second.targets[1], 6, 1, False)
    second.take_back(before)
    third = ask(cache, first.session_id, 2)
    assert topics(third) == ["a", "b", "c"]
    assert [third.must_answer(item, 6, 1, False) for item in third.targets] == [True, True, True]


def test_a_session_of_which_the_client_was_not_told_is_dropped() -> None:
    cache = FetchSessionCache(10, 1000)
    plan = ask(cache, 0, INITIAL_EPOCH, target("a"))
    assert plan.session is not None
    cache.drop(plan.session)
    assert len(cache) == 0
