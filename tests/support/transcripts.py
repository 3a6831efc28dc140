"""Transcripts: text files of blocks, each with its commands, a line of dashes, and the outcome."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"
SEPARATOR = "----"


def transcripts(folder: str) -> list[Path]:
    """Return the transcripts of one state machine, under tests/transcripts."""
    return sorted((TRANSCRIPTS / folder).glob("*.txt"))


def check_transcript(path: Path, play: Callable[[str], str]) -> None:
    """Run the commands of each block, and compare the outcome.

    If KAFKA_COMPAT_REWRITE_TRANSCRIPTS is set, rewrite the file instead.
    """
    told = path.read_text()
    happened = _played(told, play)
    if os.environ.get("KAFKA_COMPAT_REWRITE_TRANSCRIPTS"):
        path.write_text(happened)
    else:
        assert happened == told


def _played(told: str, play: Callable[[str], str]) -> str:
    blocks = []
    for block in told.rstrip("\n").split("\n\n"):
        commands, separator, _ = block.partition(f"\n{SEPARATOR}")
        only_comments = not separator and all(line.startswith("#") for line in block.splitlines())
        blocks.append(block if only_comments else f"{commands}\n{SEPARATOR}\n{play(commands)}".rstrip())
    return "\n\n".join(blocks) + "\n"
