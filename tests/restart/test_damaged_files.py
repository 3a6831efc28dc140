"""Small files of a log directory damaged by an administrator, a bad copy or a bad disk: the broker logs
everything it drops, and does not start on files that may belong to a different broker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.bystander import Bystander
from tests.conformance.wire import Connection
from tests.disks.requests import NONE, Asking
from tests.logs.reading import wait_for
from tests.metrics.groups import transaction
from tests.restart.client import create_topic, fetch, produce
from tests.support.process import ProcessFailed, wait_until
from tests.support.servers import KafkaCompatBroker

JOURNAL = "kafka-compat-metadata.journal"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaCompatBroker]:
    broker = KafkaCompatBroker(tmp_path / "broker", {"auto.create.topics.enable": "false"})
    broker.start()
    yield broker
    broker.stop()


def test_a_topic_missing_from_the_journal_is_restored_from_its_directory(broker: KafkaCompatBroker) -> None:
    asking = Asking(broker)
    assert asking.create("first")[0] == NONE
    assert asking.create("lost")[0] == NONE
    assert asking.produce("lost") == NONE
    asking.connection.close()
    broker.kill()
    journal = broker.log_dir / JOURNAL
    whole = journal.read_bytes()
    # Truncate the journal within the change that created the topic.
    journal.write_bytes(whole[: whole.index(b"\n", whole.index(b"lost")) - 10])
    broker.start()
    asking = Asking(broker)
    assert asking.end_offset("lost") == 10
    assert asking.produce("lost") == NONE
    log = broker.log.read_text()
    assert "Removed an incomplete change from the end of" in log
    assert "/brokers/topics/lost" in log
    assert "Adopted topic lost from the log directories (partitions: 1)" in log


def test_a_topic_without_partition_states_gets_new_leaders(broker: KafkaCompatBroker) -> None:
    asking = Asking(broker)
    create_topic(asking.connection, "half", 3)
    assert asking.produce("half") == NONE
    asking.connection.close()
    broker.kill()
    journal = broker.log_dir / JOURNAL
    whole = journal.read_bytes()
    last = whole[whole[:-10].rfind(b"\n") :]
    assert b"half/partitions/2/state" in last and b"topic_id" not in last
    journal.write_bytes(whole[:-10])
    broker.start()
    asking = Asking(broker)
    assert asking.end_offset("half") == 10
    assert asking.produce("half") == NONE
    assert "Adopted" not in broker.log.read_text()


def test_the_directory_of_an_unknown_topic_is_set_aside_with_its_records(broker: KafkaCompatBroker) -> None:
    asking = Asking(broker)
    assert asking.create("t")[0] == NONE
    assert asking.produce("t") == NONE
    broker.stop()
    folder = broker.log_dir / "t-0"
    folder.rename(broker.log_dir / "stranger-3")
    broker.start()
    (stray,) = broker.log_dir.glob("stranger-3.*-stray")
    assert (stray / f"{0:020d}.log").stat().st_size > 0
    assert str(stray) in broker.log.read_text()
    broker.restart()
    assert stray.exists()


def test_a_plain_file_with_the_name_of_a_log_is_ignored(broker: KafkaCompatBroker) -> None:
    broker.stop()
    (broker.log_dir / "z-0").write_text("mine")
    broker.start()
    assert "z-0: it has the name of a partition directory, but is a file" in broker.log.read_text()
    asking = Asking(broker)
    assert asking.create("y")[0] == NONE
    asking.create("z")
    assert asking.produce("z") != NONE
    assert asking.produce("y") == NONE
    assert asking.directory_errors() == [NONE]
    assert (broker.log_dir / "z-0").read_text() == "mine"


@pytest.mark.parametrize(
    "garbage", [b"\x00\xff\x00garbage\n", b"broker.id=1\ncluster.id\n", b"version=zero\n"]
)
def test_unreadable_meta_properties_abort_startup_and_the_line_is_reported(
    broker: KafkaCompatBroker, garbage: bytes
) -> None:
    broker.stop()
    path = broker.log_dir / "meta.properties"
    whole = path.read_bytes()
    path.write_bytes(b"# a comment\n" + garbage)
    with pytest.raises(ProcessFailed):
        broker.start()
    said = broker.log.read_text()
    line = 3 if b"\ncluster.id" in garbage else 2
    assert f"{path}, line {line} " in said
    assert "Traceback" not in said
    path.write_bytes(whole)
    broker.start()


SEGMENTS = {"segment.bytes": "1000", "index.interval.bytes": "200"}
"""A segment holds three batches."""
CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE = ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture
def logs(broker: KafkaCompatBroker) -> list[Path]:
    """The segments of topic `damaged`, with three records each. There is also a topic `bystander`."""
    with Connection(broker.address) as connection:
        create_topic(connection, "bystander")
        create_topic(connection, "damaged", configs=SEGMENTS)
        for _ in range(9):
            assert produce(connection, "damaged", [b"x" * 250]).error == ErrorCode.NONE
    found = sorted((broker.log_dir / "damaged-0").glob("*.log"))
    assert [int(path.stem) for path in found] == [0, 3, 6]
    return found


def _fetched(broker: KafkaCompatBroker, offset: int) -> tuple[ErrorCode, list[int]]:
    with Connection(broker.address, 5) as connection:
        found = fetch(connection, "damaged", offset, max_wait_ms=100)
        return found.error, [record.offset for record in found.records]


def _all_offsets(broker: KafkaCompatBroker, offset: int) -> list[int]:
    found: list[int] = []
    while (part := _fetched(broker, offset))[1]:
        found += part[1]
        offset = part[1][-1] + 1
    assert part[0] == ErrorCode.NONE
    return found


@pytest.mark.parametrize("kept", [0, 100, 500], ids=["empty", "half a batch", "one and a half batches"])
@pytest.mark.parametrize("number", [0, 2], ids=["old", "active"])
def test_fetches_from_a_truncated_log_file_fail_until_it_is_recovered_at_the_next_startup(
    broker: KafkaCompatBroker, logs: list[Path], number: int, kept: int
) -> None:
    bystander = Bystander(broker.address, "bystander")
    os.truncate(logs[number], kept)
    first = 3 * number
    for offset in range(first, first + 3):
        assert _fetched(broker, offset) == (CORRUPT_MESSAGE, [])
    assert _fetched(broker, 3) == (ErrorCode.NONE, [3, 4, 5])
    wait_for(broker, str(logs[number]))
    bystander.await_rounds()
    bystander.close()
    said = broker.log.read_text()
    assert said.count(f"ERROR Could not read damaged-0: {logs[number]} has {kept} bytes") == 1
    assert broker.process.stop() == 0
    broker.start()
    left = [first] if kept == 500 else []
    expected = [*range(first), *left, *range(first + 3, 9)]
    assert _all_offsets(broker, 0) == expected
    with Connection(broker.address) as connection:
        assert produce(connection, "damaged", [b"next"]).error == ErrorCode.NONE


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("number", [0, 1, 2], ids=["oldest", "middle", "active"])
def test_a_missing_log_file_affects_only_its_own_records(
    broker: KafkaCompatBroker, logs: list[Path], number: int, kill: bool
) -> None:
    logs[number].unlink()
    if kill:
        broker.kill()
    else:
        assert broker.process.stop() == 0
    broker.start()
    first = 3 * number
    expected = [offset for offset in range(9) if not first <= offset < first + 3]
    assert _all_offsets(broker, expected[0]) == expected
    if not number:
        assert _fetched(broker, 0) == (OFFSET_OUT_OF_RANGE, [])
    index = logs[number].with_suffix(".index")
    # The active segment has no index until it is closed, which a kill prevents.
    assert f"{index}: its log file is missing" in broker.log.read_text() or (kill and number == 2)
    with Connection(broker.address) as connection:
        assert produce(connection, "damaged", [b"next"]).error == ErrorCode.NONE


def test_fetches_fail_if_the_log_file_was_removed_before_it_was_opened(
    broker: KafkaCompatBroker, logs: list[Path]
) -> None:
    assert broker.process.stop() == 0
    broker.start()
    logs[0].unlink()
    for _ in range(2):
        assert _fetched(broker, 0) == (CORRUPT_MESSAGE, [])
    wait_for(broker, str(logs[0]))
    assert _fetched(broker, 3) == (ErrorCode.NONE, [3, 4, 5])
    with Connection(broker.address) as connection:
        assert produce(connection, "bystander", [b"y"]).error == ErrorCode.NONE
        where = [{"partition_index": 0, "timestamp": 1, "max_num_offsets": 5}]
        for version in (0, 7):
            connection.ask(
                ApiKey.LIST_OFFSETS, version, {"topics": [{"name": "damaged", "partitions": where}]}
            )
    assert broker.log.read_text().count("ERROR Could not read damaged-0") == 1
    assert "went offline" not in broker.log.read_text()


def test_a_damaged_transaction_index_is_rebuilt(broker: KafkaCompatBroker) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "damaged")
    now_ms = time.time_ns() // 1_000_000
    transaction(broker.address, "damaged", [now_ms, now_ms], end="abort")
    latest = {"topics": [{"name": "damaged", "partitions": [{"partition_index": 0, "timestamp": -1}]}]}

    def end_offset() -> int:
        answer = connection.ask(ApiKey.LIST_OFFSETS, 1, latest)
        offset: int = answer["topics"][0]["partitions"][0]["offset"]
        return offset

    with Connection(broker.address) as connection:
        wait_until(lambda: end_offset() == 3, 20, "the transaction marker")
    assert broker.process.stop() == 0
    index = broker.log_dir / "damaged-0" / "00000000000000000000.txnindex"
    intact = index.read_bytes()
    index.write_bytes(intact + b"abc")
    broker.start()
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    fetch = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "session_epoch": -1,
        "isolation_level": 1,
        "topics": [{"topic": "damaged", "partitions": [partition]}],
    }
    with Connection(broker.address) as connection:
        (found,) = connection.ask(ApiKey.FETCH, 11, fetch)["responses"][0]["partitions"]
    assert found["error_code"] == ErrorCode.NONE
    assert [each["first_offset"] for each in found["aborted_transactions"]] == [0]
    assert index.read_bytes() == intact
    assert "Rebuilding the transaction index of" in broker.log.read_text()
