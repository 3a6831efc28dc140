"""Scripts run as the first command in a clean checkout with an empty home directory, and in any order."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from tests.packaging import wheels
from tests.packaging.checkouts import Checkout
from tests.support import campaign

campaign_only = pytest.mark.skipif(not campaign.enabled(), reason="takes minutes: with --campaign")


@campaign_only
@pytest.mark.timeout(1200)
def test_a_clean_checkout_runs_and_compiles_without_extras(tmp_path: Path) -> None:
    """`scripts/run` installs no extras, and mypyc, which `scripts/compile` runs next, checks the types of the
    compiled modules and everything that they import. mypyc has succeeded if the C compiler is called; here,
    the compiler always fails.
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
def test_the_run_compile_and_build_wheel_scripts_work_in_every_order(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
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
    assert [line for line in changed if not line.startswith("A ")] == [], "the scripts left untracked files"


@campaign_only
@pytest.mark.timeout(600)
def test_scripts_docs_can_be_the_first_command_in_a_checkout(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    assert checkout.run("docs").strip().endswith("build/site/index.html")
    assert (checkout.folder / "build" / "site" / "index.html").is_file()


@campaign_only
@pytest.mark.timeout(3600)
def test_scripts_test_can_be_the_first_command_in_a_checkout(tmp_path: Path) -> None:
    """All test dependencies and extras are installed, and ruff, mypy and import-linter pass."""
    checkout = Checkout(tmp_path)
    said = checkout.run("test", "tests/test_architecture.py", "tests/restart")
    assert " passed" in said and " failed" not in said
