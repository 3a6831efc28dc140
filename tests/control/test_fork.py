"""Forks of topics: a fork starts with the same records, and then changes independently."""

from __future__ import annotations

import contextlib
import random
import threading
import time

import pytest
from kafka import KafkaConsumer

from kafka_compat.testing import ControlFailed, KafkaBroker
from tests.control.clients import COMPACTED_ON_COMMAND, produce, producer
from tests.control.contents import Held, commit_position, committed, fill, held
from tests.support.campaign import enabled, rounds


def test_a_fork_starts_with_the_same_records_and_changes_independently(broker: KafkaBroker) -> None:
    broker.create_topic("t", 3, config={"segment.bytes": 16384, "retention.ms": -1})
    fill(broker, "t")
    before = held(broker, "t")
    assert broker.control.fork("t", "u") == "u"
    assert held(broker, "u") == before
    fill(broker, "t", 10, 1000)
    fill(broker, "u", 20, 2000)
    assert len(held(broker, "t")) == 310
    assert len(held(broker, "u")) == 320
    now = held(broker, "t")
    broker.restart()
    assert held(broker, "t") == now
    broker.kill()
    broker.start()
    assert held(broker, "t") == now
    fork = KafkaConsumer("u", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    assert next(fork).timestamp >= 1_700_000_000_000
    fork.close()


def test_a_fork_has_the_same_settings_and_is_compacted_independently(broker: KafkaBroker) -> None:
    broker.create_topic("t", config={"segment.bytes": 16384, **COMPACTED_ON_COMMAND})
    fill(broker, "t")
    before = held(broker, "t")
    broker.control.fork("t", "u")
    broker.control.compact("u")
    assert held(broker, "t") == before
    assert {key for _, _, key, _, _ in held(broker, "u")} == {b"k%d" % number for number in range(10)}
    assert len(held(broker, "u")) == 10
    broker.control.fork("u", "v")
    compacted = held(broker, "u")
    broker.control.compact("t")
    assert len(held(broker, "t")) == 10
    broker.kill()
    broker.start()
    assert held(broker, "v") == held(broker, "u") == compacted


def test_committed_offsets_are_copied_to_the_fork_on_request(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t", 10)
    for number, group in enumerate("abc"):
        commit_position(broker, group, "t", 5 + number)
    # A group with members accepts commits only from them.
    member = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="c")
    member.poll(500)
    broker.control.await_group("c", state="Stable", members=1)
    broker.control.fork("t", "u", groups=["a", "c"])
    assert [committed(broker, group, "u") for group in "ab"] == [5, -1001]
    assert broker.control.ask("POST", "/topics/t/fork", name="v", groups=True)["groups"] == ["a", "b", "c"]
    assert [committed(broker, group, "v") for group in "ab"] == [5, 6]
    assert broker.control.await_group("c")["state"] == "Stable"
    member.close()
    assert committed(broker, "c", "u") == 7


def test_an_open_transaction_is_aborted_only_in_the_fork(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = producer(broker, **{"transactional.id": "id"})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("t", b"open")
    assert client.flush(20) == 0
    broker.control.fork("t", "u")
    produce(broker, "u")
    assert [value for _, _, _, value, _ in held(broker, "u")] == [b"0"]
    assert held(broker, "t") == []
    client.commit_transaction(20)
    assert [value for _, _, _, value, _ in held(broker, "t")] == [b"open"]
    client.begin_transaction()
    client.produce("u", b"next")
    client.commit_transaction(20)
    assert [value for _, _, _, value, _ in held(broker, "u")] == [b"0", b"next"]


def test_a_producer_can_write_to_both_original_and_fork(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = producer(broker, **{"enable.idempotence": True})
    client.produce("t", b"1")
    assert client.flush(20) == 0
    broker.control.fork("t", "u")
    # The producer's first batch to `u` has the same sequence number as its first batch to `t`.
    client.produce("u", b"2")
    client.produce("t", b"3")
    assert client.flush(20) == 0
    broker.kill()
    broker.start()
    broker.control.fork("u", "v")
    client.produce("v", b"4")
    assert client.flush(20) == 0
    assert [[value for _, _, _, value, _ in held(broker, topic)] for topic in "tuv"] == [
        [b"1", b"3"],
        [b"1", b"2"],
        [b"1", b"2", b"4"],
    ]


def test_invalid_fork_requests_are_rejected(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    with pytest.raises(ControlFailed, match="UNKNOWN_TOPIC_OR_PARTITION The topic 'x' does not exist"):
        broker.control.fork("x", "u")
    with pytest.raises(ControlFailed, match="TOPIC_ALREADY_EXISTS"):
        broker.control.fork("t", "t")
    with pytest.raises(ControlFailed, match="INVALID_TOPIC_EXCEPTION"):
        broker.control.fork("t", "a/b")
    with pytest.raises(ControlFailed, match="groups='g': expected true, or an array"):
        broker.control.ask("POST", "/topics/t/fork", name="u", groups="g")
    assert broker.topics() == ["t"]


def is_compacted(now: Held, before: Held) -> bool:
    """Return whether all missing records can have been removed by compaction, which a broker may start at any
    time.
    """
    last = {(partition, key): record for record in before for partition, _, key, _, _ in [record]}
    return set(last.values()) <= set(now) <= set(before)


@pytest.mark.timeout(3000)
def test_after_a_kill_a_fork_is_either_complete_or_missing(killed: KafkaBroker) -> None:
    """The test combines forks, writes to both topics, compaction and deletion with kill -9."""
    chance = random.Random(16)
    config = {"segment.bytes": 16384, "cleanup.policy": "compact,delete", "retention.ms": -1}
    killed.create_topic("t", 4, config=config)
    fill(killed, "t", 200)
    commit_position(killed, "g", "t", 3)
    known = {"t": held(killed, "t")}
    began_s = time.perf_counter()
    killed.control.fork("t", "first")
    took_s = time.perf_counter() - began_s
    known["first"] = known["t"]
    whole = 0
    for number in range(rounds(5, 200)):
        name = f"fork-{number}"
        answered: list[str] = []
        forking = threading.Thread(target=_fork, args=(killed, name, answered))
        # Ensure that the control API responds before the fork is requested.
        assert killed.control.now_ms()
        delay_s = chance.uniform(0, 2 * took_s)
        forking.start()
        time.sleep(delay_s)  # the kill comes at a random moment of the fork
        killed.kill()
        forking.join()
        killed.start()
        there = killed.topics()
        assert set(known) <= set(there) <= {*known, name}
        assert not answered or name in there
        if name in there:
            whole += 1
            known[name] = known["t"]
            assert committed(killed, "g", name) == 3
        for topic, expected in list(known.items()):
            known[topic] = held(killed, topic)
            assert is_compacted(known[topic], expected), topic
        # Change one of the topics; the others must not change.
        changed = chance.choice(sorted(known))
        fill(killed, changed, 40, number * 40)
        if chance.random() < 0.3:
            killed.control.compact(changed)
        known[changed] = held(killed, changed)
        if len(known) > 3:
            gone = chance.choice(sorted(known.keys() - {"t"}))
            _delete(killed, gone)
            del known[gone]
    assert not enabled() or 20 < whole < 180


def _fork(broker: KafkaBroker, name: str, answered: list[str]) -> None:
    with contextlib.suppress(OSError, ControlFailed):
        answered.append(broker.control.fork("t", name, groups="all"))


def _delete(broker: KafkaBroker, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for done in admin.delete_topics([topic]).values():
        done.result(20)


TEN_GIGABYTES = 10 * 1024**3
MEGABYTE = 1024**2 - 1024


@pytest.mark.skipif(not enabled(), reason="writes 10 GB")
@pytest.mark.timeout(3000)
def test_forking_ten_gigabytes_takes_milliseconds(killed: KafkaBroker) -> None:
    killed.create_topic("t", config={"segment.bytes": 1024**3, "retention.ms": -1})
    client = producer(
        killed, acks=1, **{"message.max.bytes": 2 * MEGABYTE, "queue.buffering.max.kbytes": 65536}
    )
    value = random.Random(1).randbytes(MEGABYTE)
    count = TEN_GIGABYTES // MEGABYTE
    for _ in range(count):
        while True:
            try:
                client.produce("t", value)
                break
            except BufferError:
                client.poll(0.1)
        client.poll(0)
    assert client.flush(300) == 0
    took_ms = []
    for number in range(3):
        began_s = time.perf_counter()
        killed.control.fork("t", f"fork-{number}")
        took_ms.append((time.perf_counter() - began_s) * 1000)
    assert min(took_ms) <= 50, took_ms
    _delete(killed, "t")
    _delete(killed, "fork-0")
    client.produce("fork-1", b"last")
    assert client.flush(20) == 0
    killed.kill()
    killed.start()
    assert killed.control.await_records("fork-1", count + 1) == count + 1
    assert killed.control.await_records("fork-2", count) == count
    print(f"a fork of 10 GB took {took_ms} ms")
