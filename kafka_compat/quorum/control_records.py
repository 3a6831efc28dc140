"""Control records of the metadata log and its snapshots, as in Kafka: leader changes, and sets of voters.

Rules
1. A LeaderChange record has version 0, without directory IDs: Kafka 4.4 writes no other version, and its
   tools read every LeaderChange record as version 0.
2. A control batch contains only control records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafka_compat.coordination.raft.values import ReplicaKey, Voter, VoterSet
from kafka_compat.errors import KafkaError
from kafka_compat.protocol.codec import decode, encode
from kafka_compat.protocol.messages import quorum_records
from kafka_compat.protocol.messages.update_raft_voter import KRaftVersionFeature
from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.records.batch import BatchHeader, Buffer
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import Record, build_batch, iter_body, records_body

KRAFT_VERSION_MAX: Final = 1
"""The highest level of kraft.version that nodes support. Voters records exist from level 1 on."""

_KEY: Final = struct.Struct(">hh")
_CLASSES: Final[dict[int, Any]] = {
    ControlRecordType.LEADER_CHANGE: quorum_records.LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: quorum_records.SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: quorum_records.SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: quorum_records.KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: quorum_records.VotersRecord,
}


def control_batch(messages: Sequence[Any], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """Build a batch of control records from messages of `quorum_records`."""
    types = {cls: number for number, cls in _CLASSES.items()}
    records = [
        Record(timestamp=timestamp_ms, key=_KEY.pack(0, types[type(message)]), value=encode(message, 0))
        for message in messages
    ]
    return build_batch(records, base_offset=base_offset, leader_epoch=epoch, control=True)


def leader_change_batch(
    leader_id: int,
    voters: Sequence[ReplicaKey],
    granting: Sequence[ReplicaKey],
    *,
    base_offset: int,
    epoch: int,
    timestamp_ms: int,
) -> bytes:
    """Build the first batch of an epoch."""
    message = quorum_records.LeaderChangeMessage(
        leader_id=leader_id,
        voters=_change_voters(voters),
        granting_voters=_change_voters(granting),
    )
    return control_batch([message], base_offset=base_offset, epoch=epoch, timestamp_ms=timestamp_ms)


def _change_voters(keys: Sequence[ReplicaKey]) -> list[quorum_records.ChangeVoter]:
    return [quorum_records.ChangeVoter(voter_id=key.node_id) for key in keys]


def voters_record(voters: VoterSet) -> quorum_records.VotersRecord:
    """Return the record of a set of voters."""
    return quorum_records.VotersRecord(
        voters=[
            quorum_records.Voter(
                voter_id=voter.key.node_id,
                voter_directory_id=voter.key.directory_id,
                endpoints=[
                    quorum_records.Endpoint(name=name, host=host, port=port)
                    for name, (host, port) in voter.endpoints.items()
                ],
                kraft_version_feature=KRaftVersionFeature(max_supported_version=KRAFT_VERSION_MAX),
            )
            for voter in voters.values()
        ]
    )


def voters_in(header: BatchHeader, batch: Buffer) -> VoterSet | None:
    """Return the last set of voters in a batch, or None if it contains none. Raises CorruptRecord if a
    control record is malformed.
    """
    found: VoterSet | None = None
    if header.is_control:
        for message in control_messages(header, batch):
            if isinstance(message, quorum_records.VotersRecord):
                found = _voter_set(message)
    return found


def _voter_set(message: quorum_records.VotersRecord) -> VoterSet:
    return {
        voter.voter_id: Voter(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            {endpoint.name: (endpoint.host, endpoint.port) for endpoint in voter.endpoints},
        )
        for voter in message.voters
    }


def control_messages(header: BatchHeader, batch: Buffer) -> Iterator[Any]:
    """Iterate over the messages of a control batch. Records of other types, such as transaction markers, are
    skipped. Raises CorruptRecord if a record is malformed.
    """
    for record in iter_body(header, records_body(batch, header)):
        try:
            key_version, record_type = _KEY.unpack_from(record.key or b"")
            cls = _CLASSES.get(record_type) if key_version == 0 else None
            if cls is not None:
                value = record.value or b""
                (version,) = struct.unpack_from(">h", value)
                yield decode(cls, version, value)
        except (struct.error, KafkaError) as error:
            raise CorruptRecord(
                f"the control record at offset {record.offset} cannot be read: {error}"
            ) from None
