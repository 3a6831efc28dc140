"""Startup waits for the topics that a controller sends in several requests, but not for topics that never
arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kafka_compat.cluster import first_metadata
from kafka_compat.cluster.first_metadata import FirstMetadata


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_metadata, "FIRST_TOPICS_S", 0.2)
    monkeypatch.setattr(first_metadata, "MORE_TOPICS_S", 0.1)
    monkeypatch.setattr(first_metadata, "ALL_TOPICS_S", 0.3)


def run(expected_topics: int, act: Callable[[FirstMetadata], Awaitable[None]]) -> None:
    async def main() -> None:
        first = FirstMetadata()
        first.expected_topics = expected_topics
        await act(first)

    asyncio.run(main())


def test_metadata_is_received_with_the_last_expected_topic() -> None:
    async def act(first: FirstMetadata) -> None:
        for topics in (0, 1, 2):
            first.update(topics)
            assert not first.received.is_set()
        first.update(3)
        assert first.received.is_set()

    run(3, act)


def test_a_new_cluster_waits_for_no_topic() -> None:
    async def act(first: FirstMetadata) -> None:
        first.update(0)
        assert first.received.is_set()

    run(0, act)


@pytest.mark.parametrize("topics", [0, 2], ids=["all missing", "one missing"])
def test_topics_that_never_arrive_are_waited_for_a_limited_time(topics: int) -> None:
    async def act(first: FirstMetadata) -> None:
        first.update(topics)
        assert not first.received.is_set()
        async with asyncio.timeout(10):
            await first.received.wait()

    run(3, act)


def test_updates_without_the_missing_topic_do_not_extend_the_wait() -> None:
    async def act(first: FirstMetadata) -> None:
        async with asyncio.timeout(10):
            while not first.received.is_set():
                first.update(2)
                await asyncio.sleep(0.01)  # the updates come again and again

    run(3, act)
