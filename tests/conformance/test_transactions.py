"""Transaction APIs, compared with Apache Kafka in every transaction state. transaction.version 2 is compared
with Apache Kafka 4.1.0, because 3.9 does not support it.
"""

from __future__ import annotations

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.transactional import Transactional
from tests.conformance.wire import Plain
from tests.support.process import wait_until
from tests.support.servers import StartBroker


def test_requests_get_kafkas_responses_in_every_transaction_state(pair: Pair) -> None:
    """Add partitions, verify, end and begin transactions, with valid and invalid producers."""
    one = Transactional(pair)
    topic = pair.topic(2)
    one.init()
    one.described()
    one.end(True)
    one.verify(topic, [0])
    one.add(topic, [0], (0, 1, 2, 3), epoch_delta=1)
    one.add(topic, [0], other=True)
    one.add(topic, [0, 7])
    one.add(topic, [0])
    one.described()
    one.verify(topic, [0, 1])
    one.verify(topic, [0], epoch_delta=1)
    one.verify(topic, [0], other=True)
    one.verify(topic, [1], only=False)
    one.described()
    one.end(True, (0, 1, 2, 3), epoch_delta=1)
    one.end(True, other=True)
    one.end(True)
    one.settle()
    one.end(True)
    one.end(False)
    one.described()
    one.init(tell=True)
    one.described()
    one.add(topic, [0])
    one.init()
    one.settle()
    one.described()
    one.end(False)
    one.init(tell=True, version=3, timeout_ms=0)
    one.init(timeout_ms=900_001)


def test_records_outside_a_transaction_are_rejected(pair: Pair) -> None:
    """The error depends on the version of the request (KIP-890)."""
    one = Transactional(pair)
    topic = pair.topic()
    one.init()
    one.produce(topic, 0, (9, 10, 11))
    one.add(topic, [0])
    one.produce(topic, 0)
    one.produce(topic, 2)
    one.end(False)
    one.settle()
    one.produce(topic, 4)
    one.init()
    one.produce(topic, 4, epoch_delta=-1)
    fetch: Plain = {
        "replica_id": -1,
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 1,
        "topics": [
            {
                "topic": topic,
                "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}],
            }
        ],
    }
    ours, genuine = pair.both(ApiKey.FETCH, 11, fetch)
    seen = []
    for answer in (ours, genuine):
        (part,) = answer["responses"][0]["partitions"]
        aborted = [item["first_offset"] for item in part["aborted_transactions"]]
        seen.append((part["high_watermark"], part["last_stable_offset"], aborted, len(part["records"])))
    assert seen[0] == seen[1]
    assert seen[0][:3] == (5, 5, [0])


def test_offsets_in_a_transaction_are_pending_until_its_commit(pair: Pair) -> None:
    """Committed offsets become visible when the transaction commits. Until then, a request for stable offsets
    gets a retriable error.
    """
    one = Transactional(pair)
    topic = pair.topic()
    group = pair.name("group")
    asked = {"key": group, "key_type": 0}
    wait_until(
        lambda: all(a["error_code"] == 0 for a in pair.both(ApiKey.FIND_COORDINATOR, 2, asked)), 30, "groups"
    )

    def commit(offset: int, versions: tuple[int, ...] = (3,), name: str = topic, **member: object) -> None:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
        pair.same(
            ApiKey.TXN_OFFSET_COMMIT,
            lambda side: (
                one.identity(side)
                | {"group_id": group, "topics": [{"name": name, "partitions": [partition]}]}
                | member
            ),
            versions,
        )

    def position(stable: bool) -> None:
        wanted = [{"name": topic, "partition_indexes": [0]}]
        pair.same(ApiKey.OFFSET_FETCH, {"group_id": group, "topics": wanted, "require_stable": stable}, (7,))

    one.init()
    commit(5, (0, 1, 2, 3, 4))
    for version in (3, 0, 1, 2):
        pair.same(
            ApiKey.ADD_OFFSETS_TO_TXN, lambda side: one.identity(side) | {"group_id": group}, (version,)
        )
    pair.same(
        ApiKey.ADD_OFFSETS_TO_TXN,
        lambda side: one.identity(side, epoch_delta=9) | {"group_id": group},
        (1, 2),
    )
    commit(7, (0, 1, 2, 3, 4))
    commit(7, name=pair.name("absent"))
    commit(8, generation_id_or_member_epoch=3, member_id="nobody")
    position(stable=True)
    position(stable=False)
    one.end(True)
    one.settle()
    position(stable=True)
    pair.same(ApiKey.ADD_OFFSETS_TO_TXN, lambda side: one.identity(side) | {"group_id": group}, (3,))
    commit(99)
    one.end(False)
    one.settle()
    position(stable=True)


