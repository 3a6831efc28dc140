"""kafka-python: its integration tests, against one broker that it does not start itself."""

from __future__ import annotations

from pathlib import Path

from tests.others.python_sdists import SdistTests
from tests.others.servers import one_broker
from tests.others.suite import Outcomes, Side, Suite
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port

TESTS = SdistTests(
    "kafka-python",
    "3.0.12",
    ["pytest", "pytest-mock", "pytest-timeout", "crc32c", "lz4", "python-snappy", "zstandard"],
)
_VERSION = "4.2.0"
"""The newest Kafka version that the suite knows."""
_TIMEOUT_S = 1800
_SETTINGS = {
    "broker.id": "0",
    "node.id": "0",
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""The settings with which the suite starts Kafka."""
_GENUINE_ONLY = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
_SERVICE = """\
class SpawnedService:
    pass


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass
"""


def run(side: Side, directory: Path) -> Outcomes:
    """Run the tests."""
    TESTS.install()
    # The sources lack two files: Python would import its own package named `test`, and the fixtures import
    # the class that stands for a server that is not theirs.
    (TESTS.sources / "test" / "__init__.py").touch()
    (TESTS.sources / "test" / "service.py").write_text(_SERVICE)
    port = free_port()
    settings = {**_SETTINGS, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with one_broker(side, directory, settings, genuine_only=_GENUINE_ONLY, kraft=True, port=port) as broker:
        environment = {
            "KAFKA_VERSION": _VERSION,
            "KAFKA_URI": f"kafka://{broker.address}",
            "KAFKA_ROOT": str(directory),  # must exist
        }
        # The tests of TLS start Kafka themselves.
        ignored = "--ignore=test/integration/test_ssl_integration.py"
        arguments = ["test/integration", ignored, "-p", "no:cacheprovider", "-p", "no:logging"]
        return TESTS.run(directory / "tests.log", environment, arguments, timeout_s=_TIMEOUT_S)


SUITE = Suite(
    name="kafka-python",
    version=TESTS.version,
    source="PyPI",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/dpkp/kafka-python",
)
