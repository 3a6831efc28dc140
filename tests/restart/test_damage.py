"""What an administrator, a bad copy or a bad disk does to the small files of a data folder: nothing is
dropped in silence, and nobody starts on what may be another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disks.test_refusals import NONE, Asking
from tests.restart.client import create_topic
from tests.support.process import ProcessFailed
from tests.support.servers import KafkaCompatBroker

JOURNAL = "kafka-compat-metadata.journal"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaCompatBroker]:
    broker = KafkaCompatBroker(tmp_path / "broker", {"auto.create.topics.enable": "false"})
    broker.start()
    yield broker
    broker.stop()


def test_a_topic_that_the_journal_lost_is_adopted_from_its_folder(broker: KafkaCompatBroker) -> None:
    asking = Asking(broker)
    assert asking.create("first")[0] == NONE
    assert asking.create("lost")[0] == NONE
    assert asking.produce("lost") == NONE
    asking.connection.close()
    broker.kill()
    journal = broker.log_dir / JOURNAL
    whole = journal.read_bytes()
    # In the midst of the change that created the topic.
    journal.write_bytes(whole[: whole.index(b"\n", whole.index(b"lost")) - 10])
    broker.start()
    asking = Asking(broker)
    assert asking.end_offset("lost") == 10
    assert asking.produce("lost") == NONE
    log = broker.log.read_text()
    assert "are not whole and are cut off" in log
    assert "/brokers/topics/lost" in log
    assert "adopted topic lost with 1 partitions" in log


def test_a_topic_whose_states_the_journal_lost_is_led(broker: KafkaCompatBroker) -> None:
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
    assert "adopted" not in broker.log.read_text()


def test_a_folder_of_no_topic_is_set_aside_with_its_records(broker: KafkaCompatBroker) -> None:
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


def test_a_plain_file_with_the_name_of_a_log_is_passed_over(broker: KafkaCompatBroker) -> None:
    broker.stop()
    (broker.log_dir / "z-0").write_text("mine")
    broker.start()
    assert "z-0: it has the name of a log's folder, and is a file" in broker.log.read_text()
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
def test_unreadable_meta_properties_are_refused_with_their_line(
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
