"""Records that both brokers write to `__transaction_state` for the same operations, which must be identical
except for ids and times. Kafka 3.9.1 is compared for transaction.version 0, and 4.1.0 for 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from kafka_compat.protocol import codec, headers
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import decode_versioned
from kafka_compat.protocol.messages import response_class
from kafka_compat.protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue
from tests.conformance.differential import Pair
from tests.conformance.transactional import Transactional
from tests.conformance.wire import Plain, encode, plain
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import IMPATIENT, KafkaCompatBroker
from tests.transactions.programs import new_consumer

RELEASES = ("genuine_41_address", "genuine_43_address")
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")


class Logged(NamedTuple):
    """One record. Producer ids are replaced by the letters a, b, … in order of appearance, or by None."""

    version: int
    state: str
    producer: str | None
    epoch: int
    previous: str | None
    following: str | None
    next_epoch: int
    client_version: int
    timeout_ms: int
    partitions: tuple[tuple[str, tuple[int, ...]], ...] | None
    is_started: bool
    is_dated: bool


def logged(address: str, transactional_id: str) -> list[Logged]:
    """Return all records of the transactional id, in order."""
    consumer = new_consumer(address, "logs", "read_uncommitted")
    try:
        count = len(consumer.list_topics(TRANSACTIONS_TOPIC, 10).topics[TRANSACTIONS_TOPIC].partitions)
        shard = shard_of(transactional_id, count)
        consumer.assign([TopicPartition(TRANSACTIONS_TOPIC, shard, 0)])
        return list(_records(consumer, transactional_id))
    finally:
        consumer.close()


def _records(consumer: Consumer, transactional_id: str) -> Iterator[Logged]:
    letters: dict[int, str] = {}

    def letter(producer_id: int) -> str | None:
        return None if producer_id < 0 else letters.setdefault(producer_id, chr(ord("a") + len(letters)))

    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is not None:
            return
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        if decode_versioned(TransactionLogKey, key)[0].transactional_id != transactional_id:
            continue
        assert isinstance(value, bytes)
        found, version = decode_versioned(TransactionLogValue, value)
        partitions = found.transaction_partitions
        yield Logged(
            version,
            STATES[found.transaction_status],
            letter(found.producer_id),
            found.producer_epoch,
            letter(found.previous_producer_id),
            letter(found.next_producer_id),
            found.next_producer_epoch,
            found.client_transaction_version,
            found.transaction_timeout_ms,
            partitions
            if partitions is None
            else tuple(sorted((item.topic, tuple(sorted(item.partition_ids))) for item in partitions)),
            found.transaction_start_timestamp_ms > 0,
            found.transaction_last_update_timestamp_ms > 0,
        )


def same_log(one: Transactional) -> None:
    ours, genuine = (logged(address, one.id) for address in one.pair.addresses)
    if not any(record.previous for record in genuine):
        # Kafka writes these fields since 4.3 (KAFKA-20310). Older versions lose a new producer id if the
        # coordinator fails.
        ours = [record._replace(previous=None, following=None) for record in ours]
    assert ours == genuine


@pytest.fixture(scope="module")
def broker_of_version_2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCompatBroker]:
    directory: Path = tmp_path_factory.mktemp("version-2")
    broker = KafkaCompatBroker(directory, IMPATIENT | {"kafka.compat.transaction.version": "2"})
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(params=RELEASES if campaign.enabled() else RELEASES[:1])
def pair_2(broker_of_version_2: KafkaCompatBroker, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two brokers with the finalized feature transaction.version 2."""
    found = Pair(broker_of_version_2.address, request.getfixturevalue(request.param))
    yield found
    found.close()


def in_the_way(one: Transactional) -> None:
    """Initialize another producer with the same id, which aborts the open transaction."""
    asked = {"transactional_id": one.id, "transaction_timeout_ms": 60_000}
    answers = one.pair.both(ApiKey.INIT_PRODUCER_ID, 4, asked)
    assert [answer["error_code"] for answer in answers] == [51, 51]
    one.settle()


def await_timeout(one: Transactional) -> None:
    def over() -> bool:
        answers = one.pair.both(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [one.id]})
        return all(
            answer["transaction_states"][0]["transaction_state"] == "CompleteAbort" for answer in answers
        )

    wait_until(over, 30, "the transaction's timeout")


def old_client(one: Transactional, topic: str) -> None:
    """Run the transactions of a client older than Kafka 4."""
    for committed in (True, False):
        one.add(topic, [0])
        one.add(topic, [0])
        one.add(topic, [1])
        one.end(committed)
        one.settle()
        one.end(committed)
    one.init(tell=True)
    one.init()
    one.add(topic, [1])
    in_the_way(one)
    one.init()


def clients_before_4(pair: Pair) -> None:
    """Run one producer through all transitions, and let the transaction of another time out."""
    one, slow = Transactional(pair), Transactional(pair)
    topic = pair.topic(2)
    slow.init(timeout_ms=1000)
    slow.add(topic, [0])
    one.init()
    old_client(one, topic)
    await_timeout(slow)
    slow.init()
    same_log(one)
    same_log(slow)


