"""Seeded histories of share fetches and acknowledgements: Apache Kafka 4.4.0 returns the same responses."""

from pathlib import Path

import pytest

from tests.share_partitions.brokers import SETTINGS, MemoryBroker
from tests.share_partitions.wire_histories import Difference, History
from tests.support import campaign
from tests.support.servers import GenuineKafka

pytestmark = pytest.mark.skipif(
    not campaign.enabled(), reason="needs a further Kafka release; normal runs use test_wire.py"
)

HISTORIES = 500
STEPS = 30
ATTEMPTS = 3
_ONE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def _compare(seed: int, addresses: tuple[str, str]) -> None:
    """Compare one history. A fetch may end before Apache Kafka has stored released records, if the machine is
    busy: only a difference that is seen each time counts.
    """
    for attempt in range(ATTEMPTS):
        try:
            History(seed, addresses, (False, True)).run(STEPS)
            return
        except Difference:
            if attempt + 1 == ATTEMPTS:
                raise


def test_histories_are_the_same_on_apache_kafka(tmp_path: Path) -> None:
    settings = {name: value for name, value in SETTINGS.items() if not name.startswith("kafka.compat.")}
    ours = MemoryBroker(tmp_path / "ours", SETTINGS)
    genuine = GenuineKafka(tmp_path / "genuine", settings | _ONE, version="4.4.0", mode="kraft")
    for each in (ours, genuine):
        each.start()
    try:
        for seed in range(HISTORIES):
            _compare(seed, (ours.address, genuine.address))
    finally:
        for each in (ours, genuine):
            each.stop()
