"""Deliberately broken builds: for each, a named replication test must fail.

Normal runs check only that the faults still apply to the sources; `--campaign` runs the broken builds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broken_builds.run import PROJECT, broken, copy_sources, run
from tests.broken_builds.table import BROKEN_BUILDS, BrokenBuild
from tests.support import campaign

each_build = pytest.mark.parametrize("build", BROKEN_BUILDS, ids=lambda build: build.name)


@each_build
def test_the_fault_can_be_applied_and_its_test_exists(build: BrokenBuild) -> None:
    compile(broken(build), build.file, "exec")
    file, _, test = build.test.partition("::")
    function = test.partition("[")[0]
    assert f"def {function}(" in (PROJECT / file).read_text()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("sources")
    copy_sources(directory)
    yield directory


@pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")
@each_build
def test_a_broken_build_fails_its_test(build: BrokenBuild, copy: Path) -> None:
    outcome = run(build, copy)
    assert outcome.noticed, outcome.output
