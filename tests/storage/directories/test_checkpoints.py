"""The format of checkpoint files and meta.properties, which must be readable by Apache Kafka."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.errors import CorruptFile

TOPIC_ID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


def test_the_offset_checkpoint_has_kafkas_format() -> None:
    offsets = {("b", 0): 7, ("a", 10): 0, ("a", 9): 12345678901}
    content = checkpoints.encode_offsets(offsets)
    assert content == b"0\n3\nb 0 7\na 10 0\na 9 12345678901\n", (
        "entries may be in any order, as in Apache Kafka's files"
    )
    assert checkpoints.decode_offsets(content) == offsets
    assert checkpoints.decode_offsets(b"0\n0\n") == {}
    assert checkpoints.decode_offsets(b"") == {}, "Apache Kafka creates an empty file at startup"


@pytest.mark.parametrize(
    "content",
    [
        b"0\n",
        b"1\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0\n",
        b"x\n0\n",
        b"0\n1\na 0 b\n",
        b"0\n1\na 0 9223372036854775808\n",
        b"0\n1\na 2147483648 0\n",
        b"0\n1\na 0 1_0\n",
    ],
)
def test_malformed_offset_checkpoints_are_reported_as_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        checkpoints.decode_offsets(content)


def test_offsets_may_be_any_number_of_64_bits() -> None:
    extremes = {("a", 0): 2**63 - 1, ("a", 1): -(2**63)}
    assert checkpoints.decode_offsets(checkpoints.encode_offsets(extremes)) == extremes


def test_the_partition_metadata_contains_the_topic_id_in_kafkas_format() -> None:
    content = checkpoints.encode_partition_metadata(TOPIC_ID)
    assert content == b"version: 0\ntopic_id: -B1Prn3sEdCnZQCgyR5r9g"
    assert checkpoints.decode_partition_metadata(content) == TOPIC_ID
    assert checkpoints.decode_partition_metadata(content + b"\n") == TOPIC_ID
    for broken in (b"", b"version: 0\n", b"version: 0\ntopic_id: abc", bytes(40)):
        with pytest.raises(CorruptFile):
            checkpoints.decode_partition_metadata(broken)


def test_the_clean_shutdown_marker_has_kafkas_json_format() -> None:
    assert checkpoints.encode_clean_shutdown() == b'{"version":0,"brokerEpoch":-1}'
