"""Control records of the metadata log."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.coordination.raft.values import ReplicaKey, Voter
from kafka_compat.protocol.messages import quorum_records
from kafka_compat.quorum.control_records import (
    control_batch,
    control_messages,
    leader_change_batch,
    voters_in,
    voters_record,
)
from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.records import Record, build_batch, iter_records


def test_leader_changes_have_the_version_that_kafka_writes() -> None:
    voters = (ReplicaKey(1, UUID(int=1 << 100)), ReplicaKey(2))
    batch = leader_change_batch(1, voters, voters[:1], base_offset=5, epoch=7, timestamp_ms=9)
    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch, header.is_control) == (5, 7, True)
    (message,) = control_messages(header, batch)
    assert (message.version, message.leader_id) == (0, 1)
    assert [voter.voter_id for voter in message.voters] == [1, 2]
    assert [voter.voter_id for voter in message.granting_voters] == [1]
    (record,) = iter_records(batch)
    assert (record.timestamp, record.key) == (9, b"\0\0\0\x02")


def test_voters_are_read_from_control_batches_only() -> None:
    voters = {4: Voter(ReplicaKey(4, UUID(int=1 << 99)), {"CONTROLLER": ("host", 9093)})}
    messages = [quorum_records.KRaftVersionRecord(kraft_version=1), voters_record(voters)]
    batch = control_batch(messages, base_offset=0, epoch=1, timestamp_ms=0)
    assert voters_in(read_header(batch), batch) == voters
    other = control_batch(messages[:1], base_offset=0, epoch=1, timestamp_ms=0)
    assert voters_in(read_header(other), other) is None
    data = build_batch([Record(key=b"\0\0\0\6", value=b"no control record")])
    assert voters_in(read_header(data), data) is None


def test_a_malformed_control_record_is_reported_as_corrupt() -> None:
    for key, value in [
        (b"\0\0", b""),
        (b"\0\0\0\6", b""),
        (b"\0\0\0\6", b"\0\0\x05"),
        (b"\0\0\0\6", b"\0\7"),
    ]:
        batch = build_batch([Record(key=key, value=value)], control=True)
        with pytest.raises(Exception) as raised:
            voters_in(read_header(batch), batch)
        assert isinstance(raised.value, CorruptRecord), raised
