"""kafka-storage: its output and exit codes, compared with those of Apache Kafka's command."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey, Voter
from kafka_compat.quorum.checkpoints import Checkpoints
from kafka_compat.quorum.metadata_directory import read_properties
from kafka_compat.quorum.metadata_log import MetadataLog
from kafka_compat.storage.directories.checkpoints import decode_topic_id
from kafka_compat.tools import registry, storage
from tests.storage.log_support import Clock
from tests.support import campaign, java
from tests.support.kafka_jars import NEWEST_VERSION
from tests.tools.wording import without_wording

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
VOTERS = "1@127.0.0.1:19093:JEXY6aqzQY-32P5TStzaFg,2@127.0.0.1:19094:MvDxzVmcRsaTz33bUuRU6A"
SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
controller.listener.names=CONTROLLER
log.dirs={folder}/d1,{folder}/d2
"""
STATIC = "controller.quorum.voters=1@127.0.0.1:19093\n"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:19093\n"
FILES = {
    "static": SETTINGS + STATIC,
    "dynamic": SETTINGS + DYNAMIC,
    "broker": re.sub("process.roles=.*", "process.roles=broker", SETTINGS).replace(
        ",CONTROLLER://127.0.0.1:19093", ""
    )
    + DYNAMIC,
    "other-node": re.sub("node.id=1", "node.id=3", SETTINGS) + DYNAMIC,
    "no-roles": re.sub("process.roles=.*", "", SETTINGS) + STATIC,
    "no-node": re.sub("node.id=1", "", SETTINGS) + STATIC,
}

LINES = f"""
format -t {CLUSTER} -c static
info -c static
random-uuid x
"""
"""Command lines of every run. `clear` empties the directories before the lines after it."""

ALL_LINES = f"""{LINES}
format -t {CLUSTER} -c static -g
clear
format -t {CLUSTER} -c dynamic --initial-controllers {VOTERS}
info -c static
format -t {CLUSTER} -c dynamic
clear
info -c static
format -t {CLUSTER} -c static
format -t {CLUSTER} -c static
format -t other -c static -g
format -t {CLUSTER} -c other-node -N -g
info -c static
clear
format -t {CLUSTER} -c dynamic --standalone
format -t {CLUSTER} -c dynamic --standalone --ignore-formatted
clear
format -t {CLUSTER} -c dynamic -N
clear
format -t {CLUSTER} -c broker
clear
format -t {CLUSTER} -c broker -s
format -t {CLUSTER} -c static -s
format -t {CLUSTER} -c other-node -I {VOTERS}
clear
format -t {CLUSTER} -c dynamic -I nonsense
format -t {CLUSTER} -c dynamic -I 1@a:1
format -t {CLUSTER} -c dynamic -I x@a:1:JEXY6aqzQY-32P5TStzaFg
format -t {CLUSTER} -c dynamic -I 1@a:x:JEXY6aqzQY-32P5TStzaFg
format -t {CLUSTER} -c dynamic -I 1@a:1:x
format -t {CLUSTER} -c dynamic -s -N
format -t {CLUSTER} -c dynamic -s -r nonsense
format -c static
format -t
format
format -t {CLUSTER} -c /no/such/file
info -c no-roles
info -c no-node
info
nonsense
-x

version-mapping
version-mapping -r 3.9
version-mapping --release-version 4.0-IV2
version-mapping -r nonsense
feature-dependencies -f metadata.version=20 -f eligible.leader.replicas.version=1
feature-dependencies -f nonsense=1
feature-dependencies
--help
format --help
info -h
version-mapping -h
feature-dependencies -h
random-uuid -h
"""


class Printed(NamedTuple):
    code: int
    lines: list[str]


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text.format(folder=folder))


def words_of(line: str, folder: Path) -> list[str]:
    return [str(folder / word) if word in FILES else word for word in line.split()]


def clear(folder: Path) -> None:
    for name in ("d1", "d2"):
        shutil.rmtree(folder / name, ignore_errors=True)


def theirs(folder: Path, line: str) -> Printed:
    done = java.run("kafka-storage", *words_of(line, folder), version=NEWEST_VERSION, check=False)
    return Printed(done.returncode, neutral(done.stdout + done.stderr, folder, is_genuine=True))


def ours(folder: Path, line: str, capsys: pytest.CaptureFixture[str]) -> Printed:
    capsys.readouterr()
    code = registry.run("storage", words_of(line, folder))
    printed = capsys.readouterr()
    return Printed(code, neutral(printed.out + printed.err, folder, is_genuine=False))


