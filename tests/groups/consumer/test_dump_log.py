"""kafka-dump-log prints the records of consumer groups like Apache Kafka 4.4's tool, which reads ours."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_compat.groups.consumer.member import ClassicMember, Member, MemberState
from kafka_compat.groups.consumer.records import (
    CurrentAssignment,
    CurrentAssignmentRecord,
    GroupMetadataRecord,
    MemberMetadataRecord,
    PartitionMetadataRecord,
    RegexRecord,
    ResolvedRegex,
    TargetAssignmentRecord,
    TargetMetadataRecord,
)
from kafka_compat.groups.record_types import GroupMetadata, TargetMetadata
from kafka_compat.groups.records import OffsetRecord, Record, encode_record
from kafka_compat.groups.requests import OffsetAndMetadata
from kafka_compat.storage.records import records as log_records
from tests.groups.consumer.topics import topic_id
from tests.support import java
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import run_kafka_compat

ONE, TWO = topic_id("one"), topic_id("two")
MEMBER = Member(
    "m",
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    topic_names=("one", "two"),
    topic_regex="o.*",
    rebalance_timeout_ms=60_000,
    server_assignor="range",
)
RECORDS: list[Record] = [
    MemberMetadataRecord("g", "m", MEMBER),
    MemberMetadataRecord("g", "n", Member("n", client_id="c", client_host="/h")),
    MemberMetadataRecord("g", "o", Member("o", classic=ClassicMember(45_000, (("range", b"\0\1"),)))),
    MemberMetadataRecord("g", "p", Member("p", classic=ClassicMember(0, ()))),
    RegexRecord("g", "o.*", ResolvedRegex(frozenset(("one", "oö")), 7, 1_700_000_000_000)),
    GroupMetadataRecord("g", GroupMetadata(2, -7_290_586_274_136_634_080)),
    GroupMetadataRecord("g", GroupMetadata(3, 0)),
    TargetAssignmentRecord("g", "m", {ONE: (0, 1), TWO: (2,)}),
    TargetAssignmentRecord("g", "n", {}),
    TargetMetadataRecord("g", TargetMetadata(2, 1_700_000_000_000)),
    TargetMetadataRecord("g", TargetMetadata(3, 0)),
    CurrentAssignmentRecord("g", "m", CurrentAssignment(2, 1, MemberState.STABLE, {ONE: {0: 1, 1: 2}})),
    CurrentAssignmentRecord(
        "g",
        "m",
        CurrentAssignment(2, 2, MemberState.UNREVOKED_PARTITIONS, {ONE: {0: 1}}, {ONE: {1: 2}, TWO: {}}),
    ),
    OffsetRecord("g", "one", 0, OffsetAndMetadata(5, 1, "note", 6, -1, ONE)),
    OffsetRecord("g", "one", 0, OffsetAndMetadata(5, 1, "note", 6, -1)),
    OffsetRecord("g", "one", 0, OffsetAndMetadata(5, -1, "", 6, 7, ONE)),
    PartitionMetadataRecord("g", None),
]


def tombstones() -> list[Record]:
    return [record._replace(value=None) for record in RECORDS]


def printed(text: str) -> list[str]:
    """Return the lines with keys and values."""
    return re.findall(r"offset: \d+.* key: .*", text)


def test_records_of_consumer_groups_are_printed_as_by_kafkas_tool(tmp_path: Path) -> None:
    keyed = [encode_record(record) for record in (*RECORDS, *tombstones())]
    segment = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(
        log_records.build_batch(
            log_records.Record(offset, 1_700_000_000_000, key, value, ())
            for offset, (key, value) in enumerate(keyed)
        )
    )
    options = ("--offsets-decoder", "--files", str(segment))
    theirs = printed(java.run("kafka-dump-log", *options, version=NEWEST_VERSION).stdout)
    ours = printed(run_kafka_compat("dump-log", *options).stdout)
    assert len(theirs) == len(keyed)
    assert ours == theirs
    types = {int(each) for each in re.findall(r'"type":"(\d+)"', "\n".join(ours))}
    assert types == {1, 3, 4, 5, 6, 7, 8, 16}
