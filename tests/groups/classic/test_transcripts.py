"""The behaviour of a group, documented by the transcripts in tests/transcripts/groups.

After an intended change, set KAFKA_COMPAT_REWRITE_TRANSCRIPTS=1 to update the transcripts, and review them
with `git diff`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups.classic.transcript import Player
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("groups"), ids=lambda path: path.stem)
def test_a_group_reacts_to_requests_as_each_transcript_describes(path: Path) -> None:
    check_transcript(path, Player().play)
