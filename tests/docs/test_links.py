"""Links in all pages, and pages mentioned in sources, scripts and tests: the targets must exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import anchors, blocks, links
from tests.support.servers import PROJECT

_NOT_OURS = {".compiled", ".git", ".venv", "__pycache__", "build", "dist", "node_modules"}
_MADE = (".egg-info", "_cache")
_NAMED = re.compile(r"(?<![\w./-])docs/([\w.-]+(?:/[\w.-]+)*)")


def files(*kinds: str) -> Iterator[Path]:
    """Yield the project's files with these suffixes. The suffix '' stands for files without one."""
    for folder, inner, names in os.walk(PROJECT):
        inner[:] = [name for name in inner if name not in _NOT_OURS and not name.endswith(_MADE)]
        for name in names:
            if Path(name).suffix in kinds:
                yield Path(folder, name)


def test_every_link_has_a_target() -> None:
    pages = {path: path.read_text() for path in files(".md")}
    lost = []
    for path, text in pages.items():
        for link in links(text):
            target, _, anchor = link.partition("#")
            file = (path.parent / target).resolve() if target else path
            known = anchors(pages[file]) if file in pages else set()
            if not file.exists() or (anchor and anchor not in known):
                lost.append(f"{path.relative_to(PROJECT)}: {link}")
    assert len(pages) > 40
    assert lost == []


def test_pages_mentioned_in_sources_exist() -> None:
    """Pages are mentioned like docs/testing.md, or docs/design/decisions/0009 for short."""
    lost = []
    for path in files(".py", ".cfg", ".toml", ".yml", ".json", "", ".sh"):
        for named in _NAMED.findall(path.read_text(errors="replace")):
            page = PROJECT / "docs" / named.rstrip(".")
            if not page.exists() and not list(page.parent.glob(f"{page.name}-*.md")):
                lost.append(f"{path.relative_to(PROJECT)}: docs/{named}")
    assert lost == []


def test_the_links_and_anchors_of_a_page_are_found() -> None:
    page = (
        "# A `b`, c: d\n\n[x](y.md#z) `[no](code)` [out](https://example.com)\n\n"
        "```sh\n# no heading\n[no](link)\n```\n\n## Twice\n\n## Twice\n"
    )
    assert list(links(page)) == ["y.md#z"]
    assert anchors(page) == {"a-b-c-d", "twice", "twice-1"}
    assert blocks(page) == [("sh", "# no heading\n[no](link)\n")]
