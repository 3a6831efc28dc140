"""Consumer group members that read and commit, and record their confirmed commits."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tests.faults.producers import CLIENTS
from tests.support import java
from tests.support.client_security import for_kafka_python, for_librdkafka, java_file

_POLL_S = 0.2
_POLL_OF_A_JOIN_S = 5.0
"""If a poll times out at the moment the member joins its group, kafka-python 3.0.12 loses its assignment and
stays idle (`join_group_async`). A long timeout costs nothing, because a poll with records returns
immediately.
"""
_RETRIES_S = 30.0
_PASSING = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    # Seen once in an hour, when the coordinator was replaced by a broker of Kafka 2.8, with older versions.
    "_UNSUPPORTED_FEATURE",
)
"""Errors that librdkafka returns to its application, and that the Java client retries."""
_END_S = 60.0


class Member(Protocol):
    """A group member. `errors` are the errors that its application saw, after the usual retries."""

    @property
    def consumed(self) -> dict[int, set[int]]:
        """The offsets read, by partition."""

    @property
    def committed(self) -> dict[int, int]:
        """The highest offset with a confirmed commit, by partition."""

    @property
    def errors(self) -> list[str]: ...

    def stop(self) -> None:
        """Leave the group."""


def join(client: str, bootstrap_servers: str, topic: str, directory: Path) -> Member:
    """Start a member of the group that has the client's name."""
    if client == "java":
        return _JavaMember(bootstrap_servers, topic, directory / "java-group.log")
    member = _ConfluentMember if client == "confluent" else _KafkaPythonMember
    return member(bootstrap_servers, topic)


class _ThreadMember:
    """Base class of the Python members: a thread that reads and commits."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.consumed: dict[int, set[int]] = defaultdict(set)
        self.committed: dict[int, int] = {}
        self.errors: list[str] = []
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=type(self).__name__, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_END_S)
        assert not self._thread.is_alive(), f"{type(self).__name__} did not leave"

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:
            self.errors.append(repr(error))

    def _run(self) -> None:
        raise NotImplementedError

    def _confirmed(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self.committed[partition] = max(offset, self.committed.get(partition, 0))


class _ConfluentMember(_ThreadMember):
    """A member that uses confluent-kafka (librdkafka)."""

    def _run(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": "confluent",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **for_librdkafka(),
            }
        )
        consumer.subscribe([self._topic])
        while not self._stopping.is_set():
            messages = consumer.consume(500, timeout=_POLL_S)
            for message in messages:
                if message.error() is not None:
                    self.errors.append(str(message.error()))
                else:
                    partition, offset = message.partition(), message.offset()
                    assert partition is not None and offset is not None
                    self.consumed[partition].add(offset)
            if messages:
                self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Any) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + _RETRIES_S
        while True:
            try:
                confirmed = consumer.commit(asynchronous=False)
            except KafkaException as error:
                passes = error.args[0].retriable() or error.args[0].name() in _PASSING
                if passes and time.monotonic() < deadline:
                    time.sleep(_POLL_S)  # retry interval
                    continue
                self.errors.append(f"commit: {error}")
                return
            for item in confirmed:
                if item.error is not None:
                    self.errors.append(f"commit: {item.error}")
            self._confirmed({item.partition: item.offset for item in confirmed if item.error is None})
            return


class _KafkaPythonMember(_ThreadMember):
    """A member that uses kafka-python, which retries commits by itself."""

    def _run(self) -> None:
        from kafka import KafkaConsumer
        from kafka.structs import OffsetAndMetadata

        consumer = KafkaConsumer(
            self._topic,
            bootstrap_servers=self._bootstrap_servers.split(","),
            group_id="kafka-python",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **for_kafka_python(),
        )
        while not self._stopping.is_set():
            found = consumer.poll(timeout_ms=int(_POLL_OF_A_JOIN_S * 1000))
            for place, messages in found.items():
                self.consumed[place.partition].update(message.offset for message in messages)
            offsets = {
                place: OffsetAndMetadata(messages[-1].offset + 1, "", -1) for place, messages in found.items()
            }
            if offsets:
                consumer.commit(offsets)
                self._confirmed({place.partition: item.offset for place, item in offsets.items()})
        consumer.close()


class _JavaMember:
    """A member that uses Kafka's VerifiableConsumer, which prints all events as JSON."""

    def __init__(self, bootstrap_servers: str, topic: str, log: Path) -> None:
        settings = java_file()
        line = java.command(
            "kafka-verifiable-consumer",
            *(("--consumer.config", str(settings)) if settings is not None else ()),
            *("--bootstrap-server", bootstrap_servers, "--topic", topic, "--group-id", "java"),
            *("--verbose", "--reset-policy", "earliest"),
        )
        self._log = log
        with open(log, "wb") as output:
            self._child = subprocess.Popen(line, stdout=output, stderr=output)

    def stop(self) -> None:
        self._child.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_END_S)
        self._child.kill()
        self._child.wait()

    @property
    def consumed(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = defaultdict(set)
        for event in self._events("record_data"):
            found[event["partition"]].add(event["offset"])
        return found

    @property
    def committed(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for event in self._events("offsets_committed"):
            if event["success"]:
                for item in event["offsets"]:
                    found[item["partition"]] = max(item["offset"], found.get(item["partition"], 0))
        return found

    @property
    def errors(self) -> list[str]:
        return [f"commit: {event}" for event in self._events("offsets_committed") if not event["success"]]

    def _events(self, name: str) -> list[dict[str, Any]]:
        text = self._log.read_text(errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if event["name"] == name]


class CommitWatch(threading.Thread):
    """Polls the committed offsets of groups, and records offsets that decreased."""

    def __init__(
        self, bootstrap_servers: str, topic: str, partitions: int, groups: Sequence[str] = CLIENTS
    ) -> None:
        super().__init__(name="commit watch", daemon=True)
        self.latest: dict[tuple[str, int], int] = {}
        """The previously seen offset, by (group, partition)."""
        self.looks = 0
        self.went_back: list[str] = []
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self._groups = groups
        self._stopping = threading.Event()

    def run(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        settings = {"bootstrap.servers": self._bootstrap_servers, "log_level": 2, **for_librdkafka()}
        readers = {group: Consumer({**settings, "group.id": group}) for group in self._groups}
        while not self._stopping.wait(_POLL_S):
            for group, reader in readers.items():
                # Ignore errors, because the lookup is repeated.
                with suppress(KafkaException):
                    self._look(group, reader)
        for reader in readers.values():
            reader.close()

    def stop(self) -> None:
        self._stopping.set()
        self.join(30)

    def _look(self, group: str, reader: Any) -> None:
        from confluent_kafka import OFFSET_INVALID, TopicPartition

        wanted = [TopicPartition(self._topic, partition) for partition in range(self._partitions)]
        found = {item.partition: item.offset for item in reader.committed(wanted, timeout=5)}
        self.looks += 1
        for partition, offset in found.items():
            before = self.latest.get((group, partition), OFFSET_INVALID)
            if offset < before:
                self.went_back.append(f"{group}-{partition}: {before} to {offset}")
            self.latest[group, partition] = offset
