"""Control API routes for compaction, retention, flushes, expired sessions, and leader and ISR changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kafka_compat.api.caller import Caller
from kafka_compat.broker import Broker
from kafka_compat.coordination.controller.effects import ElectionReply, ReassignmentReply
from kafka_compat.coordination.controller.events import ElectionRequested, ReassignmentRequested
from kafka_compat.coordination.controller.outcomes import ControllerError, ElectionType, TopicPartition
from kafka_compat.groups.consumer.member import LEAVE_EPOCH
from kafka_compat.groups.requests import GroupType
from kafka_compat.http.routes import (
    CONFLICT,
    NOT_FOUND,
    UNAVAILABLE,
    Answer,
    BadCall,
    Call,
    Route,
    integer,
    natural,
)
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafka_compat.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_compat.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kafka_compat.replication.disk_work import finished
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replica_manager import Fetching

if TYPE_CHECKING:
    from kafka_compat.replication.replica_fetcher import ReplicaFetcher

_LEAVE_VERSION = 5
_HEARTBEAT_VERSION = 1
_CALLER = Caller(client_id="kafka-compat-control", is_trusted=True)

Command = Callable[["Broker", "Partition"], Awaitable[None]]


class Commands:
    """Routes for operations on topics and groups. They respond when the operation is complete."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers

    def routes(self, prefix: str) -> list[Route]:
        topic = prefix + "/topics/{topic}"
        commands: list[tuple[str, Command, str]] = [
            (
                "compact",
                _compact,
                "compact the topic up to its last record, if its cleanup.policy includes compact",
            ),
            ("retention", _retention, "delete segments beyond retention.ms and retention.bytes"),
            ("roll", _roll, "roll a new segment in each partition that has records"),
            ("flush", _flush, "flush the topic to disk"),
        ]
        return [
            *(
                Route("POST", f"{topic}/{name}", partial(self._each, command), summary)
                for name, command, summary in commands
            ),
            Route(
                "POST",
                prefix + "/groups/{group}/members/{member}/expire",
                self._expire,
                "expire the session of a group member, as if it had sent no heartbeats",
            ),
        ]

    async def _each(self, command: Command, call: Call) -> Answer:
        topic = call.path["topic"]
        held = [
            (broker, partition)
            for broker in self._brokers
            for partition in broker.services.replicas.of_topics([topic])
        ]
        if not held:
            raise BadCall(f"unknown topic {topic}", NOT_FOUND)
        for broker, partition in held:
            await command(broker, partition)
        return {"partitions": len({partition.partition for _, partition in held})}

    async def _expire(self, call: Call) -> Answer:
        group, member = call.path["group"], call.path["member"]
        for broker in self._brokers:
            groups = broker.services.coordinators.groups.made
            progress = None if groups is None else groups.progress(group)
            if progress is None:
                continue
            if member not in progress.members:
                raise BadCall(f"group {group} has no member {member}", NOT_FOUND)
            leave = _LEAVE[progress.type]
            error = await leave(broker, group, member)
            if error:
                raise BadCall(f"group {group} has no member {member}", NOT_FOUND)
            return {}
        raise BadCall(f"unknown group {group}", NOT_FOUND)


async def _leave_classic(broker: Broker, group: str, member: str) -> int:
    leaving = MemberIdentity(member_id=member, reason="a test ended its session")
    request = LeaveGroupRequest(group_id=group, members=[leaving])
    result = await broker.calls.ask(_CALLER, ApiKey.LEAVE_GROUP, _LEAVE_VERSION, request)
    return int(result.error_code) or next((each.error_code for each in result.members if each.error_code), 0)


async def _leave_consumer(broker: Broker, group: str, member: str) -> int:
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=LEAVE_EPOCH)
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    result = await broker.calls.ask(_CALLER, key, _HEARTBEAT_VERSION, request)
    return int(result.error_code)


async def _leave_share(broker: Broker, group: str, member: str) -> int:
    request = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=LEAVE_EPOCH)
    key = ApiKey.SHARE_GROUP_HEARTBEAT
    result = await broker.calls.ask(_CALLER, key, _HEARTBEAT_VERSION, request)
    return int(result.error_code)


_LEAVE: Final = {
    GroupType.CLASSIC: _leave_classic,
    GroupType.CONSUMER: _leave_consumer,
    GroupType.SHARE: _leave_share,
}


async def _compact(broker: Broker, partition: Partition) -> None:
    if not partition.log.config.compact:
        raise BadCall(f"cleanup.policy of {partition.topic} is not compact", CONFLICT)
    await broker.compact(partition)


