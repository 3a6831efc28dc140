"""ShareFetch and ShareAcknowledge through the wire, with the stored state in memory."""

import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from tests.share_partitions.brokers import SETTINGS, MemoryBroker
from tests.share_partitions.wire import Acks, ShareGroup

_LONG_MS = 30_000
"""A wait that ends before its time, or the test fails."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = MemoryBroker(tmp_path_factory.mktemp("broker"), SETTINGS)
    broker.start()
    yield broker.address
    broker.stop()


@pytest.fixture
def group(address: str) -> Iterator[ShareGroup]:
    found = ShareGroup(address, f"group-{secrets.token_hex(4)}", 2)
    yield found
    found.close()


def test_a_waiting_fetch_is_woken_by_new_records(group: ShareGroup) -> None:
    member = group.member()
    member.begin(max_wait_ms=_LONG_MS)
    group.produce(3)
    assert member.finish()["partitions"][0]["acquired"] == [(0, 2, 1)]


def test_a_first_fetch_gets_the_records_of_the_partition_that_is_read_first(group: ShareGroup) -> None:
    group.produce(3, partition=0)
    group.produce(3, partition=1)
    member = group.member()
    found = [member.fetch(max_wait_ms=_LONG_MS)["partitions"] for _ in range(2)]
    assert [{key: each["acquired"] for key, each in one.items()} for one in found] == [
        {0: [(0, 2, 1)]},
        {1: [(0, 2, 1)]},
    ]


def test_a_waiting_fetch_is_woken_by_released_records(group: ShareGroup) -> None:
    group.produce(3)
    first, second = group.member(), group.member()
    first.fetch()
    second.begin(max_wait_ms=_LONG_MS)
    first.acknowledge({0: [(1, 1, [2])]})
    assert second.finish()["partitions"][0]["acquired"] == [(1, 1, 2)]


def test_a_waiting_fetch_is_woken_when_a_lock_expires(group: ShareGroup) -> None:
    group.produce(3)
    first, second = group.member(), group.member()
    first.fetch()
    second.begin(max_wait_ms=_LONG_MS)
    assert second.finish()["partitions"][0]["acquired"] == [(0, 2, 2)]
    assert first.acknowledge({0: [(0, 2, [1])]})["partitions"][0]["error"] == ErrorCode.INVALID_RECORD_STATE


def test_a_closed_connection_releases_the_records(group: ShareGroup) -> None:
    group.configure({"share.record.lock.duration.ms": "60000"})
    group.produce(3)
    first, second = group.member(), group.member()
    first.fetch()
    second.begin(max_wait_ms=_LONG_MS)
    first.close()
    assert second.finish()["partitions"][0]["acquired"] == [(0, 2, 2)]


def test_the_state_of_a_group_without_sessions_is_read_again(group: ShareGroup) -> None:
    group.configure({"share.record.lock.duration.ms": "60000"})
    group.produce(3)
    first = group.member()
    first.fetch()
    first.acknowledge({0: [(0, 0, [1])]})
    first.close()
    assert group.member().fetch(max_wait_ms=_LONG_MS)["partitions"][0]["acquired"] == [(1, 2, 2)]


def test_a_final_request_releases_the_records(group: ShareGroup) -> None:
    group.configure({"share.record.lock.duration.ms": "60000"})
    group.produce(3)
    first, second = group.member(), group.member()
    first.fetch()
    second.begin(max_wait_ms=_LONG_MS)
    assert first.fetch({0: [(0, 0, [1])]}, epoch=-1)["partitions"][0]["ack"] == 0
    assert second.finish()["partitions"][0]["acquired"] == [(1, 2, 2)]
    assert first.fetch(epoch=1)["error"] == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_the_first_response_contains_all_partitions_and_later_ones_what_is_new(group: ShareGroup) -> None:
    group.load()
    group.produce(3)
    member = group.member()
    assert sorted(member.fetch(max_wait_ms=_LONG_MS)["partitions"]) == [0, 1]
    assert member.fetch(max_wait_ms=0)["partitions"] == {}
    group.produce(1, partition=1)
    assert member.fetch(max_wait_ms=_LONG_MS)["partitions"][1]["acquired"] == [(0, 0, 1)]


def test_invalid_epochs_and_acknowledgements_are_rejected(group: ShareGroup) -> None:
    group.produce(3)
    member = group.member()
    member.fetch()
    assert member.fetch(epoch=7)["error"] == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch({0: [(0, 0, [1])]}, epoch=0)["error"] == ErrorCode.INVALID_REQUEST
    assert member.acknowledge({0: [(0, 0, [1])]}, epoch=0)["error"] == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    invalid: tuple[Acks, ...] = ([(0, 2, [])], [(0, 2, [1, 1])], [(0, 0, [5])], [(0, 0, [4])], [(2, 1, [1])])
    for epoch, acks in enumerate(invalid, 1):
        answer = member.acknowledge({0: acks}, epoch=epoch)
        assert answer["partitions"][0] == {"error": ErrorCode.INVALID_REQUEST, "message": None}
    answer = member.acknowledge({5: [(0, 0, [1])]}, epoch=6)
    assert answer["partitions"][5]["error"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_without_acknowledgements_is_in_the_response_beside_others(group: ShareGroup) -> None:
    group.produce(3)
    member = group.member()
    member.fetch()
    assert member.acknowledge({0: [], 1: []})["partitions"] == {}
    answer = member.acknowledge({0: [(0, 0, [1])], 1: []})
    assert {key: each["error"] for key, each in answer["partitions"].items()} == {0: 0, 1: 0}
    answer = member.fetch({0: [(1, 1, [1])], 1: []}, max_wait_ms=0)
    assert {key: each["ack"] for key, each in answer["partitions"].items()} == {0: 0, 1: 0}
    assert member.fetch({0: [], 1: []}, max_wait_ms=0)["partitions"] == {}


def test_a_partition_without_acknowledgements_is_not_in_the_response_beside_invalid_ones(
    group: ShareGroup,
) -> None:
    group.produce(3)
    member = group.member()
    member.fetch()
    invalid: Acks = [(2, 1, [1])]
    assert list(member.acknowledge({0: invalid, 1: []})["partitions"]) == [0]
    assert list(member.fetch({0: [], 1: invalid}, max_wait_ms=0)["partitions"]) == [1]
    answer = member.acknowledge({0: [(0, 0, [1])], 1: [], 5: []})
    assert {key: each["error"] for key, each in answer["partitions"].items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.NONE,
        5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    answer = member.acknowledge({1: [], 5: []})
    assert {key: each["error"] for key, each in answer["partitions"].items()} == {
        5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_the_rest_of_what_was_read_follows_a_single_batch(group: ShareGroup) -> None:
    group.produce(3)
    group.produce(3)
    whole = group.member().fetch(partitions=[0], max_records=3, share_acquire_mode=1)["partitions"][0]
    assert (whole["acquired"], whole["rest_bytes"]) == ([(0, 2, 1)], 0)
    size_bytes = whole["bytes"]
    group.produce(3)
    single = group.member().fetch(partitions=[0], max_bytes=size_bytes + 20)["partitions"][0]
    assert (single["acquired"], single["bytes"], single["rest_bytes"]) == ([(3, 5, 1)], size_bytes, 20)


def test_each_group_of_partitions_may_begin_with_a_large_batch(group: ShareGroup) -> None:
    """Partition 1 is read later, because its position in the log is not known yet."""
    first, second = group.member(), group.member()
    group.load()
    group.produce(3, partition=1)
    assert first.fetch(max_wait_ms=_LONG_MS)["partitions"][1]["acquired"] == [(0, 2, 1)]
    group.produce(3)
    group.produce(3, partition=1)
    answer = second.fetch(partitions=[1, 0], max_bytes=1, max_records=3, share_acquire_mode=1)
    assert answer["partitions"][0]["acquired"] == [(0, 2, 1)]
    assert answer["partitions"][1]["acquired"] == []
    third = group.member().fetch(max_bytes=1, max_wait_ms=0)
    assert third["partitions"][1]["acquired"] == [(3, 5, 1)]


def test_renewals_need_an_announcement_and_a_fetch_without_limits(group: ShareGroup) -> None:
    group.produce(3)
    member = group.member()
    member.fetch()
    answer = member.acknowledge({0: [(0, 2, [4])]}, is_renew_ack=True)
    assert answer["partitions"][0]["error"] == 0
    assert answer["lock_ms"] == 1_500
    assert member.fetch({0: [(0, 2, [4])]}, is_renew_ack=True)["error"] == ErrorCode.INVALID_REQUEST
    none: dict[str, Any] = dict.fromkeys(("max_bytes", "min_bytes", "max_records", "max_wait_ms"), 0)
    answer = member.fetch({0: [(0, 2, [4])]}, epoch=2, is_renew_ack=True, **none)
    assert answer["partitions"][0]["ack"] == 0


def test_sessions_above_the_limit_wait_and_are_rejected(group: ShareGroup) -> None:
    members = [group.member() for _ in range(11)]
    for each in members[:10]:
        assert each.fetch(max_wait_ms=0)["error"] == 0
    assert members[10].fetch(max_wait_ms=50)["error"] == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    members[0].close()


def test_a_deleted_topic_is_unknown_and_delays_fetches_if_created_anew(group: ShareGroup) -> None:
    group.produce(3)
    member = group.member()
    member.fetch()
    group.delete_topic()
    answer = member.acknowledge({0: [(0, 2, [1])]})
    assert answer["partitions"][0]["error"] == ErrorCode.UNKNOWN_TOPIC_ID
    answer = member.fetch(partitions=[], epoch=2)
    assert answer["partitions"][0]["error"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = group.member().fetch()
    assert answer["partitions"][0]["error"] == ErrorCode.UNKNOWN_TOPIC_ID
    group.create_topic()
    began_s = time.monotonic()
    answer = member.fetch(partitions=[], epoch=3, max_wait_ms=500)
    assert answer["partitions"][0]["error"] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert time.monotonic() - began_s >= 0.5, "clients repeat this request at once"


def test_deleted_records_move_the_start_offset(group: ShareGroup) -> None:
    group.produce(3, 3)
    member = group.member()
    member.fetch(max_records=1)
    group.delete_records(6)
    group.produce(2)
    found = [member.fetch() for _ in range(2)]
    acquired = [each["partitions"][0]["acquired"] for each in found if each["partitions"]]
    assert acquired == [[(6, 7, 1)]]
