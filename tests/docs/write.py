"""`python -m tests.docs.write`: regenerates the pages whose content comes from the code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.docs import compatibility_page, parts_pages, settings_page
from tests.docs.markdown import wrapped

DOCS = Path(__file__).parents[2] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "settings.md": lambda: wrapped(settings_page.page()),
    "compatibility.md": lambda: wrapped(compatibility_page.page()),
    **{f"design/parts/{part}.md": partial(parts_pages.page, part) for part in parts_pages.PACKAGES},
}
"""The function that generates each page, by file name."""


def made(name: str) -> str:
    """Return the generated text of a page."""
    return PAGES[name]()


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(made(name))
