"""Leaks of memory, descriptors, threads and files while topics, transactions, groups and connections come and
go. Normal runs test one broker for less than a minute; `--campaign` runs for 30 minutes, also with three
brokers.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.availability import ThreeBrokers
from tests.memory.churn import SHORT_EXPIRIES, Churn, Held, churning, held_by
from tests.support import campaign
from tests.support.servers import KafkaCompatBroker

WARM_UP_S = campaign.rounds(15, 10 * 60)
CHURN_S = campaign.rounds(15, 20 * 60)
REST_S = campaign.rounds(8, 60)
"""Longer than the broker keeps any temporary state."""
PACE_S = campaign.rounds(0, 1) * 0.45
"""The interval between rounds of each of the four workers. A campaign runs some 530 rounds per minute, so
that other tests can run at the same time."""
SAMPLED_S = 60
MEMORY_GROWTH_MAX = 0.02
GROWTH_MAX_BYTES_PER_ROUND = 3 * 1024
"""The limit for normal runs, which are too short for memory to become stable. A past leak was 8.3 KiB per
round."""
SEGMENTS_GROWTH_MAX = 8
"""In the same form: a second segment for each partition of the internal topics."""
SEGMENT_GROWTH_MAX_BYTES = 128 * 1024
"""The memory of such a segment: its buffers and indexes, and what is compacted in it."""
FILES_PER_SEGMENT = 6
POOLED_THREADS_MAX = 3 + min(32, (os.cpu_count() or 1) + 4)
"""The event loop, one worker each for the log directory and for codecs, and asyncio's pool, which may start
another thread before it notices that the last one has become idle."""
EVERYDAY_EXPIRIES = {
    "transactional.id.expiration.ms": "2000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "producer.id.expiration.ms": "2000",
    "producer.id.expiration.check.interval.ms": "1000",
}


class Measured(NamedTuple):
    """The resources of one broker at one time."""

    working_bytes: float
    """The median memory in the last minute of the rounds."""
    resting: Held
    """The resources some time after the last round."""


def measure(brokers: Sequence[KafkaCompatBroker], churn: Churn, seconds: int) -> list[Measured]:
    """Run rounds for `seconds`, pause, and return the measurements of each broker."""
    samples: deque[list[Held]] = deque(maxlen=SAMPLED_S)
    begun, begun_s, printed_s = churn.rounds, time.monotonic(), 0.0
    passed_s = 0.0
    while passed_s < seconds:
        churn.wait(1)
        passed_s = time.monotonic() - begun_s
        samples.append([held_by(broker) for broker in brokers])
        if passed_s >= min(printed_s + 60, seconds):
            printed_s = passed_s
            rounds = churn.rounds - begun
            print(f"{passed_s:.0f} s, {rounds} rounds:", *samples[-1], sep="\n    ", flush=True)
    churn.pause()
    churn.wait(REST_S)
    found = []
    for number, broker in enumerate(brokers):
        working = statistics.median(sample[number].memory_bytes for sample in samples)
        found.append(Measured(working, held_by(broker)))
        print(f"broker {number + 1}: {working / 2**20:.2f} MiB, at rest {found[-1].resting}", flush=True)
    churn.resume()
    return found


def check(brokers: Sequence[KafkaCompatBroker], churn: Churn) -> None:
    with churning(churn):
        before = measure(brokers, churn, WARM_UP_S)
        begun = churn.rounds
        after = measure(brokers, churn, CHURN_S)
    rounds = churn.rounds - begun
    for early, late in zip(before, after, strict=True):
        if campaign.enabled():
            growth_max_bytes, segments_max = early.working_bytes * MEMORY_GROWTH_MAX, 0
        else:
            segments_max = SEGMENTS_GROWTH_MAX
            growth_max_bytes = rounds * GROWTH_MAX_BYTES_PER_ROUND + segments_max * SEGMENT_GROWTH_MAX_BYTES
        assert late.working_bytes <= early.working_bytes + growth_max_bytes
        assert late.resting.memory_bytes <= early.resting.memory_bytes + growth_max_bytes
        assert late.resting.descriptors <= early.resting.descriptors + segments_max
        assert late.resting.threads <= max(early.resting.threads, POOLED_THREADS_MAX)
        assert late.resting.files <= early.resting.files + segments_max * FILES_PER_SEGMENT


def settings() -> Mapping[str, str]:
    return SHORT_EXPIRIES if campaign.enabled() else SHORT_EXPIRIES | EVERYDAY_EXPIRIES


@pytest.fixture
def one_broker(tmp_path: Path) -> Iterator[KafkaCompatBroker]:
    broker = KafkaCompatBroker(tmp_path, settings())
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.timeout(3600)
def test_memory_of_one_broker_does_not_grow_under_churn(one_broker: KafkaCompatBroker) -> None:
    check([one_broker], Churn(one_broker.address, pace_s=PACE_S))


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")
def test_memory_of_three_brokers_does_not_grow_under_churn(tmp_path: Path) -> None:
    # The timeout is long, because a busy machine would cause lost sessions, which this test does not cover.
    cluster = ThreeBrokers(tmp_path, settings={**settings(), "zookeeper.session.timeout.ms": "30000"})
    cluster.start()
    try:
        brokers = [broker for broker in cluster.brokers.values() if isinstance(broker, KafkaCompatBroker)]
        check(brokers, Churn(cluster.addresses, replication_factor=3, pace_s=PACE_S))
    finally:
        cluster.stop()
