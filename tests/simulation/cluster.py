"""A simulated cluster of three brokers in one thread, in which a seed determines time, network, disks and
controller.

Real: partitions, replica manager, follower machine, fetch sessions, the handlers of Fetch and ListOffsets,
and the log store on simulated disks. Simulated: the network (each message is delayed and may be lost), the
flusher thread, the disks, and the controller, which is either a minimal implementation of Kafka's rules
(`controller`) or the real machine with changing controllers (`terms`).

A broker dies in one of two ways. A killed process leaves its files as they were written. A power failure also
loses unsynced data. Kafka keeps acknowledged records after the loss of unsynced data as long as one in-sync
replica keeps its copy. Therefore, with the default flush.messages, the power fails for at most one in-sync
replica at a time and never for the last, and no other broker dies until the failure is detected. With
flush.messages=1, the power fails anywhere.

The controller detects a dead broker before the broker restarts, and the broker stays down for longer than a
message takes. Otherwise, requests from before its death could still take effect. KIP-903 solves this problem,
but not with ZooKeeper.
"""

from __future__ import annotations

import contextlib
import heapq
import random
from collections.abc import Callable, Generator
from typing import Any
from uuid import UUID

from kafka_compat.cluster.controller_orders import Fence
from kafka_compat.cluster.leader_and_isr import ReplicaStates, states_of, stops_of
from kafka_compat.cluster.metadata_updates import apply_update, update_of
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.fetch import fetch
from kafka_compat.handlers.list_offsets import list_offsets
from kafka_compat.long_work import finished
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.protocol.messages.fetch import FetchResponse
from kafka_compat.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafka_compat.protocol.messages.stop_replica import StopReplicaRequest
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest
from kafka_compat.replication.fetch_session import FetchSessionCache
from kafka_compat.replication.follower import Follower, FollowerSettings
from kafka_compat.replication.follower_requests import LIST_OFFSETS_VERSION
from kafka_compat.replication.in_sync import IsrAnswer, LedPartition
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replica_fetcher import ReplicaFetcher
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.testing.simulation.filesystem import SimulatedFilesystem
from tests.simulation.controller import BROKERS, DELAY_MAX_MS, TOPIC, TOPIC_ID, Controller, Controls
from tests.simulation.producer import IdempotentProducer, Violation
from tests.simulation.terms import Terms
from tests.support.contexts import request_context
from tests.support.steps import result_of

LAG_TIME_MAX_MS = 200
DETECTION_MAX_MS = 100
AWAY_MIN_MS = DETECTION_MAX_MS + 4 * DELAY_MAX_MS
SETTINGS = FollowerSettings(wait_max_ms=0, backoff_ms=20)


