"""Command lines of `serve` that are parsed without argparse have the same meaning as with argparse."""

from __future__ import annotations

import itertools

import pytest

from kafka_compat import cli
from kafka_compat.cli import serve

_WORDS = ("a", "--env", "--override", "x=1", "--override=y=2", "--port", "5", "--port=0", "--json", "-1")
_FOR_ARGPARSE = ("--brokers", "--", "--override=", "--port=99999", "--over", "--help", "--stop_at_eof")


def test_simple_command_lines_have_the_same_meaning_with_argparse(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [list(line) for count in range(4) for line in itertools.product(_WORDS, repeat=count)]
    simple = {tuple(line): serve.parse_simple(line) for line in lines}
    parsed = [line for line in lines if simple[tuple(line)] is not None]
    assert len(parsed) > 200
    monkeypatch.setattr(serve, "parse_simple", lambda words: None)
    for line in parsed[::7]:
        with_argparse = vars(cli._parse(["serve", *line]))
        given = vars(simple[tuple(line)])
        assert {name: with_argparse[name] for name in given} == given, line


@pytest.mark.parametrize("word", _FOR_ARGPARSE)
def test_other_command_lines_are_left_to_argparse(word: str) -> None:
    assert serve.parse_simple([word]) is None


def test_serve_starts_without_importing_argparse(capfd: pytest.CaptureFixture[str]) -> None:
    import subprocess
    import sys

    program = (
        "import sys; sys.modules['argparse'] = None; from kafka_compat import cli; "
        "print(cli._parse(['serve', '--port', '0', '--ephemeral']).ephemeral)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert capfd.readouterr().out == "True\n"
