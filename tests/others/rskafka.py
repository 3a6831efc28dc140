"""rskafka: its unit and integration tests, against three brokers with a login, as in its own workflow."""

from __future__ import annotations

from pathlib import Path

from tests.others.crates import CrateTests
from tests.others.servers import Login, three_brokers
from tests.others.suite import Outcomes, Side, Suite
from tests.support.ports import free_port

TESTS = CrateTests("rskafka", "0.6.0", updated=["rsasl"])
_TIMEOUT_S = 1800


def run(side: Side, directory: Path) -> Outcomes:
    """Run the tests. Those that need a Java process or a SOCKS5 proxy pass without a check."""
    TESTS.compile()
    login = Login(free_port(), ["PLAIN"], {"admin": "admin-secret"}, [])
    settings = {"auto.create.topics.enable": "false"}
    with three_brokers(side, directory, settings, login=login) as addresses:
        environment = {
            "TEST_INTEGRATION": "1",
            "TEST_BROKER_IMPL": "kafka",
            "KAFKA_CONNECT": addresses,
            "KAFKA_SASL_CONNECT": f"127.0.0.1:{login.port}",
        }
        return TESTS.run(directory / "tests.log", environment, timeout_s=_TIMEOUT_S)


SUITE = Suite(
    name="rskafka",
    version=TESTS.version,
    source="crates.io",
    servers="Kafka 3.9.1, three brokers",
    run=run,
    link="https://github.com/influxdata/rskafka",
)
