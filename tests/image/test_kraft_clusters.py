"""Published compose files in KRaft mode, and what Testcontainers starts, in containers of this image: topics
are replicated, and no acknowledged record is lost when a container is killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.compose.docker import docker
from tests.compose.kraft_cluster import KraftCluster, lose_a_container
from tests.compose.kraft_file import ComposeFile
from tests.compose.kraft_files import CLUSTERS
from tests.support import campaign

SAMPLE = ("apache-combined-plaintext", "confluent-isolated-ssl", "bitnami-one-voter-more-brokers")
CHOSEN = [each for each in CLUSTERS if campaign.enabled() or each.name in SAMPLE]
WAIT_COMMANDS = (
    "kafka-metadata-shell --snapshot /var/lib/kafka/data/__cluster_metadata-0/0.log ls /brokers | wc -l",
    "/opt/kafka/bin/kafka-log-dirs.sh --bootstrap-server localhost:9093 --describe "
    "| grep -o '\"broker\"' | wc -l",
)
"""How Testcontainers' examples for Java count the brokers of a cluster."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("file", CHOSEN, ids=lambda file: file.name)
def test_no_acknowledged_record_is_lost_when_a_container_is_killed(
    image: str, tmp_path: Path, file: ComposeFile
) -> None:
    cluster = KraftCluster(file, image, tmp_path / "files")
    try:
        print(f"{file.name}: {lose_a_container(cluster)}", file=sys.stderr)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{cluster.logs()}") from error
    finally:
        cluster.close()


def test_the_examples_of_testcontainers_see_all_brokers(image: str, tmp_path: Path) -> None:
    file = next(each for each in CLUSTERS if each.name == "testcontainers-java-confluent")
    cluster = KraftCluster(file, image, tmp_path / "files")
    try:
        cluster.up()
        cluster.connect()
        for command in WAIT_COMMANDS:
            assert docker("exec", cluster.id("broker-0"), "sh", "-c", command).strip() == "3"
    finally:
        cluster.close()
