"""ISR proposals of partition leaders, sent to the controller in AlterPartition requests (KIP-497). One
request at a time contains all pending proposals.

Every proposal gets a response, even after a failure. Without a response, a leader would never propose an ISR
again, and its partition would stop committing records once a follower fails.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from kafka_compat.cluster.controller_link import ControllerLink
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.replication.in_sync import IsrAnswer, LedPartition

log = logging.getLogger(__name__)

_FIRST_VERSION_WITH_IDS: Final = 2
RETRY_S: Final = 0.05
FAILURE_PAUSE_S = 1.0
"""Backoff in seconds after an unexpected failure, because each failure is logged and may recur."""
ANSWERS_AT_ONCE: Final = 100
"""Number of responses delivered before yielding to the event loop."""
_NO_EPOCH: Final = -1


class _Proposed(NamedTuple):
    topic: str | UUID
    """The key of the topic in requests: its ID, or its name in versions before 2."""
    partition: int
    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    callback: Callable[[IsrAnswer], None]


class IsrProposals:
    """An IsrProposer (replication/in_sync.py) that sends proposals through the controller link."""

    def __init__(
        self,
        broker_id: int,
        link: ControllerLink,
        *,
        broker_epoch: Callable[[], int],
        is_alive: Callable[[int], bool],
        version: int,
    ) -> None:
        """`version` is the version of the AlterPartition requests."""
        self._broker_id = broker_id
        self._link = link
        self._broker_epoch = broker_epoch
        self._is_alive = is_alive
        self._version = version
        self._waiting: list[_Proposed] = []
        self._task: asyncio.Task[None] | None = None

    def is_alive(self, broker_id: int) -> bool:
        return self._is_alive(broker_id)

    def propose(
        self,
        partition: LedPartition,
        new_isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        by_id = self._version >= _FIRST_VERSION_WITH_IDS
        topic = (partition.log.topic_id or ZERO_UUID) if by_id else partition.topic
        self._waiting.append(
            _Proposed(topic, partition.partition, new_isr, leader_epoch, partition_epoch, callback)
        )
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def close(self) -> None:
        """Stop sending proposals. Leaders get no response to pending proposals."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        # Wait for other proposals in this iteration of the event loop, to send them in one request.
        await asyncio.sleep(0)
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                answers = await self._send(batch)
            except Exception:
                log.exception("AlterPartition request failed (partitions: %d); retrying", len(batch))
                await asyncio.sleep(FAILURE_PAUSE_S)
                answers = {}
            for number, proposed in enumerate(batch, 1):
                # If the response omits a partition, report an error, so that its leader retries.
                missing = IsrAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
                answer = answers.get((proposed.topic, proposed.partition), missing)
                try:
                    proposed.callback(answer)
                except Exception:
                    log.exception("Could not apply the AlterPartition response for a partition")
                if answer.error == ErrorCode.UNKNOWN_SERVER_ERROR:
                    await asyncio.sleep(RETRY_S)
                elif number % ANSWERS_AT_ONCE == 0:
                    await asyncio.sleep(0)
        self._task = None

    async def _send(self, batch: list[_Proposed]) -> dict[tuple[str | UUID, int], IsrAnswer]:
        while True:
            response: AlterPartitionResponse = await self._link.send(
                ApiKey.ALTER_PARTITION, self._version, self._request(batch)
            )
            if response.error_code == ErrorCode.NONE:
                by_id = self._version >= _FIRST_VERSION_WITH_IDS
                return {
                    (topic.topic_id if by_id else topic.topic_name, item.partition_index): IsrAnswer(
                        known_code(item.error_code), item.leader_epoch, tuple(item.isr), item.partition_epoch
                    )
                    for topic in response.topics
                    for item in topic.partitions
                }
            # Retry, because the error may be temporary. A stale broker epoch, for example, is replaced when
            # this broker registers again.
            log.info("AlterPartition request failed with %s; retrying", known_code(response.error_code).name)
            await asyncio.sleep(RETRY_S)

    def _request(self, batch: list[_Proposed]) -> AlterPartitionRequest:
        topics: dict[str | UUID, TopicData] = {}
        for item in batch:
            topic = topics.get(item.topic)
            if topic is None:
                topic = topics[item.topic] = TopicData(partitions=[])
                if isinstance(item.topic, str):
                    topic.topic_name = item.topic
                else:
                    topic.topic_id = item.topic
            topic.partitions.append(
                PartitionData(
                    partition_index=item.partition,
                    leader_epoch=item.leader_epoch,
                    new_isr=list(item.isr),
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker, broker_epoch=_NO_EPOCH) for broker in item.isr
                    ],
                    partition_epoch=item.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )
