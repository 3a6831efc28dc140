"""A leader and its followers: the high watermark, the ISR, and AlterPartition requests to the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from kafka_compat.cluster.leader_and_isr import ReplicaStates, states_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.long_work import finished
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kafka_compat.replication.fetch_reader import LEADER, nearest_replica
from kafka_compat.replication.in_sync import IsrAnswer, LedPartition
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.records.records import Record, build_batch
from tests.support.steps import result_of

LAG_TIME_MAX_MS = 1000


class Leader:
    """Broker 1 as the leader of a partition on brokers 1, 2 and 3. The test controls the time and the
    controller's responses.
    """

    def __init__(self, directory: Path) -> None:
        self.time_ms = 10_000
        self.dead: set[int] = set()
        self.asked: list[tuple[tuple[int, ...], int, int]] = []
        self.answer: Callable[[IsrAnswer], None] | None = None
        self.log_dirs = LogDirs(
            [str(directory)], broker_id=1, cluster_id="c", clock=self, config_for=lambda _: LogConfig()
        )
        self.log_dirs.load()
        log = self.log_dirs.create("t", 0, uuid4())
        self.partition = Partition(
            log,
            1,
            None,  # type: ignore[arg-type]
            lambda action: None,
            monotonic_ms=self.now_ms,
            proposer=self,
            lag_time_max_ms=LAG_TIME_MAX_MS,
        )
        self.partition.become_leader(5, (1, 2, 3), (1, 2, 3), 10)

    def now_ms(self) -> int:
        return self.time_ms

    monotonic_ms = now_ms

    def propose(
        self,
        partition: LedPartition,
        new_isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        self.asked.append((new_isr, leader_epoch, partition_epoch))
        self.answer = callback

    def is_alive(self, broker_id: int) -> bool:
        return broker_id not in self.dead

    def reply(self, answer: IsrAnswer) -> None:
        callback, self.answer = self.answer, None
        assert callback is not None
        callback(answer)

    def append(self, count: int = 1) -> int:
        batch = build_batch([Record(timestamp=1, value=b"v") for _ in range(count)])
        return self.partition.append(memoryview(bytearray(batch)), self.time_ms).last_offset + 1

    def fetched(self, follower_id: int, offset: int) -> None:
        self.partition.follower_fetched(
            follower_id, offset, 0, self.partition.log.log_end_offset, self.time_ms
        )

    def codes(self, offset: int) -> list[ErrorCode]:
        codes: list[ErrorCode] = []
        self.partition.when_committed(offset, codes.append)
        return codes

    def shrink_to_leader(self) -> None:
        self.time_ms += 2 * LAG_TIME_MAX_MS
        self.append()
        self.partition.maybe_shrink_isr(self.time_ms)
        self.reply(IsrAnswer(ErrorCode.NONE, 5, (1,), 11))


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    room = Leader(tmp_path)
    yield room
    room.log_dirs.close()


def test_the_high_watermark_is_the_lowest_end_offset_of_the_in_sync_replicas(leader: Leader) -> None:
    codes = leader.codes(leader.append(3))
    leader.fetched(2, 3)
    assert (leader.partition.high_watermark, codes) == (0, [])
    leader.fetched(3, 2)
    assert (leader.partition.high_watermark, codes) == (2, [])
    leader.fetched(3, 3)
    assert (leader.partition.high_watermark, codes) == (3, [ErrorCode.NONE])


def test_a_lagging_follower_holds_back_the_high_watermark_until_it_leaves_the_isr(leader: Leader) -> None:
    leader.append()
    leader.time_ms += LAG_TIME_MAX_MS
    leader.fetched(2, 1)
    leader.partition.maybe_shrink_isr(leader.time_ms)
    assert leader.asked == []
    leader.time_ms += 1
    leader.partition.maybe_shrink_isr(leader.time_ms)
    assert leader.asked == [((1, 2), 5, 10)]
    end = leader.append()
    leader.fetched(2, end)
    assert leader.partition.high_watermark == 0, "the controller may still reject the change"
    leader.reply(IsrAnswer(ErrorCode.NONE, 5, (1, 2), 11))
    assert leader.partition.isr == (1, 2)
    assert leader.partition.high_watermark == end


def test_a_follower_that_had_caught_up_at_its_last_fetch_does_not_lag(leader: Leader) -> None:
    for _ in range(5):
        end = leader.partition.log.log_end_offset
        leader.append()
        for follower_id in (2, 3):
            leader.fetched(follower_id, end)
        leader.time_ms += LAG_TIME_MAX_MS // 2
    leader.partition.maybe_shrink_isr(leader.time_ms)
    assert leader.asked == []


def test_a_joining_follower_counts_before_the_controller_confirms_the_isr_change(
    leader: Leader,
) -> None:
    leader.shrink_to_leader()
    end = leader.partition.high_watermark
    assert end == 1
    leader.fetched(2, 0)
    assert len(leader.asked) == 1, "the follower lacks committed records"
    leader.fetched(2, end)
    assert leader.asked[1:] == [((1, 2), 5, 11)]
    leader.time_ms += 2 * LAG_TIME_MAX_MS
    leader.append()
    assert leader.partition.high_watermark == end, "the controller may have accepted the change"
    leader.reply(IsrAnswer(ErrorCode.NONE, 5, (1, 2), 12))
    assert leader.partition.isr == (1, 2)
    leader.fetched(2, end + 1)
    assert leader.partition.high_watermark == end + 1


def test_a_follower_joins_the_isr_only_after_reaching_the_start_of_the_leader_epoch(leader: Leader) -> None:
    leader.append(4)
    leader.partition.become_leader(6, (1, 2), (1, 2, 3), 11)
    assert leader.partition.epoch_start_offset == 4
    leader.fetched(3, 3)
    assert leader.asked == []
    leader.fetched(3, 4)
    assert leader.asked == [((1, 2, 3), 6, 11)]


def test_a_dead_broker_does_not_join_the_isr(leader: Leader) -> None:
    leader.shrink_to_leader()
    leader.dead.add(2)
    leader.fetched(2, leader.partition.high_watermark)
    assert len(leader.asked) == 1


@pytest.mark.parametrize("gone", ["dead", "hanging"])
def test_a_lost_follower_outside_the_isr_does_not_delay_commits(leader: Leader, gone: str) -> None:
    leader.shrink_to_leader()
    leader.fetched(2, leader.partition.high_watermark)
    leader.reply(IsrAnswer(ErrorCode.INELIGIBLE_REPLICA))
    codes = leader.codes(leader.append())
    leader.partition.maybe_shrink_isr(leader.time_ms)
    assert codes == [], "the follower may still join the ISR"
    if gone == "dead":
        leader.dead.add(2)
        leader.partition.peers_changed()
    else:
        leader.time_ms += LAG_TIME_MAX_MS + 1
        leader.partition.maybe_shrink_isr(leader.time_ms)
    assert codes == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("error", "asked_again"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False),
    ],
)
def test_a_rejected_isr_change_is_proposed_again_only_by_an_up_to_date_leader(
    leader: Leader, error: ErrorCode, asked_again: bool
) -> None:
    leader.append()
    leader.time_ms += LAG_TIME_MAX_MS + 1
    leader.partition.maybe_shrink_isr(leader.time_ms)
    leader.reply(IsrAnswer(error))
    assert leader.partition.high_watermark == 0
    leader.partition.maybe_shrink_isr(leader.time_ms)
    assert len(leader.asked) == (2 if asked_again else 1)


def test_a_response_older_than_the_current_leader_and_isr_is_ignored(leader: Leader) -> None:
    leader.append()
    leader.time_ms += LAG_TIME_MAX_MS + 1
    leader.partition.maybe_shrink_isr(leader.time_ms)
    leader.partition.become_leader(6, (1, 2), (1, 2, 3), 12)
    leader.reply(IsrAnswer(ErrorCode.NONE, 5, (1,), 11))
    assert leader.partition.isr == (1, 2)


def test_a_leader_change_with_an_older_partition_epoch_is_ignored(leader: Leader) -> None:
    leader.partition.become_follower(2, 4, (1, 2, 3), 9)
    assert leader.partition.is_leader
    assert leader.partition.leader_epoch == 5


def test_acks_all_requests_below_min_insync_replicas_are_rejected_and_not_committed(leader: Leader) -> None:
    leader.partition.min_insync_replicas = 2
    leader.shrink_to_leader()
    with pytest.raises(KafkaError) as refused:
        leader.partition.check_min_isr()
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    leader.append()
    assert leader.partition.high_watermark == 0


def test_acks_all_reports_too_few_replicas_after_the_append(leader: Leader) -> None:
    leader.shrink_to_leader()
    leader.partition.min_insync_replicas = 2
    assert leader.codes(leader.partition.high_watermark) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_waiting_requests_fail_when_the_leader_becomes_a_follower(leader: Leader) -> None:
    codes = leader.codes(leader.append())
    assert leader.partition.become_follower(2, 6, (1, 2, 3), 11)
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert leader.partition.check_leader_epoch(5) == ErrorCode.FENCED_LEADER_EPOCH
    assert leader.partition.check_leader_epoch(6) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.partition.check_leader_epoch(6, leader_only=False) == ErrorCode.NONE


def test_a_consumer_is_redirected_to_a_follower_in_its_rack_with_its_offset(leader: Leader) -> None:
    end = leader.append(2)
    racks = {1: "a", 2: "b", 3: "b"}
    leader.fetched(2, 1)
    leader.fetched(3, end)
    assert nearest_replica(leader.partition, "b", racks, 1) == 3
    assert nearest_replica(leader.partition, "a", racks, 1) == LEADER
    assert nearest_replica(leader.partition, "c", racks, 1) == LEADER
    assert nearest_replica(leader.partition, "b", {1: "a", 2: "b"}, end) == LEADER


def test_a_new_leader_below_min_isr_does_not_commit_records(leader: Leader) -> None:
    """Records must not be committed even at the moment when the leader is elected."""
    log = leader.log_dirs.create("u", 0, uuid4())
    batch = build_batch([Record(timestamp=1, value=b"v")])
    log.append_as_leader(memoryview(bytearray(batch)), leader_epoch=1, now_ms=1)
    replicas = ReplicaManager(
        1,
        leader.log_dirs,
        MetadataCache("c", 1),
        None,  # type: ignore[arg-type]
        lambda action: None,
        monotonic_ms=leader.now_ms,
        proposer=leader,
        lag_time_max_ms=LAG_TIME_MAX_MS,
    )
    states = ReplicaStates(1, replicas, NobodyAsks(), lambda topic: 2)
    assert log.topic_id is not None
    state = LeaderAndIsrPartitionState(
        partition_index=0, leader=1, leader_epoch=2, isr=[1], partition_epoch=3, replicas=[1, 2, 3]
    )
    topic = LeaderAndIsrTopicState(topic_name="u", topic_id=log.topic_id, partition_states=[state])
    outcomes = result_of(states.apply(finished(states_of(LeaderAndIsrRequest(topic_states=[topic])))))
    assert outcomes == {("u", 0): ErrorCode.NONE}
    held = replicas.get("u", 0)
    assert held is not None and held.is_leader
    assert held.high_watermark == 0


class NobodyAsks:
    """A coordinator that ignores leadership changes."""

    def leading(self, topic: str, partition: int) -> None: ...

    def stopping(self, topic: str, partition: int) -> None: ...