def test_a_hanging_transaction_is_described_and_aborted_with_write_txn_markers(pair: Pair) -> None:
    """The test sends the same requests as Kafka's tool for hanging transactions."""
    one = Transactional(pair)
    topic = pair.topic()
    one.init()
    one.init()
    one.add(topic, [0])
    one.produce(topic, 0)

    def shape(producers: list[Plain]) -> list[tuple[object, ...]]:
        return [
            (
                item["producer_epoch"],
                item["last_sequence"],
                item["coordinator_epoch"] >= 0,
                item["current_txn_start_offset"],
            )
            for item in producers
        ]

    def producers() -> None:
        shown = []
        asked = {"topics": [{"name": topic, "partition_indexes": [0, 4]}]}
        for answer in pair.both(ApiKey.DESCRIBE_PRODUCERS, 0, asked):
            (found,) = answer["topics"]
            shown.append(
                [
                    (part["partition_index"], part["error_code"], shape(part["active_producers"]))
                    for part in found["partitions"]
                ]
            )
        assert shown[0] == shown[1]

    def marker(epoch_delta: int, coordinator_epoch: int, partitions: tuple[int, ...] = (0,)) -> None:
        def sided(side: str) -> Plain:
            found = one.identity(side, epoch_delta=epoch_delta)
            topics = [{"name": topic, "partition_indexes": list(partitions)}]
            return {
                "markers": [
                    {
                        "producer_id": found["producer_id"],
                        "producer_epoch": found["producer_epoch"],
                        "transaction_result": False,
                        "topics": topics,
                        "coordinator_epoch": coordinator_epoch,
                    }
                ]
            }

        pair.same(ApiKey.WRITE_TXN_MARKERS, sided, (1,))

    producers()
    marker(0, 50, (0, 4))
    producers()
    marker(0, 49)
    marker(-1, 60)
    marker(0, 51)
    producers()


def test_list_transactions_applies_filters_as_in_kafka(pair: Pair) -> None:
    one = Transactional(pair)
    one.init()
    for filters in (
        {"state_filters": ["Empty"]},
        {"state_filters": ["Ongoing"]},
        {"state_filters": ["Empty", "Nonsense"]},
        {"state_filters": ["Nonsense"]},
        {"producer_id_filters": [1 << 40]},
        {"duration_filter": 3_600_000},
    ):
        shown = []
        for answer in pair.both(ApiKey.LIST_TRANSACTIONS, 1, filters):
            listed = [
                item["transaction_state"]
                for item in answer["transaction_states"]
                if item["transactional_id"] == one.id
            ]
            shown.append((answer["error_code"], answer["unknown_state_filters"], listed))
        assert shown[0] == shown[1], filters


def test_the_transaction_version_feature_is_advertised_as_in_kafka_41(
    start_broker: StartBroker, genuine_41_address: str
) -> None:
    broker = start_broker({"kafka.compat.transaction.version": "2"})
    pair = Pair(broker.address, genuine_41_address)
    asked = {"client_software_name": "test", "client_software_version": "1"}
    for version in (3, 4):
        for field in ("supported_features", "finalized_features"):
            ours, genuine = (
                [item for item in answer[field] if item["name"] == "transaction.version"]
                for answer in pair.both(ApiKey.API_VERSIONS, version, asked)
            )
            assert ours == genuine, (version, field)
    pair.close()


