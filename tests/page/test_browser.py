"""The web console in Chromium: each view in light and dark, on desktop and phone screens, and without a
mouse.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from kafka_compat.testing import KafkaBroker
from tests.metrics.groups import commit, produce, transaction
from tests.page.browser import Watched, chromium, in_each_look, needs_chromium, see_views
from tests.page.login import TOKEN, started
from tests.page.site import PAGE, Site

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import Producer
    from playwright.sync_api import Browser

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LONG = "x" * 240
VIEWS = [
    "overview",
    "hour",
    "chart?chart=bytes",
    "topics",
    "topics?sort=-size&q=o",
    "topic?name=orders",
    "topic-settings?name=orders",
    f"topic?name={LONG}",
    "groups",
    "group?name=billing",
    "group?name=%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%3Cscript%3Ealert%282%29%3C/script%3E",
    "transactions",
    "brokers",
    "broker?id=1",
    "disks",
    "clients",
    "refused",
    "logs",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(PAGE, verbose=True) as running:
        kept = _fill(running)
        yield running
        kept.abort_transaction(30)
        del kept
        assert "Traceback" not in running.log


def _fill(running: KafkaBroker) -> Producer:
    """Create topics, groups and an open transaction. Return the client, which stays connected."""
    address = running.bootstrap_servers
    running.create_topic("orders", partitions=3)
    running.create_topic(LONG)
    produce(address, "orders", [running.control.now_ms() - 60_000] * 5)
    for group in ("billing", HOSTILE, LONG):
        commit(address, group, {("orders", 0): 1})
    kept = transaction(address, "orders", [1], end="open")
    for hello in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xff"):
        with socket.create_connection((running.host, running.port), 20) as stranger:
            stranger.sendall(hello)
            with suppress(ConnectionError):
                stranger.recv(100)
    return kept


@in_each_look
def test_each_view_is_accessible_and_fits_the_screen(
    browser: Browser, broker: KafkaBroker, scheme: str, size: tuple[int, int]
) -> None:
    """A daily run checks each view in one of the combinations, a campaign in all of them."""
    see_views(browser, broker.control.url, VIEWS, scheme, size)


def test_hostile_names_are_shown_as_text(browser: Browser, broker: KafkaBroker) -> None:
    tab = Watched(browser, broker.control.url)
    tab.go("groups")
    tab.page.get_by_role("link", name=HOSTILE).click()
    assert HOSTILE in tab.page.get_by_role("heading", level=1).inner_text()
    tab.go("topic?name=orders")
    assert tab.page.get_by_role("rowheader", name=HOSTILE).is_visible()
    assert tab.complaints == []
    tab.close()


def test_the_web_console_works_with_the_keyboard_alone(browser: Browser, broker: KafkaBroker) -> None:
    """The path from the first page to a group leads through menu, filter and list."""
    tab = Watched(browser, broker.control.url)
    page = tab.page
    tab.go("overview")

    def focused() -> str:
        return str(page.evaluate("document.activeElement.innerText || document.activeElement.id"))

    page.keyboard.press("Tab")
    assert focused() == "Skip to content" and page.get_by_text("Skip to content").is_visible()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.reload()
    steps = 0
    while focused() != "Groups":
        page.keyboard.press("Tab")
        steps += 1
        assert steps < 10, "each menu entry must be one tab stop"
        shown = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(shown) == "solid", "the focused element must have an outline"
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/groups")
    while page.evaluate("document.activeElement.id") != "q":
        page.keyboard.press("Tab")
    page.keyboard.type("bill")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/groups?q=bill")
    assert "1 of 3 groups" in page.inner_text("main")
    while focused() != "billing":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/group?name=billing")
    assert page.inner_text("h1").startswith("billing")
    tab.close()


def test_the_login_form_works_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    running, site = started(tmp_path, **{"kafka.compat.http.token": TOKEN})
    try:
        tab = Watched(browser, site.url)
        page = tab.page
        page.goto(f"{site.url}/ui/topics?q=x")
        assert tab.violations() == []
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        assert page.get_by_role("alert").inner_text() == "Wrong token."
        assert tab.violations() == []
        page.keyboard.type(TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/topics?q=x")
        (cookie,) = page.context.cookies()
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/ui/login*")
        assert page.context.cookies() == []
        assert tab.elsewhere == []
        tab.close()
    finally:
        running.stop()


def test_a_form_submitted_from_another_site_is_rejected(browser: Browser, broker: KafkaBroker) -> None:
    """A page from a different site posts to the listener. The request is rejected because of the headers that
    the browser sends.
    """
    tab = Watched(browser, broker.control.url)
    target = f"{broker.control.url}/ui/logout"
    with tab.page.expect_response(target) as answered:
        tab.page.set_content(f'<form method="post" action="{target}"><button>x</button></form>')
        tab.page.get_by_role("button").click()
    assert answered.value.status == 403
    assert Site.of(broker).data("overview")
    tab.close()
