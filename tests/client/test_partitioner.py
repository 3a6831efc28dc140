"""The client's partitioner, which must choose the same partitions as other clients."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from kafka_compat.client.partitioner import Sticky, murmur2, partition_of


@given(strategies.binary(max_size=40))
def test_hashes_of_keys_match_kafka_pythons(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_kafka_python(key) & 0xFFFFFFFF


def test_a_key_maps_to_the_same_partition_as_in_kafkas_producer() -> None:
    # Signed hashes from UtilsTest.testMurmur2 in Apache Kafka.
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, signed in hashes.items():
        assert partition_of(key, 7) == (signed & 0x7FFFFFFF) % 7


def _first(partitions: Sequence[int]) -> int:
    return partitions[0]


def test_records_without_a_key_go_to_one_partition_until_a_batch_is_full() -> None:
    sticky = Sticky(100, _first)
    assert [sticky.partition("t", [0, 1], 40) for _ in range(5)] == [0, 0, 0, 1, 1]


def test_records_without_a_key_avoid_a_partition_without_a_leader() -> None:
    sticky = Sticky(100, _first)
    assert sticky.partition("t", [0, 1], 1) == 0
    assert sticky.partition("t", [1], 1) == 1


def test_records_without_a_key_go_to_the_only_partition_with_a_leader() -> None:
    sticky = Sticky(10, _first)
    assert [sticky.partition("t", [2], 20) for _ in range(3)] == [2, 2, 2]
