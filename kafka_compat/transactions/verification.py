"""What a leader asks before it appends records of a transaction that is not open in the partition yet
(KIP-890 part 1): a late retry must not open a transaction that nobody will end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.model import ProducerIdentity, TopicPartition

if TYPE_CHECKING:
    from kafka_compat.broker import Broker


def verify_partition(
    broker: Broker,
    partition: TopicPartition,
    transactional_id: str,
    identity: ProducerIdentity,
    *,
    knows_abortable: bool,
) -> ErrorCode:
    """NONE when `partition` is in the transaction of `identity`, or when
    transaction.partition.verification.enable is off.

    A client that does not know TRANSACTION_ABORTABLE is told INVALID_TXN_STATE.
    """
    if not broker.config.bool("transaction.partition.verification.enable"):
        return ErrorCode.NONE
    held = broker.replicas.get(*partition)
    entry = None if held is None else held.log.producers.entries.get(identity.producer_id)
    if (
        entry is not None
        and entry.producer_epoch == identity.producer_epoch
        and entry.current_txn_first_offset >= 0
    ):
        return ErrorCode.NONE
    error = broker.transactions.verify(transactional_id, identity, [partition])
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
