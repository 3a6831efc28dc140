"""Two lanes for every client: the same program on this broker and on Apache Kafka 3.9.1.

With `--bootstrap ADDRESS`, there is one lane, on the brokers at that address; then only the assertions of the
scenarios are checked.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.lane_pool import Brokers, LanePool
from tests.support.offsets_topic import make_offsets_topic
from tests.support.servers import GenuineKafka, KafkaCompatBroker


@pytest.fixture(scope="module")
def brokers(shared_broker: KafkaCompatBroker, genuine: GenuineKafka) -> Brokers:
    for server in (shared_broker, genuine):
        make_offsets_topic(server.address)
    return Brokers(shared_broker.address, genuine.address)


@pytest.fixture(scope="module")
def lane_pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePool]:
    given = request.config.getoption("--bootstrap")
    if given is None:
        brokers: Brokers = request.getfixturevalue("brokers")
        addresses = {"ours": brokers.ours, "genuine": brokers.genuine}
    else:
        addresses = {"given": given}
    pool = LanePool(addresses, tmp_path_factory.mktemp("client-logs"))
    yield pool
    pool.close()
