"""Requests of Raft to other nodes: effects of the machine as messages, and responses as its events.

Only the partition `__cluster_metadata-0` is replicated by Raft. Each request names it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.values import Batch, OffsetAndEpoch, ReplicaKey
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import begin_quorum_epoch as begin
from kafka_compat.protocol.messages import end_quorum_epoch as end
from kafka_compat.protocol.messages import fetch, fetch_snapshot, vote
from kafka_compat.protocol.messages.add_raft_voter import Listener
from kafka_compat.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC, TOPIC_ID

VERSIONS: Final = {
    ApiKey.FETCH: (17, 18),
    ApiKey.VOTE: (0, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: (0, 1),
    ApiKey.END_QUORUM_EPOCH: (0, 1),
    ApiKey.FETCH_SNAPSHOT: (0, 1),
    ApiKey.UPDATE_RAFT_VOTER: (0, 0),
    ApiKey.APPEND_METADATA_RECORDS: (0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.ADD_RAFT_VOTER: (0, 1),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0),
}
"""Maps each API to the lowest and the highest version that this node sends."""

FIRST_VERSION_WITH_PRE_VOTE: Final = 2
_FETCH_MAX_BYTES: Final = 8 * 1024 * 1024

Endpoints = Mapping[str, tuple[str, int]]
"""Maps the names of a node's controller listeners to host and port."""


class Rejected(Exception):
    """The other node rejected a request with an error that is not one of Raft's."""


class Local(NamedTuple):
    """What a node's requests say about it."""

    key: ReplicaKey
    cluster_id: str
    endpoints: Endpoints


def vote_request(local: Local, sent: effects.SendVote, version: int) -> vote.VoteRequest:
    """Return the request for a vote, or (version 2) a pre-vote."""
    partition = vote.PartitionData(
        partition_index=PARTITION,
        replica_epoch=sent.epoch,
        replica_id=local.key.node_id,
        replica_directory_id=local.key.directory_id,
        voter_directory_id=sent.voter.directory_id,
        last_offset_epoch=sent.last.epoch,
        last_offset=sent.last.offset,
        pre_vote=sent.pre_vote,
    )
    return vote.VoteRequest(
        cluster_id=local.cluster_id,
        voter_id=sent.voter.node_id,
        topics=[vote.TopicData(topic_name=TOPIC, partitions=[partition])],
    )


def begin_request(local: Local, sent: effects.SendBeginQuorumEpoch) -> begin.BeginQuorumEpochRequest:
    """Return the announcement of a new leader."""
    partition = begin.PartitionData(
        partition_index=PARTITION,
        voter_directory_id=sent.voter.directory_id,
        leader_id=local.key.node_id,
        leader_epoch=sent.epoch,
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=local.cluster_id,
        voter_id=sent.voter.node_id,
        topics=[begin.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=_leader_endpoints(local.endpoints),
    )


def end_request(local: Local, sent: effects.SendEndQuorumEpoch) -> end.EndQuorumEpochRequest:
    """Return the announcement that this leader resigns."""
    partition = end.PartitionData(
        partition_index=PARTITION,
        leader_id=local.key.node_id,
        leader_epoch=sent.epoch,
        preferred_successors=[key.node_id for key in sent.successors],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in sent.successors
        ],
    )
    return end.EndQuorumEpochRequest(
        cluster_id=local.cluster_id,
        topics=[end.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=_leader_endpoints(local.endpoints),
    )


def _leader_endpoints(endpoints: Endpoints) -> list[begin.LeaderEndpoint]:
    return [begin.LeaderEndpoint(name=name, host=host, port=port) for name, (host, port) in endpoints.items()]


def fetch_request(local: Local, sent: effects.SendFetch) -> fetch.FetchRequest:
    """Return the fetch of records from the end of this node's log. It acknowledges all records before."""
    partition = fetch.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=sent.epoch,
        fetch_offset=sent.offset,
        last_fetched_epoch=sent.last_epoch,
        log_start_offset=0,
        partition_max_bytes=0,
        replica_directory_id=local.key.directory_id,
        high_watermark=sent.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=local.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=local.key.node_id),
        max_wait_ms=sent.max_wait_ms,
        max_bytes=_FETCH_MAX_BYTES,
        topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
    )


