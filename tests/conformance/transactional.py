"""A transactional producer on both brokers of a pair."""

from __future__ import annotations

import secrets

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.differential import Pair
from tests.conformance.record_requests import await_producer_ids, produce_request
from tests.conformance.wire import Plain
from tests.support.process import wait_until


class Transactional:
    """A transactional id on both sides, with the producer id and epoch that each broker assigned."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.id = f"txn-{secrets.token_hex(4)}"
        self.given: dict[str, tuple[int, int]] = {}
        await_producer_ids(pair)
        self._await_coordinator()

    def end_and_bump(self, committed: bool, **which: object) -> None:
        """End the transaction with EndTxn version 5, and continue with the returned identity
        (transaction.version 2). The responses must match.
        """
        asked = {
            side: self.identity(side, **which) | {"committed": committed}  # type: ignore[arg-type]
            for side in self.pair.sides
        }
        answers = self.pair.both(ApiKey.END_TXN, 5, lambda side: asked[side])
        shown = [(answer["error_code"], answer["producer_epoch"]) for answer in answers]
        assert shown[0] == shown[1]
        for side, answer in zip(self.pair.sides, answers, strict=True):
            if answer["error_code"] == 0:
                self.given[side] = (answer["producer_id"], answer["producer_epoch"])

    def _await_coordinator(self) -> None:
        def ready() -> bool:
            asked = {"key": self.id, "key_type": 1}
            found = self.pair.both(ApiKey.FIND_COORDINATOR, 2, asked)
            described = self.pair.both(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [self.id]})
            return all(answer["error_code"] == 0 for answer in found) and all(
                answer["transaction_states"][0]["error_code"] == 105 for answer in described
            )

        wait_until(ready, 30, "transaction coordinators")

    def init(self, *, tell: bool = False, version: int = 4, timeout_ms: int = 60_000) -> None:
        """Send InitProducerId until no transaction is in progress. With `tell`, include the current producer
        id and epoch.
        """
        answers: dict[str, Plain] = {}

        def settled() -> bool:
            for side, connection in self.pair.sides.items():
                if side not in answers:
                    request: Plain = {"transactional_id": self.id, "transaction_timeout_ms": timeout_ms}
                    if tell:
                        producer_id, epoch = self.given[side]
                        request |= {"producer_id": producer_id, "producer_epoch": epoch}
                    answer = connection.ask(ApiKey.INIT_PRODUCER_ID, version, request)
                    if answer["error_code"] != 51:
                        answers[side] = answer
            return len(answers) == 2

        wait_until(settled, 30, "InitProducerId")
        ours, genuine = (
            (answers[side]["error_code"], answers[side]["producer_epoch"]) for side in self.pair.sides
        )
        assert ours == genuine
        if ours[0] == 0:
            for side, answer in answers.items():
                self.given[side] = (answer["producer_id"], answer["producer_epoch"])

    def identity(self, side: str, *, epoch_delta: int = 0, other: bool = False) -> Plain:
        producer_id, epoch = self.given[side]
        return {
            "transactional_id": self.id,
            "producer_id": producer_id + (500_000 if other else 0),
            "producer_epoch": epoch + epoch_delta,
        }

    def settle(self) -> None:
        """Wait until the last transaction is complete on both sides."""

        def at_rest() -> bool:
            answers = self.pair.both(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [self.id]})
            states = [answer["transaction_states"][0]["transaction_state"] for answer in answers]
            return not any(state.startswith("Prepare") for state in states)

        wait_until(at_rest, 20, "completion of the transaction")

    def add(
        self, topic: str, partitions: list[int], versions: tuple[int, ...] = (3,), **which: object
    ) -> None:
        def sided(side: str) -> Plain:
            found = self.identity(side, **which)  # type: ignore[arg-type]
            request: Plain = {f"v3_and_below_{name}": value for name, value in found.items()}
            return request | {"v3_and_below_topics": [{"name": topic, "partitions": partitions}]}

        self.pair.same(ApiKey.ADD_PARTITIONS_TO_TXN, sided, versions)

    def verify(self, topic: str, partitions: list[int], *, only: bool = True, **which: object) -> None:
        def sided(side: str) -> Plain:
            transaction = self.identity(side, **which) | {  # type: ignore[arg-type]
                "verify_only": only,
                "topics": [{"name": topic, "partitions": partitions}],
            }
            return {"transactions": [transaction]}

        self.pair.same(ApiKey.ADD_PARTITIONS_TO_TXN, sided, (4,))

    def end(self, committed: bool, versions: tuple[int, ...] = (3,), **which: object) -> None:
        self.pair.same(
            ApiKey.END_TXN,
            lambda side: self.identity(side, **which) | {"committed": committed},  # type: ignore[arg-type]
            versions,
        )

    def produce(self, topic: str, sequence: int, versions: tuple[int, ...] = (9,), **which: object) -> None:
        """Produce a batch of two records."""

        def sided(side: str) -> Plain:
            found = self.identity(side, **which)  # type: ignore[arg-type]
            made = batch(
                2,
                producer_id=found["producer_id"],
                producer_epoch=found["producer_epoch"],
                base_sequence=sequence,
                transactional=True,
            )
            return produce_request(topic, made, transactional_id=self.id)

        self.pair.same(ApiKey.PRODUCE, sided, versions)

    def described(self) -> None:
        def shown(answer: Plain) -> list[tuple[object, ...]]:
            return [
                (
                    state["error_code"],
                    state["transaction_state"],
                    state["transaction_timeout_ms"],
                    state["transaction_start_time_ms"] > 0,
                    state["producer_epoch"],
                    [(topic["topic"], sorted(topic["partitions"])) for topic in state["topics"]],
                )
                for state in answer["transaction_states"]
            ]

        asked = {"transactional_ids": [self.id, "nobody"]}
        ours, genuine = self.pair.both(ApiKey.DESCRIBE_TRANSACTIONS, 0, asked)
        assert shown(ours) == shown(genuine)
