"""A session whose connection breaks in the middle of a write, and which nobody told whether it was done."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_compat.cluster.shared_store import CurrentSession
from kafka_compat.coordination.store.metadata_store import ConnectionLost, MetadataStore, Operation, Stat


class LosingAnswers(CurrentSession):
    """Loses transactions as `lost` says, in their order: True for one that is done, whose answer is lost,
    False for one that never arrives. All others go through."""

    def __init__(self, session: MetadataStore) -> None:
        super().__init__(session)
        self.lost: list[bool] = []
        self.asked: list[Sequence[Operation]] = []
        """The transactions."""

    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        self.asked.append(operations)
        if self.lost:
            if self.lost.pop(0):
                await super().multi(operations)
            raise ConnectionLost(operations[0].path)
        return await super().multi(operations)
