"""Topic deletion, with kills during the deletion, and re-creation of topics under the same name."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME
from kafka_compat.errors import ErrorCode
from kafka_compat.storage.directories import checkpoints
from tests.conformance.wire import Closed, Connection
from tests.restart.client import (
    commit_offset,
    committed_offset,
    create_topic,
    delete_topic,
    produce,
    topic_of,
    values_of,
)
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, StartBroker


def _folders(log_dir: Path, topic: str) -> list[str]:
    """Return the topic's directories that are in use."""
    return sorted(path.name for path in log_dir.glob(f"{topic}-*") if not path.name.endswith("-delete"))


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_recreated_topic_is_empty_and_has_a_new_id(broker: KafkaCompatBroker, kill: bool) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t", 2)
        produce(connection, "t", [b"old"])
        commit_offset(connection, "readers", "t", 1)
        old = topic_of(connection, "t")
        assert delete_topic(connection, "t") == ErrorCode.NONE
    broker.restart(kill=kill)
    with Connection(broker.address) as connection:
        assert topic_of(connection, "t") is None
        assert committed_offset(connection, "readers", "t") == (-1, "")
        assert produce(connection, "t", [b"x"]).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create_topic(connection, "t", 2)
        new = topic_of(connection, "t")
        assert old is not None and new is not None
        assert new["topic_id"] != old["topic_id"]
        assert values_of(connection, "t") == []
        assert produce(connection, "t", [b"new"]) == (ErrorCode.NONE, 0)
    broker.restart(kill=kill)
    with Connection(broker.address) as connection:
        assert topic_of(connection, "t") is not None
        assert values_of(connection, "t") == [b"new"]


def test_a_pending_deletion_is_completed_at_startup(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"log.segment.delete.delay.ms": "0"})
    with Connection(broker.address) as connection:
        for topic in ("doomed", "kept"):
            create_topic(connection, topic, 3)
            produce(connection, topic, [b"x"])
    broker.kill()
    _note_deletion(broker.log_dir / JOURNAL_NAME, "doomed")
    broker.start()
    with Connection(broker.address) as connection:
        assert topic_of(connection, "doomed") is None
        assert values_of(connection, "kept") == [b"x"]
    assert _folders(broker.log_dir, "doomed") == []
    wait_until(lambda: not list(broker.log_dir.glob("doomed-*")), 10, "removal of the files")


def _note_deletion(journal: Path, topic: str) -> None:
    """Write the journal of a broker that died between recording a deletion and deleting the files."""

    async def note() -> None:
        tree = EmbeddedMetadataStore(str(journal))
        await tree.connect().put(znodes.delete_topic_path(topic), None)
        await tree.close()

    asyncio.run(note())


@pytest.mark.timeout(600)
def test_each_topic_is_either_complete_or_deleted_after_a_kill(start_broker: StartBroker) -> None:
    broker = start_broker()
    chance = random.Random(3)
    for number in range(campaign.rounds(5, 100)):
        names = [f"topic-{number}-{index}" for index in range(6)]
        said = _make_and_delete_until_killed(broker, names, chance.uniform(0.01, 0.15))
        broker.start()
        with Connection(broker.address) as connection:
            for name in names:
                topic = topic_of(connection, name)
                assert said.get(name) in (topic is not None, None), name
                if topic is None:
                    assert _folders(broker.log_dir, name) == []
                else:
                    assert _folders(broker.log_dir, name) == [f"{name}-{index}" for index in range(4)]
                    assert produce(connection, name, [b"x"], partition=3) == (ErrorCode.NONE, 0)
                    assert delete_topic(connection, name) == ErrorCode.NONE


def _make_and_delete_until_killed(
    broker: KafkaCompatBroker, names: list[str], after_s: float
) -> dict[str, bool | None]:
    """Return whether each topic must exist according to the last response, or None if the last request got no
    response.
    """
    said: dict[str, bool | None] = {}
    killer = threading.Timer(after_s, broker.kill)
    killer.start()
    try:
        with Connection(broker.address) as connection:
            for name in names:
                said[name] = None
                create_topic(connection, name, 4)
                said[name] = True
            for name in names[::2]:
                said[name] = None
                assert delete_topic(connection, name) == ErrorCode.NONE
                said[name] = False
    except (Closed, OSError):
        pass
    killer.join()
    return said


def test_a_directory_of_an_earlier_topic_with_the_same_name_is_set_aside(broker: KafkaCompatBroker) -> None:
    """This state results if a topic is deleted and created again while one disk is missing."""
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        produce(connection, "t", [b"of another life"])
    assert broker.process.stop() == 0
    metadata = broker.log_dir / "t-0" / checkpoints.PARTITION_METADATA
    # Replace the file with a new one, like Kafka does.
    metadata.unlink()
    metadata.write_bytes(checkpoints.encode_partition_metadata(uuid4()))
    broker.start()
    with Connection(broker.address) as connection:
        assert values_of(connection, "t") == []
        assert produce(connection, "t", [b"new"]) == (ErrorCode.NONE, 0)
    (stray,) = broker.log_dir.glob("t-0.*-stray")
    assert b"of another life" in (stray / f"{0:020}.log").read_bytes()
    broker.restart()
    with Connection(broker.address) as connection:
        assert values_of(connection, "t") == [b"new"]