def snapshot_request(
    local: Local, sent: effects.FetchSnapshot, position: int, max_bytes: int
) -> fetch_snapshot.FetchSnapshotRequest:
    """Return the request for the part of a snapshot that begins at `position`."""
    partition = fetch_snapshot.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=sent.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=sent.snapshot.offset, epoch=sent.snapshot.epoch),
        position=position,
        replica_directory_id=local.key.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=local.cluster_id,
        replica_id=local.key.node_id,
        max_bytes=max_bytes,
        topics=[fetch_snapshot.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def update_request(local: Local, epoch: int) -> UpdateRaftVoterRequest:
    """Return the report of this voter's addresses, which Kafka's leaders expect from each voter."""
    return UpdateRaftVoterRequest(
        cluster_id=local.cluster_id,
        current_leader_epoch=epoch,
        voter_id=local.key.node_id,
        voter_directory_id=local.key.directory_id,
        listeners=[
            Listener(name=name, host=host, port=port) for name, (host, port) in local.endpoints.items()
        ],
    )


# --- responses


def vote_answered(sent: effects.SendVote, response: vote.VoteResponse) -> events.VoteAnswered:
    """Return the event for a response. Raises Rejected."""
    partition = _only_partition(response.error_code, response.topics)
    return events.VoteAnswered(
        sent.correlation_id,
        sent.node_id,
        raft_error(partition.error_code),
        partition.leader_epoch,
        partition.leader_id,
        partition.vote_granted,
        sent.pre_vote,
    )


def epoch_answered(
    sent: effects.SendBeginQuorumEpoch | effects.SendEndQuorumEpoch,
    response: begin.BeginQuorumEpochResponse | end.EndQuorumEpochResponse,
) -> events.EpochAnswered:
    """Return the event for a response. Raises Rejected."""
    partition = _only_partition(response.error_code, response.topics)
    return events.EpochAnswered(
        sent.correlation_id,
        sent.node_id,
        raft_error(partition.error_code),
        partition.leader_epoch,
        partition.leader_id,
    )


def fetched_partition(response: fetch.FetchResponse) -> fetch.PartitionData:
    """Return the only partition of a response. Raises Rejected."""
    partition: fetch.PartitionData = _only_partition(response.error_code, response.responses)
    return partition


def fetch_answered(
    sent: effects.SendFetch, partition: fetch.PartitionData, batches: tuple[Batch, ...], data: bytes
) -> events.FetchAnswered:
    """Return the event for a response. Raises Rejected."""
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return events.FetchAnswered(
        sent.correlation_id,
        sent.node_id,
        raft_error(partition.error_code),
        partition.current_leader.leader_epoch,
        partition.current_leader.leader_id,
        partition.high_watermark,
        partition.log_start_offset,
        OffsetAndEpoch(diverging.end_offset, diverging.epoch) if diverging.end_offset >= 0 else None,
        OffsetAndEpoch(snapshot.end_offset, snapshot.epoch) if snapshot.end_offset >= 0 else None,
        batches,
        data,
    )


def named_leaders(response: Any) -> dict[int, tuple[str, int]]:
    """Return the addresses of nodes that a response contains."""
    return {each.node_id: (each.host, each.port) for each in response.node_endpoints if each.host}


def _only_partition(error_code: int, topics: Sequence[Any]) -> Any:
    if error_code != ErrorCode.NONE:
        raise Rejected(known_code(error_code).name)
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise Rejected(f"the response does not contain {TOPIC}-{PARTITION}")
    return topics[0].partitions[0]


def raft_error(code: int) -> RaftError:
    """Return one of Raft's errors. Raises Rejected for another error."""
    name = known_code(code).name
    error = RaftError.__members__.get(name)
    if error is None:
        raise Rejected(name)
    return error


def error_code(error: RaftError) -> ErrorCode:
    """Return Kafka's code of one of Raft's errors."""
    return ErrorCode[error.name]
