"""The metadata quorum in snapshots, on the screen and in JSON."""

from __future__ import annotations

from kafka_compat.protocol.messages.describe_quorum import ReplicaState, ResponsePartitionData
from kafka_compat.status.as_json import as_json
from kafka_compat.status.quorum import quorum_of
from kafka_compat.status.snapshot import Quorum, QuorumReplica
from tests.status.found import snapshot

FOUND = Quorum(
    2,
    7,
    90,
    (QuorumReplica(1, True, 10, 500), QuorumReplica(2, True, 0, 0), QuorumReplica(4, False, 5, None)),
)


def test_lags_and_ages_are_relative_to_the_leader() -> None:
    answer = ResponsePartitionData(
        leader_id=2,
        leader_epoch=7,
        high_watermark=90,
        current_voters=[
            ReplicaState(replica_id=1, log_end_offset=90, last_fetch_timestamp=1000),
            ReplicaState(replica_id=2, log_end_offset=100, last_fetch_timestamp=1500),
        ],
        observers=[ReplicaState(replica_id=4, log_end_offset=95)],
    )
    assert quorum_of(answer) == FOUND


def test_a_quorum_is_part_of_the_json_output() -> None:
    assert as_json(snapshot(), ())["quorum"] is None
    found = as_json(snapshot(quorum=FOUND, is_kraft=True, controller_id=None), ())["quorum"]
    assert (found["leader_id"], found["epoch"], found["error"]) == (2, 7, None)
    assert found["replicas"][0] == {"id": 1, "is_voter": True, "lag": 10, "fetched_before_ms": 500}
