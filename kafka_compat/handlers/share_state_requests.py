"""Requests to the share coordinator: InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState,
DeleteShareGroupState and ReadShareGroupStateSummary (KIP-932). Brokers send them to each other.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.api.handler import RequestContext
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.java_order import (
    DEFAULT_CAPACITY,
    HashTable,
    int_order,
    uuid_order,
)
from kafka_compat.handlers.authorization import cluster_allows
from kafka_compat.long_work import Steps, sorted_in_steps
from kafka_compat.protocol.messages.write_share_group_state import PartitionData
from kafka_compat.security.authorizer import Operation
from kafka_compat.share_coordinator.messages import StateApi, large_write
from kafka_compat.share_coordinator.operations import Result, rejected
from kafka_compat.share_coordinator.persister import SharePartitionKey

if TYPE_CHECKING:
    from uuid import UUID

_ORDERED_MAX: Final = 10_000
"""Number of partitions of a topic up to which they are returned in Kafka's order."""
_BATCHES_AT_ONCE: Final = 1_000
"""Number of batches in a write up to which they are not combined in steps."""


def process(ctx: RequestContext, request: Any, api: StateApi) -> Steps[Any]:
    """Process a request of any of these APIs."""
    if not cluster_allows(ctx, Operation.CLUSTER_ACTION):
        return (yield from _denied(request, api))
    # As in Kafka, the response to an incomplete request is empty.
    if not request.group_id or not request.topics or not all(topic.partitions for topic in request.topics):
        return api.response()
    pending = _Pending(ctx, api)
    coordinator = ctx.services.share_coordinator
    for topic in request.topics:
        for part in topic.partitions:
            key = SharePartitionKey(request.group_id, topic.topic_id, part.partition)
            pending.count += 1
            settle = partial(pending.settle, key, pending.count)
            operation = api.operation(part) if not _is_large(part) else (yield from large_write(part))
            if operation is None:
                settle(rejected(ErrorCode.UNKNOWN_SERVER_ERROR))
            else:
                coordinator.process(key, operation, settle)
            yield None
    pending.all_sent()
    return pending.deferred


def _is_large(part: Any) -> bool:
    return isinstance(part, PartitionData) and len(part.state_batches) > _BATCHES_AT_ONCE


class _Pending:
    """The results of a request, which is completed when there are all of them. If a share-partition is
    repeated, the response contains its last result.

    This is a class, because only the garbage collector frees nested functions that refer to each other.
    """

    def __init__(self, ctx: RequestContext, api: StateApi) -> None:
        self.deferred = Deferred()
        self.count = 1
        """Number of missing results, plus one until all operations have begun."""
        self._ctx = ctx
        self._api = api
        self._results: dict[SharePartitionKey, tuple[int, Result]] = {}

    def settle(self, key: SharePartitionKey, number: int, result: Result) -> None:
        known = self._results.get(key)
        if known is None or known[0] < number:
            self._results[key] = (number, result)
        self._one_less()

    def all_sent(self) -> None:
        self._one_less()

    def _one_less(self) -> None:
        self.count -= 1
        if not self.count:
            self._ctx.long_work.start(_response(self._results, self._api), self.deferred.complete)


def _response(results: dict[SharePartitionKey, tuple[int, Result]], api: StateApi) -> Steps[Any]:
    """Return the response, in the order in which Kafka iterates over hash tables."""
    topics: dict[UUID, dict[int, Result]] = {}
    for key, (_, result) in results.items():
        topics.setdefault(key.topic_id, {})[key.partition] = result
        yield None
    response = api.response()
    for topic_id in uuid_order(list(topics)):
        found = topics[topic_id]
        topic = api.topic_result(topic_id=topic_id)
        for partition in (yield from _partition_order(list(found))):
            topic.partitions.append(api.partition_result(partition, found[partition]))
            yield None
        response.results.append(topic)
    return response


def _partition_order(partitions: list[int]) -> Steps[list[int]]:
    if len(partitions) > _ORDERED_MAX:
        # No broker sends such a request.
        return (yield from sorted_in_steps(partitions))
    if min(partitions) >= 0:
        return int_order(partitions, DEFAULT_CAPACITY)
    table = HashTable(DEFAULT_CAPACITY)
    for partition in partitions:
        table.put(partition, partition)
    return table.ordered_keys()


def _denied(request: Any, api: StateApi) -> Steps[Any]:
    response = api.response()
    result = rejected(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for topic in request.topics:
        of_topic = api.topic_result(topic_id=topic.topic_id)
        for part in topic.partitions:
            of_topic.partitions.append(api.partition_result(part.partition, result))
            yield None
        response.results.append(of_topic)
    return response
