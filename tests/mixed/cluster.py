"""A cluster of our brokers and Apache Kafka's on one ZooKeeper, in which brokers can be exchanged for the
other kind.
"""

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
    """Three brokers of the given `kinds`. `change` replaces a broker with the other kind on the same log
    directory.
    """

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
        """Stop a broker cleanly, and start the other kind with the same id, port and log directory."""
        self.brokers[broker_id].process.stop(120)
        self.kinds[broker_id] = kind
        self.brokers[broker_id] = self._broker(broker_id)
        self.start(broker_id)

    def of_kind(self, kind: str) -> list[int]:
        """Return the current brokers of a kind."""
        return [broker_id for broker_id in BROKER_IDS if self.kinds[broker_id] == kind]

    def elect_controller(self, kind: str) -> int:
        """Make a broker of `kind` the controller: delete /controller while the other brokers are paused."""
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
                wait_until(is_controller, 60, f"a controller of kind {kind}", 0.02)
        controller_id = self.controller()
        assert controller_id is not None
        return controller_id

    def unequal(self, topic: str, partitions: int) -> list[str]:
        """Return the partitions with batches that differ between brokers. The brokers must be stopped."""
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
