"""Blocks of producer ids from the controller (AllocateProducerIds, KIP-730)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_compat.cluster.controller_link import RETRY_S, ControllerLink
from kafka_compat.coordination.nodes.znodes import ProducerIdBlock
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

FAILURE_PAUSE_S = 1.0
"""After an error that somebody has to mend, such as what the store says of the last block."""


async def allocate_producer_ids(
    link: ControllerLink, broker_id: int, broker_epoch: Callable[[], int]
) -> ProducerIdBlock:
    """The next block, however often the controller has to be asked for it."""
    while True:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch())
        response: AllocateProducerIdsResponse = await link.send(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
        if response.error_code == ErrorCode.NONE:
            first = response.producer_id_start
            return ProducerIdBlock(broker_id, first, first + response.producer_id_len - 1)
        passes_soon = response.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
        await asyncio.sleep(RETRY_S if passes_soon else FAILURE_PAUSE_S)