def neutral(text: str, folder: Path, *, is_genuine: bool) -> list[str]:
    """Return the lines without directories, IDs, sentences and stack traces."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"directory\.id=[\w-]{22}", "directory.id=ID", text)
    text = re.sub(r" with metadata\.version \S+(?=\.\n)", "", text)
    text = re.sub(r"(?m)^(Bootstrap metadata|log4j:|SLF4J|\tat |\t\.\.\. |Caused by: ).*\n", "", text)
    # The first formatted directory, in the order of a hash table.
    text = re.sub(r"(Log directory FOLDER/d)\d", r"\1N", text)
    # The reason why other owners' directories are rejected has this project's words.
    text = re.sub(r"(java\.lang\.RuntimeException): .*", r"\1", text)
    text = re.sub(r"(?m)^.* main ERROR Reconfiguration failed.*\n", "", text)
    # Directories are formatted in the order of a hash table. Long lines of help are descriptions.
    lines = (line.rstrip() for line in without_wording(text, is_genuine).splitlines())
    return sorted(line for line in lines if line and not line.startswith(" " * 10))


@pytest.mark.timeout(1200)
def test_the_command_prints_the_same_as_kafkas(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    hers, mine = tmp_path_factory.mktemp("hers"), tmp_path_factory.mktemp("mine")
    write_files(hers)
    write_files(mine)
    differences = []
    for line in (ALL_LINES if campaign.enabled() else LINES).strip().splitlines():
        if line == "clear":
            clear(hers)
            clear(mine)
        elif line:
            expected, found = theirs(hers, line), ours(mine, line, capsys)
            if found != expected:
                differences.append(f"{line}\nKafka: {expected}\nours:  {found}")
    assert not differences, "\n".join(differences)


def test_kafka_accepts_directories_that_this_command_formatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path)
    assert ours(tmp_path, f"format -t {CLUSTER} -c static", capsys).code == 0
    assert theirs(tmp_path, "info -c static") == ours(tmp_path, "info -c static", capsys)


def test_the_first_voters_are_in_the_snapshot_0_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path)
    assert ours(tmp_path, f"format -t {CLUSTER} -c dynamic -I {VOTERS}", capsys).code == 0
    directory_ids = {1: "JEXY6aqzQY-32P5TStzaFg", 2: "MvDxzVmcRsaTz33bUuRU6A"}
    voters = {
        node_id: Voter(
            ReplicaKey(node_id, decode_topic_id(directory_id)), {"CONTROLLER": ("127.0.0.1", 19092 + node_id)}
        )
        for node_id, directory_id in directory_ids.items()
    }
    assert first_voters(tmp_path) == voters
    properties = read_properties(str(tmp_path / "d1"))
    assert properties is not None and properties.directory_id == voters[1].key.directory_id
    clear(tmp_path)
    assert ours(tmp_path, f"format -t {CLUSTER} -c dynamic --standalone", capsys).code == 0
    properties = read_properties(str(tmp_path / "d1"))
    assert properties is not None and isinstance(properties.directory_id, UUID)
    key = ReplicaKey(1, properties.directory_id)
    assert first_voters(tmp_path) == {1: Voter(key, {"CONTROLLER": ("127.0.0.1", 19093)})}
    found = MetadataLog.open(str(tmp_path / "d1"), Clock()).found()
    assert (found.snapshot, found.voter_sets) == (OffsetAndEpoch(0, 0), ((-1, first_voters(tmp_path)),))


def first_voters(folder: Path) -> object:
    return Checkpoints(str(folder / "d1/__cluster_metadata-0"), lambda: 0).voters(OffsetAndEpoch(0, 0))


def test_users_of_add_scram_are_refused_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path)
    found = ours(tmp_path, f"format -t {CLUSTER} -c static --add-scram SCRAM-SHA-256=[name=a]", capsys)
    assert found.code == 1
    assert "kafka.compat.scram.credentials.file" in found.lines[0]


@pytest.mark.parametrize("cluster_id", ["", " ", " a", "a\nnode.id=7", "a\\b"])
def test_an_id_that_cannot_be_stored_is_refused_before_anything_is_written(
    tmp_path: Path, cluster_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's command writes an empty ID."""
    write_files(tmp_path)
    assert storage.run(["format", "-t", cluster_id, "-c", str(tmp_path / "static")]) == 1
    assert f"--cluster-id {cluster_id!r} is not a cluster ID" in capsys.readouterr().err
    assert not (tmp_path / "d1").exists()


def test_a_damaged_meta_properties_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path)
    (tmp_path / "d1").mkdir()
    (tmp_path / "d1/meta.properties").write_text("no property\n")
    found = ours(tmp_path, "info -c static", capsys)
    assert found.code == 1
    assert any("Error loading FOLDER/d1/meta.properties" in line for line in found.lines)
