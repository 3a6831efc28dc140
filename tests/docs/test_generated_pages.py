"""Generated pages: they are up to date, and their statements about Apache Kafka are correct."""

from __future__ import annotations

import pytest

from kafka_compat.config.documentation import about
from kafka_compat.config.keys import broker_keys, topic_keys
from kafka_compat.handlers.served import CLUSTER_SERVED
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.docs import settings_page
from tests.docs.compatibility_page import KAFKA_ONLY, is_here
from tests.docs.genuine_versions import KAFKA_3_9, KAFKA_4_1, Versions
from tests.docs.kips import KIPS
from tests.docs.settings_page import OWN_PREFIX, WHY_STORED, state
from tests.docs.write import DOCS, PAGES, made
from tests.support.servers import PROJECT, GenuineKafka


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == made(name), f"docs/{name}: run python -m tests.docs.write"


def test_each_setting_that_kafka_does_not_have_is_explained() -> None:
    own = [name for name in broker_keys() if name.startswith(OWN_PREFIX)]
    assert len(own) >= 10
    assert [name for name in own if not about(name)] == []


def test_each_setting_without_effect_is_explained() -> None:
    stored = [
        key.name
        for keys, broker in ((broker_keys(), True), (topic_keys(), False))
        for key in keys.values()
        if key.update != "internal" and state(key, broker=broker) == "stored only"
    ]
    assert [name for name in stored if not name.startswith((*WHY_STORED,))] == []
    assert [why for why in WHY_STORED if not any(name.startswith(why) for name in stored)] == []


def test_every_test_listed_for_a_kip_exists() -> None:
    assert [kip for kip in KIPS if kip.shown_by and not (PROJECT / "tests" / kip.shown_by).is_file()] == []
    assert [kip.number for kip in KIPS] == sorted({kip.number for kip in KIPS})
    assert {kip.number for kip in KIPS if not is_here(kip)} >= {405, 1071}


def test_apis_listed_as_missing_are_not_served() -> None:
    assert KAFKA_ONLY.keys() & CLUSTER_SERVED.keys() == set()


def advertised(kafka: GenuineKafka) -> Versions:
    """Return the API versions that a broker advertises."""
    answer = Connection(kafka.address).ask(ApiKey.API_VERSIONS, 0, {})
    return {entry["api_key"]: (entry["min_version"], entry["max_version"]) for entry in answer["api_keys"]}


def test_the_listed_versions_match_kafka_3_9(genuine: GenuineKafka) -> None:
    assert advertised(genuine) == KAFKA_3_9


def test_the_listed_versions_match_kafka_4_1(genuine_41: GenuineKafka) -> None:
    assert advertised(genuine_41) == KAFKA_4_1


def test_the_settings_page_states_correctly_which_settings_work() -> None:
    keys = broker_keys()
    known = {
        "log.retention.hours": "**works**",
        "zookeeper.session.timeout.ms": "**works**",
        "num.io.threads": "not needed",
        "remote.log.storage.system.enable": "stored only",
        "process.roles": "**works**",
    }
    assert {name: settings_page.state(keys[name], broker=True) for name in known} == known
