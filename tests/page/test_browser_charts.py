"""Charts of a full hour in Chromium, in light and dark, on a desktop and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kafka_compat.page.rendering import Templates
from tests.page.browser import PHONE, Watched, chromium, in_each_look, needs_chromium
from tests.page.rendered import chart_data, hour_data, rendered, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    templates = Templates()
    pages = {
        "hour": rendered(templates, "hour", hour_data()),
        "chart": rendered(templates, "chart", chart_data(1)),
    }
    with served(pages, templates.style) as found:
        yield found


@in_each_look
def test_charts_are_accessible_and_fit_the_screen(
    browser: Browser, url: str, scheme: str, size: tuple[int, int]
) -> None:
    tab = Watched(browser, url, scheme=scheme, size=size)
    for view in ("hour", "chart"):
        tab.go(view)
        assert tab.violations() == [], view
        assert not tab.is_too_wide, view
        shapes = tab.page.locator("svg path.line")
        boxes = [shapes.nth(number).bounding_box() for number in range(shapes.count())]
        assert len(boxes) == (10 if view == "hour" else 2)
        widest = size[0] if size == PHONE else size[0] - 200
        for box in boxes:
            assert box is not None and 100 < box["width"] < widest
        colors = shapes.evaluate_all("all => all.map(each => getComputedStyle(each).stroke)")
        lights = {"rgb(11, 92, 173)", "rgb(163, 71, 0)"}
        assert set(colors) <= lights if scheme == "light" else not set(colors) & lights
    assert (tab.elsewhere, tab.complaints) == ([], [])
    tab.close()


def test_a_screen_reader_hears_each_chart(browser: Browser, url: str) -> None:
    tab = Watched(browser, url)
    tab.go("hour")
    charts = tab.page.get_by_role("img")
    assert charts.count() == 9
    name = charts.nth(1).get_attribute("aria-label") or ""
    assert name.startswith("Bytes written and read in the last hour: now written ")
    tab.close()
