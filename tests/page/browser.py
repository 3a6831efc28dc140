"""A real Chromium (Debian's), which looks at the page; and axe-core, which finds what some cannot read."""

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
    """With a profile of its own. For modules without asyncio: there is a loop in this thread meanwhile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A tab, and what it did that it should not."""

    def __init__(
        self, browser: Browser, url: str, *, scheme: Any = "light", size: tuple[int, int] = DESKTOP
    ) -> None:
        self.url = url
        self._width = size[0]
        context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
        context.set_default_timeout(60_000)
        self.page: Page = context.new_page()
        self.elsewhere: list[str] = []
        """Requests to others than the listener."""
        self.complaints: list[str] = []
        """What the console says: what the policy of the page forbids, for one."""
        self.page.on("request", self._requested)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _requested(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and parts.netloc != urlsplit(self.url).netloc:
            self.elsewhere.append(request.url)

    def go(self, path: str) -> None:
        """To a page below /ui."""
        answer = self.page.goto(f"{self.url}/ui/{path}")
        assert answer is not None and answer.status == 200, path

    def violations(self) -> list[str]:
        """Of WCAG and good practice, as axe-core finds them."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
            for each in found
        ]

    @property
    def is_too_wide(self) -> bool:
        """Whether one has to scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth") > self._width)

    def first_paint_ms(self) -> float:
        """When the first content was painted, since the navigation began."""
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
    """Each view in this look in a campaign, every day its share of them: readable, and asking nobody else."""
    tab = Watched(browser, url, scheme=scheme, size=size)
    seen = views if campaign.enabled() else views[LOOKS.index((scheme, size)) :: len(LOOKS)]
    for view in seen:
        tab.go(view)
        assert tab.violations() == [], view
        assert not tab.is_too_wide, view
        assert tab.page.evaluate("document.scripts.length + document.images.length") == 0, view
    assert (tab.elsewhere, tab.complaints) == ([], [])
    tab.close()
