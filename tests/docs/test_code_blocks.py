"""Code blocks of the pages: Python and shell can parse them, and each command is on a line of its own."""

from __future__ import annotations

import ast
import re
import subprocess
import textwrap
from collections.abc import Iterator

import pytest

from tests.docs.markdown import blocks
from tests.support.servers import PROJECT

PAGES = sorted(path for path in PROJECT.rglob("*.md") if not {".venv", "build"} & set(path.parts))
_PROGRAMS = {"curl", "docker", "echo", "grep", "java", "kafka-compat", "kcat", "pip", "python3", "until"}
_PROGRAM = re.compile(r"(scripts|\.venv/bin)/[\w-]+|kafka-[\w-]+\.sh")


def code(*languages: str) -> Iterator[tuple[str, str]]:
    for path in PAGES:
        for language, text in blocks(path.read_text()):
            if language in languages:
                yield str(path.relative_to(PROJECT)), textwrap.dedent(text)


def unknown_programs(script: str) -> list[str]:
    joined = re.sub(r"(^|\s)#[^\n]*", "", script.replace("\\\n", " "))
    first = [line.split()[:1] for line in re.sub(r"'[^']*'|\"[^\"]*\"", "", joined).splitlines()]
    return [word for (word,) in filter(None, first) if word not in _PROGRAMS and not _PROGRAM.fullmatch(word)]


def test_python_blocks_can_be_parsed() -> None:
    for page, text in code("python"):
        try:
            ast.parse(text)
        except SyntaxError as error:
            pytest.fail(f"{page}: {error} in\n{text}")


def test_shell_blocks_contain_one_command_per_line() -> None:
    """A paragraph filled by an editor would join commands, and put the end of a comment on its own line."""
    assert unknown_programs("scripts/run # one broker scripts/run\n--brokers 3 # three") == ["--brokers"]
    for page, text in code("sh", "bash"):
        checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, f"{page}: {checked.stderr}"
        assert not unknown_programs(text), f"{page}: {unknown_programs(text)}"
