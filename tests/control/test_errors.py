"""Every Kafka error code, injected into responses to real clients: each client reports the error, or retries
and succeeds.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kafka_compat.errors import ErrorCode
from kafka_compat.testing import KafkaBroker
from tests.clients.programs import java_command
from tests.control.clients import produce
from tests.support import campaign

APIS = ("Produce", "Fetch", "FindCoordinator", "JoinGroup", "OffsetCommit", "EndTxn")
VERSION = "3.9.1"
KNOWN_TO_IT_MAX = 127
"""The highest error code that this version's client knows."""
PATIENCE_S = 20
SAMPLE = (-1, 3, 6, 7, 10, 14, 16, 22, 25, 27, 29, 30, 45, 47, 51, 53, 56, 74, 87, 90)


def codes(highest: int) -> list[int]:
    every = [int(code) for code in ErrorCode if code not in (0,) and code <= highest]
    return every if campaign.enabled() else [code for code in SAMPLE if code in every]


@pytest.fixture
def ready(broker: KafkaBroker) -> KafkaBroker:
    broker.create_topic("t")
    broker.create_topic("transacted")
    produce(broker, "t")
    return broker


def java(broker: KafkaBroker, asked: str) -> list[str]:
    """Return the output of the Java program for these lines of input."""
    source = str(Path(__file__).with_name("java") / "GivenErrors.java")
    command = java_command("GivenErrors", VERSION, (source,))
    done = subprocess.run(
        [*command, broker.bootstrap_servers, f"{broker.control.url}/control/v1"],
        input=asked,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def test_every_error_has_the_documented_effect_in_the_java_client(ready: KafkaBroker) -> None:
    every = codes(KNOWN_TO_IT_MAX)
    asked = [(api, code) for api in APIS for code in (every if campaign.enabled() else every[::3])]
    told = [Told.of(line) for line in java(ready, "".join(f"{api} {code}\n" for api, code in asked))]
    assert [(each.api, each.code) for each in told] == asked
    assert [each for each in told if each.hits != 1] == []
    assert [each for each in told if not each.is_as_kafka_says] == []


def test_a_lost_response_duplicates_records_only_without_idempotence(broker: KafkaBroker) -> None:
    for topic in ("once", "twice"):
        broker.create_topic(topic)
    java(broker, "lose true\nlose false\n")
    assert [fault["hits"] for fault in broker.control.ask("GET", "/faults")] == [1, 1]
    assert broker.control.await_records("once", 0) == 1
    assert broker.control.await_records("twice", 0) == 2
    broker.control.remove_faults()


class Told(NamedTuple):
    """The reaction of a client to an error."""

    api: str
    code: ErrorCode
    passes: bool
    """Whether Kafka's exception for the error is retriable."""
    hits: int
    said: str
    """`served`, `told` if this error was reported, or the error that was reported instead."""

    @classmethod
    def of(cls, line: str) -> Told:
        api, code, passes, hits, said = line.split("\t")
        return cls(api, ErrorCode(int(code)), passes == "true", int(hits), said)

    @property
    def is_as_kafka_says(self) -> bool:
        otherwise = JAVA_SAYS.get((self.api, self.code))
        if otherwise is not None:
            return self.said.startswith(otherwise)
        return self.said == "told" or (self.said == "served" and self.passes)


JAVA_SAYS = {
    # An idempotent producer starts a new epoch and resends the records. A duplicate counts as stored.
    ("Produce", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER): "served",
    ("Produce", ErrorCode.DUPLICATE_SEQUENCE_NUMBER): "served",
    ("Produce", ErrorCode.UNKNOWN_PRODUCER_ID): "served",
    # The consumer fetches again, from the position given by auto.offset.reset if necessary.
    ("Fetch", ErrorCode.UNKNOWN_SERVER_ERROR): "served",
    ("Fetch", ErrorCode.OFFSET_OUT_OF_RANGE): "served",
    ("Fetch", ErrorCode.CORRUPT_MESSAGE): "KafkaException: Encountered corrupt message when fetching",
    # The consumer rejoins the group.
    ("JoinGroup", ErrorCode.UNKNOWN_MEMBER_ID): "served",
    ("JoinGroup", ErrorCode.REBALANCE_IN_PROGRESS): "served",
    ("JoinGroup", ErrorCode.MEMBER_ID_REQUIRED): "served",
    ("OffsetCommit", ErrorCode.ILLEGAL_GENERATION): "CommitFailedException: Commit cannot be completed",
    ("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID): "CommitFailedException: Commit cannot be completed",
    ("EndTxn", ErrorCode.INVALID_PRODUCER_EPOCH): "ProducerFencedException: There is a newer producer",
}
"""Reactions of Kafka's client other than reporting the error itself."""


class Client:
    """A librdkafka client with `name` as client id, so that faults apply only to its requests. A fenced
    member without an instance id would hang in close().
    """

    def __init__(self, broker: KafkaBroker, name: str, *, is_static: bool) -> None:
        self.broker = broker
        self.name = name
        self._is_static = is_static

    def settings(self) -> dict[str, object]:
        at = {"bootstrap.servers": self.broker.bootstrap_servers, "client.id": self.name}
        return {**at, "log_level": 0, "retry.backoff.ms": 10}

    def produce(self) -> None:
        failed: list[KafkaError | None] = []
        client = Producer({**self.settings(), "linger.ms": 0})
        client.produce("t", b"1", on_delivery=lambda error, _: failed.append(error))
        assert client.flush(PATIENCE_S) == 0
        if failed[0] is not None:
            raise KafkaException(failed[0])

    def fetch(self) -> None:
        client = self._consumer()
        client.assign([TopicPartition("t", 0, 0)])
        self._read(client)

    def join(self) -> None:
        client = self._consumer()
        client.subscribe(["t"])
        self._read(client)

    def commit(self) -> None:
        failed: list[KafkaError | None] = []
        client = self._consumer(on_commit=lambda error, _: failed.append(error))
        client.commit(offsets=[TopicPartition("t", 0, 0)])
        ends_s = time.monotonic() + PATIENCE_S
        while not failed and time.monotonic() < ends_s:
            client.poll(0.05)
        client.close()
        if failed[0] is not None:
            raise KafkaException(failed[0])

    def transact(self) -> None:
        client = Producer({**self.settings(), "transactional.id": self.name})
        client.init_transactions(PATIENCE_S)
        client.begin_transaction()
        client.produce("transacted", b"1")
        client.commit_transaction(PATIENCE_S)

    def _consumer(self, **more: object) -> Consumer:
        of_it = {"group.id": self.name, "auto.offset.reset": "earliest", **more}
        if self._is_static:
            of_it["group.instance.id"] = self.name
        return Consumer({**self.settings(), **of_it})

    def _read(self, client: Consumer) -> None:
        message = client.poll(PATIENCE_S)
        try:
            assert message is not None, "no records received"
            if (error := message.error()) is not None:
                raise KafkaException(error)
        finally:
            client.close()


USES: dict[str, Callable[[Client], None]] = {
    "Produce": Client.produce,
    "Fetch": Client.fetch,
    "FindCoordinator": Client.join,
    "JoinGroup": Client.join,
    "OffsetCommit": Client.commit,
    "EndTxn": Client.transact,
}


def given(broker: KafkaBroker, api: str, code: ErrorCode) -> str:
    """Inject an error, and return librdkafka's reaction: `told` if it reports the error, `served`, or the
    name of the error it reports instead.
    """
    client = Client(broker, f"{api}-{code.name}", is_static=code is ErrorCode.FENCED_INSTANCE_ID)
    about = {"topic": "t"} if api in ("Produce", "Fetch") else {}
    how = {"client_id": client.name, "error": code.name, "count": 1, **about}
    with broker.control.fault(api=api, **how) as fault:
        try:
            USES[api](client)
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            return "told" if error.code() == code else error.name()
        finally:
            assert fault.hits == 1, client.name
    return "served"


@pytest.mark.parametrize("api", APIS)
def test_every_error_is_reported_or_retried_by_librdkafka(ready: KafkaBroker, api: str) -> None:
    every = [ErrorCode(code) for code in codes(max(ErrorCode))]
    with ThreadPoolExecutor(24) as threads:
        said = dict(zip(every, threads.map(partial(given, ready, api), every), strict=True))
    others = {code: what for code, what in said.items() if what not in ("told", "served")}
    assert others == {code: what for code, what in LIBRDKAFKA_SAYS.get(api, {}).items() if code in said}
    served = {code for code, what in said.items() if what == "served"}
    assert RETRIED[api] in served
    if api != "FindCoordinator":
        # librdkafka retries FindCoordinator after any error.
        assert served <= PASSING | LIBRDKAFKA_MENDS.get(api, set())


RETRIED = {
    "Produce": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "Fetch": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "FindCoordinator": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "JoinGroup": ErrorCode.NOT_COORDINATOR,
    "OffsetCommit": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "EndTxn": ErrorCode.NOT_COORDINATOR,
}
"""For each API, an error that must not reach the user."""

PASSING = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
"""Errors after which librdkafka retries."""

LIBRDKAFKA_MENDS = {
    "Fetch": {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    },
    "JoinGroup": {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    },
    "EndTxn": {ErrorCode.CONCURRENT_TRANSACTIONS},
}
"""Errors that librdkafka handles by resetting the offset, the epoch or the membership."""

LIBRDKAFKA_SAYS = {
    "JoinGroup": {ErrorCode.FENCED_INSTANCE_ID: "_FATAL"},
    "EndTxn": {ErrorCode.INVALID_PRODUCER_EPOCH: "_FENCED", ErrorCode.PRODUCER_FENCED: "_FENCED"},
}
"""Errors that librdkafka reports as one of its own."""
