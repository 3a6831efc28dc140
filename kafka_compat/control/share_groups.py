"""Control API routes for share groups: wait until all records are finished, and expire acquisition locks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_compat.control.pulse import TIMEOUT, Pulse
from kafka_compat.http.routes import NOT_FOUND, Answer, BadCall, Call, Route, integer, natural
from kafka_compat.share_coordinator.persister import UNKNOWN_OFFSET, SharePartitionKey

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.replication.partition import Partition
    from kafka_compat.share_partitions.led_share_partition import LedSharePartition


class ShareGroups:
    """Routes for the records of a share group in a topic. Each broker in this process leads some of them."""

    def __init__(self, brokers: Sequence[Broker], pulse: Pulse) -> None:
        self._brokers = brokers
        self._pulse = pulse

    def routes(self, prefix: str) -> list[Route]:
        path = prefix + "/share-groups/{group}/topics/{topic}"
        return [
            Route(
                "GET",
                path + "/await",
                self._await,
                "wait until a share group has accepted or archived the records of a topic",
                query={
                    "remaining": "integer: maximum number of records that are left (default: 0)",
                    "in_flight": "integer: number of acquired or released records",
                    **TIMEOUT,
                },
            ),
            Route(
                "POST",
                path + "/expire-locks",
                self._expire,
                "expire the acquisition locks of a share group for the records of a topic",
                {"partition": "integer: only the locks of this partition (default: all partitions)"},
            ),
        ]

    async def _await(self, call: Call) -> Answer:
        group, topic = call.path["group"], call.path["topic"]
        in_flight = call.query.get("in_flight")
        wanted_in_flight = None if in_flight is None else natural(in_flight, "in_flight")
        default = "0" if in_flight is None else str(2**63)
        remaining_max = natural(call.query.get("remaining", default), "remaining")
        if not list(self._leaders(topic)):
            raise BadCall(f"unknown topic {topic}", NOT_FOUND)

        def is_so() -> bool:
            found = self._describe(group, topic)
            return found["remaining"] <= remaining_max and wanted_in_flight in (None, found["in_flight"])

        def late(timeout_ms: int) -> str:
            found = self._describe(group, topic)
            return (
                f"share group {group} has {found['remaining']} remaining records of {topic}, "
                f"{found['in_flight']} of them in flight, after {timeout_ms} ms"
            )

        return await self._pulse.answer(call, is_so, lambda: self._describe(group, topic), late)

    async def _expire(self, call: Call) -> Answer:
        group, topic = call.path["group"], call.path["topic"]
        partition = integer(call, "partition", least=0) if "partition" in call.body else None
        leaders = list(self._leaders(topic))
        if not leaders:
            raise BadCall(f"unknown topic {topic}", NOT_FOUND)
        count = 0
        for broker, replica in leaders:
            led = _led(broker, group, replica)
            if led is not None and partition in (None, replica.partition):
                count += led.expire_locks()
        return {"records": count}

    def _describe(self, group: str, topic: str) -> dict[str, int]:
        remaining = in_flight = 0
        for broker, replica in self._leaders(topic):
            led = _led(broker, group, replica)
            if led is None or led.machine is None:
                start_offset, complete_count = self._stored(group, replica)
            else:
                start_offset, complete_count = led.machine.start_offset, led.machine.delivery_complete_count
                in_flight += led.machine.in_flight_count - complete_count
                if not led.is_settled:
                    # Nothing is finished before it is stored.
                    complete_count = 0
            remaining += max(replica.high_watermark - start_offset - complete_count, 0)
        return {"remaining": remaining, "in_flight": in_flight}

    def _stored(self, group: str, replica: Partition) -> tuple[int, int]:
        """Return the stored start offset, and the number of finished records from there on."""
        topic_id = replica.log.topic_id
        if topic_id is not None:
            key = SharePartitionKey(group, topic_id, replica.partition)
            for broker in self._brokers:
                coordinator = broker.services.coordinators.shares.made
                found = None if coordinator is None else coordinator.progress(key)
                if found is not None and found[0] != UNKNOWN_OFFSET:
                    return found
        return replica.log.log_start_offset, 0

    def _leaders(self, topic: str) -> Iterator[tuple[Broker, Partition]]:
        # Use the replica with the latest leader epoch, because an isolated broker may not know yet that
        # another broker became leader.
        led: dict[int, tuple[Broker, Partition]] = {}
        for broker in self._brokers:
            for replica in broker.services.replicas.of_topics([topic]):
                other = led.get(replica.partition)
                if replica.is_leader and (other is None or other[1].leader_epoch < replica.leader_epoch):
                    led[replica.partition] = (broker, replica)
        yield from led.values()


def _led(broker: Broker, group: str, replica: Partition) -> LedSharePartition | None:
    manager = broker.services.coordinators.share_partitions.made
    topic_id = replica.log.topic_id
    if manager is None or topic_id is None:
        return None
    return manager.get(group, topic_id, replica.partition)