def test_pre_kafka_4_clients_cause_the_same_transaction_log_records_as_on_kafka(pair: Pair) -> None:
    clients_before_4(pair)


def test_pre_kafka_4_clients_cause_the_same_transaction_log_records_under_version_2(pair_2: Pair) -> None:
    clients_before_4(pair_2)


def test_version_2_writes_the_same_transaction_log_records_as_kafka(pair_2: Pair) -> None:
    one, slow, empty = (Transactional(pair_2) for _ in range(3))
    topic = pair_2.topic(2)
    slow.init(timeout_ms=1000)
    slow.produce(topic, 0, (12,))
    one.init()
    for committed in (True, False):
        one.produce(topic, 0, (12,))
        one.verify(topic, [1], only=False)
        one.end_and_bump(committed)
        one.settle()
        one.end_and_bump(committed, epoch_delta=-1)
    one.end_and_bump(False)
    one.settle()
    one.init(tell=True)
    one.produce(topic, 0, (12,))
    in_the_way(one)
    one.init()
    one.produce(topic, 0, (12,))
    one.end_and_bump(True)
    one.settle()
    old_client(one, topic)
    empty.init()
    empty.end_and_bump(False)
    empty.settle()
    empty.init()
    await_timeout(slow)
    slow.init()
    for item in (one, empty, slow):
        same_log(item)


LAST_EPOCH = 32_766
"""The last epoch that the coordinator returns to clients."""
WINDOW = 500


def at_last_epoch(pair: Pair, timeout_ms: int = 60_000) -> Transactional:
    """Return a transactional id at the last client epoch, so that only the coordinator can increment it."""
    one = Transactional(pair)
    one.init(timeout_ms=timeout_ms)
    asked = {"transactional_id": one.id, "transaction_timeout_ms": timeout_ms}
    frame = encode(ApiKey.INIT_PRODUCER_ID, 4, asked)
    for side, connection in pair.sides.items():
        while (left := LAST_EPOCH - one.given[side][1]) > 0:
            connection.send(frame * min(left, WINDOW))
            for _ in range(min(left, WINDOW)):
                answer = decoded(ApiKey.INIT_PRODUCER_ID, 4, connection.receive())
                if answer["error_code"] == 0:
                    one.given[side] = (answer["producer_id"], answer["producer_epoch"])
    return one


def decoded(key: ApiKey, version: int, answer: bytes) -> Plain:
    _, position = headers.decode_response_header(key, version, answer)
    result: Plain = plain(codec.decode(response_class(key), version, answer, position))
    return result


@pytest.mark.skipif(not campaign.enabled(), reason="32,766 epochs")
def test_exhausting_the_epochs_in_version_2_writes_the_same_records_as_kafka(pair_2: Pair) -> None:
    topic = pair_2.topic(2)
    for committed in (True, False):
        one = at_last_epoch(pair_2)
        one.produce(topic, 0, (12,))
        before = dict(one.given)
        one.end_and_bump(committed)
        one.settle()
        after, one.given = one.given, before
        one.end_and_bump(committed)
        assert one.given == after
        one.produce(topic, 0, (12,))
        in_the_way(one)
        one.init()
        same_log(one)
    one = at_last_epoch(pair_2)
    before = dict(one.given)
    one.init(tell=True)
    after, one.given = one.given, before
    one.init(tell=True)
    assert one.given == after
    one.produce(topic, 0, (12,))
    same_log(one)


@pytest.mark.skipif(not campaign.enabled(), reason="32,766 epochs")
def test_an_abort_uses_the_last_epoch_in_version_2(pair_2: Pair, request: pytest.FixtureRequest) -> None:
    """Our broker and Kafka 4.1 write the same records. The producer may still end the transaction: Kafka 4.3
    and our broker then return a new producer id, and 4.1 the last epoch (KAFKA-20090).
    """
    is_43 = "genuine_43_address" in request.node.name
    topic = pair_2.topic(2)
    for timeout_ms in (60_000, 1000):
        one = at_last_epoch(pair_2, timeout_ms)
        one.produce(topic, 0, (12,))
        if timeout_ms > 1000:
            in_the_way(one)
        else:
            await_timeout(one)
        if is_43:
            one.end_and_bump(False)
            one.settle()
        one.init()
        if not is_43:
            same_log(one)


@pytest.mark.skipif(not campaign.enabled(), reason="32,766 epochs")
def test_exhausting_the_epochs_of_pre_kafka_4_clients_writes_the_same_records_as_kafka(pair: Pair) -> None:
    topic = pair.topic(2)
    one = at_last_epoch(pair)
    one.add(topic, [0])
    in_the_way(one)
    one.end(False)
    one.init()
    same_log(one)
    one = at_last_epoch(pair)
    before = dict(one.given)
    one.init(tell=True)
    one.given = before
    one.init(tell=True)
    one.add(topic, [0])
    same_log(one)
