"""The README's commands and snippets, which must work when pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.process import Process
from tests.support.servers import PROJECT, KafkaCompatBroker

_README = (PROJECT / "README.md").read_text()
_SNIPPETS = re.findall(r"```python\n(.*?)```", _README, re.DOTALL)


def test_the_readme_starts_with_the_commands_to_run_and_test() -> None:
    first_block = re.search(r"```sh\n(.*?)```", _README, re.DOTALL)
    assert first_block is not None
    commands = [line.split("#")[0].strip() for line in first_block.group(1).splitlines()]
    assert commands == ["scripts/run", "scripts/test"]
    assert all(os.access(PROJECT / command, os.X_OK) for command in commands)


def test_local_links_have_targets() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", _README) if "://" not in link]
    assert [link for link in links if not (PROJECT / link).exists()] == []


def test_the_kafka_python_snippet_runs_as_pasted(broker: KafkaCompatBroker, tmp_path: Path) -> None:
    printed = _run_snippet("from kafka import", broker, tmp_path)
    assert printed.splitlines() == [f"0 {number} hello {number}" for number in range(10)]


@pytest.mark.timeout(600)
def test_the_pyspark_snippet_reads_all_records(broker: KafkaCompatBroker, tmp_path: Path) -> None:
    printed = _run_snippet("from pyspark", broker, tmp_path)
    assert "1000 records" in printed
    assert "only showing top 5 rows" in printed


def test_scripts_run_starts_a_broker_that_stops_cleanly(tmp_path: Path) -> None:
    port = free_port()
    settings = [f"listeners=PLAINTEXT://127.0.0.1:{port}", f"log.dirs={tmp_path / 'logs'}"]
    overrides = [part for setting in settings for part in ("--override", setting)]
    serving = Process(
        [PROJECT / "scripts" / "run", *overrides], tmp_path / "run.log", rf"(?i)ready.*:{port}\b"
    )
    serving.start(timeout_s=120)
    assert serving.stop(timeout_s=5) == 0
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def _run_snippet(opening: str, broker: KafkaCompatBroker, directory: Path) -> str:
    """Run the snippet that begins with `opening`, with only the address changed, and return its output."""
    [snippet] = [text for text in _SNIPPETS if text.startswith(opening)]
    assert snippet.count("127.0.0.1:9092") == 1
    code = snippet.replace("127.0.0.1:9092", broker.address)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=directory,
        timeout=540,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
