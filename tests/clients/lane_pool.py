"""The lanes of the client under test, and the creation of topics."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.lane import Lane
from tests.clients.programs import ClientKind, ClientProgram
from tests.support.process import wait_until


@dataclass(frozen=True)
class Brokers:
    """The addresses of the two compared brokers."""

    ours: str
    genuine: str


class Topics:
    """Creates topics for clients without an admin API, and waits until the broker serves them."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def make(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        new = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=configs)
        self._admin.create_topics([new])[name].result(20)

        def served() -> bool:
            found = self._admin.list_topics(timeout=10).topics.get(name)
            return found is not None and len(found.partitions) == partitions and found.error is None

        wait_until(served, 10, f"topic {name}")


class LanePool:
    """Keeps the lanes of one client open until lanes for a different client are requested."""

    def __init__(self, addresses: Mapping[str, str], folder: Path) -> None:
        self._addresses = addresses
        self._topics = {name: Topics(address) for name, address in addresses.items()}
        self._folder = folder
        self._kind: ClientKind | None = None
        self._lanes: list[Lane] = []
        self._started: list[ClientProgram] = []

    def lanes(self, kind: ClientKind) -> list[Lane]:
        """Return the lanes on this broker and on Apache Kafka, or with --bootstrap only the one on the given
        brokers.
        """
        if not self._lanes or kind != self._kind:
            self.close()
            self._kind = kind
            run = f"{kind.name}-{secrets.token_hex(3)}"
            self._lanes = [self._open(kind, broker, run) for broker in self._addresses]
        return self._lanes

    def _open(self, kind: ClientKind, broker: str, run: str) -> Lane:
        address = self._addresses[broker]

        def new_program() -> ClientProgram:
            log = self._folder / f"{run}-{broker}-{len(self._started)}.log"
            self._started.append(ClientProgram(kind, address, log))
            return self._started[-1]

        return Lane(address, new_program(), new_program, self._topics[broker].make, run)

    def close(self) -> None:
        while self._started:
            self._started.pop().close()
