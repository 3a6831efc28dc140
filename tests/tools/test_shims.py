"""Kafka's commands are installed under all their names, and shells can complete their flags."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_compat.tools.options import KAFKA_VERSION
from kafka_compat.tools.registry import TOOLS
from tests.support import campaign, java
from tests.support.servers import PROJECT, run_kafka_compat
from tests.tools.world import Pair


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("bin")
    assert run_kafka_compat("tools", "--install", str(found)).returncode == 0
    return found


def test_each_command_is_installed_under_both_its_names(folder: Path) -> None:
    names = {f"kafka-{tool}{end}" for tool in TOOLS for end in ("", ".sh")}
    assert {path.name for path in folder.iterdir()} == names
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())


@pytest.mark.parametrize("name", ["kafka-topics", "kafka-topics.sh"])
def test_an_installed_command_can_run_in_any_directory(folder: Path, tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [folder / name, "--version"], capture_output=True, text=True, cwd=tmp_path, env={}, check=True
    )
    assert done.stdout.strip() == KAFKA_VERSION


@pytest.mark.parametrize("name", ["topics", "kafka-topics", "kafka-topics.sh"])
def test_the_program_accepts_every_name_of_a_command(name: str) -> None:
    assert run_kafka_compat(name, "--version").stdout.strip() == KAFKA_VERSION


def test_a_link_to_the_program_runs_the_command_of_that_name(tmp_path: Path) -> None:
    program = tmp_path / "kafka-configs.sh"
    main = "import sys; sys.path[:0] = [{!r}]; from kafka_compat.cli import main; sys.exit(main())"
    program.write_text(main.format(str(PROJECT)))
    done = subprocess.run([sys.executable, program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == KAFKA_VERSION


def test_bash_completes_command_flags() -> None:
    script = run_kafka_compat("completion", "bash").stdout
    script += """
COMP_WORDS=(kafka-compat topics --rep); COMP_CWORD=2; _kafka_compat topics --rep; echo "${COMPREPLY[@]}"
COMP_WORDS=(kafka-acls.sh --deny-h); COMP_CWORD=1; _kafka_compat acls --deny-h; echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["--replica-assignment --replication-factor", "--deny-host"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_flags_are_listed_for_other_shells(shell: str) -> None:
    assert "replication-factor" in run_kafka_compat("completion", shell).stdout


def test_a_command_starts_much_faster_than_a_jvm(folder: Path, pair: Pair) -> None:
    """On an idle machine, it takes at most a twentieth of the time."""
    line = ["--bootstrap-server", pair.sides[0].address, "--list"]
    ours = _least_s([str(folder / "kafka-topics"), *line], 20)
    hers = _least_s(java.command("kafka-topics", *line, jvm_options=()), campaign.rounds(2, 5))
    assert ours < hers / campaign.rounds(5, 20), f"{ours:.3f} s, compared with {hers:.3f} s"


def _least_s(line: list[str], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - began)
    return min(taken)


def test_commands_that_do_not_print_tables_reject_the_json_flag() -> None:
    refused = run_kafka_compat("dump-log", "--files", "absent.log", "--json")
    assert refused.returncode == 1
    assert "json is not a recognized option" in refused.stderr
