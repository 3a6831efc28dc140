"""`python -m tests.docs.write`: the pages that are made from the code, anew."""

from __future__ import annotations

from pathlib import Path

from tests.docs import compatibility_page, settings_page
from tests.docs.markdown import wrapped

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"settings.md": settings_page.page, "compatibility.md": compatibility_page.page}
"""Name -> what makes it."""


def made(name: str) -> str:
    """The page's text."""
    return wrapped(PAGES[name]())


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(made(name))
