"""The order of partitions in responses to share consumers, as computed by Scala 2.13."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.handlers.share_response_order import in_kafka_order, in_order_of_additions
from kafka_compat.share_partitions.share_session import TopicIdPartition
from tests.support.steps import result_of

_64_BITS = (1 << 64) - 1
IDS = [
    UUID(int=(0x1234567890ABCDEF * factor & _64_BITS) << 64 | (0xFEDCBA0987654320 + factor))
    for factor in (1, 2, 3)
]


@pytest.mark.parametrize(
    "expected",
    [
        "1 0 2",
        "3 2 1 4 0",
        "3 2 1 7 10 11 9 6 13 5 4 8 0 12",
        "33 1 18 31 17 21 35 20 11 27 16 30 34 3 14 26 2 23 39 19 "
        "9 6 22 7 29 13 5 38 10 28 32 25 24 36 4 8 37 15 0 12",
    ],
    ids=["a small map", "a map of five", "a larger table", "a deep trie"],
)
def test_partitions_have_the_order_of_scalas_maps(expected: str) -> None:
    numbers = [int(each) for each in expected.split()]
    partitions = {TopicIdPartition(IDS[each % 3], each // 3): each for each in range(len(numbers))}

    ordered = result_of(in_kafka_order(partitions, lambda key: f"topic-{IDS.index(key.topic_id)}"))

    assert list(ordered.values()) == numbers


def test_partitions_that_were_only_acknowledged_are_grouped_by_topic() -> None:
    partitions = [TopicIdPartition(IDS[each % 2], 9 - each) for each in range(4)]

    ordered = list(result_of(in_order_of_additions(partitions)))

    assert [key.partition for key in ordered if key.topic_id == IDS[0]] == [7, 9]
    assert [key.partition for key in ordered if key.topic_id == IDS[1]] == [6, 8]
    assert len({key.topic_id for key in ordered[:2]}) == 1