class Broker:
    """A broker across its restarts. It is its own ISR proposer and flusher."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.life = 0
        self.up = False
        self.disk = SimulatedFilesystem(cluster.random)
        self.clock = cluster
        self.config = BrokerConfig.from_properties({"fetch.max.bytes": "10000"})
        self.broker_epoch = -1
        self.seen_ends: dict[int, int] = {}
        """By partition, the offset up to which committed records were compared."""

    # Startup and death

    def start(self) -> None:
        self.life += 1
        self.up = True
        self.log_dirs = LogDirs(
            ["/data"],
            broker_id=self.broker_id,
            cluster_id="simulated",
            clock=self.cluster,
            config_for=lambda _: self.cluster.log_config,
            filesystem=self.disk,
        )
        report = self.log_dirs.load()
        self.metadata = MetadataCache("simulated", self.broker_id)
        state = PartitionMetadata(0, 1, 0, BROKERS, BROKERS)
        self.metadata.put_topic(TopicMetadata(TOPIC, TOPIC_ID, (state,)))
        for broker_id in BROKERS:
            self.metadata.brokers[broker_id] = BrokerMetadata(broker_id, {})
        self.replicas = ReplicaManager(
            self.broker_id,
            self.log_dirs,
            self.metadata,
            self,
            lambda action: self.cluster.at(self, 0, action),
            monotonic_ms=self.cluster.now_ms,
            proposer=self,
            lag_time_max_ms=LAG_TIME_MAX_MS,
        )
        self.replicas.restore_high_watermarks(report.high_watermarks)
        self.replicas.fetching = Fetching(self)
        self.fetch_sessions = FetchSessionCache(10, 1_000_000)
        self.authorizer = None
        self.quotas = None
        self.fence = Fence(lambda: self.broker_epoch)
        self.states = ReplicaStates(
            self.broker_id, self.replicas, self, lambda topic: self.cluster.min_insync_replicas
        )
        self.followers: dict[int, Follower] = {}
        self.asking: set[int] = set()
        self.seen_ends = {}
        self.cluster.at(self, LAG_TIME_MAX_MS // 2, self.tick)

    def die(self, power: bool) -> None:
        self.up = False
        self.life += 1
        self.disk.crashed = True
        if power:
            self.disk = self.disk.after_crash()
        else:
            self.disk = SimulatedFilesystem(self.cluster.random, self.disk._root)

    def tick(self) -> None:
        for held in self.replicas:
            held.maybe_shrink_isr(self.cluster.now_ms())
        if self.cluster.random.random() < 0.3:
            self.log_dirs.checkpoint_high_watermarks(self.replicas.high_watermarks())
        for held in self.replicas:
            if self.cluster.random.random() < 0.3:
                held.log.flush()
            if self.cluster.random.random() < 0.3:
                held.log.apply_retention(self.cluster.now_ms(), held.high_watermark)
        self.cluster.at(self, LAG_TIME_MAX_MS // 2, self.tick)

    @property
    def partition(self) -> Partition | None:
        """The first partition, which is the only one with the scripted controller."""
        return self.held(0)

    def held(self, index: int) -> Partition | None:
        return self.replicas.get(TOPIC, index) if self.up else None

    def leader_and_isr(self, leader: int, leader_epoch: int, isr: tuple[int, ...], epoch: int) -> None:
        if leader == self.broker_id:
            held = self.replicas.lead(
                TOPIC, 0, TOPIC_ID, leader_epoch, isr, is_new=False, replicas=BROKERS, partition_epoch=epoch
            )
        else:
            held = self.replicas.follow(
                TOPIC,
                0,
                TOPIC_ID,
                leader,
                leader_epoch,
                is_new=False,
                replicas=BROKERS,
                partition_epoch=epoch,
            )
        assert held is not None
        held.min_insync_replicas = self.cluster.min_insync_replicas

    # Requests of the real controller

    def lead_and_follow(self, request: LeaderAndIsrRequest) -> None:
        if self.fence.refusal(request.controller_epoch, request.broker_epoch) == ErrorCode.NONE:
            result_of(self.states.apply(finished(states_of(request))))

    def update_metadata(self, request: UpdateMetadataRequest) -> None:
        if self.fence.refusal(request.controller_epoch, request.broker_epoch) == ErrorCode.NONE:
            apply_update(self.metadata, update_of(request))

    def stop_replicas(self, request: StopReplicaRequest) -> None:
        if self.fence.refusal(request.controller_epoch, request.broker_epoch) == ErrorCode.NONE:
            # Disk work is done immediately, so the steps must not wait.
            with contextlib.suppress(StopIteration):
                self.states.stop(stops_of(request)).send(None)
                raise AssertionError("the steps must not wait")

    def leading(self, topic: str, partition: int) -> None:
        """Does nothing, because there are no coordinators."""

    stopping = leading

    # IsrProposer

    def propose(
        self,
        partition: LedPartition,
        new_isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        index = partition.partition
        self.cluster.controller.propose(self, index, new_isr, leader_epoch, partition_epoch, callback)

    def is_alive(self, broker_id: int) -> bool:
        return self.cluster.controller.is_alive(self, broker_id)

    # Flusher

    def request(self, target: Log, callback: Callable[[Exception | None], None]) -> None:
        def done() -> None:
            target.flush()
            callback(None)

        self.cluster.at(self, self.cluster.random.randint(1, 5), done)

    # Fetching

    def start_fetching(self, leader_id: int) -> Follower:
        return Follower(
            self.broker_id, SETTINGS, lambda: self.cluster.at(self, 0, lambda: self.pump(leader_id))
        )

    def stop_fetching(self, partition: Partition) -> None:
        for follower in self.followers.values():
            follower.remove(partition)

    def pump(self, leader_id: int) -> None:
        """Send the next request to the leader, unless one is in flight."""
        follower, now_ms = self.followers[leader_id], self.cluster.now_ms()
        if leader_id in self.asking:
            return
        lookup = follower.next_lookup(now_ms)
        if lookup is not None:
            asked = lookup
            self.ask(
                leader_id,
                lambda ctx: list_offsets.function(ctx, asked.request),
                LIST_OFFSETS_VERSION,
                lambda answer: follower.looked_up(asked, answer, self.cluster.now_ms()),
            )
            return
        sent = follower.next_fetch(now_ms)
        if sent is not None:
            fetched = sent
            self.ask(
                leader_id,
                lambda ctx: _with_bytes(fetch.function(ctx, fetched.request)),
                sent.version,
                lambda answer: follower.fetched(fetched, answer, self.cluster.now_ms()),
            )
            return
        wait_ms = follower.wait_ms(now_ms)
        if wait_ms is not None:
            self.cluster.at(self, wait_ms, lambda: self.pump(leader_id))

    def ask(
        self,
        leader_id: int,
        handler: Callable[[Any], Any],
        version: int,
        take: Callable[[Any], None],
    ) -> None:
        leader, cluster = self.cluster.brokers[leader_id], self.cluster
        self.asking.add(leader_id)

        def over(then: Callable[[], None]) -> None:
            self.asking.discard(leader_id)
            then()
            # If there are no records, a leader would delay its response.
            cluster.at(self, cluster.random.randint(1, 10), lambda: self.pump(leader_id))

        def serve() -> None:
            answer = handler(request_context(leader, version))
            if isinstance(answer, Generator):
                answer = result_of(answer)
            cluster.send(self, lambda: over(lambda: take(answer)))

        if not leader.up or cluster.is_cut(self.broker_id, leader_id):
            follower = self.followers[leader_id]
            cluster.at(self, DELAY_MAX_MS, lambda: over(lambda: follower.lost(cluster.now_ms())))
            return
        life = leader.life

        def arrive() -> None:
            if leader.up and leader.life == life:
                serve()
            else:
                follower = self.followers[leader_id]
                cluster.at(self, 1, lambda: over(lambda: follower.lost(cluster.now_ms())))

        cluster.at(None, cluster.random.randint(1, DELAY_MAX_MS), arrive)


class Fetching:
    """Fetches records from a broker's leaders. It is separate from Broker, because both have a `start`
    method.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def start(self, partition: Partition, topic_id: UUID) -> None:
        broker, leader_id = self._broker, partition.leader_id
        broker.stop_fetching(partition)
        follower = broker.followers.get(leader_id)
        if follower is None:
            follower = broker.followers[leader_id] = broker.start_fetching(leader_id)
        follower.add(partition, topic_id)

    def stop(self, partition: Partition) -> None:
        self._broker.stop_fetching(partition)

    def running(self) -> list[tuple[int, int, ReplicaFetcher]]:
        return []


