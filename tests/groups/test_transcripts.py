"""What a group does, told by the transcripts in tests/transcripts/groups.

After a change that is meant, KAFKA_COMPAT_REWRITE_TRANSCRIPTS=1 writes down what happens now, for `git diff`
to show.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.groups.transcript import Player

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts" / "groups"
SEPARATOR = "----"


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    told = path.read_text()
    happened = _play(told)
    if os.environ.get("KAFKA_COMPAT_REWRITE_TRANSCRIPTS"):
        path.write_text(happened)
    else:
        assert happened == told


def _play(told: str) -> str:
    player = Player()
    blocks = []
    for block in told.rstrip("\n").split("\n\n"):
        commands, separator, _ = block.partition(f"\n{SEPARATOR}")
        only_comments = not separator and all(line.startswith("#") for line in block.splitlines())
        blocks.append(block if only_comments else f"{commands}\n{SEPARATOR}\n{player.play(commands)}")
    return "\n\n".join(blocks) + "\n"
