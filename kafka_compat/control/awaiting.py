"""Control API routes that wait until a group is stable or has no lag, records have arrived, or a transaction
has ended.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka_compat.broker import Broker
from kafka_compat.control.pulse import TIMEOUT, Pulse
from kafka_compat.errors import ErrorCode
from kafka_compat.http.routes import Answer, Call, Route, natural
from kafka_compat.lag import records_behind, total_records
from kafka_compat.replication.partition import Partition


class Awaiting:
    """Routes that wait for a condition. On timeout, they respond with status 408 and the current state."""

    def __init__(self, brokers: Sequence[Broker], pulse: Pulse) -> None:
        self._brokers = brokers
        self._pulse = pulse

    def routes(self, prefix: str) -> list[Route]:
        return [
            Route(
                "GET",
                prefix + "/groups/{group}/await",
                self._group,
                "wait until the group has a state, a number of members, and at most a certain lag",
                query={
                    "state": "string: state as in kafka-consumer-groups: Stable, Empty, …",
                    "members": "integer: number of members",
                    "lag": "integer: maximum lag in records",
                    **TIMEOUT,
                },
            ),
            Route(
                "GET",
                prefix + "/topics/{topic}/await",
                self._topic,
                "wait until the partitions together have a number of readable records",
                query={"records": "integer: minimum number of records", **TIMEOUT},
            ),
            Route(
                "GET",
                prefix + "/transactions/{id}/await",
                self._transaction,
                "wait until a transactional ID has a state",
                query={"state": "string: CompleteCommit, CompleteAbort, Ongoing, …", **TIMEOUT},
            ),
        ]

    # --- groups

    async def _group(self, call: Call) -> Answer:
        group = call.path["group"]
        state, members, lag = call.query.get("state"), _number(call, "members"), _number(call, "lag")

        def is_so() -> bool:
            found = self._describe_group(group)
            return (
                state in (None, found["state"])
                and members in (None, len(found["members"]))
                and (lag is None or (found["lag"] is not None and found["lag"] <= lag))
            )

        return await self._until(call, is_so, lambda: self._describe_group(group), f"group {group}")

    def _describe_group(self, group: str) -> dict[str, Any]:
        """Return the state, members and lag of a group. The lag is None before the first commit, or if a
        partition has no leader.
        """
        for broker in self._brokers:
            groups = broker.services.coordinators.groups.made
            if groups is None:
                continue
            found = groups.progress(group)
            if found is None:
                continue
            _, offsets = groups.offsets.fetch(group, None, require_stable=False)
            ends = {
                (topic, each.partition): each.known_high_watermark
                for topic in {topic for topic, _ in offsets}
                for each in self._led(topic)
            }
            lags = (
                records_behind(committed.offset, ends.get(place))
                for place, (committed, _) in offsets.items()
                if committed is not None
            )
            members = [
                {"member_id": member.member_id, "client_id": member.client_id, "host": member.client_host}
                for member in found.members.values()
            ]
            return {"state": found.state, "members": members, "lag": total_records(lags)}
        return {"state": "Dead", "members": [], "lag": None}

    # --- topics

    async def _topic(self, call: Call) -> Answer:
        topic, records = call.path["topic"], _number(call, "records")

        def describe() -> dict[str, int]:
            held = (each.high_watermark - each.log.log_start_offset for each in self._led(topic))
            return {"records": sum(held)}

        return await self._until(
            call, lambda: describe()["records"] >= (records or 0), describe, f"topic {topic}"
        )

    def _led(self, topic: str) -> Iterable[Partition]:
        # Use the replica with the latest leader epoch, because an isolated broker may not know yet that
        # another broker became leader.
        led: dict[int, Partition] = {}
        for broker in self._brokers:
            for partition in broker.services.replicas.of_topics([topic]):
                other = led.get(partition.partition)
                if partition.is_leader and (other is None or other.leader_epoch < partition.leader_epoch):
                    led[partition.partition] = partition
        return led.values()

    # --- transactions

    async def _transaction(self, call: Call) -> Answer:
        name, state = call.path["id"], call.query.get("state")

        def describe() -> dict[str, Any]:
            for broker in self._brokers:
                transactions = broker.services.coordinators.transactions.made
                if transactions is not None:
                    error, status = transactions.describe(name)
                    if error == ErrorCode.NONE and status is not None:
                        return {"state": status.state, "producer_epoch": status.producer_epoch}
            return {"state": "Dead", "producer_epoch": None}

        return await self._until(
            call, lambda: state in (None, describe()["state"]), describe, f"transactional id {name}"
        )

    # --- helpers

    async def _until(
        self, call: Call, is_so: Callable[[], bool], describe: Callable[[], Answer], what: str
    ) -> Answer:
        def late(timeout_ms: int) -> str:
            wanted = ", ".join(f"{key}={value}" for key, value in call.query.items() if key != "timeout_ms")
            return f"{what} did not reach {wanted} within {timeout_ms} ms: {json.dumps(describe())}"

        return await self._pulse.answer(call, is_so, describe, late)


def _number(call: Call, name: str) -> int | None:
    text = call.query.get(name)
    return None if text is None else natural(text, name)
