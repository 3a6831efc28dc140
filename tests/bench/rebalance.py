"""Time until a consumer group of Kafka 4 (KIP-848) is stable, and the cost of idle members.

python -m tests.bench.rebalance [--members 100] [--partitions 1000] [--idle 10000] [--pairs 3] [--compiled]

This broker and Apache Kafka 4.4.0 (KRaft, the heap of its start script) are compared in pairs of runs, in the
order A B, B A, A B, … Each run uses a new broker, and these measurements, in this order:

- join: all members join a new group, until it is stable.
- replace: half of the members leave, and as many others join, until the group is stable.
- again: the same once more.
- idle: another group gets --idle members, which join one after the other. Then each sends a heartbeat every
  five seconds for 15 s, while a bystander sends ApiVersions every 5 ms. `longest` is the bystander's longest
  wait in these 15 s, `longest while joining` its longest wait before, `memory` the growth of the broker's
  resident memory per member, and `broker CPU` that of the 15 s.

The members are bare sockets. Each sends its next heartbeat as soon as it has the response to the last one,
with the partitions that it has been assigned. The assignment interval is 0, except in the last measurement
(1 s, the default). Before the first measurement, the same operations run with other groups for some seconds,
so that the JVM has compiled its code.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from uuid import UUID, uuid4

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafka_compat.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.bench import growth_client as client
from tests.bench import in_pairs
from tests.bench.growth_client import Wire, decoded, frame
from tests.bench.progress import Progress
from tests.bench.sides import Side

FLEXIBLE_HEADER_BYTES = 5
ERROR_AT = 13
EPOCH_AT = 53
ASSIGNMENT_AT = 61
"""Positions in a ConsumerGroupHeartbeat response that has no error message and a member ID of 36 bytes."""
NO_TOPICS = NO_PARTITIONS = b"\1"
"""An empty array."""
REBALANCE_TIMEOUT_MS = 300_000
WITHIN_S = 300.0
WARM_UP_S = 10.0
IDLE_S = 15.0
HEARTBEAT_S = 5.0
BYSTANDER_S = 0.005
GROUP_RESOURCE = 32
COORDINATOR_STARTS = (14, 15, 16)
"""Error codes while the coordinator loads its partition. The heartbeat is repeated."""
STEPS = 6
COLUMNS = {
    "seconds": "time",
    "cpu_seconds": "broker CPU",
    "longest_ms": "longest",
    "longest_joining_ms": "longest while joining",
    "bytes_per_member": "memory",
}
TOPIC = "rebalanced"

Owned = dict[UUID, tuple[int, ...]]


class Member:
    """A member of a group with its own connection.

    It reads responses and writes requests at fixed positions, because the codec in Python would take about as
    much time as the broker.
    """

    def __init__(self, group: str, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), WITHIN_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.epoch = 0
        self.partition_count = 0
        self._group = group
        self._id = str(uuid4())
        self._answer = bytearray()
        self._last_answer = b""
        self._frame = heartbeat(group, self._id, 0)
        self._beginning = heartbeat(group, self._id, 1, {})[4 : -len(_rest(bytes(4), NO_TOPICS))]
        self._topics = NO_TOPICS

    def send(self) -> None:
        self.socket.sendall(self._frame)

    def receive(self) -> bool:
        """Receive a part of a response. Return whether it is complete."""
        answer = self._answer
        answer += self.socket.recv(1 << 16)
        if len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            return False
        received = bytes(answer)
        answer.clear()
        if received != self._last_answer and self._learn(received):
            self._last_answer = received
        return True

    def _learn(self, received: bytes) -> bool:
        """Prepare the next request. Return False if the coordinator is starting."""
        error_code = int.from_bytes(received[ERROR_AT : ERROR_AT + 2], "big")
        if error_code in COORDINATOR_STARTS:
            return False
        if error_code:
            raise client.Refused(1, error_code)
        epoch = received[EPOCH_AT : EPOCH_AT + 4]
        self.epoch = int.from_bytes(epoch, "big")
        if received[ASSIGNMENT_AT] == 1:
            # The array of topics is the same in a response and in a request.
            self._topics = received[ASSIGNMENT_AT + 1 : -2]
            self.partition_count = partition_count(self._topics)
        rest = _rest(epoch, self._topics)
        self._frame = (len(self._beginning) + len(rest)).to_bytes(4, "big") + self._beginning + rest
        return True

    def leave(self) -> None:
        self._frame = heartbeat(self._group, self._id, -1)
        self.send()
        while not self.receive():
            pass
        self.socket.close()


def _rest(epoch: bytes, topics: bytes) -> bytes:
    """Return a ConsumerGroupHeartbeat request from the member epoch on, for an encoded array of topics."""
    return epoch + b"\0\0" + b"\xff" * 4 + b"\0\0\0" + topics + b"\0"


def partition_count(topics: bytes) -> int:
    """Return the number of partitions in an encoded array of at most one topic."""
    array = topics[17:-1]
    if topics == NO_TOPICS or array == NO_PARTITIONS:
        return 0
    return len(array) // 4


def heartbeat(group: str, member_id: str, epoch: int, owned: Owned | None = None) -> bytes:
    joins = epoch == 0
    partitions = [TopicPartitions(topic_id=key, partitions=list(each)) for key, each in (owned or {}).items()]
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else -1,
        subscribed_topic_names=[TOPIC] if joins else None,
        topic_partitions=partitions if joins or owned is not None else None,
    )
    return frame(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)


def answered(received: bytes | bytearray) -> ConsumerGroupHeartbeatResponse:
    """Decode a response. Raises Refused for an error."""
    found = decoded(ConsumerGroupHeartbeatResponse, 1, bytearray(received), FLEXIBLE_HEADER_BYTES)
    if found.error_code:
        raise client.Refused(1, found.error_code)
    return found


def until_stable(members: Collection[Member], partitions: int) -> None:
    """Let all members send heartbeats until each partition belongs to one of them, in the same epoch."""
    deadline_s = time.monotonic() + WITHIN_S
    with selectors.DefaultSelector() as ready:
        for member in members:
            ready.register(member.socket, selectors.EVENT_READ, member)
            member.send()
        while not is_stable(members, partitions):
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"the group is not stable after {WITHIN_S:.0f} s")
            for key, _ in ready.select(1):
                member = key.data
                if member.receive():
                    member.send()
    for member in members:
        while not member.receive():
            pass


def is_stable(members: Collection[Member], partitions: int) -> bool:
    epochs = {member.epoch for member in members}
    assigned = sum(member.partition_count for member in members)
    return len(epochs) == 1 and 0 not in epochs and assigned == partitions


class Bystander(threading.Thread):
    """A client that sends a small request every few milliseconds, and notes its longest wait."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.longest_s = 0.0
        self._wire = Wire(port)
        self._stopped = threading.Event()

    def run(self) -> None:
        request = client.api_versions()
        while not self._stopped.wait(BYSTANDER_S):
            began_s = time.perf_counter()
            self._wire.ask(request)
            self.longest_s = max(self.longest_s, time.perf_counter() - began_s)

    def take_longest_ms(self) -> float:
        longest_s, self.longest_s = self.longest_s, 0.0
        return longest_s * 1000

    def stop(self) -> None:
        self._stopped.set()
        self.join()
        self._wire.close()