async def _retention(broker: Broker, partition: Partition) -> None:
    partition.log.apply_retention(broker.services.clock.now_ms(), partition.high_watermark)


async def _roll(broker: Broker, partition: Partition) -> None:
    if partition.log.segments.active.size_bytes:
        partition.log.roll(broker.services.clock.now_ms())


async def _flush(broker: Broker, partition: Partition) -> None:
    error = await finished(partial(broker.services.flusher.request, partition.log))
    if error is not None:
        raise BadCall(f"{partition.topic}-{partition.partition}: {error}", CONFLICT)


class HeldBack:
    """Wrapper for a broker's `replica_manager.Fetching` that excludes partitions for a test."""

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching
        self._held: dict[tuple[str, int], Callable[[], None]] = {}
        """Excluded partitions, each with the function that resumes fetching."""

    def hold(self, partition: Partition) -> None:
        """Stop fetching the partition, and ignore the controller's requests to fetch it."""
        topic_id = partition.log.topic_id
        assert topic_id is not None
        self._fetching.stop(partition)
        self._held[partition.topic, partition.partition] = lambda: self._go_on(partition, topic_id)

    def let_go(self, topic: str, partition: int) -> None:
        """Resume fetching the partition."""
        go_on = self._held.pop((topic, partition), None)
        if go_on is not None:
            go_on()

    def clear(self) -> None:
        """Resume fetching all partitions."""
        for key in list(self._held):
            self.let_go(*key)

    def _go_on(self, partition: Partition, topic_id: UUID) -> None:
        if not partition.is_leader and partition.leader_id >= 0:
            self._fetching.start(partition, topic_id)

    def start(self, partition: Partition, topic_id: UUID) -> None:
        key = (partition.topic, partition.partition)
        if key in self._held:
            self._fetching.stop(partition)
            self._held[key] = lambda: self._go_on(partition, topic_id)
        else:
            self._fetching.start(partition, topic_id)

    def stop(self, partition: Partition) -> None:
        self._fetching.stop(partition)

    def running(self) -> Sequence[tuple[int, int, ReplicaFetcher]]:
        return self._fetching.running()


_PATIENCE_S = 10.0
_LOOK_S = 0.005
_NEVER_MS = -(2**62)
_NOT_KNOWN = -1
_DONE = (ControllerError.NONE, ControllerError.ELECTION_NOT_NEEDED)


