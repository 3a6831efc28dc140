"""Events between the verification of a transaction and the append that it allows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.transactions.status import ProducerIdentity, TopicPartition
from kafka_compat.transactions.verification import Respond, Verification, Verifications

PARTITION = ("topic", 0)
OTHER = ("topic", 1)
P = ProducerIdentity(7, 3)


class Leader:
    """The partitions of this broker, and a coordinator that responds when `answer` is called."""

    def __init__(self) -> None:
        self.partition = SimpleNamespace(
            is_leader=True, leader_epoch=5, log=SimpleNamespace(producers=SimpleNamespace(entries={}))
        )
        self.asked: list[tuple[list[TopicPartition], Respond]] = []
        self.verifications = Verifications(cast(ReplicaManager, self), self)

    def get(self, topic: str, partition: int) -> Any:
        return self.partition

    def ask(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: list[TopicPartition],
        respond: Respond,
        *,
        adds: bool,
    ) -> None:
        self.asked.append((partitions, respond))

    def question(self, *, adds: bool = False, knows_abortable: bool = True) -> Verification:
        return self.verifications.ask("id", P, [PARTITION, OTHER], knows_abortable=knows_abortable, adds=adds)

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        partitions, respond = self.asked.pop()
        respond(dict.fromkeys(partitions, error))


@pytest.fixture
async def leader() -> Leader:
    return Leader()


async def test_a_verification_is_valid_without_an_intervening_change(leader: Leader) -> None:
    question = leader.question()
    assert not question.is_answered
    leader.answer()
    await question.wait()
    assert set(question.take().values()) == {ErrorCode.NONE}


@pytest.mark.parametrize("answered_first", [True, False])
async def test_a_marker_invalidates_the_verification(leader: Leader, answered_first: bool) -> None:
    question = leader.question()
    if answered_first:
        leader.answer()
    leader.verifications.ended(PARTITION, P)
    if not answered_first:
        leader.answer()
    assert question.take() == {PARTITION: ErrorCode.INVALID_TXN_STATE, OTHER: ErrorCode.NONE}


async def test_a_marker_before_the_partition_is_added_belongs_to_the_previous_transaction(
    leader: Leader,
) -> None:
    question = leader.question(adds=True)
    leader.verifications.ended(PARTITION, P)
    leader.verifications.ended(OTHER, ProducerIdentity(7, 4))
    leader.answer()
    assert question.take() == {PARTITION: ErrorCode.NONE, OTHER: ErrorCode.INVALID_TXN_STATE}


async def test_a_leader_change_invalidates_the_verification(leader: Leader) -> None:
    question = leader.question()
    leader.answer()
    leader.partition.leader_epoch = 7
    assert set(question.take().values()) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}, "the client retries"
    leader.verifications.ended(PARTITION, P)
    assert question.take()[PARTITION] is ErrorCode.INVALID_TXN_STATE


async def test_open_transactions_are_not_verified_again(leader: Leader) -> None:
    entry = SimpleNamespace(producer_epoch=3, current_txn_first_offset=0)
    leader.partition.log.producers.entries[7] = entry
    question = leader.question()
    assert question.is_answered and not leader.asked
    assert set(question.take().values()) == {ErrorCode.NONE}
    leader.verifications.ended(OTHER, P)
    assert question.take()[OTHER] is ErrorCode.INVALID_TXN_STATE


async def test_old_clients_get_an_error_code_that_they_support(leader: Leader) -> None:
    for knows_abortable, expected in (
        (True, ErrorCode.TRANSACTION_ABORTABLE),
        (False, ErrorCode.INVALID_TXN_STATE),
    ):
        question = leader.question(knows_abortable=knows_abortable)
        leader.answer(ErrorCode.TRANSACTION_ABORTABLE)
        assert question.take()[PARTITION] is expected
    question = leader.question()
    leader.answer(ErrorCode.PRODUCER_FENCED)
    assert question.take()[PARTITION] is ErrorCode.INVALID_PRODUCER_EPOCH
