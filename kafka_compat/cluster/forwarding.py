"""Forwarding of clients' requests to the controller, in a cluster with a metadata quorum.

As in Apache Kafka's quorums, clients may send requests for the controller to any broker. A broker carries out
changes of topics itself, because it writes them to the metadata store. It forwards the other requests, and
waits for the next controller if there is none. The broker has checked the client's permissions; the
controller requires CLUSTER_ACTION of the forwarding broker. (Apache Kafka forwards the client's principal in
an Envelope.) A request that was forwarded is not forwarded again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafka_compat.cluster.controller_link import ControllerLink
    from kafka_compat.protocol.api_keys import ApiKey

CLIENT_ID_PREFIX: Final = "forwarding-broker-"
"""The client ID of a forwarded request is this prefix and the forwarding broker's ID."""


class Forwarding:
    """A connection to the active controller for forwarded requests."""

    def __init__(self, link: ControllerLink) -> None:
        self._link = link

    async def ask(self, api_key: ApiKey, version: int, request: Any, timeout_ms: int) -> Any:
        """Return the active controller's response. Raises KafkaError if there is none in time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._link.send(api_key, version, request)
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "No controller responded in time.") from None

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()