class Groups:
    """The measurements with one broker."""

    def __init__(self, side: Side, members: int, partitions: int, idle: int) -> None:
        self._side = side
        self._port = side.servers[0].port
        self._count = members
        self._partitions = partitions
        self._idle = idle
        self._wire = Wire(self._port)
        self._members: list[Member] = []

    def close(self) -> None:
        for member in self._members:
            member.socket.close()
        self._wire.close()

    def figures(self, progress: Progress) -> Iterator[tuple[str, dict[str, float]]]:
        """Carry out all measurements, and yield their names and figures."""
        label = self._side.label
        progress.step(f"{label}: warm up")
        client.create_topics(self._wire, [TOPIC], self._partitions)
        client.await_coordinators(self._wire)
        end_s = time.monotonic() + WARM_UP_S
        while time.monotonic() < end_s:
            self._join("warm")
            self._replace("warm")
            for member in self._members:
                member.leave()
        steps: list[tuple[str, Callable[[], None]]] = [
            ("join", lambda: self._join("measured")),
            ("replace", lambda: self._replace("measured")),
            ("again", lambda: self._replace("measured")),
        ]
        for name, operation in steps:
            progress.step(f"{label}: {name}")
            cpu_before_s, began_s = self._side.cpu_seconds(), time.perf_counter()
            operation()
            elapsed_s = time.perf_counter() - began_s
            yield name, {"seconds": elapsed_s, "cpu_seconds": self._side.cpu_seconds() - cpu_before_s}
        for member in self._members:
            member.leave()
        self._members.clear()
        progress.step(f"{label}: idle")
        if self._idle:
            yield "idle", self._stay_idle()

    def _join(self, group: str) -> None:
        self._set_interval(group, 0)
        self._members = [Member(group, self._port) for _ in range(self._count)]
        self._rebalance(group)

    def _replace(self, group: str) -> None:
        half = self._count // 2
        for member in self._members[:half]:
            member.leave()
        self._members[:half] = [Member(group, self._port) for _ in range(half)]
        self._rebalance(group)

    def _rebalance(self, group: str) -> None:
        until_stable(self._members, self._partitions)
        request = frame(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(group_ids=[group]))
        answer = self._wire.ask(request)
        found = decoded(ConsumerGroupDescribeResponse, 1, answer, FLEXIBLE_HEADER_BYTES)
        state = found.groups[0].group_state
        if state != "Stable":
            raise RuntimeError(f"the group is {state} when all members have their partitions")

    def _set_interval(self, group: str, interval_ms: int) -> None:
        config = AlterableConfig(
            name="consumer.assignment.interval.ms", config_operation=0, value=str(interval_ms)
        )
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self._wire.ask(frame(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request))

    def _stay_idle(self) -> dict[str, float]:
        before_bytes = self._side.resident_bytes()
        bystander = Bystander(self._port)
        bystander.start()
        ids = [str(uuid4()) for _ in range(self._idle)]
        epochs: dict[str, int] = {}
        owned: dict[str, Owned] = {}
        for each in ids:
            self._beat(each, epochs, owned)
        deadline_s = time.monotonic() + WITHIN_S
        while len(set(epochs.values())) > 1:
            if time.monotonic() > deadline_s:
                raise RuntimeError("the idle members do not reach one epoch")
            for each in ids:
                self._beat(each, epochs, owned)
        longest_joining_ms = bystander.take_longest_ms()
        cpu_before_s = self._side.cpu_seconds()
        began_s, sent = time.monotonic(), 0
        while (elapsed_s := time.monotonic() - began_s) < IDLE_S:
            due = int(elapsed_s / HEARTBEAT_S * len(ids)) - sent
            for _ in range(due):
                self._beat(ids[sent % len(ids)], epochs, owned)
                sent += 1
            time.sleep(0.001)  # the members are idle
        figures = {
            "cpu_seconds": self._side.cpu_seconds() - cpu_before_s,
            "longest_ms": bystander.take_longest_ms(),
            "longest_joining_ms": longest_joining_ms,
            "bytes_per_member": (self._side.resident_bytes() - before_bytes) / self._idle,
        }
        bystander.stop()
        return figures

    def _beat(self, member_id: str, epochs: dict[str, int], owned: dict[str, Owned]) -> None:
        request = heartbeat("idle", member_id, epochs.get(member_id, 0), owned.get(member_id))
        found = answered(self._wire.ask(request))
        epochs[member_id] = found.member_epoch
        if found.assignment is not None:
            topics = found.assignment.topic_partitions
            owned[member_id] = {topic.topic_id: tuple(topic.partitions) for topic in topics}


def run(side: Side, arguments: argparse.Namespace, progress: Progress) -> dict[str, dict[str, float]]:
    """Start a side, and return the figures of all measurements."""
    progress.step("start")
    side.start()
    groups = Groups(side, arguments.members, arguments.partitions, arguments.idle)
    try:
        return dict(groups.figures(progress))
    finally:
        groups.close()
        for server in side.servers:
            server.kill()


def main(argv: Sequence[str] | None = None) -> None:
    parser = in_pairs.new_parser("rebalance", __doc__)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--idle", type=int, default=10_000, help="number of idle members (0: none)")
    arguments = parser.parse_args(argv)
    in_pairs.compare(
        arguments,
        lambda side, progress: run(side, arguments, progress),
        version="4.4.0",
        steps=STEPS,
        columns=COLUMNS,
        title=f"Consumer groups: {arguments.members} members, {arguments.partitions} partitions",
    )


if __name__ == "__main__":
    main()
