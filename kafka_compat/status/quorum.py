"""The metadata quorum in a snapshot, from the response of DescribeQuorum."""

from typing import Any, Final, Protocol

from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_quorum import PartitionData, TopicData
from kafka_compat.status.snapshot import Quorum, QuorumReplica

_TOPIC: Final = "__cluster_metadata"
_NOT_SHOWN: Final = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION)


class Asking(Protocol):
    """The methods of an Observer that are needed here."""

    def ask_anyone(self, key: ApiKey, **request: Any) -> Any: ...

    def note(self, text: str) -> None: ...


def ask_quorum(observer: Asking) -> Quorum | None:
    """Return the quorum, or None if no broker describes it."""
    asked = [TopicData(topic_name=_TOPIC, partitions=[PartitionData()])]
    answer = observer.ask_anyone(ApiKey.DESCRIBE_QUORUM, topics=asked)
    if answer is None:
        return None
    code = known_code(answer.error_code)
    found = answer.topics[0].partitions[0] if answer.topics and answer.topics[0].partitions else None
    if found is not None and not code:
        code = known_code(found.error_code)
    if code in _NOT_SHOWN:
        observer.note(f"the metadata quorum: {code.name}")
        return None
    if code or found is None:
        return Quorum(error=code.name)
    return quorum_of(found)


def quorum_of(found: Any) -> Quorum:
    """Return the quorum that a partition of a DescribeQuorum response describes."""
    leader = next((each for each in found.current_voters if each.replica_id == found.leader_id), None)
    end = leader.log_end_offset if leader is not None else found.high_watermark
    now_ms = leader.last_fetch_timestamp if leader is not None else -1

    def replica(each: Any, *, is_voter: bool) -> QuorumReplica:
        is_known = each.last_fetch_timestamp >= 0 and now_ms >= 0
        age_ms = max(0, now_ms - each.last_fetch_timestamp) if is_known else None
        return QuorumReplica(each.replica_id, is_voter, max(0, end - each.log_end_offset), age_ms)

    voters = (replica(each, is_voter=True) for each in found.current_voters)
    observers = (replica(each, is_voter=False) for each in found.observers)
    return Quorum(found.leader_id, found.leader_epoch, found.high_watermark, (*voters, *observers))
