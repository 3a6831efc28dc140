"""The programs in docs/testing.md, run unchanged."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import campaign, kafka_jars
from tests.testing.left_over import folders

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "testing.md").read_text()


def programs(language: str) -> list[str]:
    """Return the page's code blocks in the given language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


JUNIT = ("org.junit.platform", "junit-platform-console-standalone", "1.11.4")
PYTHON = programs("python")


def run(*command: str, folder: Path, patience_s: float = 120) -> str:
    """Run the command, which must exit with 0, and return its output."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_ADDOPTS": "", "PATH": tools}
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=patience_s
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_each_python_program_on_the_page_runs(tmp_path: Path, number: int) -> None:
    text = PYTHON[number]
    if "def test_" in text:
        (tmp_path / "test_page.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        assert " passed" in run(sys.executable, "-m", "pytest", "-q", folder=tmp_path)
    else:
        run(sys.executable, "-c", text, folder=tmp_path)
    assert not folders()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_node_program_on_the_page_runs(tmp_path: Path) -> None:
    (program,) = programs("js")
    said = run("node", "-e", program, folder=tmp_path)
    assert re.match(r"bootstrap.servers: 127\.0\.0\.1:\d+\nfaults: 6\nahead by 604800000 ms\n$", said)
    assert not folders()


@pytest.mark.timeout(600)
@pytest.mark.skipif(not campaign.enabled(), reason="in campaigns")
def test_the_junit_test_on_the_page_passes(tmp_path: Path) -> None:
    (program,) = (text for text in programs("java") if "class LostResponseTest" in text)
    (tmp_path / "LostResponseTest.java").write_text(program)
    junit = kafka_jars.cache_directory() / "junit"
    jar = junit / f"{JUNIT[1]}-{JUNIT[2]}.jar"
    if not jar.is_file():
        copied = ["dependency:copy", f"-Dartifact={':'.join(JUNIT)}", f"-DoutputDirectory={junit}"]
        run("mvn", "--quiet", "--batch-mode", *copied, folder=tmp_path)
    class_path = os.pathsep.join([str(jar), kafka_jars.class_path("3.9.1"), "."])
    run("javac", "-cp", class_path, "LostResponseTest.java", folder=tmp_path)
    launcher = "org.junit.platform.console.ConsoleLauncher"
    selected = ["execute", "--select-class", "LostResponseTest"]
    said = run("java", "-cp", class_path, launcher, *selected, folder=tmp_path)
    assert "1 tests successful" in said, said
    assert not folders()


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_the_go_program_on_the_page_runs(tmp_path: Path) -> None:
    (program,) = programs("go")
    (tmp_path / "main.go").write_text(program)
    # On a new machine, Go first compiles its standard library, which takes 20 s of CPU time.
    run("go", "build", "-o", "program", "main.go", folder=tmp_path, patience_s=500)
    said = run(str(tmp_path / "program"), folder=tmp_path)
    faults = "".join(f"fault {number}\n" for number in range(1, 5))
    expected = rf"bootstrap.servers: 127\.0\.0\.1:\d+\n{faults}ahead by 604800000 ms\n$"
    assert re.match(expected, said), said
    assert not folders()


def test_the_page_contains_at_least_five_python_programs() -> None:
    assert len(PYTHON) >= 5
