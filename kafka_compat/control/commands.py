"""What a broker does by its clock or its settings, done when a test says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.api.caller import Caller
from kafka_compat.http.routes import Answer, BadCall, Call, Route
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_compat.replication.disk_work import finished

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.replication.partition import Partition

_NOT_FOUND = 404
_CONFLICT = 409
_LEAVE_VERSION = 5
_CALLER = Caller(client_id="kafka-compat-control", is_trusted=True)

Command = Callable[["Broker", "Partition"], Awaitable[None]]


class Commands:
    """The routes; all return when it is done."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers

    def routes(self, prefix: str) -> list[Route]:
        """What is served."""
        topic = prefix + "/topics/{topic}"
        commands: list[tuple[str, Command, str]] = [
            ("compact", _compact, "compact the topic, if its cleanup.policy says so, up to its last record"),
            (
                "retention",
                _retention,
                "delete what its retention.ms and retention.bytes no longer keep",
            ),
            ("roll", _roll, "begin a new segment in each partition that holds anything"),
            ("flush", _flush, "have all that the topic holds on disk"),
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
                "have the session of a member of a group end, as if it had not been heard of",
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
            raise BadCall(f"there is no topic {topic}", _NOT_FOUND)
        for broker, partition in held:
            await command(broker, partition)
        return {"partitions": len({partition.partition for _, partition in held})}

    async def _expire(self, call: Call) -> Answer:
        group, member = call.path["group"], call.path["member"]
        for broker in self._brokers:
            groups = broker.services.coordinators.groups.made
            if groups is None or groups.describe_group(group)[1] is None:
                continue
            leaving = MemberIdentity(member_id=member, reason="a test has ended its session")
            request = LeaveGroupRequest(group_id=group, members=[leaving])
            result = await broker.calls.ask(_CALLER, ApiKey.LEAVE_GROUP, _LEAVE_VERSION, request)
            if result.error_code or any(each.error_code for each in result.members):
                raise BadCall(f"group {group} has no member {member}", _NOT_FOUND)
            return {}
        raise BadCall(f"there is no group {group}", _NOT_FOUND)


async def _compact(broker: Broker, partition: Partition) -> None:
    if not partition.log.config.compact:
        raise BadCall(f"cleanup.policy of {partition.topic} is not compact", _CONFLICT)
    await broker.compact(partition)


async def _retention(broker: Broker, partition: Partition) -> None:
    partition.log.apply_retention(broker.services.clock.now_ms(), partition.high_watermark)


async def _roll(broker: Broker, partition: Partition) -> None:
    if partition.log.segments.active.size_bytes:
        partition.log.roll(broker.services.clock.now_ms())


async def _flush(broker: Broker, partition: Partition) -> None:
    error = await finished(partial(broker.services.flusher.request, partition.log))
    if error is not None:
        raise BadCall(f"{partition.topic}-{partition.partition}: {error}", _CONFLICT)
