"""Each script works as the first command on a clean checkout with an empty home, and in every order."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from tests.packaging import wheels
from tests.packaging.checkouts import Checkout
from tests.support import campaign

campaign_only = pytest.mark.skipif(not campaign.enabled(), reason="compiles for minutes: with --campaign")


@pytest.mark.timeout(1200)
def test_a_clean_checkout_runs_and_compiles_without_extras(tmp_path: Path) -> None:
    """`scripts/run` installs no extra, and mypyc, which `scripts/compile` starts next, reads the types of the
    compiled modules and of all that they import. It has done its part when the C compiler is called, which is
    none here.
    """
    checkout = Checkout(tmp_path)
    checkout.serve(tmp_path / "log")
    asked = "import importlib.util as u; print([n for n in ('opentelemetry', 'fastavro', 'google', 'uvloop') "
    asked += "if u.find_spec(n)])"
    assert wheels.run([checkout.python, "-c", asked]).strip() == "[]"
    said = checkout.run("compile", environment={"CC": "/bin/false"}, exit_code=1)
    assert "scripts/compile: the C compiler failed" in said and "error: " not in said, said


_FIRST = {"run": (), "compile": (), "build-wheel": ()}
_ORDERS = list(itertools.permutations(_FIRST))


@campaign_only
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("order", _ORDERS, ids=["-".join(order) for order in _ORDERS])
def test_run_compile_and_build_wheel_work_in_every_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    checkout = Checkout(tmp_path)
    for script in order:
        if script == "run":
            checkout.serve(tmp_path / "log")
            continue
        said = checkout.run(script)
        assert "no C extensions" not in said and "error:" not in said, said
    assert (checkout.folder / ".compiled" / "stamp").is_file()
    assert len(list((checkout.folder / "dist").glob("*.whl"))) == 2
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=checkout.folder, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()
    assert [line for line in changed if not line.startswith("A ")] == [], "the scripts leave files of theirs"


@pytest.mark.timeout(600)
def test_the_first_command_can_be_docs(tmp_path: Path) -> None:
    """The extra `docs`."""
    checkout = Checkout(tmp_path)
    assert checkout.run("docs").strip().endswith("build/site/index.html")
    assert (checkout.folder / "build" / "site" / "index.html").is_file()


@campaign_only
@pytest.mark.timeout(3600)
def test_the_first_command_can_be_test(tmp_path: Path) -> None:
    """Whatever the tests need is installed, among it all extras, and ruff, mypy and import-linter pass."""
    checkout = Checkout(tmp_path)
    said = checkout.run("test", "tests/test_architecture.py", "tests/restart")
    assert " passed" in said and " failed" not in said
