"""Kafka's delegation token tool, and Java clients that log in with its tokens, work on our broker as on
Apache Kafka 3.9.1."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import pytest

from tests.security.logins import Refused, log_in_by_token
from tests.security.tokens.world import PASSWORDS, Place, World, create, expire, our_broker, renew
from tests.support.java_tools import JavaTools, Printed
from tests.support.process import wait_until

_TOKEN = re.compile(r"^(?P<id>[\w-]{22}) +(?P<hmac>[\w+/]{86}==) ", re.MULTILINE)
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
# An HMAC comes before an ID, because it may begin like one.
_BY_CHANCE = re.compile(r"[\w+/]{86}==|[\w-]{22}\b|\d{4}-\d\d-\d\dT\d\d:\d\d|127\.0\.0\.1:\d+|_run_\w+")


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    found = JavaTools()
    yield found
    found.close()


class Client:
    """Runs Kafka's tools on one broker as a user or as a token holder."""

    def __init__(self, tools: JavaTools, place: Place, file: Path, name: str, password: str) -> None:
        self._tools = tools
        self._address = place.sasl
        self._file = str(file)
        by_token = " tokenauth=true" if name not in PASSWORDS else ""
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\n"
            "sasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={_MODULE} username="{name}" password="{password}"{by_token};\n'
        )

    def run(self, tool: str, *arguments: str, config: str = "--command-config", stdin: str = "") -> Printed:
        address = ("--bootstrap-server", self._address)
        return self._tools.run(tool, *address, config, self._file, *arguments, stdin=stdin)

    def tokens(self, *arguments: str) -> Printed:
        return self.run("kafka-delegation-tokens", *arguments)


def _neutral(printed: Printed) -> tuple[int, str, str]:
    """The exit code, output and error, without ids, secrets, times, client log lines, and stack traces."""
    error = next((line for line in printed.err.splitlines() if not line.startswith("[")), "")
    return printed.code, _BY_CHANCE.sub("(x)", printed.out), _BY_CHANCE.sub("(x)", error)


def _may_log_in(place: Place, token: re.Match[str]) -> bool:
    try:
        log_in_by_token(place.sasl, token["id"], base64.b64decode(token["hmac"])).connection.close()
    except Refused:
        return False
    return True


def _everything(tools: JavaTools, places: Sequence[Place], directory: Path) -> list[tuple[int, str, str]]:
    """Run the tools as alice and as the holder of her token, and return their output.

    The tools may send requests to any broker of a cluster, so wait until all brokers accept a token.
    """
    place = places[0]
    printed: list[Printed] = []
    alice = Client(tools, place, directory / "alice", "alice", PASSWORDS["alice"])
    bob = Client(tools, place, directory / "bob", "bob", PASSWORDS["bob"])
    for_carol = ("--owner-principal", "User:carol", "--renewer-principal", "User:bob")
    made = alice.tokens("--create", "--max-life-time-period", "3600000", *for_carol)
    printed.append(made)
    others = _TOKEN.search(made.out)
    assert others is not None, made.err
    made = alice.tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    printed.append(made)
    token = _TOKEN.search(made.out)
    assert token is not None, made.err
    for each in (others, token):
        for at in places:
            wait_until(partial(_may_log_in, at, each), 20, "the token is valid on the broker", 0.05)

    holder = Client(tools, place, directory / "holder", token["id"], token["hmac"])
    topic = "by-token"
    made = holder.run("kafka-topics", "--create", "--topic", topic, "--partitions", "1")
    assert made.code == 0, made.err
    printed.append(made)
    sent = holder.run(
        "kafka-console-producer", "--topic", topic, config="--producer.config", stdin="one\ntwo\n"
    )
    assert sent.code == 0, sent.err
    read = holder.run(
        "kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms",
        "20000", config="--consumer.config",
    )  # fmt: skip
    assert read.lines == ["one", "two"], read.err
    printed.append(holder.tokens("--create", "--max-life-time-period", "-1"))

    by_secret = ("--hmac", token["hmac"])
    printed.append(bob.tokens("--renew", "--renew-time-period", "60000", *by_secret))
    printed.append(alice.tokens("--describe", "--owner-principal", "User:carol"))
    printed.append(bob.tokens("--expire", "--expiry-time-period", "-1", "--hmac", others["hmac"]))
    printed.append(alice.tokens("--expire", "--expiry-time-period", "-1", *by_secret))
    wait_until(lambda: not any(_may_log_in(at, token) for at in places), 20, "the token is deleted")
    printed.append(alice.tokens("--renew", "--renew-time-period", "-1", *by_secret))
    refused = holder.run("kafka-topics", "--list")
    assert "Authentication failed" in refused.out + refused.err
    return [_neutral(each) for each in printed]


def test_kafkas_token_tool_and_java_clients_get_the_same_results_as_on_apache_kafka(
    tools: JavaTools, world: World, tmp_path: Path
) -> None:
    printed = []
    for number, places in enumerate([(world.ours,), (world.genuine, world.beside)]):
        directory = tmp_path / str(number)
        directory.mkdir()
        printed.append(_everything(tools, places, directory))
    assert printed[0] == printed[1]


def test_a_java_client_stays_connected_while_its_token_is_renewed(tools: JavaTools, tmp_path: Path) -> None:
    """The client reauthenticates before its session expires (KIP-368). Because retries are disabled, a closed
    connection would lose records.
    """
    place = our_broker(tmp_path / "ours", {"delegation.token.expiry.time.ms": "3000"})
    place.server.start()
    try:
        place.make_users()
        wait_until(place.knows_users, 20, "users can log in")
        alice = place.login("alice")
        with alice.connection:
            token = create(alice)
            secret = base64.b64encode(token["hmac"]).decode()
            holder = Client(tools, place, tmp_path / "holder", token["token_id"], secret)
            assert renew(alice, token["hmac"], 60_000)["error_code"] == 0
            made = holder.run("kafka-topics", "--create", "--topic", "t", "--partitions", "1")
            assert made.code == 0, made.err
            assert expire(alice, token["hmac"], 3000)["error_code"] == 0
            with ThreadPoolExecutor(1) as pool:
                sending = pool.submit(
                    tools.run,
                    "kafka-producer-perf-test",
                    *("--topic", "t", "--num-records", "160", "--record-size", "10", "--throughput", "20"),
                    *("--producer.config", str(tmp_path / "holder")),
                    *("--producer-props", f"bootstrap.servers={place.sasl}", "acks=all", "retries=0"),
                    "enable.idempotence=false",
                )
                while not wait([sending], 0.5).done:
                    assert renew(alice, token["hmac"])["error_code"] == 0
            sent = sending.result()
            assert "160 records sent" in sent.out, sent.err
            assert "Exception" not in sent.out + sent.err
            assert "session expired" not in place.server.log.read_text()
    finally:
        place.server.stop()
