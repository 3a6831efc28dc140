"""The architecture map and the pages of its parts, which must cover all packages."""

from __future__ import annotations

import re

from tests.docs.parts_pages import CELL_MAX, PACKAGES, PARTS, PROJECT, first_sentence

DESIGN = PROJECT / "docs" / "design"
_TOP = {"kafka_compat/storage", "kafka_compat/coordination"}
"""Packages at the root of the repository, which are links in kafka_compat."""


def test_each_package_belongs_to_one_part() -> None:
    found = {f"kafka_compat/{path.parent.name}" for path in PROJECT.glob("kafka_compat/*/__init__.py")}
    listed = [package for packages in PACKAGES.values() for package in packages]
    assert sorted(listed) == sorted({*(found - _TOP), "storage", "coordination"})
    assert {path.stem for path in PARTS.glob("*.md")} == set(PACKAGES)


def test_each_module_has_a_one_sentence_purpose() -> None:
    without = [
        str(path.relative_to(PROJECT))
        for packages in PACKAGES.values()
        for package in packages
        for path in (PROJECT / package).rglob("*.py")
        if path.name != "__init__.py" and not first_sentence(path)
    ]
    assert without == []


def test_table_cells_are_short() -> None:
    long = [
        f"{path.relative_to(PROJECT)}: {cell.strip()[:60]}"
        for path in (DESIGN / "architecture.md", *PARTS.glob("*.md"))
        for line in path.read_text().splitlines()
        if line.startswith("|")
        for cell in line.split("|")
        if len(cell.strip()) > CELL_MAX
    ]
    assert long == []


def test_files_mentioned_in_the_design_pages_exist() -> None:
    files = [
        path.relative_to(PROJECT).as_posix()
        for top in ("kafka_compat", "storage", "coordination", "tests", "scripts", "setup.py")
        for path in (PROJECT / top, *(PROJECT / top).rglob("*.py"))
    ]
    named = [
        (path.name, file)
        for path in sorted(DESIGN.glob("*.md"))
        for file in re.findall(r"`(?:\.\./)?([\w/]+\.py)`", path.read_text())
        if not re.search(r"/[A-Z]+\.py$", file)
    ]
    assert len(named) > 100
    assert [each for each in named if not any(f"/{file}".endswith(f"/{each[1]}") for file in files)] == []
