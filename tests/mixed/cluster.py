"""A cluster of our brokers and genuine Kafka's on one ZooKeeper, where a broker may change its kind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from kafka_compat.storage.records.batch import read_headers
from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.support.process import wait_until

OURS = "ours"
GENUINE = "genuine"
SETTINGS = {
    "inter.broker.protocol.version": "3.9",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "unclean.leader.election.enable": "false",
    "auto.leader.rebalance.enable": "false",
}


class MixedCluster(FaultCluster):
    """Three brokers, each of the kind that `kinds` says; `change` makes one another kind's, on its folder."""

    heap = "256M"

    def __init__(
        self,
        directory: Path,
        kinds: Mapping[int, str],
        *,
        session_timeout_ms: int = 6000,
        secured: bool = False,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            directory,
            session_timeout_ms=session_timeout_ms,
            overrides={**SETTINGS, **(overrides or {})},
            secured=secured,
        )
        self.kinds = dict(kinds)

    def is_genuine(self, broker_id: int) -> bool:
        return self.kinds[broker_id] == GENUINE

    def change(self, broker_id: int, kind: str) -> None:
        """Stop a broker as an operator does, and start one of the other kind with its id, port and folder."""
        self.brokers[broker_id].process.stop(120)
        self.kinds[broker_id] = kind
        self.brokers[broker_id] = self._broker(broker_id)
        self.start(broker_id)

    def of_kind(self, kind: str) -> list[int]:
        """The brokers that are of a kind now."""
        return [broker_id for broker_id in BROKER_IDS if self.kinds[broker_id] == kind]

    def elect_controller(self, kind: str) -> int:
        """Have a broker of that kind as controller: /controller is removed while the others are paused."""
        from kazoo.exceptions import NoNodeError

        def is_controller() -> bool:
            controller_id = self.controller()
            return controller_id is not None and self.kinds[controller_id] == kind

        wait_until(lambda: self.controller() is not None, 60, "a controller", 0.02)
        if not is_controller():
            with ExitStack() as pauses:
                for broker_id in BROKER_IDS:
                    if self.kinds[broker_id] != kind and self.brokers[broker_id].running:
                        pauses.enter_context(self.paused(broker_id))
                with suppress(NoNodeError):
                    self._nodes.delete("/controller")
                wait_until(is_controller, 60, f"a controller that is {kind}", 0.02)
        controller_id = self.controller()
        assert controller_id is not None
        return controller_id

    def unequal(self, topic: str, partitions: int) -> list[str]:
        """The partitions whose files are not the same, batch for batch, on all brokers. To be asked when the
        brokers are down."""
        return [
            f"{topic}-{partition}"
            for partition in range(partitions)
            if len({self._batches(broker_id, f"{topic}-{partition}") for broker_id in BROKER_IDS}) > 1
        ]

    def _batches(self, broker_id: int, folder: str) -> tuple[bytes, ...]:
        files = sorted((self._directory / f"broker-{broker_id}" / "logs" / folder).glob("*.log"))
        content = b"".join(file.read_bytes() for file in files)
        batches, position = [], 0
        for header in read_headers(memoryview(content)):
            batches.append(content[position : position + header.size_bytes])
            position += header.size_bytes
        return tuple(batches)