class PartitionCommands:
    """Routes for the leader and ISR of a partition. They respond with the new values after the change."""

    def __init__(self, brokers: Sequence[Broker], held: dict[int, HeldBack]) -> None:
        """`held` maps broker IDs to the partitions that the broker does not fetch."""
        self._brokers = brokers
        self._held = held

    def routes(self, prefix: str) -> list[Route]:
        path = prefix + "/topics/{topic}/partitions/{partition}"
        follower = {"broker": "integer: broker ID of a follower"}
        return [
            Route("GET", path, self._get, "leader and in-sync replicas of a partition"),
            Route(
                "POST",
                path + "/leader",
                self._lead,
                "make another replica the leader and the preferred replica",
                {"broker": "integer: broker ID of an in-sync replica (default: the preferred replica)"},
            ),
            Route("POST", path + "/shrink", self._shrink, "remove a follower from the ISR", follower),
            Route("POST", path + "/restore", self._restore, "restore a follower to the ISR", follower),
        ]

    async def _get(self, call: Call) -> Answer:
        return _shown(await self._leading(call))

    async def _lead(self, call: Call) -> Answer:
        led = await self._leading(call)
        key = TopicPartition(led.topic, led.partition)
        replicas = led.in_sync.replicas
        if "broker" in call.body:
            wanted = integer(call, "broker", least=0)
            if wanted not in led.isr:
                raise BadCall(f"broker={wanted}: expected an in-sync replica: {_ids(led.isr)}", CONFLICT)
            replicas = (wanted, *(each for each in replicas if each != wanted))
            if replicas != led.in_sync.replicas:
                await self._reorder(key, replicas)
        found = await self._controller().services.controller.ask(
            lambda request_id: ElectionRequested(request_id, ElectionType.PREFERRED, (key,))
        )
        if not isinstance(found, ElectionReply):
            raise BadCall("no controller responded", UNAVAILABLE)
        outcome = found.partitions.get(key)
        if outcome is not None and outcome.error not in _DONE:
            raise BadCall(f"{led}: {outcome.error.name} {outcome.message or ''}", CONFLICT)

        def is_moved() -> bool:
            leader = self._leader(call)
            return leader is not None and leader.local_id == replicas[0]

        await _until(is_moved, f"broker {replicas[0]} does not lead {led}")
        return _shown(await self._leading(call))

    async def _reorder(self, key: TopicPartition, replicas: tuple[int, ...]) -> None:
        found = await self._controller().services.controller.ask(
            lambda request_id: ReassignmentRequested(request_id, {key: replicas})
        )
        if not isinstance(found, ReassignmentReply):
            raise BadCall("no controller responded", UNAVAILABLE)
        outcome = found.partitions[key]
        if outcome.error != ControllerError.NONE:
            raise BadCall(f"{key}: {outcome.error.name} {outcome.message or ''}", CONFLICT)

    async def _shrink(self, call: Call) -> Answer:
        led = await self._leading(call)
        follower = self._follower(call, led)
        following = follower.services.replicas.get(led.topic, led.partition)
        if following is None:
            raise BadCall(f"broker {follower.broker_id} does not follow {led} yet", CONFLICT)
        self._fetching_of(follower).hold(following)

        def is_out() -> bool:
            leader = self._leader(call)
            if leader is None:
                return False
            state = leader.in_sync.followers.get(follower.broker_id)
            if follower.broker_id not in leader.isr:
                return True
            if state is not None and leader.in_sync.pending is None:
                # Pretend that the follower has not fetched for longer than replica.lag.time.max.ms.
                state.last_caught_up_ms, state.log_end_offset = _NEVER_MS, _NOT_KNOWN
                leader.maybe_shrink_isr(follower.services.clock.monotonic_ms())
            return False

        await _until(is_out, f"broker {follower.broker_id} is still in sync with {led}")
        return _shown(await self._leading(call))

    async def _restore(self, call: Call) -> Answer:
        led = await self._leading(call)
        follower = self._follower(call, led)
        self._fetching_of(follower).let_go(led.topic, led.partition)

        def is_in() -> bool:
            leader = self._leader(call)
            return leader is not None and follower.broker_id in leader.isr

        await _until(is_in, f"broker {follower.broker_id} is not in sync with {led} yet")
        return _shown(await self._leading(call))

    # --- lookup of partitions and brokers

    async def _leading(self, call: Call) -> Partition:
        """Return the partition on its leader. While leadership moves, wait until a broker has it."""
        topic, number = call.path["topic"], natural(call.path["partition"], "the partition")
        await _until(
            lambda: self._leader(call) is not None, f"no broker of this process leads {topic}-{number}"
        )
        led = self._leader(call)
        assert led is not None, "nothing ran since it was found"
        return led

    def _leader(self, call: Call) -> Partition | None:
        """Return the partition on its leader, or None if none of these brokers leads it at the moment: the
        old leader learns of its change before the new one."""
        topic, number = call.path["topic"], natural(call.path["partition"], "the partition")
        held = [
            partition
            for broker in self._brokers
            if (partition := broker.services.replicas.get(topic, number)) is not None
        ]
        if not held:
            raise BadCall(f"unknown partition {topic}-{number}", NOT_FOUND)
        led = (partition for partition in held if partition.is_leader)
        return max(led, key=lambda partition: partition.leader_epoch, default=None)

    def _follower(self, call: Call, led: Partition) -> Broker:
        wanted = integer(call, "broker", least=0)
        followers = {broker.broker_id: broker for broker in self._brokers} if led.in_sync.followers else {}
        if wanted not in led.in_sync.followers or wanted not in followers:
            known = _ids(led.in_sync.followers) or "none: it has one replica"
            raise BadCall(f"broker={wanted}: expected a follower of {led}: {known}", CONFLICT)
        return followers[wanted]

    def _controller(self) -> Broker:
        known = self._brokers[0].services.metadata.controller_id
        return next((each for each in self._brokers if each.broker_id == known), self._brokers[0])

    def _fetching_of(self, follower: Broker) -> HeldBack:
        replicas = follower.services.replicas
        held = self._held.get(follower.broker_id)
        if held is None:
            assert replicas.fetching is not None
            held = self._held[follower.broker_id] = HeldBack(replicas.fetching)
            replicas.fetching = held
        return held


async def _until(is_so: Callable[[], bool], what: str) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _PATIENCE_S
    while not is_so():
        if loop.time() > deadline_s:
            raise BadCall(f"{what} after {_PATIENCE_S:g} s", UNAVAILABLE)
        await asyncio.sleep(_LOOK_S)


def _ids(brokers: Sequence[int] | Any) -> str:
    return ", ".join(map(str, sorted(brokers)))


def _shown(led: Partition) -> dict[str, Any]:
    return {
        "leader": led.local_id,
        "leader_epoch": led.leader_epoch,
        "replicas": list(led.in_sync.replicas),
        "isr": sorted(led.isr),
    }
