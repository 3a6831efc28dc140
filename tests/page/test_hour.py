"""The charts of the last hour: measured by a broker, and shown with the rights of the console."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.testing import KafkaBroker
from tests.metrics.groups import commit, produce
from tests.page.site import PAGE, Site
from tests.status.world import status
from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat

AGE_S = 500
RECORDS = 50


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(PAGE) as running:
        running.create_topic("orders")
        then_ms = running.control.now_ms() - AGE_S * 1000
        produce(running.bootstrap_servers, "orders", [then_ms] * RECORDS)
        commit(running.bootstrap_servers, "billing", {("orders", 0): 1})
        commit(running.bootstrap_servers, "done", {("orders", 0): RECORDS})
        yield running
        assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def site(broker: KafkaBroker) -> Site:
    """The web console, after the first measurement of the groups."""
    found = Site.of(broker)
    wait_until(lambda: len(found.data("hour")["groups"]) == 2, 30, "the lag of the groups", 0.2)
    return found


def known(chart: dict[str, Any]) -> list[float]:
    """Return the values of the first line."""
    return [value for value in chart["lines"][0]["values"] if value is not None]


def test_each_figure_is_measured(broker: KafkaBroker, site: Site) -> None:
    # Records that were written before the first sample are not counted.
    produce(broker.bootstrap_servers, "orders", [broker.control.now_ms()])

    def is_counted() -> bool:
        return max(known(site.data("chart", chart="records")), default=0) > 0

    wait_until(is_counted, 60, "a sample of the record", 0.2)
    data = site.data("hour")
    assert [each["chart"] for each in data["charts"]] == ["records", "bytes", "requests", "busy", "delay"]
    assert all(known(each) for each in data["charts"])
    assert all(len(line["values"]) == 360 for each in data["charts"] for line in each["lines"])
    records, _, requests, busy, delay = data["charts"]
    assert max(known(records)) > 0 and max(known(requests)) > 0
    assert 0 < max(known(busy)) <= 1 and 0 <= max(known(delay)) < 30
    assert [each["group"] for each in data["groups"]] == ["billing", "done"]
    billing, done = data["groups"]
    assert AGE_S <= known(billing)[-1] < AGE_S + 120 and known(done)[0] == 0


def test_each_chart_is_available_as_json(site: Site) -> None:
    chart = site.data("chart", chart="bytes")
    assert [each["name"] for each in chart["lines"]] == ["written", "read"] and len(chart["rows"]) == 12
    assert chart["rows"][0]["lines"][0]["most"] is not None
    lag = site.data("chart", chart="lag", group="billing")
    assert (lag["unit"], lag["group"], lag["step_seconds"]) == ("seconds", "billing", 10)
    html = site.get("hour").text
    assert "/ui/chart.json?chart=bytes" in html and "/ui/chart.json?chart=lag&amp;group=billing" in html
    assert "<svg" in site.get("overview").text and "<svg" in site.get("group", name="billing").text


@pytest.mark.parametrize(
    ("query", "status_code", "reason"),
    [
        (
            {"chart": "colour"},
            400,
            "chart=colour: expected one of records, bytes, requests, busy, delay, or lag",
        ),
        ({}, 400, "expected one of"),
        ({"chart": "lag", "group": "nobody"}, 404, "unknown group nobody"),
    ],
)
def test_unknown_charts_are_rejected(
    site: Site, query: dict[str, str], status_code: int, reason: str
) -> None:
    answer = site.get("chart", **query)
    assert answer.status == status_code and reason in answer.shown


def test_the_status_command_shows_the_charts(broker: KafkaBroker, site: Site) -> None:
    address = broker.bootstrap_servers
    done = run_kafka_compat("status", "--bootstrap-server", address, "--page", site.url)
    lines = done.stdout.splitlines()
    start = lines.index("LAST HOUR")
    assert lines[start + 1].split() == ["an", "hour", "ago", "…", "now", "now", "at", "most"]
    titles = [line[:22].strip() for line in lines[start + 2 : start + 10]]
    assert titles[0] == "Records written" and titles[-1].startswith("Lag of done")
    assert any("▁" in line or "█" in line for line in lines[start + 2 :])
    done = run_kafka_compat("status", "--bootstrap-server", address, "--page", f"{site.url}/nowhere")
    assert f"unknown: charts of {site.url}/nowhere: HTTP 404" in done.stdout and done.returncode == 0
    done = run_kafka_compat("status", "--bootstrap-server", address, "--page", "localhost:9308")
    assert done.returncode == 2 and "expected a URL such as http://127.0.0.1:9308" in done.stderr
    assert status(address)[0] == 0


def test_the_longest_delay_of_the_event_loop_is_reported_once() -> None:
    async def measured() -> tuple[float, float]:
        watch = LoopWatch(list, lambda second_s: None)
        watch.start()
        loop = asyncio.get_running_loop()
        held = loop.create_future()

        def hold() -> None:
            # Stall the loop, as a request that takes too long would.
            time.sleep(0.2)
            loop.call_later(0.05, held.set_result, None)

        loop.call_later(0.05, hold)
        await held
        watch.stop()
        return watch.take_longest_delay_s(), watch.take_longest_delay_s()

    first_s, second_s = asyncio.run(measured())
    assert first_s > 0.1 and second_s == 0