def test_each_transaction_of_version_2_has_its_own_epoch(pair_41: Pair) -> None:
    one = Transactional(pair_41)
    topic = pair_41.topic(2)
    one.init()
    one.end_and_bump(True)
    one.produce(topic, 2, (12,))
    one.produce(topic, 0, (12,))
    one.described()
    one.produce(topic, 2, (12,))
    one.end_and_bump(True, other=True)
    one.end_and_bump(True, epoch_delta=1)
    one.end_and_bump(True)
    one.settle()
    one.described()
    one.end_and_bump(True, epoch_delta=-1)
    one.end_and_bump(False, epoch_delta=-1)
    one.end_and_bump(True)
    one.produce(topic, 4, (12,), epoch_delta=-1)
    one.produce(topic, 0, (12,))
    one.end_and_bump(False, epoch_delta=-1)
    one.end_and_bump(False)
    one.settle()
    one.described()
    for _ in range(2):
        one.end_and_bump(False)
        one.settle()
        one.described()
    one.init(tell=True)
    one.described()
    one.end_and_bump(False)
    one.settle()
    one.described()
    one.verify(topic, [1], only=False)
    one.described()
    one.end_and_bump(True)
    one.settle()


def test_a_second_producer_of_version_2_fences_the_first(pair_41: Pair) -> None:
    one = Transactional(pair_41)
    topic = pair_41.topic()
    one.init()
    one.produce(topic, 0, (12,))
    first = dict(one.given)
    answers = pair_41.both(
        ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": one.id, "transaction_timeout_ms": 60_000}
    )
    assert [answer["error_code"] for answer in answers] == [51, 51]
    one.settle()
    one.described()
    one.given = first
    one.end_and_bump(True)
    one.end_and_bump(False)
    one.init()
    one.described()
    one.given = first
    one.produce(topic, 2, (12,))


def test_committing_offsets_in_version_2_adds_the_group_to_the_transaction(pair_41: Pair) -> None:
    one = Transactional(pair_41)
    topic = pair_41.topic()
    group = pair_41.name("group")

    def groups_are_served() -> bool:
        pair_41.both(ApiKey.FIND_COORDINATOR, 2, {"key": group, "key_type": 0})
        asked = {"group_id": group, "topics": [], "require_stable": False}
        return all(answer["error_code"] == 0 for answer in pair_41.both(ApiKey.OFFSET_FETCH, 7, asked))

    wait_until(groups_are_served, 30, "group coordinators")

    def commit(offset: int, **which: object) -> None:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
        pair_41.same(
            ApiKey.TXN_OFFSET_COMMIT,
            lambda side: (
                one.identity(side, **which)  # type: ignore[arg-type]
                | {"group_id": group, "topics": [{"name": topic, "partitions": [partition]}]}
            ),
            (5,),
        )

    def position() -> None:
        wanted = [{"name": topic, "partition_indexes": [0]}]
        pair_41.same(ApiKey.OFFSET_FETCH, {"group_id": group, "topics": wanted, "require_stable": True}, (7,))

    one.init()
    commit(5)
    commit(6, epoch_delta=1)
    position()
    one.end_and_bump(True)
    one.settle()
    position()
    commit(7, epoch_delta=-1)
    commit(8)
    one.end_and_bump(False)
    one.settle()
    position()


def test_list_transactions_filters_by_pattern(pair_41: Pair) -> None:
    one = Transactional(pair_41)
    one.init()
    for pattern in (
        None,
        "",
        ".*",
        "txn-.*",
        "txn",
        f"({one.id}|x)",
        one.id.upper(),
        f"(?i){one.id.upper()}",
        "(",
        "(a",
    ):
        shown = []
        for answer in pair_41.both(ApiKey.LIST_TRANSACTIONS, 2, {"transactional_id_pattern": pattern}):
            listed = [item["transactional_id"] for item in answer["transaction_states"]]
            shown.append((answer["error_code"], one.id in listed))
        assert shown[0] == shown[1], pattern
