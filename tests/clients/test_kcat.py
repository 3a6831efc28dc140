"""kcat (Debian's package with librdkafka 2.0) prints the same for this broker as for Apache Kafka 3.9.1."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.clients.lane_pool import Brokers

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Kcat:
    def __init__(self, bootstrap: str, run: str) -> None:
        self.bootstrap, self.run = bootstrap, run

    def __call__(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """Run kcat, and return its output with the broker's names replaced."""
        command = ["kcat", "-b", self.bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout} {done.stderr}"
        text = done.stdout if check else f"{done.returncode} {done.stderr}"
        return text.replace(self.bootstrap, "HOST:PORT").replace(self.run, "RUN")


@pytest.fixture(scope="module")
def kcat(brokers: Brokers) -> tuple[Kcat, Kcat]:
    """kcat for this broker, and for Apache Kafka."""
    assert shutil.which("kcat") is not None, "kcat is missing; scripts/test installs it"
    run = secrets.token_hex(4)
    return Kcat(brokers.ours, run), Kcat(brokers.genuine, run)


def _same(pair: tuple[Kcat, Kcat], scenario: Callable[[Kcat], Any]) -> Any:
    with ThreadPoolExecutor(2) as both:
        on_ours, on_genuine = (both.submit(scenario, one) for one in pair)
    expected = on_genuine.result()
    found = on_ours.result()
    assert found == expected
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_produces_and_consumes_as_on_apache_kafka(kcat: tuple[Kcat, Kcat], codec: str) -> None:
    def scenario(run: Kcat) -> str:
        topic = f"kcat-{codec}-{run.run}"
        lines = "".join(f"key{number}:value {number} {'.' * 200}\n" for number in range(30)) + "empty:\n"
        flags = ("-H", "trace=abc", "-H", "trace=def", "-z", codec, "-K:", "-Z")
        run("-P", "-t", topic, "-p", "0", *flags, stdin=lines)
        return run("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p %o %k %s %S %h\n")

    shown = _same(kcat, scenario).splitlines()
    assert len(shown) == 31
    assert shown[0].startswith("0 0 key0 value 0 ..")
    assert shown[-1] == "0 30 empty  -1 trace=abc,trace=def"


def test_kcat_reads_by_position_and_timestamp_as_on_apache_kafka(kcat: tuple[Kcat, Kcat]) -> None:
    def scenario(run: Kcat) -> list[str]:
        topic = f"kcat-positions-{run.run}"
        run("-P", "-t", topic, "-p", "0", stdin="a\nb\nc\nd\n")
        read = ("-C", "-t", topic, "-p", "0", "-e", "-q", "-f", "%o %s\n")
        return [
            run(*read, "-o", "2"),
            run(*read, "-o", "-1"),
            run(*read, "-o", "beginning", "-c", "2"),
            run(*read, "-o", "s@946684800000"),
            run("-Q", "-t", f"{topic}:0:946684800000"),
            run("-Q", "-t", f"{topic}:0:-1", "-t", f"{topic}:0:-2"),
        ]

    middle, last, first_two, since_2000, *_ = _same(kcat, scenario)
    assert (middle, last, first_two) == ("2 c\n3 d\n", "3 d\n", "0 a\n1 b\n")
    assert since_2000 == "0 a\n1 b\n2 c\n3 d\n"


def test_a_balanced_consumer_resumes_at_its_committed_offset(kcat: tuple[Kcat, Kcat]) -> None:
    def scenario(run: Kcat) -> list[str]:
        topic, group = f"kcat-group-{run.run}", f"kcat-group-{run.run}"
        run("-P", "-t", topic, "-p", "0", stdin="a\nb\nc\n")
        read = ("-G", group, "-q", "-e", "-X", "auto.offset.reset=earliest", "-f", "%p %o %s\n", topic)
        first = run(*read)
        run("-P", "-t", topic, "-p", "0", stdin="d\n")
        return [first, run(*read)]

    assert _same(kcat, scenario) == ["0 0 a\n0 1 b\n0 2 c\n", "0 3 d\n"]


def test_kcat_lists_brokers_and_topics_and_reports_errors(kcat: tuple[Kcat, Kcat]) -> None:
    def scenario(run: Kcat) -> list[str]:
        topic = f"kcat-listed-{run.run}"
        run("-P", "-t", topic, "-p", "0", stdin="a\n")
        listed = run("-L", "-t", topic)
        too_large = run(
            "-P",
            "-t",
            topic,
            "-p",
            "0",
            "-X",
            "message.max.bytes=3000000",
            stdin="x" * 2_000_000,
            check=False,
        )
        return [re.sub(r"from broker -?\d+", "from broker", listed), too_large.split(" ")[0]]

    listed, exit_code = _same(kcat, scenario)
    assert "broker 1 at HOST:PORT (controller)" in listed
    assert 'topic "kcat-listed-RUN" with 1 partitions' in listed
    assert "partition 0, leader 1, replicas: 1, isrs: 1" in listed
    assert exit_code == "1"
