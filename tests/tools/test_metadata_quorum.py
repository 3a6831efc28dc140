"""kafka-metadata-quorum: its output, and that of Apache Kafka's command on the same quorum (in campaigns)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from kafka_compat.tools import registry
from kafka_compat.tools.metadata_quorum import replication_lines, status_lines
from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka

DIRECTORY = UUID("7b16dd05-8ee5-4d2f-a4d8-9a5a9a0c7f11")
ANSWER = DescribeQuorumResponse(
    topics=[
        ResponseTopicData(
            topic_name="__cluster_metadata",
            partitions=[
                ResponsePartitionData(
                    leader_id=2,
                    leader_epoch=7,
                    high_watermark=90,
                    current_voters=[
                        ReplicaState(
                            replica_id=1,
                            log_end_offset=90,
                            last_fetch_timestamp=1000,
                            last_caught_up_timestamp=900,
                        ),
                        ReplicaState(
                            replica_id=2,
                            replica_directory_id=DIRECTORY,
                            log_end_offset=100,
                            last_fetch_timestamp=1500,
                            last_caught_up_timestamp=1500,
                        ),
                    ],
                    observers=[ReplicaState(replica_id=4, log_end_offset=95)],
                )
            ],
        )
    ],
    nodes=[Node(node_id=2, listeners=[Listener(name="CONTROLLER", host="::1", port=9093)])],
)


def test_the_status_names_the_leader_the_largest_lag_and_the_voters() -> None:
    assert list(status_lines("MkU3OEVBNTcwNTJENDM2Qg", ANSWER)) == [
        "ClusterId:              MkU3OEVBNTcwNTJENDM2Qg",
        "LeaderId:               2",
        "LeaderEpoch:            7",
        "HighWatermark:          90",
        "MaxFollowerLag:         10",
        "MaxFollowerLagTimeMs:   600",
        'CurrentVoters:          [{"id": 1}, {"id": 2, "directoryId": "exbdBY7lTS-k2Jpamgx_EQ", '
        '"endpoints": ["CONTROLLER://[::1]:9093"]}]',
        'CurrentObservers:       [{"id": 4}]',
    ]


def test_the_replication_lists_the_leader_first_and_the_observers_last() -> None:
    _, *rows = (line.split("\t") for line in replication_lines(ANSWER, relative=False))
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["2", "exbdBY7lTS-k2Jpamgx_EQ", "100", "0", "1500", "1500", "Leader", ""],
        ["1", "AAAAAAAAAAAAAAAAAAAAAA", "90", "10", "1000", "900", "Follower", ""],
        ["4", "AAAAAAAAAAAAAAAAAAAAAA", "95", "5", "-1", "-1", "Observer", ""],
    ]


CONTRADICTIONS = (
    "",
    "--bootstrap-server 127.0.0.1:1",
    "describe --status",
    "--bootstrap-server 127.0.0.1:1 describe",
    "--bootstrap-server 127.0.0.1:1 describe --status --replication",
    "--bootstrap-server 127.0.0.1:1 describe --status --human-readable",
    "--bootstrap-server 127.0.0.1:1 --bootstrap-controller 127.0.0.1:1 describe --status",
    "--bootstrap-server 127.0.0.1:1 start",
    "--bootstrap-server 127.0.0.1:1 remove-controller --controller-id 1",
    "--bootstrap-server 127.0.0.1:1 remove-controller -i x -d AAAAAAAAAAAAAAAAAAAAAA",
    "--bootstrap-server 127.0.0.1:1 remove-controller -i -1 -d AAAAAAAAAAAAAAAAAAAAAA",
    "--bootstrap-server 127.0.0.1:1 remove-controller -i 1 -d short",
    "--bootstrap-server 127.0.0.1:1 add-controller",
    "--bootstrap-server 127.0.0.1:1 --command-config /no/such/file add-controller",
)


@pytest.mark.parametrize("line", CONTRADICTIONS)
def test_contradictory_flags_are_rejected_without_a_connection(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert registry.run("metadata-quorum", line.split()) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


@pytest.mark.parametrize("page", ["", "describe", "add-controller", "remove-controller"])
def test_each_command_has_help(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert registry.run("metadata-quorum", [*page.split(), "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: kafka-metadata-quorum ")


SETTINGS = {
    "process.roles": "controller",
    "node.id": "3",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
}


def controller_file(folder: Path, **changes: str | None) -> Path:
    """Write the settings of a controller with a formatted directory, and return the file."""
    found = {
        **SETTINGS,
        "log.dirs": str(folder),
        **{name.replace("_", "."): to for name, to in changes.items()},
    }
    (folder / "meta.properties").write_text("version=1\ndirectory.id=exbdBY7lTS-k2JpamgwfEQ\n")
    file = folder / "controller.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in found.items() if value is not None))
    return file


def test_a_dry_run_prints_the_controller_that_would_be_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = controller_file(tmp_path)
    line = f"--bootstrap-server 127.0.0.1:1 --command-config {file} add-controller --dry-run"
    assert registry.run("metadata-quorum", line.split()) == 0
    assert capsys.readouterr().out == (
        "DRY RUN of adding controller 3 with directory id exbdBY7lTS-k2JpamgwfEQ and endpoints: "
        "CONTROLLER://localhost:9093\n"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"node_id": None}, "node.id is missing"),
        ({"node_id": "-1"}, "node.id=-1 is negative"),
        ({"process_roles": "broker"}, "process.roles does not include controller"),
        ({"log_dirs": None}, "metadata.log.dir and log.dirs are missing"),
        ({"log_dirs": "/no/such"}, "Cannot read /no/such/meta.properties"),
        ({"controller_listener_names": None}, "controller.listener.names is missing"),
        ({"controller_listener_names": "OTHER"}, "have no listener OTHER"),
    ],
)
def test_a_file_of_no_controller_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str | None], why: str
) -> None:
    file = controller_file(tmp_path, **changes)
    line = f"--bootstrap-server 127.0.0.1:1 --command-config {file} add-controller"
    assert registry.run("metadata-quorum", line.split()) == 1
    assert why in capsys.readouterr().err


class DynamicKafka(GenuineKafka):
    """Apache Kafka with one controller whose voters are in the log (KIP-853)."""

    format_options = ("--standalone",)

    def properties(self) -> dict[str, str]:
        found = super().properties()
        found["controller.quorum.bootstrap.servers"] = found.pop("controller.quorum.voters").partition("@")[2]
        return found


LINES = """
{where} describe --status
{where} describe --replication
{where} describe --replication --human-readable
{where} remove-controller -i 9 -d {directory}
{where} remove-controller -i 9 -d {directory} --dry-run
{where} remove-controller -i 1 -d {directory}
{where} remove-controller -i 9 -d {directory} --unregister
{where} remove-controller -i 9 -d {directory} --unregister --dry-run
{where} --command-config {file} add-controller
{where} --command-config {file} add-controller --dry-run
"""
_CHANGING = re.compile(r"(?<=HighWatermark:          )\d+|\b\d+ ms ago|\b\d{13}\b|(?<=\t)\d+ +(?=\t0 )")


@pytest.mark.skipif(not campaign.enabled(), reason="starts Apache Kafka: --campaign")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [GenuineKafka, DynamicKafka])
def test_the_command_prints_the_same_output_as_kafkas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: type[GenuineKafka]
) -> None:
    server = kind(tmp_path / "kafka", version=NEWEST_VERSION, mode="kraft")
    server.start(120)
    tools = JavaTools(NEWEST_VERSION)
    try:
        properties = server.properties()
        controller = re.search(r"CONTROLLER://([\d.:]+)", properties["listeners"])
        assert controller is not None
        meta = (server.log_dir / "meta.properties").read_text()
        directory = re.search(r"directory\.id=(.*)", meta)
        assert directory is not None
        places = (f"--bootstrap-server {server.address}", f"--bootstrap-controller {controller[1]}")
        for where in places:
            for line in LINES.strip().splitlines():
                words = line.format(where=where, directory=directory[1], file=server.properties_file).split()
                expected = tools.run("org.apache.kafka.tools.MetadataQuorumCommand", *words)
                capsys.readouterr()
                code = registry.run("metadata-quorum", words)
                printed = capsys.readouterr()
                assert code == expected.code, (line, printed.err, expected.err)
                assert _neutral(printed.out) == _neutral(expected.out), line
                if "Exception" in expected.err:
                    # The first line of Kafka's own classes: the kind and the message.
                    assert printed.err.splitlines()[0] == _exception(expected.err), line
        found = json.loads(_described(capsys, places[0]))
        assert (found["leader_id"], len(found["voters"])) == (1, 1)
    finally:
        tools.close()
        server.stop()


def _neutral(text: str) -> str:
    """Replace values that change, and the width of their columns."""
    return re.sub(" +", " ", _CHANGING.sub("#", text))


def _exception(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("org.apache.kafka.common.errors."))


def _described(capsys: pytest.CaptureFixture[str], where: str) -> str:
    assert registry.run("metadata-quorum", [*where.split(), "describe", "--status", "--json"]) == 0
    return capsys.readouterr().out
