"""kafka-go: the tests of the client and of its logins, against one broker as in its own workflow."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import ScramMechanism

from tests.others.go_modules import GoTests
from tests.others.servers import Login, one_broker
from tests.others.suite import Outcomes, Side, Suite
from tests.support.ports import free_port

VERSION = "v0.4.51"
_KAFKA = "3.9.1"
_TIMEOUT_S = 1800
_SETTINGS = {
    "auto.create.topics.enable": "true",
    "message.max.bytes": "200000000",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""The settings of the suite's own workflow."""
_SKIPPED = (
    # They call a nil function, and the panic ends the process.
    "TestReaderConsumerGroup/consumer_group_commits_on_close",
    "TestReaderConsumerGroup/verify_offset_committed_when_using_interval_committer",
)


def run(side: Side, directory: Path) -> Outcomes:
    """Run the tests. They connect to fixed ports, which are replaced in their sources."""
    login = Login(
        free_port(),
        ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
        {"adminplain": "admin-secret"},
        [
            (ScramMechanism.SCRAM_SHA_256, "adminscram", "admin-secret-256"),
            (ScramMechanism.SCRAM_SHA_512, "adminscram", "admin-secret-512"),
        ],
    )
    port = free_port()
    tests = GoTests(
        "github.com/segmentio/kafka-go",
        VERSION,
        [".", "sasl"],
        replaced={"9092": str(port), "9093": str(login.port)},
        directory=directory / "sources",
    )
    tests.compile()
    advertised = f"PLAINTEXT://localhost:{port},SASL_PLAINTEXT://localhost:{login.port}"
    settings = {**_SETTINGS, "advertised.listeners": advertised}
    with one_broker(side, directory, settings, port=port, login=login):
        environment = {"KAFKA_VERSION": _KAFKA, "KAFKA_SKIP_NETTEST": "1"}
        found = tests.run(directory / "tests.json", environment, skipped=_SKIPPED, timeout_s=_TIMEOUT_S)
    # Some names contain the ports, which are not the same on both sides.
    return {
        name.replace(str(port), "9092").replace(str(login.port), "9093"): outcome
        for name, outcome in found.items()
    }


SUITE = Suite(
    name="kafka-go",
    version=VERSION.removeprefix("v"),
    source="Go module",
    servers=f"Kafka {_KAFKA}, one broker",
    run=run,
    link="https://github.com/segmentio/kafka-go",
)
