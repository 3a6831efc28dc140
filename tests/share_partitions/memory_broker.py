"""`python -m kafka_compat`, but the state of share-partitions is in memory and needs no group coordinator."""

import sys

from kafka_compat.broker.hosted_coordinators import HostedCoordinators
from kafka_compat.cli import main
from kafka_compat.lazy import Lazy
from tests.share_partitions.memory_persister import MemoryPersister


def run() -> None:
    created = HostedCoordinators.__init__

    def create(self: HostedCoordinators, *given: object, **more: object) -> None:
        created(self, *given, **more)  # type: ignore[arg-type]
        self.persister = Lazy(lambda: MemoryPersister(initializes=True))  # type: ignore[arg-type,return-value]

    HostedCoordinators.__init__ = create  # type: ignore[method-assign]
    sys.exit(main())


if __name__ == "__main__":
    run()