class Cluster:
    """The brokers, their client, time and events, and the checked guarantees."""

    def __init__(
        self, seed: int, *, flush_messages: int | None = None, terms: bool = False, unclean: bool = False
    ) -> None:
        """With `terms`, use the real controller machine and change controllers. With `unclean`, out-of-sync
        replicas may be elected and the power may fail anywhere: records are lost, but the replicas must still
        agree.
        """
        self.random = random.Random(seed)
        self.time_ms = 1_000_000
        self.durable = self.random.random() < 0.4 if flush_messages is None else flush_messages == 1
        self.min_insync_replicas = self.random.choice((1, 2))
        segment_bytes, retention_bytes = self.random.choice(((2_000, -1), (100_000, -1), (500, 1_000)))
        self.log_config = LogConfig(
            flush_messages=1 if self.durable else 2**62,
            segment_bytes=segment_bytes,
            retention_bytes=retention_bytes,
        )
        self.unclean = unclean
        self.keeps_all = retention_bytes < 0 and not unclean
        self.producer: IdempotentProducer | None = None
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self.cuts: set[frozenset[int]] = set()
        self.committed: dict[tuple[int, int], tuple[int, bytes]] = {}
        """The epoch and content of each batch that a replica considered committed, by partition and base
        offset."""
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        """The partition and offset of each value."""
        self.written = 0
        self.power_failing: int | None = None
        """The broker whose power failed, while the controller may not yet know this."""
        self.controller: Controls = Terms(self) if terms else Controller(self)
        self.brokers = {broker_id: Broker(self, broker_id) for broker_id in BROKERS}
        for broker in self.brokers.values():
            broker.start()
        self.controller.tell()

    def now_ms(self) -> int:
        return self.time_ms

    monotonic_ms = now_ms

    # Events

    def at(self, broker: Broker | None, delay_ms: int, action: Callable[[], None]) -> None:
        """Run `action` later, unless the broker has died by then."""
        life = broker.life if broker is not None else 0

        def guarded() -> None:
            if broker is None or (broker.up and broker.life == life):
                action()

        self._order += 1
        heapq.heappush(self._events, (self.time_ms + delay_ms, self._order, guarded))

    def send(self, broker: Broker, action: Callable[[], None]) -> None:
        self.at(broker, self.random.randint(1, DELAY_MAX_MS), action)

    def is_cut(self, one: int, other: int) -> bool:
        return frozenset((one, other)) in self.cuts

    def run(self, duration_ms: int) -> None:
        end_ms = self.time_ms + duration_ms
        while self._events and self._events[0][0] <= end_ms:
            self.time_ms, _, action = heapq.heappop(self._events)
            action()
            self.check_committed()
        self.time_ms = end_ms

    # Faults and load

    def any_leader(self, index: int = 0) -> Broker | None:
        """Return a random broker that considers itself the leader of the partition."""
        leaders = [
            broker
            for broker in self.brokers.values()
            if (held := broker.held(index)) is not None and held.is_leader
        ]
        return self.random.choice(leaders) if leaders else None

    def produce(self) -> None:
        """Produce one acks=all batch to a broker that considers itself the leader. The first partition gets
        the most batches.
        """
        count = self.controller.partitions
        index = max(self.random.randrange(2 * count) - count, 0)
        broker = self.any_leader(index)
        partition = broker.held(index) if broker is not None else None
        if broker is None or partition is None:
            return
        self.written += 1
        value = b"%d:%d" % (self.written, broker.broker_id)
        records = [Record(timestamp=self.time_ms, value=value) for _ in range(self.random.randint(1, 3))]
        try:
            partition.check_min_isr()
            info = partition.append(memoryview(bytearray(build_batch(records))), self.time_ms)
        except (KafkaError, StorageError):
            return

        def committed(code: ErrorCode) -> None:
            if code == ErrorCode.NONE:
                self.acknowledged[value] = index, info.first_offset

        partition.when_committed(info.last_offset + 1, committed)

    def crash(self, broker: Broker, *, power: bool) -> None:
        broker.die(power)
        if power:
            self.power_failing = broker.broker_id
        found_ms = self.random.randint(1, DETECTION_MAX_MS)

        def found() -> None:
            self.controller.lost(broker.broker_id)
            known()

        def known() -> None:
            if self.power_failing != broker.broker_id:
                return
            if self.controller.counts_on(broker.broker_id):
                self.at(None, DELAY_MAX_MS, known)
            else:
                self.power_failing = None

        def back() -> None:
            if power and not self.durable and self.controller.counts_on(broker.broker_id):
                # The controller must know of the data loss first. Otherwise, it could elect the broker
                # without its data (KIP-903).
                self.at(None, DELAY_MAX_MS, back)
                return
            broker.start()
            self.controller.registered(broker.broker_id)

        self.at(None, found_ms, found)
        self.at(None, AWAY_MIN_MS + self.random.randint(0, 200), back)

    def expire(self, broker: Broker) -> None:
        """Expire the broker's session while it keeps running, possibly as a deposed leader. It registers
        again later.
        """
        if not broker.up or broker.broker_id not in self.controller.alive:
            return
        if isinstance(self.controller, Controller) or (self.power_failing is not None and not self.durable):
            return
        self.controller.lost(broker.broker_id)
        # If the process dies before, it registers when it is started again.
        self.at(broker, self.random.randint(1, 300), lambda: self.controller.registered(broker.broker_id))

    def may_lose_power(self, broker: Broker) -> bool:
        if self.durable or self.unclean:
            return True
        if self.power_failing is not None:
            return False
        alive = self.controller.alive
        for isr in self.controller.possible_isrs():
            others = [self.brokers[member] for member in isr if member != broker.broker_id]
            if broker.broker_id in isr and not (
                others and all(other.up and other.broker_id in alive for other in others)
            ):
                return False
        return True

    def misfortune(self) -> None:
        """Cause a random fault, or only produce."""
        chance = self.random.random()
        if chance < 0.70:
            for _ in range(self.random.randint(1, 3)):
                self.produce()
        elif chance < 0.76:
            self.controller.move_leader()
        elif chance < 0.78:
            self.controller.change()
        elif chance < 0.80:
            self.expire(self.random.choice(list(self.brokers.values())))
        elif chance < 0.88:
            up = [broker for broker in self.brokers.values() if broker.up]
            if up and (self.durable or self.power_failing is None):
                broker = self.random.choice(up)
                self.crash(broker, power=self.random.random() < 0.6 and self.may_lose_power(broker))
        elif chance < 0.93:
            one, other = self.random.sample(BROKERS, 2)
            self.cuts.add(frozenset((one, other)))
        else:
            self.cuts.clear()

    def live(self, steps: int) -> None:
        self.producer = IdempotentProducer(self)
        for _ in range(steps):
            self.misfortune()
            self.run(self.random.choice((1, 5, 20, 60, 300)))

    # Guarantees

    def check_committed(self) -> None:
        """Check that all replicas permanently have the same records below their high watermarks."""
        if self.unclean:
            return
        for broker in self.brokers.values():
            if broker.up:
                for held in broker.replicas:
                    self._check_committed(broker, held)

    def _check_committed(self, broker: Broker, partition: Partition) -> None:
        index, high_watermark = partition.partition, partition.high_watermark
        seen_end = broker.seen_ends.get(index, 0)
        if high_watermark == seen_end:
            return
        for base_offset, epoch, content in batches(
            partition.log, min(seen_end, high_watermark), high_watermark
        ):
            known = self.committed.setdefault((index, base_offset), (epoch, content))
            if known != (epoch, content):
                raise Violation(
                    f"broker {broker.broker_id} considers committed at offset {base_offset} of {index} "
                    f"a batch of epoch {epoch}, but a batch of epoch {known[0]} was committed there"
                )
        broker.seen_ends[index] = high_watermark

    def heal(self) -> None:
        """Repair all faults, and check that the replicas agree and contain every acknowledged record."""
        self.cuts.clear()
        self.run(2_000)
        if self.producer is not None:
            self.producer.stop()
        self.run(18_000)
        for isr in self.controller.isrs():
            if sorted(isr) != list(BROKERS):
                raise Violation(f"only {isr} are in sync")
        for index in range(self.controller.partitions):
            self._check_agreement(index)

    def _check_agreement(self, index: int) -> None:
        partitions = [held for broker in self.brokers.values() if (held := broker.held(index)) is not None]
        assert len(partitions) == len(BROKERS), "a broker did not restart"
        # The log start offsets may differ, because replicas may have applied retention to different segments.
        start = max(held.log.log_start_offset for held in partitions)
        logs = [batches(held.log, start, held.log.log_end_offset) for held in partitions]
        if logs[1] != logs[0] or logs[2] != logs[0]:
            raise Violation("the logs differ")
        offsets = {base_offset: content for base_offset, _, content in logs[0]}
        for value, (partition, offset) in self.acknowledged.items():
            kept = partition == index and offset >= start and not self.unclean
            if kept and value not in offsets.get(offset, b""):
                raise Violation(f"the acknowledged record {value!r} at offset {offset} is lost")
        if index == 0 and self.producer is not None and self.keeps_all:
            self.producer.check([content for _, _, content in logs[0]])
        for held in partitions:
            if held.high_watermark != held.log.log_end_offset:
                raise Violation(f"{held.high_watermark} of {held.log.log_end_offset} records are committed")


def batches(log: Log, start: int, end: int) -> list[tuple[int, int, bytes]]:
    """Return the batches of a log in [start, end) as (base offset, epoch, bytes)."""
    found: list[tuple[int, int, bytes]] = []
    offset = max(start, log.log_start_offset)
    while offset < end:
        piece = log.read(offset, 1_000_000, upper_bound=end)
        if piece is None:
            break
        content, position = piece.read(), 0
        for header in read_headers(memoryview(content)):
            data = content[position : position + header.size_bytes]
            position += header.size_bytes
            offset = header.next_offset
            if header.base_offset >= start:
                found.append((header.base_offset, header.partition_leader_epoch, data))
    return found


def _with_bytes(response: Any) -> Any:
    """Return the response with the bytes that the files contained when it was sent."""
    assert isinstance(response, FetchResponse)
    for topic in response.responses:
        for data in topic.partitions:
            if isinstance(data.records, FileSlice):
                data.records = memoryview(data.records.read())
    return response
