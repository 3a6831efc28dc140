"""The documentation site: it contains all pages, and loads nothing from other hosts."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import links
from tests.docs.write import DOCS

CONFIGURATION = DOCS / "site" / "mkdocs.yml"
DECISIONS = "design/decisions/"
STARTS = ("README.md", "design/README.md")
"""The pages from which all others must be reachable."""

_FETCHED = (
    r"<(?:link [^>]*rel=.?stylesheet[^>]* href|(?:script|img|iframe|source)\b[^>]* src)=[\"']?([^\"'\s>]+)"
)
"""References that a browser loads automatically."""


def pages() -> set[str]:
    return {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def test_each_page_is_listed_in_the_navigation_of_the_site() -> None:
    """Decisions are listed in design/README.md instead."""
    menu = set(re.findall(r": ([\w/-]+\.md)$", CONFIGURATION.read_text(), re.MULTILINE))
    assert menu == {page for page in pages() if not page.startswith(DECISIONS)}


def test_each_page_is_reachable_from_the_entry_pages() -> None:
    found = set(STARTS)
    for start in STARTS:
        folder = (DOCS / start).parent
        for link in links((DOCS / start).read_text()):
            found.add(str((folder / link.partition("#")[0]).resolve().relative_to(DOCS)))
    assert pages() - found == set(), "list these pages in docs/README.md or docs/design/README.md"


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="the docs extra is not installed: run scripts/docs"
)
@pytest.mark.timeout(120)
def test_the_site_builds_without_warnings_and_without_external_resources(tmp_path: Path) -> None:
    """Warnings are errors, and no page loads styles, scripts, fonts or pictures from other hosts."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-f",
        str(CONFIGURATION),
        "-d",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    elsewhere, lost, count = [], [], 0
    for page in tmp_path.rglob("*.html"):
        count += 1
        for source in re.findall(_FETCHED, page.read_text()):
            if re.match(r"[a-z]+:|//", source):
                elsewhere.append(f"{page.name}: {source}")
            elif not (page.parent / source.lstrip("/")).exists() and page.name != "404.html":
                lost.append(f"{page.name}: {source}")
    assert count > 50
    assert elsewhere == []
    assert lost == []
    styles = "".join(sheet.read_text() for sheet in tmp_path.rglob("*.css"))
    assert not re.search(r"@import|url\(.?https?:", styles)
