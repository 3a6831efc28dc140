"""A client of a whole cluster over plain sockets, which retries until its request succeeds.

It follows the rules of Kafka's clients, without their pauses: administrative requests go to the broker that
Metadata names as the controller, records go to the leader, and after an error or a closed connection the
client asks any other broker for new Metadata. It waits `REQUEST_S` for a response, as Kafka's clients do by
default.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_compat.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka_compat.protocol.messages.produce import ProduceResponse
from tests.bench import growth_client
from tests.bench.growth_client import Wire, decoded, frame

REQUEST_S = 30.0
WITHIN_S = 900.0
POLL_S = 0.005
_ALREADY_EXISTS = 36
T = TypeVar("T")


def until(done: Callable[[], T | Literal[False] | None], what: str, within_s: float = WITHIN_S) -> T:
    """Poll until `done` returns neither None nor False, and return its value. Raises RuntimeError."""
    deadline_s = time.monotonic() + within_s
    while True:
        found = done()
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{what}: not within {within_s:.0f} s")
        time.sleep(POLL_S)  # interval of polling


class ClusterClient:
    """A client with one connection to each broker. `ports` are the ports of the brokers by ID."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        self.avoided: set[int] = set()
        """Brokers that are not running."""
        self._ports = ports
        self._wires: dict[int, Wire] = {}
        self._controller_id = -1

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    def ask(self, broker_id: int, request: bytes) -> bytearray | None:
        """Return the response of a broker, or None if it cannot be reached or closes the connection."""
        try:
            wire = self._wires.get(broker_id)
            if wire is None:
                wire = self._wires[broker_id] = Wire(self._ports[broker_id], REQUEST_S)
            return wire.ask(request)
        except OSError:
            broken = self._wires.pop(broker_id, None)
            if broken is not None:
                broken.close()
            return None

    def metadata(self, *topics: str) -> MetadataResponse | None:
        """Return the metadata of these topics, or of all topics, from any broker."""
        named = [MetadataRequestTopic(name=topic) for topic in topics]
        asking = MetadataRequest(topics=named or None, allow_auto_topic_creation=False)
        request = frame(ApiKey.METADATA, 8, asking)
        for each in self._ports:
            if each in self.avoided:
                continue
            answer = self.ask(each, request)
            if answer is not None:
                return decoded(MetadataResponse, 8, answer)
        return None

    def controller_id(self) -> int | None:
        """Return the ID of the controller in Metadata, if it is one of the listed brokers."""
        found = self.metadata("")
        if found is None or found.controller_id not in {each.node_id for each in found.brokers}:
            return None
        return found.controller_id

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 3) -> float:
        """Create a topic, and return how long it took, in seconds."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        request = frame(
            ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(topics=[topic], timeout_ms=int(REQUEST_S * 1000))
        )
        began_s = time.perf_counter()
        until(lambda: self._creates(request), f"creation of {name}")
        return time.perf_counter() - began_s

    def _creates(self, request: bytes) -> bool:
        if self._controller_id < 0:
            self._controller_id = self.controller_id() or -1
        answer = self.ask(self._controller_id, request) if self._controller_id >= 0 else None
        if answer is not None:
            (topic,) = decoded(CreateTopicsResponse, 4, answer).topics
            if topic.error_code in (0, _ALREADY_EXISTS):
                return True
        self._controller_id = -1
        return False

    def produce(self, topic: str) -> None:
        """Write a record to partition 0 with acks=all."""
        until(lambda: self._writes(topic), f"a record in {topic}")

    def _writes(self, topic: str) -> bool:
        found = self.metadata(topic)
        if found is None or not found.topics or not found.topics[0].partitions:
            return False
        leader_id = found.topics[0].partitions[0].leader_id
        if leader_id not in self._ports:
            return False
        answer = self.ask(leader_id, growth_client.produce(topic))
        if answer is None:
            return False
        (written,) = decoded(ProduceResponse, 8, answer).responses
        return not written.partition_responses[0].error_code

    def quorum(self) -> ResponsePartitionData | None:
        """Return the state of the quorum, if a broker reports its leader."""
        topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        request = frame(ApiKey.DESCRIBE_QUORUM, 1, DescribeQuorumRequest(topics=[topic]))
        for broker_id in self._ports:
            if broker_id in self.avoided:
                continue
            answer = self.ask(broker_id, request)
            if answer is None:
                continue
            found = decoded(DescribeQuorumResponse, 1, answer, header_bytes=5)
            for topic_found in found.topics:
                state = topic_found.partitions[0]
                if state.error_code == 0 and state.leader_id >= 0:
                    return state
        return None

    def quorum_leader(self) -> int:
        """Return the ID of the leader of the quorum, and wait until there is one."""
        return until(self.quorum, "a leader of the quorum").leader_id


class MetadataChanges(threading.Thread):
    """Creates topics with two replicas one after the other, and records how long each creation took. A broker
    may be missing.
    """

    def __init__(self, ports: Mapping[int, int], prefix: str, pause_s: float = 0.05) -> None:
        super().__init__(name="metadata changes", daemon=True)
        self.waits: list[tuple[float, float]] = []
        """(time.monotonic() at the end, duration in seconds) of each creation."""
        self.failure: Exception | None = None
        self._client = ClusterClient(ports)
        self._prefix = prefix
        self._pause_s = pause_s
        self._stopping = threading.Event()

    def run(self) -> None:
        number = 0
        try:
            while not self._stopping.wait(self._pause_s):
                wait_s = self._client.create_topic(f"{self._prefix}-{number:05}", replicas=2)
                self.waits.append((time.monotonic(), wait_s))
                number += 1
        except Exception as error:
            self.failure = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(WITHIN_S)
        self._client.close()

    def longest_s(self, began_s: float, ended_s: float) -> float:
        """Return the longest wait of a creation that overlaps this time. Raises its error, if one failed."""
        if self.failure is not None:
            raise self.failure
        waits = [wait_s for at_s, wait_s in self.waits if at_s >= began_s and at_s - wait_s <= ended_s]
        return max(waits, default=0.0)

    def await_another(self) -> None:
        """Wait until another creation that began after this call has ended."""
        since_s = time.monotonic()

        def has_ended() -> bool:
            if self.failure is not None:
                raise self.failure
            with contextlib.suppress(IndexError):
                at_s, wait_s = self.waits[-1]
                return at_s - wait_s > since_s
            return False

        until(lambda: has_ended(), "another creation of a topic")
