"""Lag in all outputs: metrics, web console, status, kafka-consumer-groups and control API show the same
values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.lag import UNKNOWN_MS, longest, records_behind, time_behind_ms, total_records
from kafka_compat.testing import KafkaBroker
from tests.metrics.groups import commit, produce
from tests.metrics.scraping import Scrape
from tests.page.site import PAGE, Site
from tests.status.world import one, status
from tests.support.servers import run_kafka_compat

TOPIC, GROUP = "t", "g"
COMMITTED = {0: 1, 1: 5, 2: 9}
"""Offsets before, at and beyond the log end offset. The last one can occur after a topic is recreated."""
RECORDS = 5
LAGS = {0: 4, 1: 0, 2: -4}
TOTAL = 0
AGE_S = 100


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(PAGE) as running:
        running.create_topic(TOPIC, partitions=3)
        then_ms = int(time.time() - AGE_S) * 1000
        for partition in COMMITTED:
            produce(running.bootstrap_servers, TOPIC, [then_ms] * RECORDS, partition=partition)
        commit(running.bootstrap_servers, GROUP, {(TOPIC, each): at for each, at in COMMITTED.items()})
        yield running


def test_the_lag_in_records_is_the_same_in_all_interfaces(broker: KafkaBroker) -> None:
    seen = Scrape(broker.control.url)
    of_group = {"consumergroup": GROUP, "topic": TOPIC}
    by_metrics = {each: seen.value("kafka_consumergroup_lag", **of_group, partition=each) for each in LAGS}
    page = Site.of(broker).data("group", name=GROUP)
    by_page = {row["partition"]: row["lag"] for row in page["list"]["rows"]}
    by_status = one(status(broker.bootstrap_servers)[1]["groups"], "group", GROUP)
    tool = ("consumer-groups", "--bootstrap-server", broker.bootstrap_servers, "--describe", "--group", GROUP)
    lines = [line.split() for line in run_kafka_compat(*tool).stdout.splitlines() if line.startswith(GROUP)]
    assert {int(line[2]): int(line[5]) for line in lines} == LAGS
    assert by_metrics == by_page == LAGS
    assert {each["partition"]: each["lag"] for each in by_status["partitions"]} == LAGS
    (row,) = Site.of(broker).rows("groups", "groups")
    totals = {
        "metrics": seen.value("kafka_consumergroup_lag_sum", **of_group),
        "group": page["lag"],
        "groups": row["lag"],
        "status": by_status["lag"],
        "control": broker.control.await_group(GROUP, state="Empty")["lag"],
    }
    assert totals == dict.fromkeys(totals, TOTAL)
    assert row["beyond_end"] == [f"{TOPIC}-2"]


def test_the_lag_in_seconds_is_the_same_in_all_interfaces(broker: KafkaBroker) -> None:
    seen = Scrape(broker.control.url)
    page = Site.of(broker).data("group", name=GROUP)
    (row,) = Site.of(broker).rows("groups", "groups")
    by_page: dict[int, Any] = {each["partition"]: each["lag_seconds"] for each in page["list"]["rows"]}
    of_group = {"consumergroup": GROUP, "topic": TOPIC}
    for partition, behind in ((0, True), (1, False), (2, False)):
        by_metrics = seen.value("kafka_consumergroup_lag_seconds", **of_group, partition=partition)
        for shown in (by_metrics, by_page[partition]):
            assert shown is not None and (AGE_S <= shown < AGE_S + 60 if behind else shown == 0)
    longest_s = seen.value("kafka_consumergroup_lag_seconds_max", consumergroup=GROUP)
    for shown in (longest_s, page["lag_seconds"], row["lag_seconds"]):
        assert shown is not None and AGE_S <= shown < AGE_S + 60


def test_unknown_lag_is_not_shown_as_a_number() -> None:
    assert records_behind(None, 7) is None and records_behind(3, None) is None
    assert records_behind(3, 7) == 4 and records_behind(7, 3) == -4
    assert time_behind_ms(None, 1_000) == time_behind_ms(2_000, 1_000) == 0
    assert time_behind_ms(400, 1_000) == 600 and time_behind_ms(UNKNOWN_MS, 1_000) is None


@pytest.mark.parametrize(("of_several", "of_known"), [(total_records, sum), (longest, max)])
@given(values=st.lists(st.none() | st.integers(-9, 9)))
def test_totals_are_unknown_if_any_of_their_parts_is_unknown(
    of_several: Callable[[list[int | None]], int | None],
    of_known: Callable[[list[int | None]], int],
    values: list[int | None],
) -> None:
    expected = None if not values or None in values else of_known(values)
    assert of_several(values) == expected
