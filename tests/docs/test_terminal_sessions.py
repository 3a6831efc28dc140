"""The terminal sessions in the pages, run from the first command to the last."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kafka_compat.pipelines.environment import copy_jars, spark_release
from tests.docs.markdown import blocks
from tests.docs.session import Session, Step, matches, steps
from tests.docs.write import DOCS
from tests.support import campaign, java, kafka_jars
from tests.support.ports import adjacent_ports, free_port
from tests.support.servers import ZooKeeper


def play(page: str, folder: Path, instead: Mapping[str, str] | None = None, **files: str) -> None:
    """Run all commands of the page, with its ports replaced by free ones. `files` names files to create from
    the page's code blocks: python="first.py" writes its first Python program to that file.
    """
    text = (DOCS / page).read_text()
    port = adjacent_ports(3)
    moved = {str(9092 + number): str(port + number) for number in range(3)}
    moved["kafka-secure --user"] = f"kafka-secure --port {port + 1} --user"
    session = Session(folder, {**(instead or {}), **moved}, port)
    for language, name in files.items():
        content = next(block.text for block in blocks(text) if block.language == language)
        (folder / name).write_text(session.replaced(content))
    assert session.run(text) >= 5


@pytest.mark.timeout(300)
def test_the_commands_on_the_start_page_print_the_documented_output(tmp_path: Path) -> None:
    play("start.md", tmp_path, python="first.py")


@pytest.mark.timeout(300)
def test_the_commands_on_the_clusters_page_print_the_documented_output(tmp_path: Path) -> None:
    play("clusters.md", tmp_path)


@pytest.mark.timeout(300)
def test_the_commands_on_the_operate_page_print_the_documented_output(tmp_path: Path) -> None:
    instead = {"/var/lib/kafka": f"{tmp_path}/data", "9308": str(free_port())}
    play("operate.md", tmp_path, instead, properties="server.properties")


@pytest.mark.skipif(not campaign.enabled(), reason="normal runs use tests/pipelines")
@pytest.mark.timeout(600)
def test_the_commands_on_the_spark_page_print_the_documented_output(tmp_path: Path) -> None:
    """The connector's jars come from the cache instead of Maven Central."""
    release = spark_release()
    folder = kafka_jars.cache_directory() / f"spark-{release.version}"
    copy_jars(folder, release)
    instead = {
        "pipeline archive": f"pipeline archive --jars {folder}",
        '"spark.jars.packages", connector': f'"spark.jars", "{",".join(map(str, folder.glob("*.jar")))}"',
    }
    play("spark.md", tmp_path, instead, python="read.py")


@pytest.mark.timeout(300)
def test_the_commands_on_the_security_page_print_the_documented_output(tmp_path: Path) -> None:
    play("security.md", tmp_path)


@pytest.mark.timeout(300)
def test_the_commands_on_the_share_groups_page_print_the_documented_output(tmp_path: Path) -> None:
    play("share-groups.md", tmp_path)


@pytest.mark.timeout(300)
def test_the_commands_on_the_troubleshoot_page_print_the_documented_output(tmp_path: Path) -> None:
    play("troubleshoot.md", tmp_path)


@pytest.mark.timeout(400)
def test_the_commands_on_the_migrate_page_print_the_documented_output(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Kafka's start script is replaced by one that only starts the main class."""
    script = tmp_path / "kafka" / "bin" / "kafka-server-start.sh"
    script.parent.mkdir(parents=True)
    command = shlex.join(java.command("kafka.Kafka", heap="512M"))
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.chmod(0o755)
    instead = {
        "127.0.0.1:2181": zookeeper.address,
        "2181": str(zookeeper.port),
        "/var/lib/kafka": f"{tmp_path}/data",
    }
    play("migrate.md", tmp_path, instead, python="to_zookeeper.py", properties="server.properties")


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


def test_a_page_is_split_into_its_steps() -> None:
    page = "# A\n\n```console\n$ a \\\n    b\n1\n…\n$ ^C\n```\n\n```sh\n$ no\n```\n"
    assert list(steps(page)) == [Step("a \\\n    b", "1\n…"), Step("^C", "")]


def test_an_ellipsis_matches_any_output() -> None:
    assert matches("a\n…\nd …", "a\nb\nc\nd e f\n")
    assert matches("…", "")
    assert not matches("a", "a\nb\n")
    assert not matches("", "a\n")


def test_columns_may_have_another_width() -> None:
    assert matches("ok     a:9092     name", "ok     a:9092   name\n")
    assert not matches("ok     name", "ok name of\n")
    assert not matches("ok name", "ok  name\n")
