"""DescribeQuorum (API key 55): the leader, voters and observers of the metadata quorum (KIP-595, KIP-836).

Only the leader knows the other replicas. A broker passes the request on to the leader; another controller
rejects it and names the leader.
"""

from collections.abc import Coroutine
from typing import Any, Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordination.raft.values import QuorumDescription, ReplicaDescription
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import node_of
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC
from kafka_compat.quorum.node import QuorumNode
from kafka_compat.quorum.peer_connections import Lane, NotSupported
from kafka_compat.security.authorizer import Operation

_UNKNOWN: Final = -1


@handler(0, 2, quorum=True)
def describe_quorum(
    ctx: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse | Coroutine[Any, Any, DescribeQuorumResponse]:
    require_cluster(ctx, Operation.DESCRIBE)
    node = node_of(ctx)
    if not _names_only_metadata(request):
        return ctx.services.long_work.run(_unknown(request))
    found = node.machine.describe(node.now_ms())
    if found is None and not ctx.services.is_controller:
        return response_of_leader(ctx, ApiKey.DESCRIBE_QUORUM, request)
    topics = [ResponseTopicData(topic_name=TOPIC, partitions=[_described(ctx, node, found)])]
    nodes = [
        Node(
            node_id=node_id,
            listeners=[
                Listener(name=name, host=host, port=port) for name, (host, port) in voter.endpoints.items()
            ],
        )
        for node_id, voter in sorted(node.machine.voters.items())
    ]
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=nodes)


def _names_only_metadata(request: DescribeQuorumRequest) -> bool:
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_name != TOPIC:
        return False
    return [each.partition_index for each in topics[0].partitions[:2]] == [PARTITION]


def _unknown(request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    """As in Kafka, all partitions are unknown if the request names another one than that of the metadata."""
    topics = []
    for topic in request.topics:
        partitions: list[ResponsePartitionData] = []
        for some in batched(topic.partitions):
            partitions += [
                ResponsePartitionData(
                    partition_index=each.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message=None,
                )
                for each in some
            ]
            yield None
        topics.append(ResponseTopicData(topic_name=topic.topic_name, partitions=partitions))
    return DescribeQuorumResponse(error_message=None, topics=topics)


def _described(
    ctx: RequestContext, node: QuorumNode, found: QuorumDescription | None
) -> ResponsePartitionData:
    if found is None:
        return ResponsePartitionData(
            partition_index=PARTITION,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            error_message=None,
            leader_id=node.machine.leader_id,
            leader_epoch=node.machine.epoch,
        )
    # Convert the machine's clock to the time of day.
    offset_ms = ctx.services.clock.now_ms() - node.now_ms()

    def state(replica: ReplicaDescription) -> ReplicaState:
        return ReplicaState(
            replica_id=replica.key.node_id,
            replica_directory_id=replica.key.directory_id,
            log_end_offset=replica.log_end_offset,
            last_fetch_timestamp=_time(replica.last_fetch_ms, offset_ms),
            last_caught_up_timestamp=_time(replica.last_caught_up_ms, offset_ms),
        )

    return ResponsePartitionData(
        partition_index=PARTITION,
        error_message=None,
        leader_id=found.leader_id,
        leader_epoch=found.epoch,
        high_watermark=found.high_watermark,
        current_voters=[state(replica) for replica in found.voters],
        observers=[state(replica) for replica in found.observers],
    )


def _time(time_ms: int, offset_ms: int) -> int:
    return _UNKNOWN if time_ms < 0 else time_ms + offset_ms


async def response_of_leader(ctx: RequestContext, api_key: ApiKey, request: Any) -> Any:
    """Send a client's request to the quorum's leader, and return the response. Raises KafkaError."""
    node = node_of(ctx)
    try:
        return await node.peers.ask(node.machine.leader_id, api_key, request, Lane.FORWARDED)
    except (ConnectionError, MalformedRequest, NotSupported) as error:
        problem = f"The leader of the metadata quorum did not respond: {error}"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, problem) from error
