"""Operations on share-partitions whose share coordinator is another broker (KIP-932).

There is at most one request to each broker for each kind of operation and group. Operations that arrive in
the meantime wait, and are sent together in the next request. Operations on the same share-partition are
executed in order, because a request contains each share-partition once.
"""

import logging
from collections import deque
from functools import partial
from typing import Final

from kafka_compat.cluster.peers import Peers
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.share_coordinator.messages import API_OF, NO_RESULT
from kafka_compat.share_coordinator.operations import Operation, Result, rejected
from kafka_compat.share_coordinator.persister import SharePartitionKey
from kafka_compat.share_coordinator.retrying_persister import Respond

log = logging.getLogger(__name__)

PARTITIONS_MAX: Final = 500
"""Maximum number of share-partitions in a request."""

_Waiting = deque[tuple[SharePartitionKey, Operation, Respond]]


class RemoteShareCoordinators:
    """The share coordinators on other brokers."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._queues: dict[tuple[int, type[Operation], str], _Waiting] = {}
        """The waiting operations of each request that is pending or about to be sent."""

    def send(self, broker_id: int, key: SharePartitionKey, operation: Operation, respond: Respond) -> None:
        name = (broker_id, type(operation), key.group_id)
        waiting = self._queues.get(name)
        if waiting is not None:
            waiting.append((key, operation, respond))
            return
        self._queues[name] = deque([(key, operation, respond)])
        self._peers.run(f"share group state on broker {broker_id}", partial(self._send_all, *name))

    async def _send_all(self, broker_id: int, kind: type[Operation], group_id: str) -> None:
        name = (broker_id, kind, group_id)
        waiting = self._queues[name]
        try:
            while waiting:
                await self._send(broker_id, kind, group_id, _next(waiting))
        finally:
            del self._queues[name]

    async def _send(
        self,
        broker_id: int,
        kind: type[Operation],
        group_id: str,
        asked: dict[SharePartitionKey, tuple[Operation, Respond]],
    ) -> None:
        api = API_OF[kind]
        results: dict[SharePartitionKey, Result] = {}
        missing = NO_RESULT
        try:
            response = await self._peers.client(broker_id).send(
                api.key,
                api.version,
                api.request_for(group_id, ((key, operation) for key, (operation, _) in asked.items())),
            )
            results.update(api.results_of(group_id, response))
        except ConnectionError as problem:
            log.info("%s request to broker %d failed: %s", api.request.__name__, broker_id, problem)
            missing = rejected(ErrorCode.NETWORK_EXCEPTION)
        except MalformedRequest as problem:
            log.error("Invalid share-group state response from broker %d: %s", broker_id, problem)
            missing = rejected(ErrorCode.NETWORK_EXCEPTION)
        except Exception:
            # Catch all errors, because the callers must get a result.
            log.exception("%s request to broker %d failed", api.request.__name__, broker_id)
        for key, (_, respond) in asked.items():
            respond(results.get(key, missing))


def _next(waiting: _Waiting) -> dict[SharePartitionKey, tuple[Operation, Respond]]:
    """Remove and return the operations for the next request."""
    asked: dict[SharePartitionKey, tuple[Operation, Respond]] = {}
    while waiting and len(asked) < PARTITIONS_MAX and waiting[0][0] not in asked:
        key, operation, respond = waiting.popleft()
        asked[key] = (operation, respond)
    return asked
