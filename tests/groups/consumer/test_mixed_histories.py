"""Groups are converted between the classic and the consumer protocol as on Apache Kafka 4.4: the same
histories of old and new clients lead to the same responses, states, assignments and records.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.groups.consumer.mixed_histories import MIXED_SETTINGS, MixedHistory
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka

SEEDS = range(500 if campaign.enabled() else 30)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    running = GenuineKafka(directory, MIXED_SETTINGS, version=NEWEST_VERSION, mode="kraft")
    running.start()
    yield running
    running.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_old_and_new_clients_is_the_same_as_on_apache_kafka(
    kafka: GenuineKafka, seed: int
) -> None:
    history = MixedHistory(kafka.address, seed)
    try:
        history.play()
    finally:
        history.close()
