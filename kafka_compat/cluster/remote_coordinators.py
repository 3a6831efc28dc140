"""Requests from partition leaders to transaction coordinators on other brokers (AddPartitionsToTxn, KIP-890).

Kafka 3.6 and 3.7 support version 4 of the request, later ones version 5. Earlier brokers do not verify
transactions, so partitions whose coordinator is on such a broker are not verified, as in Kafka.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from kafka_compat.cluster.peers import Peers
from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.feed import MetadataDelta
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_compat.transactions.status import ProducerIdentity, TopicPartition
from kafka_compat.transactions.verification import Coordinators, PartitionErrors, Respond

log = logging.getLogger(__name__)

_VERSION: Final = 5
_FIRST_VERSION: Final = 4


class _PendingAnswer:
    """A pending request to a coordinator. Only the first response completes it."""

    def __init__(self, shard: int, broker_id: int, respond: Respond) -> None:
        self.shard = shard
        self.broker_id = broker_id
        self._respond: Respond | None = respond

    def settle(self, errors: PartitionErrors) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            respond(errors)


class ClusterCoordinators:
    """All coordinators of the cluster. `local` contains the coordinators on this broker."""

    def __init__(
        self, local: Coordinators, metadata: MetadataCache, peers: Peers, version: int | None = _VERSION
    ) -> None:
        """`version` is the version of the requests, or None to ask each coordinator for the one to use."""
        self._local = local
        self._metadata = metadata
        self._peers = peers
        self._version = version
        self._found_versions: dict[int, int] = {}
        """The highest version of each broker that was asked for it."""
        self._given_up: dict[_PendingAnswer, Callable[[], None]] = {}
        metadata.feed.subscribe(self._on_metadata)

    def ask(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: list[TopicPartition],
        respond: Respond,
        *,
        adds: bool,
    ) -> None:
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        shard = -1 if topic is None else shard_of(transactional_id, len(topic.partitions))
        leader_id = self._leader(shard)
        if leader_id == self._metadata.local_id:
            self._local.ask(transactional_id, identity, partitions, respond, adds=adds)
        elif leader_id not in self._metadata.brokers:
            respond(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            pending = _PendingAnswer(shard, leader_id, respond)
            self._given_up[pending] = lambda: pending.settle(
                dict.fromkeys(partitions, ErrorCode.NOT_COORDINATOR)
            )
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                verify_only=not adds,
                topics=_topics(partitions),
            )
            self._peers.run(
                f"a request to broker {leader_id}", partial(self._send, pending, transaction, partitions)
            )

    def _on_metadata(self, _: MetadataDelta) -> None:
        """Stop waiting for responses from brokers that no longer coordinate the transactions, and forget the
        versions of brokers that have left, which may return with another version.
        """
        for broker_id in self._found_versions.keys() - self._metadata.brokers.keys():
            del self._found_versions[broker_id]
        for pending, give_up in list(self._given_up.items()):
            if self._leader(pending.shard) != pending.broker_id:
                give_up()

    def _leader(self, shard: int) -> int:
        known = self._metadata.partition(TRANSACTIONS_TOPIC, shard)
        return -1 if known is None else known.leader

    async def _send(
        self,
        pending: _PendingAnswer,
        transaction: AddPartitionsToTxnTransaction,
        partitions: list[TopicPartition],
    ) -> None:
        errors = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            version = self._version or await self._version_of(pending.broker_id)
            if version >= _FIRST_VERSION:
                response: AddPartitionsToTxnResponse = await self._peers.client(pending.broker_id).send(
                    ApiKey.ADD_PARTITIONS_TO_TXN,
                    version,
                    AddPartitionsToTxnRequest(transactions=[transaction]),
                )
                errors.update(_errors_of(response, partitions))
            else:
                unverified = ErrorCode.NONE if transaction.verify_only else ErrorCode.UNSUPPORTED_VERSION
                errors = dict.fromkeys(partitions, unverified)
        except ConnectionError as problem:
            log.info("AddPartitionsToTxn request to broker %d failed: %s", pending.broker_id, problem)
            errors = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
            # The broker may have been replaced by one of an older version, which does not respond.
            self._found_versions.pop(pending.broker_id, None)
        except MalformedRequest as problem:
            log.error("Invalid AddPartitionsToTxn response from broker %d: %s", pending.broker_id, problem)
            errors = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        except Exception:
            # Catch all errors, because the producer must get a response.
            log.exception("AddPartitionsToTxn request to broker %d failed", pending.broker_id)
        finally:
            self._given_up.pop(pending, None)
        pending.settle(errors)

    async def _version_of(self, broker_id: int) -> int:
        """Return the highest common version. Raises ConnectionError or MalformedRequest."""
        found = self._found_versions.get(broker_id)
        if found is None:
            response: ApiVersionsResponse = await self._peers.client(broker_id).send(
                ApiKey.API_VERSIONS, 0, ApiVersionsRequest()
            )
            found = next(
                (
                    min(each.max_version, _VERSION)
                    for each in response.api_keys
                    if each.api_key == ApiKey.ADD_PARTITIONS_TO_TXN
                ),
                0,
            )
            self._found_versions[broker_id] = found
        return found


def _errors_of(response: AddPartitionsToTxnResponse, partitions: list[TopicPartition]) -> PartitionErrors:
    if response.error_code:
        return dict.fromkeys(partitions, known_code(response.error_code))
    return {
        (topic.name, item.partition_index): known_code(item.partition_error_code)
        for result in response.results_by_transaction
        for topic in result.topic_results
        for item in topic.results_by_partition
    }


def _topics(partitions: list[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, index in partitions:
        topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(index)
    return list(topics.values())
