"""Kafka's DumpLogSegments (3.9.1), which must read every file of our broker."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop import dataset
from tests.interop.contents import Contents, read_contents
from tests.interop.kafka_directories import FEW_INTERNAL_PARTITIONS, GenuineFolders
from tests.support import java
from tests.support.servers import KafkaCompatBroker

_COMPLAINTS = re.compile(
    r"isvalid: false|mismatch|out of order|not consecutive|non-consecutive|corrupt|failed|exception|error",
    re.IGNORECASE,
)
_MARKERS = re.compile(r"endTxnMarker: (COMMIT|ABORT)")


@dataclass
class Folder:
    path: Path
    contents: Contents


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A log directory of our broker with every kind of record, mostly indexed during the recovery after kill
    -9.
    """
    server = KafkaCompatBroker(tmp_path_factory.mktemp("written"), FEW_INTERNAL_PARTITIONS)
    server.start()
    dataset.write_everything(server.address)
    server.restart(kill=True)
    producer = dataset.new_producer(server.address, {"enable.idempotence": True})
    for number in range(200):
        producer.produce("small-segments", b"after the kill %d" % number)
    assert producer.flush(30) == 0
    contents = read_contents(server.address, dataset.partition_counts(dataset.TOPICS), dataset.GROUPS)
    assert server.stop() == 0
    return Folder(server.log_dir, contents)


@pytest.fixture(scope="module")
def recovered(genuine_folders: GenuineFolders, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A log directory with transactions, for which our broker rebuilt the indexes, producer snapshots and
    transaction indexes.
    """
    server = KafkaCompatBroker(tmp_path_factory.mktemp("recovered"))
    del server.overrides["broker.id"]
    shutil.copytree(genuine_folders.after_kill, server.log_dir)
    server.start()
    contents = read_contents(server.address, {"transactions": 2, "open-transaction": 1}, ())
    assert server.stop() == 0
    return Folder(server.log_dir, contents)


def _dump(files: Iterator[Path] | Sequence[Path], *options: str) -> str:
    """Run the tool, which must not report errors, and return its output."""
    names = sorted(str(file) for file in files)
    assert names
    done = java.run("kafka-dump-log", *options, "--files", ",".join(names))
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if _COMPLAINTS.search(line.partition(" payload: ")[0])] == []
    assert [line for line in lines if line.startswith("Dumping ")] == [f"Dumping {name}" for name in names]
    return done.stdout


def test_every_batch_and_record_of_every_codec_is_valid(written: Folder) -> None:
    topics = [file for topic in dataset.TOPICS for file in written.path.glob(f"{topic}-*/*.log")]
    shown = _dump(topics, "--deep-iteration", "--print-data-log")
    assert len(re.findall(r"^\| offset: ", shown, re.MULTILINE)) >= sum(
        map(len, written.contents.records.values())
    )
    for codec in dataset.CODECS:
        assert re.search(rf"compresscodec: {codec} .*isvalid: true", shown), codec


def test_both_indexes_agree_with_the_segments(written: Folder) -> None:
    indexes = [file for kind in ("index", "timeindex") for file in written.path.glob(f"*/*.{kind}")]
    assert len(indexes) > 40
    shown = _dump(indexes, "--index-sanity-check")
    assert shown.count(" passed sanity check.") + shown.count(" is empty.") == len(indexes)
    _dump(indexes, "--verify-index-only")


def test_producer_snapshots_contain_our_producers(written: Folder) -> None:
    shown = _dump(written.path.glob("small-segments-0/*.snapshot"))
    assert re.search(r"producerId: \d+ producerEpoch: 0 .*lastSequence: 199 ", shown)


def test_the_offsets_topic_is_decoded_to_groups_and_committed_offsets(written: Folder) -> None:
    shown = _dump(written.path.glob("__consumer_offsets-*/*.log"), "--offsets-decoder", "--deep-iteration")
    for group, offsets in written.contents.groups.items():
        for (topic, partition), (offset, _) in offsets.items():
            key = rf'"group":"{group}","topic":"{topic}","partition":{partition}'
            commits = re.findall(rf'{key}.*?"offset":(\d+)', shown)
            assert commits and int(commits[-1]) == offset, (group, topic, partition)
    assert re.search(r'"group":"members".*"protocolType":"consumer"', shown)


def test_transactions_have_markers_and_aborted_transaction_index_entries(recovered: Folder) -> None:
    topics = [*recovered.path.glob("transactions-*/*.log"), *recovered.path.glob("open-transaction-0/*.log")]
    shown = _dump(topics, "--deep-iteration", "--print-data-log")
    markers = _MARKERS.findall(shown)
    assert markers.count("COMMIT") == 2 * 8 + 1
    assert markers.count("ABORT") == 2 * 4
    aborted = _dump(recovered.path.glob("transactions-*/*.txnindex"))
    assert len(re.findall(r"version: 0 producerId: \d+ firstOffset: \d+", aborted)) == 2 * 4
    snapshots = _dump(recovered.path.glob("open-transaction-0/*.snapshot"))
    first_open = recovered.contents.records["open-transaction", 0][5].offset
    assert re.search(rf"currentTxnFirstOffset: (Optional\[|OptionalLong\[)?{first_open}\b", snapshots)
