"""WriteTxnMarkers version 2 (KIP-1228), new in Kafka 4.2: Apache Kafka 4.3.0 accepts the same requests, and
returns the same responses for markers of every epoch and transaction.version.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.transactional import Transactional
from tests.conformance.wire import Plain
from tests.support import campaign

pytestmark = pytest.mark.skipif(
    not campaign.enabled(),
    reason="needs a further Kafka release; normal runs use tests/transactions/test_version_2.py",
)


@pytest.fixture
def pair_43(our_address: str, genuine_43_address: str) -> Iterator[Pair]:
    found = Pair(our_address, genuine_43_address)
    yield found
    found.close()


class Marked:
    """A partition with the records of a producer, to which the test writes markers."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.one = Transactional(pair)
        self.topic = pair.topic()
        self.one.init()
        self.one.init()
        self.sequence = 0

    def write(self) -> None:
        """Write two records with the producer's epoch in a transaction."""
        self.one.produce(self.topic, self.sequence, (12,))
        self.sequence += 2

    def mark(self, version: int, epoch_delta: int, transaction_version: int) -> int:
        """Write an abort marker, and return the error code, which must be the same from both brokers."""

        def sided(side: str) -> Plain:
            identity = self.one.identity(side, epoch_delta=epoch_delta)
            marker = {
                "producer_id": identity["producer_id"],
                "producer_epoch": identity["producer_epoch"],
                "transaction_result": False,
                "topics": [{"name": self.topic, "partition_indexes": [0]}],
                "coordinator_epoch": 50,
            }
            return {
                "markers": [marker | ({"transaction_version": transaction_version} if version > 1 else {})]
            }

        answer = self.pair.same(ApiKey.WRITE_TXN_MARKERS, sided, (version,))
        error: int = answer["markers"][0]["topics"][0]["partitions"][0]["error_code"]
        return error

    def is_open(self) -> bool:
        """Return whether the partition has an open transaction, which both brokers must agree on."""
        asked = {"topics": [{"name": self.topic, "partition_indexes": [0]}]}
        shown = [
            [
                (item["producer_epoch"], item["last_sequence"], item["current_txn_start_offset"])
                for item in answer["topics"][0]["partitions"][0]["active_producers"]
            ]
            for answer in self.pair.both(ApiKey.DESCRIBE_PRODUCERS, 0, asked)
        ]
        assert shown[0] == shown[1]
        return bool(shown[0][0][2] >= 0)


def test_write_txn_markers_is_served_up_to_version_2(pair_43: Pair) -> None:
    versions = [
        next(item for item in answer["api_keys"] if item["api_key"] == ApiKey.WRITE_TXN_MARKERS)
        for answer in pair_43.both(ApiKey.API_VERSIONS, 0, {})
    ]
    assert [item["max_version"] for item in versions] == [2, 2]


@pytest.mark.parametrize(("version", "transaction_version"), [(2, 2), (2, 1), (2, 0), (1, 0)])
def test_with_version_2_a_marker_needs_a_newer_epoch_than_its_transaction(
    pair_43: Pair, version: int, transaction_version: int
) -> None:
    """With transaction.version 2, a marker whose epoch equals that of the open transaction belongs to an
    earlier transaction.
    """
    marked = Marked(pair_43)
    marked.write()
    assert marked.mark(version, -1, transaction_version) == ErrorCode.INVALID_PRODUCER_EPOCH
    error = marked.mark(version, 0, transaction_version)
    assert error == (ErrorCode.INVALID_PRODUCER_EPOCH if transaction_version == 2 else ErrorCode.NONE)
    assert marked.is_open() == (transaction_version == 2)
    for _ in range(2):
        assert marked.mark(version, 1, transaction_version) == ErrorCode.NONE
        assert not marked.is_open()
    assert marked.mark(version, 0, transaction_version) == ErrorCode.INVALID_PRODUCER_EPOCH
