"""A session that loses the responses to writes, so that the caller does not know whether a write was
applied.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_compat.cluster.shared_store import CurrentSession
from kafka_compat.coordination.store.metadata_store import ConnectionLost, MetadataStore, Operation, Stat


class LosingAnswers(CurrentSession):
    """Fails the transactions listed in `lost`, in order. True: apply the transaction and lose the response.
    False: lose the request. All other transactions succeed.
    """

    def __init__(self, session: MetadataStore) -> None:
        super().__init__(session)
        self.lost: list[bool] = []
        self.asked: list[Sequence[Operation]] = []
        """The operations of every transaction so far."""

    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        self.asked.append(operations)
        if self.lost:
            if self.lost.pop(0):
                await super().multi(operations)
            raise ConnectionLost(operations[0].path)
        return await super().multi(operations)
