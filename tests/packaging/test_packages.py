"""Contents of the packages: the files in the directories of the project."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_setup_cfg_lists_every_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(PROJECT / "setup.cfg")
    folders = {path.parent.relative_to(PROJECT) for path in PROJECT.glob("kafka_compat/**/__init__.py")}
    for name in ("storage", "coordination"):
        found = PROJECT.glob(f"{name}/**/__init__.py")
        folders |= {"kafka_compat" / path.parent.relative_to(PROJECT) for path in found}
    listed = setup["options"]["packages"].split()
    assert sorted(listed) == sorted({".".join(folder.parts) for folder in folders})


def test_a_fresh_checkout_runs_without_symbolic_links_or_installation(tmp_path: Path) -> None:
    """The checkout is as after `git clone`: libraries are available, but kafka-compat is not installed."""
    for name in ("kafka_compat", "storage", "coordination"):
        shutil.copytree(
            PROJECT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("storage", "coordination"):
        (tmp_path / "kafka_compat" / name).unlink()
    asked = (
        "import kafka_compat.cli, kafka_compat.storage.log.log as log;"
        "import kafka_compat.coordination.zookeeper_store.zookeeper as store;"
        "print(log.__file__, store.__file__)"
    )
    # Hide the compiled build, which its tests find through these variables.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    printed = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert printed.split() == [
        str(tmp_path / "storage" / "log" / "log.py"),
        str(tmp_path / "coordination" / "zookeeper_store" / "zookeeper.py"),
    ]


def test_symbolic_links_are_not_in_git() -> None:
    """Symbolic links are lost when a checkout is copied as plain files."""
    listed = subprocess.run(
        ["git", "ls-files", "-s"], cwd=PROJECT, capture_output=True, text=True, timeout=60
    ).stdout
    assert [line for line in listed.splitlines() if line.startswith("120000")] == []
