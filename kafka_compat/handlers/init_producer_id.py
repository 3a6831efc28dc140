"""InitProducerId (key 22): an id for an idempotent producer, with epoch 0 (KIP-98; 3+ takes the producer's
own, KIP-360).

Transactional ids are refused until there is a transaction coordinator: no client is left believing that it
can commit.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@handler(ApiKey.INIT_PRODUCER_ID)
def init_producer_id(
    ctx: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    if request.transactional_id == "":
        return _error(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _error(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _error(ErrorCode.INVALID_REQUEST)
    return _allocate(ctx)


async def _allocate(ctx: RequestContext) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await ctx.broker.producer_ids.next(), producer_epoch=0)


def _error(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
