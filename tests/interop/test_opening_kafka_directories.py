"""Log directories written by Apache Kafka 3.9.1, which our broker opens with all of their data."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.interop import dataset
from tests.interop.contents import Contents, differences, read_contents, read_records
from tests.interop.kafka_directories import ALL_TOPICS, GenuineFolders
from tests.restart.client import produce
from tests.support.servers import KafkaCompatBroker, run_kafka_compat


@pytest.fixture(scope="module", params=["after a clean stop", "after kill -9"])
def opened(
    request: pytest.FixtureRequest, genuine_folders: GenuineFolders, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCompatBroker]:
    """Our broker on such a directory, configured without broker.id and partition counts."""
    killed = request.param == "after kill -9"
    server = KafkaCompatBroker(tmp_path_factory.mktemp("opened"))
    del server.overrides["broker.id"]
    source = genuine_folders.after_kill if killed else genuine_folders.after_clean_stop
    shutil.copytree(source, server.log_dir)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def found(opened: KafkaCompatBroker) -> Contents:
    return _read(opened)


def _read(server: KafkaCompatBroker) -> Contents:
    counts = dataset.partition_counts(ALL_TOPICS)
    return read_contents(server.address, counts, dataset.GROUPS, dataset.TIMES)


def _files(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files except the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_records_offsets_topic_ids_and_committed_offsets_match_apache_kafkas(
    found: Contents, genuine_folders: GenuineFolders
) -> None:
    theirs = genuine_folders.contents
    assert sum(map(len, theirs.records.values())) > 2000
    assert theirs.committed["transactions", 0] != theirs.records["transactions", 0]
    assert len(theirs.committed["open-transaction", 0]) == 5
    assert theirs.groups["readers"] and theirs.groups["members"]
    assert differences(_without_times_of_cleaned(found), _without_times_of_cleaned(theirs)) == []
    assert found.by_time["cleaned", 0, dataset.TIMES[0]] == found.records["cleaned", 0][0].offset


def _without_times_of_cleaned(contents: Contents) -> Contents:
    # After this restart, Kafka 3.9.1 finds no offsets by time in the compacted topic, although it serves
    # records.
    kept = {key: offset for key, offset in contents.by_time.items() if key[0] != "cleaned"}
    return replace(contents, by_time=kept)


def test_broker_id_and_cluster_id_are_read_from_the_directory(
    opened: KafkaCompatBroker, found: Contents, genuine_folders: GenuineFolders
) -> None:
    from tests.interop.contents import admin

    client = admin(opened.address)
    nodes = client.describe_cluster().result(30).nodes
    assert [node.id for node in nodes] == [genuine_folders.broker_id]
    assert found.cluster_id == genuine_folders.contents.cluster_id


def test_new_records_are_appended_after_the_existing_records(
    opened: KafkaCompatBroker, found: Contents
) -> None:
    places = list(found.records)
    producer = dataset.new_producer(opened.address, {"enable.idempotence": True})
    for topic, partition in places:
        for number in range(20):
            producer.produce(topic, b"new %d" % number, b"key", partition)
    assert producer.flush(30) == 0
    opened.restart(kill=True)
    records = read_records(opened.address, places)
    for place in places:
        end = found.ends[place][1]
        assert records[place][:-20] == found.records[place]
        assert [record.offset for record in records[place][-20:]] == list(range(end, end + 20))
        assert [record.value for record in records[place][-20:]] == [b"new %d" % n for n in range(20)]


def test_producers_continue_their_sequences(
    opened: KafkaCompatBroker, genuine_folders: GenuineFolders
) -> None:
    producer = genuine_folders.producer
    with Connection(opened.address) as connection:
        repeated = produce(connection, "sequences", [b"9"], producer=(*producer, 9))
        assert repeated == (ErrorCode.NONE, 9)
        skipped = produce(connection, "sequences", [b"12"], producer=(*producer, 12))
        assert skipped.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        continued = produce(connection, "sequences", [b"10"], producer=(*producer, 10))
        assert continued == (ErrorCode.NONE, 10)


def test_a_broker_with_a_different_id_is_rejected_and_the_directory_stays_usable(
    genuine_folders: GenuineFolders, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(genuine_folders.after_clean_stop, folder)
    before = _files(folder)
    arguments = [f"--override=log.dirs={folder}", "--override=listeners=PLAINTEXT://127.0.0.1:0"]
    refused = run_kafka_compat("serve", "--override=broker.id=8", *arguments)
    assert refused.returncode == 2
    assert "broker.id" in refused.stderr
    assert _files(folder) == before

    server = KafkaCompatBroker(tmp_path, {"broker.id": str(genuine_folders.broker_id)})
    server.start()
    try:
        found = read_records(server.address, [("codecs", 0)])
        assert found["codecs", 0] == genuine_folders.contents.records["codecs", 0]
    finally:
        server.stop()
