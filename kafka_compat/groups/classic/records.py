"""The records of classic groups in `__consumer_offsets`, and how they are encoded.

Keys have version 2. Values are written in version 3; all older and newer versions can be read.
"""

from typing import Final, NamedTuple

from kafka_compat.protocol.codec import decode, decode_versioned, encode_versioned
from kafka_compat.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

KEY_VERSION: Final = 2
_VALUE_VERSION: Final = 3


class MemberSnapshot(NamedTuple):
    """A stored member. As in Kafka, only the metadata for the chosen protocol survives a restart."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupSnapshot(NamedTuple):
    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: tuple[MemberSnapshot, ...]


class GroupRecord(NamedTuple):
    """The members of a group after a rebalance. The value None deletes the group."""

    group_id: str
    value: GroupSnapshot | None

    @property
    def machine_key(self) -> str:
        return self.group_id


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Encode a record as (key, value). A tombstone's value is None. Raises ValueError if text is too long."""
    key = encode_versioned(GroupMetadataKey(group=record.group_id), KEY_VERSION)
    return key, None if record.value is None else _encode_group(record.value)


def decode_record(key: bytes, value: bytes | None) -> GroupRecord:
    """Decode a record. Raises MalformedRequest if it is invalid."""
    group_id = decode(GroupMetadataKey, KEY_VERSION, key, 2).group
    return GroupRecord(group_id, None if value is None else _decode_group(value))


def _encode_group(group: GroupSnapshot) -> bytes:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ],
    )
    return encode_versioned(value, _VALUE_VERSION)


def _decode_group(data: bytes) -> GroupSnapshot:
    value, version = decode_versioned(GroupMetadataValue, data)
    return GroupSnapshot(
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        tuple(
            MemberSnapshot(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout,
                # Before KIP-62, members had no rebalance timeout, and the session timeout served as both.
                member.session_timeout if version == 0 else member.rebalance_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ),
    )
