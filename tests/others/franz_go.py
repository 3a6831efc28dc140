"""franz-go: the tests of its client (pkg/kgo), with groups, transactions and share groups."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import ScramMechanism

from tests.others.go_modules import GoTests
from tests.others.servers import Login, one_broker
from tests.others.suite import Outcomes, Side, Suite
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port

TESTS = GoTests("github.com/twmb/franz-go", "v1.22.3", ["pkg/kgo"])
EVERYDAY = "TestPing|TestIssue1034|TestIssue434|TestConsumeRegex|TestMaxVersions|TestAddRemovePartitions"
"""Tests that take a second altogether."""

_RECORDS = 20_000
"""Records in each test of a chain of groups. The default of the suite is 500,000."""
_TIMEOUT_S = 2400
_SETTINGS = {
    "group.share.delivery.count.limit": "10",
    "share.coordinator.state.topic.num.partitions": "5",
}
"""The settings of the suite's own workflow."""
_GENUINE_ONLY = {
    "group.coordinator.rebalance.protocols": "classic,consumer,share",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def run(side: Side, directory: Path, pattern: str = "") -> Outcomes:
    """Run the tests whose names match the pattern."""
    TESTS.compile()
    login = Login(
        free_port(),
        ["SCRAM-SHA-256", "OAUTHBEARER"],
        {},
        [(ScramMechanism.SCRAM_SHA_256, "testuser", "testpass")],
    )
    with one_broker(
        side, directory, _SETTINGS, genuine_only=_GENUINE_ONLY, kraft=True, login=login
    ) as broker:
        environment = {
            "KGO_SEEDS": broker.address,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": str(_RECORDS),
            "KGO_TEST_SCRAM_SEEDS": f"127.0.0.1:{login.port}",
            "KGO_TEST_SCRAM": "testuser:testpass",
            "KGO_TEST_OAUTH_SEEDS": f"127.0.0.1:{login.port}",
            "KGO_LOG_LEVEL": "none",
        }
        timeout_s = _TIMEOUT_S if campaign.enabled() else 60
        return TESTS.run(directory / "tests.json", environment, pattern=pattern, timeout_s=timeout_s)


SUITE = Suite(
    name="franz-go",
    version=TESTS.version.removeprefix("v"),
    source="Go module",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/twmb/franz-go",
)
