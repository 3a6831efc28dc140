"""`python -m tests.docs.write`: the pages that are made from the code, anew."""

from __future__ import annotations

from pathlib import Path

from tests.docs import compatibility_page, settings_page

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"settings.md": settings_page.page, "compatibility.md": compatibility_page.page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
