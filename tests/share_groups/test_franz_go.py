"""franz-go's own tests of share groups pass on our broker and on Apache Kafka 4.4. They are compiled from the
sources of the version in tests/clients/go/go.mod.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.support import campaign, kafka_jars
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

MODULE = Path(__file__).resolve().parents[1] / "clients" / "go"
TESTS = ("TestShareGroup", "TestShareGroupETL", "TestShareGroupAckOnClose", "TestShareGroupOffsetsAdmin")
RECORDS = 50_000
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="takes minutes: with --campaign")


@functools.cache
def _compiled() -> Path:
    """Return the program with franz-go's tests."""
    digest = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:16]
    program = kafka_jars.cache_directory() / "go-programs" / f"kgo-tests-{digest}"
    if program.is_file():
        return program
    if shutil.which("go") is None:
        pytest.skip("Go is not installed: install Go 1.26 (https://go.dev/dl)")
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_name(f"{program.name}.{os.getpid()}")
    command = ["go", "test", "-mod=readonly", "-c", "-o", str(partial), "github.com/twmb/franz-go/pkg/kgo"]
    done = subprocess.run(
        command, cwd=MODULE, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    partial.rename(program)
    return program


def _await_coordinator(address: str) -> None:
    """Wait until groups have a coordinator: franz-go's test of offsets does not wait for it."""
    find = {"key_type": 0, "coordinator_keys": ["any"]}

    def is_available() -> bool:
        with Connection(address, 30) as connection:
            found = connection.ask(ApiKey.FIND_COORDINATOR, 4, find)["coordinators"][0]
            groups = connection.ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["any"]})["groups"]
        return not found["error_code"] and not groups[0]["error_code"]

    wait_until(is_available, 60, "the coordinator of groups", 0.1)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["ours", "genuine"])
def test_share_group_tests_of_franz_go_pass(kind: str, tmp_path: Path) -> None:
    server: Server = (
        KafkaCompatBroker(tmp_path, SETTINGS)
        if kind == "ours"
        else GenuineKafka(tmp_path, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    program = _compiled()
    server.start(180)
    try:
        _await_coordinator(server.address)
        environment = {
            **os.environ,
            "KGO_SEEDS": server.address,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": str(RECORDS),
        }
        names = f"^({'|'.join(TESTS)})$"
        done = subprocess.run(
            [str(program), "-test.run", names, "-test.v", "-test.timeout", "45m"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
    finally:
        server.stop()
    (tmp_path / "franz-go.log").write_text(done.stdout + done.stderr)
    failed = re.findall(r"^--- (?!PASS)\w+: (\w+)", done.stdout, re.MULTILINE)
    passed = re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE)
    assert not failed, done.stdout[-5000:]
    assert sorted(passed) == sorted(TESTS), done.stdout[-5000:]
