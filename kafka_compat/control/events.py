"""Events caused by the passing of time: expired sessions and transactions, and deleted and compacted records.
They are detected by comparing groups, transactions and partitions before and after time advances.
"""

from collections.abc import Sequence
from typing import Any

from kafka_compat.broker import Broker
from kafka_compat.http.routes import Answer, Call, Route

Subject = tuple[str, str, int]
"""Kind (group, transactional_id or topic), name, and partition number (0 except for topics)."""
State = dict[str, Any]


class EventLog:
    """Events that occurred while a test advanced the time, since the last reset.

    The direct effects of requests are omitted, so that the same client actions result in the same events. If
    the clock is stopped between advances, the times of the events are identical to the millisecond.
    """

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers
        self._seen: dict[Subject, State] = {}
        self.events: list[dict[str, Any]] = []

    def routes(self, prefix: str) -> list[Route]:
        return [Route("GET", prefix + "/events", self._all, "events while time was advanced")]

    async def _all(self, call: Call) -> Answer:
        return self.events

    def begin(self) -> None:
        """Store the current state, so that `note` ignores earlier changes."""
        self._seen = self._look()

    def note(self, after_ms: int) -> None:
        """Record the changes since the last `begin` or `note`. `after_ms` is the time since `begin`."""
        seen, self._seen = self._seen, self._look()
        for subject in sorted({*seen, *self._seen}):
            before, now = seen.get(subject, {}), self._seen.get(subject, {})
            kind, name, partition = subject
            changed = {key: value for key, value in now.items() if before.get(key) != value}
            if before and not now:
                changed = {"is_gone": True}
            if changed:
                numbered = {"partition": partition} if kind == "topic" else {}
                self.events.append({"after_ms": after_ms, kind: name, **numbered, **changed})

    def _look(self) -> dict[Subject, State]:
        found: dict[Subject, State] = {}
        for broker in self._brokers:
            coordinators = broker.services.coordinators
            groups, transactions = coordinators.groups.made, coordinators.transactions.made
            for group in [] if groups is None else groups.list_groups(set(), set())[1]:
                assert groups is not None
                progress = groups.progress(group.group_id)
                members = 0 if progress is None else len(progress.members)
                found["group", group.group_id, 0] = {"state": group.state, "members": members}
            for each in [] if transactions is None else transactions.list_transactions(set(), set(), -1)[1]:
                found["transactional_id", each.transactional_id, 0] = {"state": each.status.state}
            cleaned = broker.services.log_dirs.clean_offsets
            for partition in broker.services.replicas:
                if partition.is_leader and not partition.topic.startswith("__"):
                    found["topic", partition.topic, partition.partition] = {
                        "log_start_offset": partition.log.log_start_offset,
                        "high_watermark": partition.high_watermark,
                        "compacted_up_to": cleaned.get((partition.topic, partition.partition), 0),
                    }
        return found
