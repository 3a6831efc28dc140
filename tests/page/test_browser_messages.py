"""Messages and changes in Chromium: each view, and the forms with keyboard and mouse."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kafka_compat.testing import KafkaBroker
from tests.control.clients import producer
from tests.control.contents import commit_position, committed
from tests.page.browser import Watched, chromium, in_each_look, needs_chromium, see_views
from tests.page.browsing import WRITING, Asked

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_chromium

T0_MS = 1_700_000_000_000
"""2023-11-14, 22:13:20 UTC."""
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
VIEWS = [
    "messages?name=orders",
    "messages?name=orders&header=trace&value=sku&order=oldest&limit=5",
    "messages?name=orders&value=nowhere",
    "messages?name=empty",
    "message?name=orders&partition=0&offset=1",
    "message?name=orders&partition=0&offset=2&show_value=schema",
    "latest?name=orders",
    "latest?name=orders&limit=1&show_value=hex",
    "produce?name=orders",
    "copy?name=orders",
    "offsets?name=billing",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(WRITING) as running:
        running.create_topic("orders")
        running.create_topic("empty")
        client = producer(running)
        for number in range(20):
            value = json.dumps({"order": number, "items": [{"sku": f"A-{number}"}], "text": "x" * 300})
            client.produce("orders", value, f"customer-{number % 3}", headers={"trace": f"{number}"})
        client.produce("orders", struct.pack(">q", 5), struct.pack(">q", 7), headers={HOSTILE: HOSTILE})
        client.produce("orders", HOSTILE, HOSTILE)
        client.produce("orders", None, b"gone")
        assert client.flush(20) == 0
        commit_position(running, "billing", "orders", 5)
        yield running
        assert "Traceback" not in running.log


@in_each_look
def test_each_message_view_is_accessible_and_fits_the_screen(
    browser: Browser, broker: KafkaBroker, scheme: str, size: tuple[int, int]
) -> None:
    """A daily run checks each view in one of the combinations, a campaign in all of them."""
    see_views(browser, broker.control.url, VIEWS, scheme, size)


def test_a_message_can_be_found_with_the_keyboard_alone(browser: Browser, broker: KafkaBroker) -> None:
    """The path leads from the topic through the search form to one message."""
    tab = Watched(browser, broker.control.url)
    page = tab.page
    tab.go("topic?name=orders")
    page.get_by_role("link", name="Messages").click()
    page.get_by_label("Value: text", exact=True).fill("A-17")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/messages?*value=A-17*")
    assert page.get_by_role("status").inner_text().startswith("Matches: 1 in 23 messages")
    assert page.get_by_label("Value: text", exact=True).input_value() == "A-17"
    page.get_by_role("rowheader", name="17").get_by_role("link").click()
    assert '"sku": "A-17"' in page.inner_text("main")
    page.get_by_role("link", name="Older").click()
    assert '"sku": "A-16"' in page.inner_text("main")
    page.get_by_label("Show the value as").select_option("hex")
    page.get_by_role("button", name="Show").click()
    assert "7b 22 6f 72 64 65 72" in page.inner_text("main")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the value").click()
    assert download.value.suggested_filename == "orders-0-16.value"
    with open(download.value.path(), encoding="utf-8") as file:
        assert json.load(file)["order"] == 16
    assert (tab.elsewhere, tab.complaints) == ([], [])
    tab.close()


def test_the_newer_messages_link_continues_a_search(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    page = tab.page
    tab.go("messages?name=orders&order=oldest&limit=10")
    seen = 0
    while True:
        seen += page.get_by_role("row").count() - 1
        more = page.get_by_role("link", name="Newer messages")
        if not more.count():
            break
        more.click()
    assert seen == 23
    page.get_by_role("link", name="Restart the search").click()
    assert page.get_by_role("rowheader").first.inner_text() == "0"
    tab.close()


def test_hostile_messages_are_shown_as_text(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    tab.go("messages?name=orders&limit=3")
    assert tab.page.get_by_text(HOSTILE).count() == 4
    tab.go("message?name=orders&partition=0&offset=21")
    assert tab.page.get_by_text(HOSTILE).count() == 2
    assert tab.complaints == []
    tab.close()


def test_a_record_is_produced_from_the_form(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    page = tab.page
    broker.create_topic("typed", 2)
    tab.go("produce?name=typed")
    page.get_by_label("Key", exact=True).fill("42")
    page.get_by_label("Format of the key").select_option("long")
    page.get_by_label("Value", exact=True).fill("two\nlines")
    page.get_by_label("Headers").fill("a: 1\nb")
    page.get_by_label("Partition").fill("1")
    page.get_by_role("button", name="Produce").click()
    page.wait_for_url("**/ui/message?name=typed&partition=1&offset=0")
    shown = page.inner_text("main")
    assert "long, 8 B" in shown and "two\nlines" in shown
    found = Asked(broker.control.url).data("message", name="typed", partition=1, offset=0)
    assert found["value"]["text"] == "two\nlines" and found["key"]["text"] == "42"
    assert [(one["name"], one["text"]) for one in found["headers"]] == [("a", "1"), ("b", None)]
    tab.go("produce?name=typed")
    page.get_by_label("Format of the key").select_option("long")
    page.get_by_label("Key", exact=True).fill("many")
    page.get_by_role("button", name="Produce").click()
    assert "key: 'many' is not a valid long (8 bytes)" in page.inner_text("main")
    tab.close()


def test_a_topic_is_copied_from_the_form(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    page = tab.page
    tab.go("topic?name=orders")
    page.get_by_role("link", name="Copy").click()
    page.get_by_label("Name of the copy").fill("copied")
    page.get_by_label("Copy the committed offsets").check()
    page.get_by_role("button", name="Copy").click()
    page.wait_for_url("**/ui/topic?name=copied")
    assert len(Asked(broker.control.url).all_messages(name="copied")) == 23
    assert committed(broker, "billing", "copied") == committed(broker, "billing", "orders")
    tab.close()


def test_committed_offsets_are_reset_to_a_time_from_the_form(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    page = tab.page
    broker.create_topic("timed")
    client = producer(broker)
    for number in range(10):
        client.produce("timed", b"v", timestamp=T0_MS + 60_000 * number)
    assert client.flush(20) == 0
    commit_position(broker, "rewound", "timed", 10)
    tab.go("offsets?name=rewound")
    page.get_by_label("To", exact=True).select_option("time")
    page.get_by_label("Offset, time or number").fill("2023-11-14T22:16:00Z")
    page.get_by_role("button", name="Preview").click()
    cells = page.get_by_role("row").nth(1).get_by_role("cell").all_inner_texts()
    assert cells[:6] == ["0", "10", "10", "0", "3", "7"]
    assert committed(broker, "rewound", "timed") == 10
    page.get_by_role("button", name="Change offsets (1)").click()
    page.wait_for_url("**/ui/offsets?name=rewound&moved=1")
    assert committed(broker, "rewound", "timed") == 3
    assert (tab.elsewhere, tab.complaints) == ([], [])
    tab.close()


def test_committed_offsets_are_changed_from_the_form(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    page = tab.page
    commit_position(broker, "moved", "orders", 9)
    tab.go("group?name=moved")
    page.get_by_role("link", name="Change offsets").click()
    page.get_by_label("To", exact=True).select_option("shift")
    page.get_by_label("Offset, time or number").fill("-4")
    page.get_by_role("button", name="Preview").click()
    assert "No offsets have been changed yet." in page.inner_text("main")
    assert tab.violations() == []
    cells = page.get_by_role("row").nth(1).get_by_role("cell").all_inner_texts()
    assert cells[:6] == ["0", "23", "9", "14", "5", "18"]
    assert committed(broker, "moved", "orders") == 9
    page.get_by_role("button", name="Change offsets (1)").click()
    page.wait_for_url("**/ui/offsets?name=moved&moved=1")
    assert "Changed the committed offsets of 1 partition." in page.get_by_role("status").inner_text()
    assert committed(broker, "moved", "orders") == 5
    assert (tab.elsewhere, tab.complaints) == ([], [])
    tab.close()
