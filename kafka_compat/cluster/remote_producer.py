"""Record batches for partitions led by other brokers, sent to each leader in Produce requests."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from kafka_compat.cluster.peers import Peers
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

log = logging.getLogger(__name__)

_VERSION: Final = 9
"""Supported by all brokers since Kafka 2.8."""
_TIMEOUT_MS: Final = 20_000
"""Time within which the in-sync replicas must have the batch. It is shorter than the default timeout of the
connection, after which all pending requests to the leader fail.
"""

Done = Callable[[ErrorCode], None]


class RemoteProducer:
    """A producer with the permissions of this broker. It neither retries nor filters duplicates."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def produce(self, leader_id: int, topic: str, partition: int, batch: bytes, done: Done) -> None:
        """Append a batch with acks=all. `done` gets the error code, NETWORK_EXCEPTION without a response."""
        self._peers.run(
            f"producing to broker {leader_id}", partial(self._send, leader_id, topic, partition, batch, done)
        )

    async def _send(self, leader_id: int, topic: str, partition: int, batch: bytes, done: Done) -> None:
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            response: ProduceResponse = await self._peers.client(leader_id).send(
                ApiKey.PRODUCE, _VERSION, request
            )
            code = _code_of(response)
        except ConnectionError as problem:
            log.info("Produce request to broker %d failed: %s", leader_id, problem)
            code = ErrorCode.NETWORK_EXCEPTION
        except MalformedRequest as problem:
            log.error("Invalid Produce response from broker %d: %s", leader_id, problem)
            code = ErrorCode.NETWORK_EXCEPTION
        except Exception:
            # Catch all errors, because the caller must get a result.
            log.exception("Produce request to broker %d failed", leader_id)
        done(code)

    async def close(self) -> None:
        """Close the connections. Pending requests get no result."""
        await self._peers.close()


def _code_of(response: ProduceResponse) -> ErrorCode:
    """Return the error code of the only partition."""
    for topic in response.responses:
        for each in topic.partition_responses:
            return known_code(each.error_code)
    return ErrorCode.UNKNOWN_SERVER_ERROR
