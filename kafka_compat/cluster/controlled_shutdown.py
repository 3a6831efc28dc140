"""How a broker that is about to stop has its leaderships moved: ControlledShutdown, as often and as fast as
controlled.shutdown.* say.
"""

from __future__ import annotations

import asyncio
import logging

from kafka_compat.cluster.controller_link import ControllerLink
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

log = logging.getLogger(__name__)

TELL_S = 2.0
"""How long a controller that stops waits for brokers to hear who leads now. One of them may be away."""


async def shut_down_controlled(
    config: BrokerConfig, link: ControllerLink, service: ControllerService, broker_epoch: int
) -> None:
    """Ask until nothing is led here that another broker could lead, or the tries are used up."""
    request = ControlledShutdownRequest(broker_id=config.broker_id, broker_epoch=broker_epoch)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    backoff_s = config.int("controlled.shutdown.retry.backoff.ms") / 1000
    for attempt in range(config.int("controlled.shutdown.max.retries")):
        if attempt:
            await asyncio.sleep(backoff_s)
        response = await _ask(link, request, config.int("controller.socket.timeout.ms") / 1000)
        if response is None:
            log.warning("no controller took over this broker's leaderships")
        elif response.error_code != ErrorCode.NONE:
            log.warning("controlled shutdown: %s", known_code(response.error_code).name)
        elif not response.remaining_partitions:
            # Else the new leaders would hear of it from the next controller.
            await service.drain(TELL_S)
            took_ms = int((loop.time() - began_s) * 1000)
            log.info("Broker %d stops: others lead what it led (%d ms)", config.broker_id, took_ms)
            return
        else:
            log.warning("nobody can take over %d partitions", len(response.remaining_partitions))


async def _ask(
    link: ControllerLink, request: ControlledShutdownRequest, timeout_s: float
) -> ControlledShutdownResponse | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await link.send_once(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
    except TimeoutError:
        return None
