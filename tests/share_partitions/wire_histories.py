"""Seeded histories of share fetches and acknowledgements on two brokers, with what differs in the responses.

Later requests depend on the responses of the second broker, so that most acknowledgements are of acquired
records. Texts of error messages may differ; whether there is one may not.
"""

from __future__ import annotations

import secrets
import time
from random import Random
from typing import Any

from tests.conformance.wire import Plain
from tests.share_partitions.wire import Acks, Member, ShareGroup

_NAMES = ("a", "b", "c")
_WAIT_S = 1.0
"""Time after which Apache Kafka has certainly noticed that a connection has been closed."""
_LOCK_MS = 8_000


class Difference(AssertionError):
    """Two brokers responded differently."""


class History:
    """One history. `needs_members` tells for each address whether states must be initialized by a member."""

    def __init__(self, seed: int, addresses: tuple[str, str], needs_members: tuple[bool, bool]) -> None:
        self.random = Random(seed)
        self.expires = self.random.random() < 0.2
        self.size = self.random.choice((1, 1, 2, 3))
        limit = self.random.choice((2, 3, 5, 5, 6))
        configs = {
            "share.record.lock.duration.ms": str(_LOCK_MS if self.expires else 60_000),
            "share.delivery.count.limit": str(limit),
            "share.partition.max.record.locks": str(self.random.choice((100, 2_000))),
            "share.isolation.level": self.random.choice(("read_committed", "read_uncommitted")),
        }
        name = f"group-{seed}-{secrets.token_hex(3)}"
        self.groups = [ShareGroup(address, name, self.size, configs) for address in addresses]
        for group, needed in zip(self.groups, needs_members, strict=True):
            if needed:
                group.initialize()
            group.load()
        self.members: dict[str, list[Member]] = {}
        self.acquired: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.ends = [0] * self.size
        self.log: list[str] = []

    def run(self, steps: int) -> None:
        """Apply random steps. Raises Difference with the history so far."""
        try:
            for _ in range(steps):
                kinds = ["produce", "fetch", "fetch", "fetch", "acknowledge", "acknowledge", "close", "drop"]
                weights = [2.0, 2, 2, 2, 2, 2, 0.4, 0.3]
                if self.expires:
                    kinds.append("expire")
                    weights.append(0.3)
                kinds += ["delete", "transaction"]
                weights += [0.2, 0.5]
                getattr(self, self.random.choices(kinds, weights)[0])()
        finally:
            for group in self.groups:
                group.close()

    def _member(self, name: str) -> list[Member]:
        if name not in self.members:
            self.members[name] = [group.member(name) for group in self.groups]
        return self.members[name]

    def _same(self, label: str, results: list[Plain]) -> Plain:
        compared = [_without_texts(each) for each in results]
        self.log.append(f"{label} -> {compared[1]}")
        if compared[0] != compared[1]:
            raise Difference("\n".join([*self.log, f"but the first broker: {compared[0]}"]))
        return results[1]

    def produce(self) -> None:
        partition = self.random.randrange(self.size)
        counts = [self.random.choice((1, 2, 5, 10, 30)) for _ in range(self.random.choice((1, 2, 5)))]
        for group in self.groups:
            group.produce(*counts, partition=partition)
        self.ends[partition] += sum(counts)
        self.log.append(f"produce {partition}: {counts}")

    def transaction(self) -> None:
        partition = self.random.randrange(self.size)
        counts = [self.random.choice((1, 5, 10)) for _ in range(self.random.choice((1, 3)))]
        is_committed = self.random.random() < 0.4
        for group in self.groups:
            group.transaction(*counts, is_committed=is_committed, partition=partition)
        self.ends[partition] += sum(counts) + 1
        self.log.append(f"transaction {partition}: {counts}, committed: {is_committed}")

    def fetch(self) -> None:
        name = self.random.choice(_NAMES)
        members = self._member(name)
        more: dict[str, Any] = {
            # The order in which Apache Kafka reads several partitions depends on earlier reads.
            "max_records": self.random.choice((1, 3, 10, 50, 500)) if self.size == 1 else 10_000,
            "batch_size": self.random.choice((1, 4, 20, 500)),
            "share_acquire_mode": self.random.choice((0, 0, 1)),
            "max_bytes": self.random.choice((100, 1 << 20)) if self.size == 1 else 1 << 20,
            "max_wait_ms": 60,
            "min_bytes": self.random.choice((0, 1, 1)),
        }
        acks = None
        if members[0].epoch and self.random.random() < 0.4:
            acks = self._acks(name)
            # A released record may be acquired by the same request, once this is stored.
            more["max_wait_ms"] = 600
        results = [each.fetch(acks, **more) for each in members]
        answer = self._same(f"{name} fetch {acks} {more}", results)
        self._acknowledged(name, acks)
        for partition, found in answer["partitions"].items():
            own = self.acquired.setdefault((name, partition), [])
            own += [(first, last) for first, last, _ in found["acquired"]]
        self._restart_if_invalid(name, answer)

    def acknowledge(self) -> None:
        name = self.random.choice(_NAMES)
        members = self._member(name)
        acks = self._acks(name)
        if acks is None or not members[0].epoch:
            return
        more = {"is_renew_ack": self.random.random() < 0.8}
        results = [each.acknowledge(acks, **more) for each in members]
        answer = self._same(f"{name} acknowledge {acks} {more}", results)
        self._acknowledged(name, acks)
        self._restart_if_invalid(name, answer)

    def _restart_if_invalid(self, name: str, answer: Plain) -> None:
        if answer["error"]:
            for each in self.members[name]:
                each.epoch = 0

    def _acks(self, name: str) -> dict[int, Acks] | None:
        found: dict[int, Acks] = {}
        for partition in range(self.size):
            own = self.acquired.get((name, partition), [])
            if self.random.random() < 0.1:
                first = self.random.randint(0, self.ends[partition] + 2)
                found[partition] = [(first, first + self.random.choice((0, 3)), self._types(1))]
            elif own and self.random.random() < 0.8:
                batches = []
                for first, last in sorted(self.random.sample(own, min(len(own), 2))):
                    low = self.random.randint(first, last) if self.random.random() < 0.5 else first
                    high = self.random.randint(low, last) if self.random.random() < 0.5 else last
                    count = high - low + 1 if self.random.random() < 0.3 else 1
                    batches.append((low, high, self._types(count)))
                found[partition] = batches
        return found or None

    def _types(self, count: int) -> list[int]:
        kinds = (1, 2, 2, 2, 3, 0, 4) if self.random.random() < 0.3 else (1, 2, 2, 3)
        return [self.random.choice(kinds) for _ in range(count)]

    def _acknowledged(self, name: str, acks: dict[int, Acks] | None) -> None:
        """Keep what may still be acquired: acknowledging records again must fail in the same way."""
        for partition in acks or ():
            own = self.acquired.get((name, partition), [])
            if len(own) > 6 or self.random.random() < 0.7:
                del own[: len(own) // 2 + 1]

    def close(self) -> None:
        name = self.random.choice(_NAMES)
        members = self._member(name)
        if not members[0].epoch:
            return
        results = [each.fetch(epoch=-1) for each in members]
        self._same(f"{name} close", results)
        time.sleep(_WAIT_S)  # Apache Kafka releases the records after it has responded.
        for each in members:
            each.epoch = 0

    def drop(self) -> None:
        name = self.random.choice(_NAMES)
        for each in self.members.pop(name, []):
            each.close()
        self.log.append(f"{name} drop")
        time.sleep(_WAIT_S)  # Nothing shows when the records have been released.

    def expire(self) -> None:
        self.log.append("expire")
        time.sleep(_LOCK_MS / 1000 + 0.5)  # Locks expire by the brokers' clocks.

    def delete(self) -> None:
        partition = self.random.randrange(self.size)
        offset = self.random.randint(0, self.ends[partition])
        for group in self.groups:
            group.delete_records(offset, partition)
        self.log.append(f"delete {partition} before {offset}")


def _without_texts(answer: Plain) -> Plain:
    return {
        **answer,
        "message": answer["message"] is not None,
        "partitions": {
            number: {
                key: value is not None if key in ("message", "ack_message") else value
                for key, value in found.items()
            }
            for number, found in answer["partitions"].items()
        },
    }
