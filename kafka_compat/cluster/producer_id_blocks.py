"""Producer ids of a broker in a cluster: blocks come from the controller (AllocateProducerIds, KIP-730)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_compat.cluster.controller_link import RETRY_S, ControllerLink
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.producer_ids import ProducerIds
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

FAILURE_PAUSE_S = 1.0
"""After an error that somebody has to mend, such as what the store says of the last block."""


class ProducerIdBlocks(ProducerIds):
    """Asks the controller whenever a block is used up."""

    def __init__(
        self, store: MetadataStore, broker_id: int, link: ControllerLink, broker_epoch: Callable[[], int]
    ) -> None:
        super().__init__(store, broker_id)
        self._link = link
        self._broker_epoch = broker_epoch

    async def _claim(self) -> tuple[int, int]:
        while True:
            request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
            response: AllocateProducerIdsResponse = await self._link.send(
                ApiKey.ALLOCATE_PRODUCER_IDS, 0, request
            )
            if response.error_code == ErrorCode.NONE:
                first = response.producer_id_start
                return first, first + response.producer_id_len
            passes_soon = response.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
            await asyncio.sleep(RETRY_S if passes_soon else FAILURE_PAUSE_S)
