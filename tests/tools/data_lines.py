"""Command lines about records, groups and transactions, in `lines/`. The format is described in compare.py.

Lines above the first empty line of a table are run daily, the others in campaigns. {log} in a line is a log
directory of the broker.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.storage.log.producer_state import ProducerState
from kafka_compat.storage.records import legacy
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType, TimestampType
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker
from kafka_compat.storage.segments.txn_index import AbortedTxn, encode
from tests.support import campaign
from tests.tools.compare import table

TOOLS = (
    "dump-log",
    "consumer-groups",
    "transactions",
    "console-producer",
    "console-consumer",
    "perf-tests",
    "ended-transactions",
)
"""In this order, because dumps must run before either command has written to the logs."""
NUMBERS = "numbers"
FIRST_OFFSET = 5
_NUMBERS = (0, 1, -1, 7.5, 0.1, 12345678.0, 1e-5, -1.5e300)
"""Numbers for which Java before 19 finds the shortest decimal representation of a float."""


def lines(name: str) -> str:
    """Return the command lines to run."""
    text = table(name)
    return text if campaign.enabled() else text.partition("\n\n")[0]


def with_logs(text: str, log_dirs: Sequence[Path]) -> str:
    """Replace {log} in the lines by the log directories."""

    def place(found: re.Match[str]) -> str:
        return next(str(folder / found[1]) for folder in log_dirs if (folder / found[1]).exists())

    return re.sub(r"\{log\}/([\w-]+)", place, text)


def make_indexes(log_dirs: Sequence[Path]) -> None:
    """Create the missing index files of the first segment of alpha-0. Kafka's command creates them empty
    before it reports that they are too small.
    """
    for folder in log_dirs:
        for suffix in ("index", "timeindex"):
            if (folder / "alpha-0").exists():
                (folder / "alpha-0" / f"{0:020}.{suffix}").touch()


def make_numbers(address: str) -> None:
    """Create a topic with eight-byte numbers in its first partition and four-byte numbers in its second."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(NUMBERS, 2, 1)])[NUMBERS].result(60)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for number in _NUMBERS:
        producer.produce(NUMBERS, struct.pack(">d", number), partition=0)
        producer.produce(NUMBERS, struct.pack(">f", max(min(number, 3e38), -3e38)), partition=1)
        producer.flush(30)


def write_files(folder: Path, address: str) -> None:
    """Write the contents of {files}."""
    for name, text in {
        "client.properties": "client.id=someone\n",
        "reader.properties": "parse.key=true\nkey.separator=/\n",
        "formatter.properties": "print.key=true\nkey.separator=/\n",
        "producer.properties": f"bootstrap.servers={address}\nacks=1\n",
        "payloads": "first,second\nthird,fourth\n",
        "plan.csv": "alpha,0,3\nalpha,1,99\n",
        "plan-of-groups.csv": "idle,alpha,0,3\nother,alpha,1,2\n",
    }.items():
        (folder / name).write_text(text)
    _write_segments(folder)


def _write_segments(folder: Path) -> None:
    """Write valid and corrupt segments in all formats and codecs, with their index files."""
    records = [
        Record(0, 1_700_000_000_000 + index, key, value, [("h", b"1"), ("g", None)])
        for index, (key, value) in enumerate(((b"k", "wé€".encode()), (None, b"\xff"), (b"l", None)))
    ]
    batches, offset = [], FIRST_OFFSET
    for codec in CompressionType:
        batches.append(
            build_batch(
                records,
                base_offset=offset,
                compression=codec,
                producer_id=7,
                producer_epoch=1,
                base_sequence=offset,
                transactional=codec is CompressionType.SNAPPY,
                timestamp_type=TimestampType(codec % 2),
                leader_epoch=3,
            )
        )
        offset += len(records)
    marker = EndTransactionMarker(ControlRecordType.ABORT, 9)
    batches.append(build_marker(marker, producer_id=7, producer_epoch=1, timestamp=5, base_offset=offset))
    whole = b"".join(batches)
    wrong = bytearray(whole)
    wrong[150] ^= 1
    packed = [legacy.down_convert(batches[codec], 1) for codec in (CompressionType.GZIP, CompressionType.LZ4)]
    for name, content in {
        "formats": whole,
        "cut": whole[:-7],
        "crc": bytes(wrong),
        "zeros": whole + b"\0" * 200,
        "format-1": legacy.down_convert(batches[0], 1),
        "format-0": legacy.down_convert(batches[0], 0),
        "packed": b"".join(packed),
        "gap": batches[0] + batches[2],
    }.items():
        (folder / name).mkdir()
        (folder / name / "00000000000000000005.log").write_bytes(content)
    _write_indexes(folder / "formats" / "00000000000000000005", len(batches[0]), len(records))


def _write_indexes(stem: Path, second_position: int, count: int) -> None:
    """Write a segment's index files: an offset index with a wrong second entry, a time index that contradicts
    the records, aborted transactions, and a producer snapshot.
    """
    stem.with_suffix(".index").write_bytes(
        struct.pack(">iiii", 2 * count - 1, second_position, 3 * count, second_position)
    )
    stem.with_suffix(".timeindex").write_bytes(
        struct.pack(">qiqiqi", 1_700_000_000_002, count - 1, 1, 2 * count - 1, 0, 4 * count)
    )
    stem.with_suffix(".txnindex").write_bytes(encode([AbortedTxn(7, 11, 20, 21), AbortedTxn(8, 12, 30, 31)]))
    stem.with_suffix(".snapshot").write_bytes(ProducerState().encode_snapshot())
    stem.with_name("partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    stem.with_name("leader-epoch-checkpoint").write_text("0\n0\n")
