"""Chromium (Debian's package) for tests of the web console, and axe-core for accessibility checks."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.support import campaign

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
needs_chromium = pytest.mark.skipif(
    not Path(CHROMIUM).exists() or importlib.util.find_spec("playwright") is None,
    reason="needs Debian's chromium and the package playwright",
)

DESKTOP = (1280, 800)
PHONE = (390, 844)
LOOKS = [("light", DESKTOP), ("dark", PHONE), ("dark", DESKTOP), ("light", PHONE)]
in_each_look = pytest.mark.parametrize(
    ("scheme", "size"), LOOKS, ids=[f"{scheme}-{size[0]}" for scheme, size in LOOKS]
)
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium with a new profile. Use it only in modules without asyncio, because Playwright runs an
    event loop in this thread.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A browser tab that records unexpected requests and messages."""

    def __init__(
        self, browser: Browser, url: str, *, scheme: Any = "light", size: tuple[int, int] = DESKTOP
    ) -> None:
        self.url = url
        self._width = size[0]
        context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
        context.set_default_timeout(60_000)
        self.page: Page = context.new_page()
        self.elsewhere: list[str] = []
        """Requests to hosts other than the listener."""
        self.complaints: list[str] = []
        """Messages of the browser's console, such as violations of the content security policy, and dialogs
        and errors.
        """
        self.page.on("request", self._requested)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _requested(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and parts.netloc != urlsplit(self.url).netloc:
            self.elsewhere.append(request.url)

    def go(self, path: str) -> None:
        """Open a page below /ui."""
        answer = self.page.goto(f"{self.url}/ui/{path}")
        assert answer is not None and answer.status == 200, path

    def violations(self) -> list[str]:
        """Return the violations of WCAG and best practices that axe-core finds."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
            for each in found
        ]

    @property
    def is_too_wide(self) -> bool:
        """Whether the page requires horizontal scrolling."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth") > self._width)

    def first_paint_ms(self) -> float:
        """Return the time from the start of the navigation to the first contentful paint."""
        script = """() => new Promise(resolve => {
            const tell = () => {
                const entries = performance.getEntriesByName('first-contentful-paint')
                entries.length ? resolve(entries[0].startTime) : setTimeout(tell, 10)
            }
            tell()
        })"""
        return float(self.page.evaluate(script))

    def close(self) -> None:
        self.page.context.close()


def see_views(browser: Browser, url: str, views: Sequence[str], scheme: str, size: tuple[int, int]) -> None:
    """Check that views with this color scheme and size are accessible, and send requests only to the
    listener.

    A campaign checks all views; a daily run checks a part of them for each combination.
    """
    tab = Watched(browser, url, scheme=scheme, size=size)
    seen = views if campaign.enabled() else views[LOOKS.index((scheme, size)) :: len(LOOKS)]
    for view in seen:
        tab.go(view)
        assert tab.violations() == [], view
        assert not tab.is_too_wide, view
        assert tab.page.evaluate("document.scripts.length + document.images.length") == 0, view
    assert (tab.elsewhere, tab.complaints) == ([], [])
    tab.close()
