"""Kafka's command line tools of versions 3.9.1 and 4.1.0 print the same for this broker as for Apache Kafka
3.9.1.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.clients.lane_pool import Brokers
from tests.clients.programs import java_command
from tests.support import java
from tests.support.process import wait_until

VERSIONS = ("3.9.1", "4.1.0")


class Printed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Tools:
    """Kafka's tools of one version, run one after another in one JVM against one broker."""

    def __init__(self, version: str, bootstrap: str, run: str) -> None:
        self.version, self.bootstrap, self.run = version, bootstrap, run
        self._child = subprocess.Popen(
            java_command("Tools", version, ("common/Json.java", "tools")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, tool: str, *arguments: str, stdin: str = "", expected_code: int | None = 0) -> Printed:
        """Run a tool by its script name, and return its output with the broker's names replaced."""
        stdin_pipe, stdout_pipe = self._child.stdin, self._child.stdout
        assert stdin_pipe is not None and stdout_pipe is not None
        request = {
            "class": java.tool_class(tool, self.version),
            "args": ["--bootstrap-server", self.bootstrap, *arguments],
            "stdin": stdin,
        }
        if tool.startswith("kafka-producer-perf"):
            request["args"] = list(arguments)
        stdin_pipe.write(json.dumps(request) + "\n")
        stdin_pipe.flush()
        answer: dict[str, Any] = json.loads(stdout_pipe.readline())
        shown = Printed(answer["code"], self._neutral(answer["out"]), self._neutral(answer["err"]))
        if expected_code is not None:
            assert shown.code == expected_code, f"{tool} {arguments}: {shown}"
        return shown

    def _neutral(self, text: str) -> str:
        host, port = self.bootstrap.split(":")
        text = text.replace(self.bootstrap, "HOST:PORT").replace(f"{host}:{port}", "HOST:PORT")
        text = re.sub(rf"\b{port}\b", "PORT", text).replace(self.run, "RUN")
        text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
        text = re.sub(r"\tElr: [^\t\n]*\tLastKnownElr: [^\t\n]*", "", text)
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", text)

    def close(self) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(10)
        self._child.stdout.close()


@pytest.fixture(scope="module", params=VERSIONS)
def tools(request: pytest.FixtureRequest, brokers: Brokers) -> Iterator[tuple[Tools, Tools]]:
    """The tools for this broker, and for Apache Kafka."""
    run = secrets.token_hex(4)
    pair = Tools(request.param, brokers.ours, run), Tools(request.param, brokers.genuine, run)
    yield pair
    for one in pair:
        one.close()


def _same(pair: tuple[Tools, Tools], scenario: Callable[[Tools], Any]) -> Any:
    """Run the scenario on both brokers concurrently, and check that the results are equal."""
    with ThreadPoolExecutor(2) as both:
        on_ours, on_genuine = (both.submit(scenario, tools) for tools in pair)
    expected = on_genuine.result()
    found = on_ours.result()
    assert found == expected
    return found


def test_kafka_topics_creates_alters_and_deletes_as_on_apache_kafka(tools: tuple[Tools, Tools]) -> None:
    def scenario(run: Tools) -> list[Any]:
        topic = f"topics-{run.run}"
        named = ("--topic", topic)
        created = run(
            "kafka-topics", "--create", *named, "--partitions", "2", "--config", "retention.ms=600000"
        )
        assert created.out == "Created topic topics-RUN.\n"
        again = run("kafka-topics", "--create", *named, expected_code=1)
        assert "TopicExistsException" in again.out + again.err
        quiet = run("kafka-topics", "--create", *named, "--if-not-exists")
        assert "topics-RUN" in run("kafka-topics", "--list").lines
        first = run("kafka-topics", "--describe", *named).lines
        run("kafka-topics", "--alter", *named, "--partitions", "3")
        second = run("kafka-topics", "--describe", *named).lines
        assert len(first) == 3 and len(second) == 4
        absent = run("kafka-topics", "--describe", "--topic", f"absent-{run.run}", expected_code=1)
        bad = run(
            "kafka-topics",
            "--create",
            "--topic",
            f"wide-{run.run}",
            "--replication-factor",
            "3",
            expected_code=1,
        )
        filters = [
            run("kafka-topics", "--describe", *named, flag).out
            for flag in (
                "--under-replicated-partitions",
                "--unavailable-partitions",
                "--topics-with-overrides",
            )
        ]
        run("kafka-topics", "--delete", *named)
        wait_until(lambda: topic not in run("kafka-topics", "--list").out, 10, "deletion of the topic")
        return [quiet, first, second, absent.out, _exceptions(bad), filters]

    _same(tools, scenario)


def _exceptions(printed: Printed) -> set[str]:
    return set(re.findall(r"\w+Exception", printed.out + printed.err)) - {"ExecutionException"}


def test_console_tools_produce_and_consume_as_on_apache_kafka(tools: tuple[Tools, Tools]) -> None:
    def scenario(run: Tools) -> list[str]:
        topic = f"console-{run.run}"
        run("kafka-topics", "--create", "--topic", topic)
        text = "".join(f"key{number}\tvalue {number}\n" for number in range(20))
        with_key = ("--property", "parse.key=true", "--compression-codec", "gzip")
        run("kafka-console-producer", "--topic", topic, *with_key, stdin=text)
        run("kafka-console-producer", "--topic", topic, "--request-required-acks", "0", stdin="last\n")
        show = [f"print.{what}=true" for what in ("key", "offset", "partition", "headers")]
        wanted = [word for setting in show for word in ("--property", setting)]
        read = run(
            "kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "21", *wanted
        )
        assert len(read.lines) == 21
        assert read.lines[0] == "Partition:0\tOffset:0\tNO_HEADERS\tkey0\tvalue 0"
        at = run(
            "kafka-console-consumer",
            "--topic",
            topic,
            "--partition",
            "0",
            "--offset",
            "19",
            "--max-messages",
            "2",
        )
        return [*read.lines, *at.lines]

    _same(tools, scenario)


def test_kafka_consumer_groups_prints_the_same_output_as_on_apache_kafka(tools: tuple[Tools, Tools]) -> None:
    def scenario(run: Tools) -> list[Any]:
        topic, group = f"grouped-{run.run}", f"group-{run.run}"
        run("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
        keyed = "".join(f"key{number}\t{number}\n" for number in range(10))
        run("kafka-console-producer", "--topic", topic, "--property", "parse.key=true", stdin=keyed)
        read = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "10")
        run("kafka-console-consumer", *read, "--timeout-ms", "15000")
        wait_until(lambda: _emptied(run, group), 20, "exit of the console consumer from its group")
        assert group in run("kafka-consumer-groups", "--list").out.replace("RUN", run.run)
        named = ("--group", group)
        described = run("kafka-consumer-groups", "--describe", *named)
        assert "has no active members" in described.err
        lags = sorted(tuple(line.split()) for line in described.lines if line.strip())
        assert sum(int(line[3]) for line in lags if line[2].isdigit()) == 10
        state = run("kafka-consumer-groups", "--describe", *named, "--state").out.split()
        members = run("kafka-consumer-groups", "--describe", *named, "--members", "--verbose")
        reset = ("--reset-offsets", "--topic", topic)
        earlier = run("kafka-consumer-groups", *named, *reset, "--to-earliest", "--execute").out.split()
        shifted = run("kafka-consumer-groups", *named, *reset, "--shift-by", "2", "--dry-run").out.split()
        dated = run(
            "kafka-consumer-groups", *named, *reset, "--to-datetime", "2020-01-01T00:00:00.000", "--execute"
        ).out.split()
        removed = run("kafka-consumer-groups", *named, "--delete-offsets", "--topic", topic).out.split()
        deleted = run("kafka-consumer-groups", "--delete", *named).out
        gone = run(
            "kafka-consumer-groups", "--describe", *named, expected_code=None
        )  # 4.1 reports that the group is dead
        return [
            [part[:1] + part[2:3] for part in lags],
            state,
            members.err.strip(),
            sorted(earlier),
            sorted(shifted),
            sorted(dated),
            sorted(removed),
            deleted,
            gone.code,
        ]

    _same(tools, scenario)


def _emptied(run: Tools, group: str) -> bool:
    return "Empty" in run("kafka-consumer-groups", "--describe", "--group", group, "--state").out


def test_get_offsets_and_delete_records_print_the_same_output_as_on_apache_kafka(
    tools: tuple[Tools, Tools], tmp_path: Path
) -> None:
    file = tmp_path / "delete.json"

    def scenario(run: Tools) -> list[str]:
        topic = f"offsets-{run.run}"
        run("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
        keyed = "a\t1\nb\t2\nc\t3\nd\t4\n"
        run("kafka-console-producer", "--topic", topic, "--sync", "--property", "parse.key=true", stdin=keyed)
        shown = [
            run("kafka-get-offsets", "--topic", topic, "--time", when).out
            for when in ("earliest", "latest", "946684800000")
        ]
        run("kafka-get-offsets", "--topic", topic, "--time", "max-timestamp")
        named = ("--topic-partitions", f"{topic}:0-1", "--exclude-internal-topics")
        shown.append(run("kafka-get-offsets", *named).out)
        place = {"topic": topic, "partition": 0, "offset": -1}
        own_file = file.with_suffix(f".{run.bootstrap.rpartition(':')[2]}")
        own_file.write_text(json.dumps({"version": 1, "partitions": [place]}))
        deleted = run("kafka-delete-records", "--offset-json-file", str(own_file)).out
        after = run("kafka-get-offsets", "--topic", topic, "--time", "earliest").out
        totals = [sum(int(line.rsplit(":", 1)[1]) for line in text.splitlines()) for text in shown]
        assert totals[:2] == [0, 4]
        assert after != shown[0]
        return [*shown, deleted, after]

    _same(tools, scenario)


def test_kafka_configs_alters_topics_as_on_apache_kafka(tools: tuple[Tools, Tools]) -> None:
    def scenario(run: Tools) -> list[Any]:
        topic = f"configured-{run.run}"
        run("kafka-topics", "--create", "--topic", topic)
        entity = ("--entity-type", "topics", "--entity-name", topic)
        changed = run(
            "kafka-configs", "--alter", *entity, "--add-config", "retention.ms=120000,cleanup.policy=compact"
        )
        assert changed.lines[-1] == "Completed updating config for topic configured-RUN."
        described = run("kafka-configs", "--describe", *entity).lines
        assert any("retention.ms=120000" in line for line in described)
        every = run("kafka-configs", "--describe", "--all", *entity).lines
        bad = run(
            "kafka-configs", "--alter", *entity, "--add-config", "retention.ms=soon", expected_code=None
        )
        unknown = run("kafka-configs", "--alter", *entity, "--add-config", "no.such=1", expected_code=None)
        run("kafka-configs", "--alter", *entity, "--delete-config", "cleanup.policy")
        after = run("kafka-configs", "--describe", *entity).lines
        return [described, _without_tiers(every), bad.code, _exceptions(bad), _exceptions(unknown), after]

    _same(tools, scenario)


def test_kafka_configs_lists_the_same_broker_settings_as_on_apache_kafka(tools: tuple[Tools, Tools]) -> None:
    """The output contains every broker setting except those that the tests set for each broker, and the
    settings of consumer and share groups, which are those of Kafka 4.4.
    """

    def scenario(run: Tools) -> list[str]:
        entity = ("--entity-type", "brokers", "--entity-name", "1")
        lines = run("kafka-configs", "--describe", "--all", *entity).lines
        names = [line.split("=")[0] for line in lines if line.startswith("  ")]
        others = ("kafka.compat.", "group.consumer.", "group.share.", "share.", "errors.deadletterqueue.")
        return sorted(name for name in names if not name.strip().startswith(others))

    _same(tools, scenario)


def _without_tiers(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.strip().startswith("remote.")]


def test_perf_tools_count_all_records(tools: tuple[Tools, Tools]) -> None:
    def scenario(run: Tools) -> list[str]:
        topic = f"perf-{run.run}"
        run("kafka-topics", "--create", "--topic", topic)
        properties = ("--producer-props", f"bootstrap.servers={run.bootstrap}", "compression.type=lz4")
        count = ("--num-records", "5000", "--record-size", "100", "--throughput", "-1")
        produced = run("kafka-producer-perf-test", "--topic", topic, *count, *properties).lines
        consumed = run("kafka-consumer-perf-test", "--topic", topic, "--messages", "5000").lines
        header, figures = consumed[-2].split(", "), consumed[-1].split(", ")
        assert produced[-1].startswith("5000 records sent")
        assert dict(zip(header, figures, strict=True))["data.consumed.in.nMsg"] == "5000"
        return [consumed[-2]]

    _same(tools, scenario)


def test_log_dirs_and_api_versions_tools_accept_the_responses(tools: tuple[Tools, Tools]) -> None:
    """The tools must be able to parse the broker's responses."""

    def scenario(run: Tools) -> Any:
        topic = f"dirs-{run.run}"
        run("kafka-topics", "--create", "--topic", topic)
        listed = run("kafka-log-dirs", "--describe", "--topic-list", topic)
        report = json.loads(listed.lines[-1])
        (directory,) = report["brokers"][0]["logDirs"]
        del directory["logDir"]
        versions = run("kafka-broker-api-versions").lines
        assert versions[0].startswith("HOST:PORT (id: 1 rack: null")
        assert any(line.strip().startswith("Produce(0): 0 to") for line in versions)
        return report

    _same(tools, scenario)
